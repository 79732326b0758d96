// The settings that the files for hosts may name, by the process that takes them.

import { BOOST_SETTINGS } from "../../boost-proxy/config.ts";
import { RELAY_SETTINGS } from "../../relay/config.ts";
import type { SettingTable } from "../../shared/config.ts";
import { stopLimitMs } from "../../shared/lifecycle.ts";

/** By process. */
export const DEPLOY_SETTINGS: Readonly<Record<"relay" | "boost", SettingTable>> = {
	relay: RELAY_SETTINGS,
	boost: BOOST_SETTINGS,
};

/** The settings of both. */
export const ALL_SETTINGS: SettingTable = { ...RELAY_SETTINGS, ...BOOST_SETTINGS };

/** How long a stop may take by default, in ms. */
export const STOP_MS: number = stopLimitMs(Number(RELAY_SETTINGS.DRAIN_SECONDS.default));
