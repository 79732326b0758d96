// A rolling restart of three relays and then of two boost instances, each kind on one PostgreSQL
// and behind balancers without stickiness, with a crowd of searchers on the relays' websockets and
// submissions through boost: what happened, for a test to judge. All of them are real processes, of
// the crowd as many as its open files take.

import { execFileSync } from "node:child_process";
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

/** The observations of a run. */
export interface RollingOutcome {
	/** By restart, ms from the signal until all websockets were open again. */
	readonly backMs: readonly number[];
	/** By restart, ms from the signal to the end of the process. */
	readonly endMs: readonly number[];
	/** The longest that a relay has kept its event loop, in ms, but for the start of its process. */
	readonly heldMs: number;
	/** By restart of a boost instance, ms from the signal to the end of the process. */
	readonly boostEndMs: readonly number[];
	/** How often a websocket was closed, by code. */
	readonly codes: Readonly<Record<string, number>>;
	/** Transactions that were disclosed to the searchers. */
	readonly disclosed: number;
	/** How often one of these did not come to a websocket that was open, and came twice to one. */
	readonly lost: number;
	readonly twice: number;
	/** Transactions that were submitted through boost. */
	readonly sent: readonly Sent[];
	/** Hashes of those that are mined. */
	readonly mined: ReadonlySet<string>;
}

const RELAYS = 3;
const BOOSTS = 2;
/** Transactions a second. */
const RATE = 10;
/**
 * Paths of the transactions, in turn. A plain transfer is disclosed on the last one only; each is
 * written to all searchers.
 */
const PATHS = [
	...Array.from({ length: 14 }, (_, i) => (i % 2 === 0 ? "/fast" : "/noreverts")),
	"/maxbackruns",
];
const OPEN_MS = 120_000;
const MINED_MS = 60_000;
const NEWS_MS = 30_000;
/** A searcher's own socket, and both of the balancer's. */
const FILES_EACH = 3;
/**
 * Open files of a process beside its websockets: its code, its database, the other processes, and
 * what is being closed.
 */
const OTHER_FILES = 1_000;
/**
 * The part of all websockets that one relay may have after the other two were restarted by turns:
 * new ones go to those that are ready.
 */
const MOST_OF_ALL = 3 / 4;

/** Restarts each relay once, one after another. */
export async function rollingRestart({ websockets, drainSeconds }: RollingRestart): Promise<RollingOutcome> {
	const parts = partsOf(websockets);
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
		const boostPorts = await Promise.all(Array.from({ length: BOOSTS }, freePort));
		const boosts: RelayProcess[] = [];
		stops.push(() => Promise.all(boosts.map((boost) => boost.kill())));
		const startBoost = (port: number): Promise<RelayProcess> =>
			startRelayProcess({
				entry: "boost-proxy/main.ts",
				env: {
					...boostEnv({
						relayUrl: balancer.url,
						fallbackUrl: world.fallbackUrl,
						folder: world.folder("boost"),
					}),
					...{ PORT: String(port), DATABASE_URL: database, DRAIN_SECONDS: String(drainSeconds) },
					// The fallback is in this busy process, which must not look like an outage of its own.
					...{ PROBE_TIMEOUT_MS: "3000", REQUEST_BUDGET_MS: "20000", LOG_LEVEL: "info" },
				},
			});
		for (const port of boostPorts) boosts.push(await startBoost(port));
		const boostBalancer = await startBalancer(0, boostPorts);
		stops.push(() => boostBalancer.stop());
		const traffic = new Traffic({
			url: boostBalancer.url,
			rate: RATE,
			paths: PATHS,
			refusedEvery: 0,
			chainEvery: 0,
			retries: false,
			isAnew: true,
			fresh: world.nextAccount,
			poor: world.poorAccount(),
		});
		stops.push(() => traffic.stop());
		const crowd: LaunchedRelay[] = [];
		stops.push(() => Promise.all(crowd.map((part) => part.kill())));
		for (const { first, count } of parts) {
			const env = { RELAY_PORTS: ports.join(","), FIRST: String(first), COUNT: String(count) };
			crowd.push(launchRelay({ entry: "test/scale/searcherCrowd.ts", env }));
		}
		const isWhole = () => toldBy(crowd).open === websockets;
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
		const boostEndMs: number[] = [];
		for (const [i, port] of boostPorts.entries()) {
			const begun = performance.now();
			boosts[i]?.signal("SIGTERM");
			await boosts[i]?.ended(60_000);
			boostEndMs.push(performance.now() - begun);
			boosts[i] = await startBoost(port);
			const count = traffic.sent.length;
			await until("there is traffic after it", () => traffic.sent.length > count + RATE);
		}
		await traffic.stop();
		const { sent } = traffic;
		await until(
			"what was submitted is mined",
			() => sent.every(({ hash }) => world.mined.has(hash)),
			MINED_MS,
		).catch(() => {});
		await until("all news came", () => toldBy(crowd).missing === 0, NEWS_MS).catch(() => {});
		const { codes, disclosed, missing, lost, twice } = toldBy(crowd);
		const news = { codes, disclosed, lost: lost + missing, twice };
		return { backMs, endMs, heldMs, boostEndMs, ...news, sent, mined: new Set(world.mined) };
	} finally {
		for (const stop of stops.reverse()) await stop();
	}
}

