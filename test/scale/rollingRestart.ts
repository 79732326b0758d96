// A rolling restart of three relays behind a balancer, with a crowd of searchers on their websockets and submissions through boost:
// what happened, for a test to judge. All of them are real processes.

import { setTimeout as after } from "node:timers/promises";
import { startBalancer } from "../devnet/balancer.ts";
import { freePort } from "../devnet/freePort.ts";
import { BOOST_SECRET, boostEnv } from "../faults/boostHere.ts";
import { type Sent, Traffic } from "../faults/traffic.ts";
import { startWorld } from "../faults/world.ts";
import { heldSoFar, metered } from "../support/eventLoopTime.ts";
import { startPostgres } from "../support/postgresServer.ts";
import {
	type LaunchedRelay,
	launchRelay,
	type RelayProcess,
	startRelayProcess,
} from "../support/processes.ts";
import { until } from "../support/until.ts";

export interface RollingRestart {
	readonly websockets: number;
	readonly drainSeconds: number;
}

/** What was seen. */
export interface RollingOutcome {
	/** By restart, ms from the signal until all websockets were open again. */
	readonly backMs: readonly number[];
	/** By restart, ms from the signal to the end of the process. */
	readonly endMs: readonly number[];
	/** The longest that a relay has kept its event loop, in ms, but for the start of its process. */
	readonly heldMs: number;
	/** How often a websocket was closed, by code. */
	readonly codes: Readonly<Record<string, number>>;
	/** What was submitted through boost. */
	readonly sent: readonly Sent[];
	/** Hashes of what of that is mined. */
	readonly mined: ReadonlySet<string>;
}

const RELAYS = 3;
/** Transactions a second. */
const RATE = 10;
const OPEN_MS = 120_000;
const MINED_MS = 60_000;

/** Restarts each relay once, one after another. */
export async function rollingRestart({ websockets, drainSeconds }: RollingRestart): Promise<RollingOutcome> {
	const stops: (() => Promise<unknown>)[] = [];
	try {
		const world = await startWorld({ blockMs: 400, accounts: 3_000 });
		stops.push(() => world.stop());
		const postgres = await startPostgres({ connections: 100 });
		stops.push(() => postgres.stop());
		const database = await postgres.newDatabase();
		const ports = await Promise.all(Array.from({ length: RELAYS }, freePort));
		const relays: RelayProcess[] = [];
		stops.push(() => Promise.all(relays.map((relay) => relay.kill())));
		const start = async (port: number): Promise<RelayProcess> => {
			const own = { PORT: String(port), INTERNAL_URL: `http://127.0.0.1:${port}`, DATABASE_URL: database };
			const more = { BOOST_SECRET, TRUST_PROXY: "1", DRAIN_SECONDS: String(drainSeconds), LOG_LEVEL: "info" };
			const relay = await startRelayProcess({
				env: { ...world.relayEnv, ...own, ...more },
				...metered("relay/main.ts"),
			});
			// Loading its code keeps the event loop of a process that serves nobody yet.
			await heldSoFar(relay);
			return relay;
		};
		for (const port of ports) relays.push(await start(port));
		const balancer = await startBalancer(0, ports);
		stops.push(() => balancer.stop());
		const boost = await startRelayProcess({
			entry: "boost-proxy/main.ts",
			env: {
				...boostEnv({
					relayUrl: balancer.url,
					fallbackUrl: world.fallbackUrl,
					folder: world.folder("boost"),
				}),
				// The fallback is in this busy process, which must not look like an outage of its own.
				...{ PROBE_TIMEOUT_MS: "3000", REQUEST_BUDGET_MS: "20000", LOG_LEVEL: "info" },
			},
		});
		stops.push(() => boost.kill());
		const traffic = new Traffic({
			url: boost.url,
			rate: RATE,
			paths: ["/fast", "/noreverts"],
			refusedEvery: 0,
			chainEvery: 0,
			retries: false,
			fresh: world.nextAccount,
			poor: world.poorAccount(),
		});
		stops.push(() => traffic.stop());
		const crowd = launchRelay({
			entry: "test/scale/searcherCrowd.ts",
			env: { TARGET_URL: balancer.url.replace("http", "ws"), COUNT: String(websockets) },
		});
		stops.push(() => crowd.kill());
		const isWhole = () => crowdOf(crowd).open === websockets;
		await until("all websockets are open", isWhole, OPEN_MS);
		traffic.start();
		await until("there is traffic", () => traffic.sent.length > RATE);
		const backMs: number[] = [];
		const endMs: number[] = [];
		let heldMs = 0;
		for (const [i, port] of ports.entries()) {
			const old = relays[i] as RelayProcess;
			const begun = performance.now();
			old.signal("SIGTERM");
			// Just before its end, as its drain is the time that counts.
			await after(Math.max(0, drainSeconds * 1_000 - 500));
			heldMs = Math.max(heldMs, await heldSoFar(old).catch(() => 0));
			await old.ended(60_000);
			endMs.push(performance.now() - begun);
			await until("all websockets are open again", isWhole, OPEN_MS);
			backMs.push(performance.now() - begun);
			relays[i] = await start(port);
			for (const [j, one] of relays.entries()) if (j !== i) heldMs = Math.max(heldMs, await heldSoFar(one));
		}
		await traffic.stop();
		const { sent } = traffic;
		await until(
			"what was submitted is mined",
			() => sent.every(({ hash }) => world.mined.has(hash)),
			MINED_MS,
		).catch(() => {});
		return { backMs, endMs, heldMs, codes: crowdOf(crowd).codes, sent, mined: new Set(world.mined) };
	} finally {
		for (const stop of stops.reverse()) await stop();
	}
}

/** What the crowd has said last. */
function crowdOf(crowd: LaunchedRelay): { readonly open: number; readonly codes: Record<string, number> } {
	const last = crowd.stdout.lastIndexOf('{"level":30,"msg":"crowd"');
	const end = crowd.stdout.indexOf("\n", last);
	if (last < 0) return { open: 0, codes: {} };
	const line =
		end < 0 ? crowd.stdout.slice(0, last).trim().split("\n").at(-1) : crowd.stdout.slice(last, end);
	return line === undefined || line === "" ? { open: 0, codes: {} } : JSON.parse(line);
}
