// Boost's process: reads the settings, warns of questionable ones, and starts the proxy.

import { systemClock } from "../shared/clock.ts";
import type { Component } from "../shared/lifecycle.ts";
import type { Logger } from "../shared/log.ts";
import { addressFinder, createLookup } from "../shared/outgoing/lookup.ts";
import { runProcess } from "../shared/process.ts";
import {
	BOOST_SETTINGS,
	type BoostConfig,
	readBoostConfig,
	sameUpstream,
	sameUpstreamWarning,
	startWarnings,
} from "./config.ts";
import { createProxy } from "./proxy.ts";

await runProcess(
	{
		name: "boost",
		about: "proxy in front of the relay that uses another relay while it is down",
		settings: BOOST_SETTINGS,
		// An ended row has no birth record any more, so no entries need to be salvaged together.
		pair: null,
		read: readBoostConfig,
		create: (config, dependencies) => warning(createProxy(config, dependencies), config, dependencies.log),
	},
	{ args: process.argv.slice(2), env: process.env, exit: (code) => process.exit(code) },
);

/** The proxy; its start also logs warnings for the operator. */
function warning(proxy: Component, config: BoostConfig, log: Logger): Component {
	return {
		name: proxy.name,
		async start() {
			for (const text of startWarnings(config)) log.warn(text);
			await proxy.start();
			const addressesOf = addressFinder(createLookup({}, { clock: systemClock }));
			void sameUpstream(config, { clock: systemClock, addressesOf }).then((same) => {
				if (same !== null) log.warn(sameUpstreamWarning(same));
			});
		},
		stop: () => proxy.stop(),
	};
}