/**
 * The searchers of each process of the crowd. Throws where this machine lets no process have as
 * many files as it takes.
 */
function partsOf(websockets: number): readonly { readonly first: number; readonly count: number }[] {
	// Node itself raises a process's soft limit to the hard one.
	const limit = Number(
		execFileSync("sh", ["-c", "ulimit -Hn"], { encoding: "utf8" }).replace("unlimited", "Infinity"),
	);
	const relay = Math.ceil(websockets * MOST_OF_ALL) + OTHER_FILES;
	if (limit < relay)
		throw new Error(`ulimit -Hn is ${limit}: a relay of ${websockets} searchers takes ${relay} files`);
	const most = Math.floor((limit - OTHER_FILES) / FILES_EACH);
	const length = Math.max(1, Math.ceil(websockets / most));
	const firsts = Array.from({ length: length + 1 }, (_, i) => Math.floor((websockets * i) / length));
	return firsts
		.slice(1)
		.map((end, i) => ({ first: firsts[i] as number, count: end - (firsts[i] as number) }));
}

interface Told {
	readonly open: number;
	readonly codes: Readonly<Record<string, number>>;
	readonly disclosed: number;
	/** By now, to websockets that are open. */
	readonly missing: number;
	readonly lost: number;
	readonly twice: number;
}

/** The last reports of the crowd's processes, together. */
function toldBy(crowd: readonly LaunchedRelay[]): Told {
	const all = crowd.map(lastOf);
	const codes: Record<string, number> = {};
	for (const told of all)
		for (const [code, count] of Object.entries(told.codes)) codes[code] = (codes[code] ?? 0) + count;
	const sum = (of: (told: Told) => number): number => all.reduce((before, told) => before + of(told), 0);
	return {
		open: sum(({ open }) => open),
		codes,
		disclosed: Math.max(0, ...all.map(({ disclosed }) => disclosed)),
		missing: sum(({ missing }) => missing),
		lost: sum(({ lost }) => lost),
		twice: sum(({ twice }) => twice),
	};
}

const NOTHING: Told = { open: 0, codes: {}, disclosed: 0, missing: 0, lost: 0, twice: 0 };

function lastOf({ stdout }: LaunchedRelay): Told {
	const end = stdout.lastIndexOf("\n");
	return end < 0 ? NOTHING : JSON.parse(stdout.slice(stdout.lastIndexOf("\n", end - 1) + 1, end));
}
