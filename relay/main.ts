// The relay's process: the environment and arguments come in, a running relay goes out, or one line that says what
// is wrong with a setting. Everything else is made in relay.ts.

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
