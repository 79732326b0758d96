// The relay's process: starts the relay from the environment, or says in one line which setting is wrong. Everything
// else is made in relay.ts.

import { runProcess } from "../shared/process.ts";
import { RELAY_SETTINGS, readRelayConfig } from "./config.ts";
import { createRelay } from "./relay.ts";

await runProcess(
	{
		name: "relay",
		about: "takes signed transactions privately and sends them to block builders",
		settings: RELAY_SETTINGS,
		read: readRelayConfig,
		create: createRelay,
	},
	{ args: process.argv.slice(2), env: process.env, exit: (code) => process.exit(code) },
);
