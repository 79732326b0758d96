// The relay's process. It starts the relay with the settings of the environment, or prints in one
// line which setting is wrong. relay.ts makes everything else.

import { runProcess } from "../shared/process.ts";
import { RELAY_SETTINGS, readRelayConfig } from "./config.ts";
import { createRelay, STORE_PAIR } from "./relay.ts";

await runProcess(
	{
		name: "relay",
		about: "accepts signed transactions privately and sends them to block builders",
		settings: RELAY_SETTINGS,
		pair: STORE_PAIR,
		read: readRelayConfig,
		create: createRelay,
	},
	{ args: process.argv.slice(2), env: process.env, exit: (code) => process.exit(code) },
);
