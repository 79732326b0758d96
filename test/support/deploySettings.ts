// The settings that the files for hosts may name, by the process that takes them.

import { BOOST_SETTINGS } from "../../boost-proxy/config.ts";
import { RELAY_SETTINGS } from "../../relay/config.ts";
import { integer, optional, row, type SettingTable, url } from "../../shared/config.ts";

/** In seconds. */
const DRAIN_SECONDS = row("how long a process drains", "seconds, 0 to 600", "20", integer(0, 600), "20");
/**
 * Settings that the hosts' files have already, and the tables of relay and boost have soon: theirs count as soon as they are
 * there, and then these rows go.
 */
const COMING = {
	relay: {
		INTERNAL_URL: optional(
			"where other relays reach this one",
			"a URL",
			"http://10.0.0.1:8080",
			url("http:"),
		),
		DRAIN_SECONDS,
	},
	boost: { DRAIN_SECONDS },
};

/** By process. */
export const DEPLOY_SETTINGS: Readonly<Record<"relay" | "boost", SettingTable>> = {
	relay: { ...COMING.relay, ...RELAY_SETTINGS },
	boost: { ...COMING.boost, ...BOOST_SETTINGS },
};

/** Of both. */
export const ALL_SETTINGS: SettingTable = { ...DEPLOY_SETTINGS.relay, ...DEPLOY_SETTINGS.boost };

/** How long a process may drain by default, in ms. */
export const DRAIN_MS: number = Number(ALL_SETTINGS.DRAIN_SECONDS?.default) * 1_000;
