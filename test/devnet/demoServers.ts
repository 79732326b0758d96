// Starts the demo's relay, its fallback, and boost in front of both, each as a process, and restarts the relay after
// it was killed.

import { hexlify, randomBytes } from "ethers";
import type { Scenario } from "./demo/scenario.ts";
import { AlreadyStopping, type Stops } from "./demo/stops.ts";
import { boostSettings, type DevSystem, fallbackSettings, relaySettings } from "./devSystem.ts";
import { freePort } from "./freePort.ts";
import { launchQuiet, type QuietServer } from "./quietServer.ts";

/** The relay, ready, and what may be had of the others. URLs are http. */
export interface DemoServers {
	readonly relayUrl: string;
	readonly relay: QuietServer;
	/** Starts fallback and boost, side by side, and tells where they are; boost's URL, once it is ready. */
	readonly startBoost: () => Promise<string>;
	/** Starts the relay again, on the same port and data; its pid, once it is ready. */
	readonly restart: () => Promise<number>;
	/** Keys that requests to the builder are signed with. */
	readonly keys: { readonly relay: string; readonly fallback: string };
}

/** Boost's own times are for production; one who looks on has less patience, and a busy machine is no outage. */
const IMPATIENT = {
	...{ PROBE_INTERVAL_MS: "100", BREAKER_HOLD_MS: "200", BREAKER_HOLD_MAX_MS: "1000" },
	PROBE_TIMEOUT_MS: "2000",
};

/** Starts the relay, and tells where it is. `percent`: its REFUND_PERCENT. */
export async function startServers({
	system,
	percent,
	stops,
	scenario,
}: {
	readonly system: DevSystem;
	readonly percent: string;
	readonly stops: Stops;
	readonly scenario: Scenario;
}): Promise<DemoServers> {
	const servers: QuietServer[] = [];
	stops.add(async () => {
		// At once: each goes on serving for a while.
		await Promise.all(servers.map((server) => server.stop()));
	});
	const launch = (...args: Parameters<typeof launchQuiet>): QuietServer => {
		if (stops.begun) throw new AlreadyStopping();
		const server = launchQuiet(...args);
		servers.push(server);
		return server;
	};
	const BOOST_SECRET = hexlify(randomBytes(32));
	const [relayPort, fallbackPort] = [await freePort(), await freePort()];
	const ours = relaySettings(system);
	const others = fallbackSettings(system);
	const settings = { ...ours, REFUND_PERCENT: percent, BOOST_SECRET };
	const urls = { relay: `http://127.0.0.1:${relayPort}`, fallback: `http://127.0.0.1:${fallbackPort}` };
	const relay = launch("relay", settings, relayPort);
	const relayUrl = await relay.ready();
	scenario.tell(`relay       ${relayUrl}, a process of its own (${relay.pid})`);
	return {
		...{ relayUrl, relay },
		async startBoost() {
			const fallback = launch("relay", others, fallbackPort);
			const boost = launch("boost", { ...boostSettings(system, urls), ...IMPATIENT, BOOST_SECRET });
			const [fallbackUrl, boostUrl] = await Promise.all([fallback.ready(), boost.ready()]);
			scenario.tell(`fallback    ${fallbackUrl}, another relay, which knows nothing of this one`);
			scenario.tell(`boost       ${boostUrl}, in front of both`);
			return boostUrl;
		},
		async restart() {
			const again = launch("relay", settings, relayPort);
			await again.ready();
			return again.pid;
		},
		keys: { relay: ours.SIGNING_KEY ?? "", fallback: others.SIGNING_KEY ?? "" },
	};
}
