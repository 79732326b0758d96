// Benchmarks of several relays on one database: what the core spends on what comes through an edge,
// and how fast news are there.

import { systemClock } from "../../shared/clock.ts";
import { HolderReader } from "../../shared/kv/postgres/holder.ts";
import { type DevChain, startDevChain } from "../devnet/devChain.ts";
import { freePort } from "../devnet/freePort.ts";
import { startPostgres } from "../support/postgresServer.ts";
import { readyStatus } from "../support/processes.ts";
import type { TestAccount } from "../support/txFactory.ts";
import { until } from "../support/until.ts";
import { MeasuredProcess } from "./childProcess.ts";
import {
	benchAccounts,
	benchTransaction,
	CONNECTIONS,
	delivered,
	type Figure,
	fund,
	load,
	median,
	type Relay,
	send,
	startRelay,
	startSink,
	submissionOf,
} from "./load.ts";

const RELAYS = 4;
const SENDERS = 1_500;
/** The first one of each is not counted: the code is cold then, and the accounts are not known. */
const ROUNDS = 5;
const START_MS = 60_000;
/**
 * For so many searchers on an edge: how many transactions they are shown, and the pause between
 * two, in ms.
 */
const CROWDS = [
	{ count: 10, news: 50, pauseMs: 20 },
	{ count: 100, news: 50, pauseMs: 20 },
	{ count: 1_000, news: 100, pauseMs: 50 },
	{ count: 10_000, news: 30, pauseMs: 500 },
] as const;
/** The size at which as many are on the core at the same time. */
const COMPARED = 1_000;
/** Transactions that are shared as fast as can be. */
const FAST_NEWS = 600;

/** A relay of several, as the benchmarks use it. */
interface System {
	readonly chain: DevChain;
	readonly databaseUrl: string;
	readonly core: Relay;
	readonly edges: readonly Relay[];
}

/** Runs it; takes about two minutes. */
export async function benchScale(): Promise<readonly Figure[]> {
	const chain = await startDevChain();
	const sink = await startSink();
	const postgres = await startPostgres({ connections: 100 });
	const relays: Relay[] = [];
	try {
		const databaseUrl = await postgres.newDatabase();
		for (let i = 0; i < RELAYS; i += 1) {
			const port = String(await freePort());
			const own = { PORT: port, INTERNAL_URL: `http://127.0.0.1:${port}` };
			const relay = await startRelay(chain, sink.url, { DATABASE_URL: databaseUrl, ...own });
			relays.push(relay);
			await until("it is ready", async () => (await readyStatus(relay.url)) === 200, START_MS);
		}
		const [core, ...edges] = relays as [Relay, ...Relay[]];
		const system = { chain, databaseUrl, core, edges };
		const figures = [...(await submissions(system)), ...(await feeds(system))];
		// One edge that serves is left.
		for (const relay of relays.splice(2)) await relay.stop();
		return [...figures, ...(await manyEdges(system))];
	} finally {
		for (const relay of relays) await relay.stop();
		await postgres.stop();
		await sink.stop();
		await chain.stop();
	}
}

/** Sent to the core alone, through one edge, and to all of two and of four relays, in turns. */
async function submissions({ chain, core, edges }: System): Promise<readonly Figure[]> {
	const accounts = benchAccounts(SENDERS);
	await fund(chain, accounts);
	const relays = [core, ...edges];
	const ways = [[core], edges.slice(0, 1), relays.slice(0, 2), relays].map((to) => ({
		to,
		micros: [] as number[],
		rates: [] as number[],
	}));
	let nonce = 0;
	for (let round = 0; round < ROUNDS; round += 1) {
		for (const { to, micros, rates } of round % 2 === 0 ? ways : [...ways].reverse()) {
			const before = core.process.cpuMicros();
			const share = Math.ceil(accounts.length / to.length);
			const begun = performance.now();
			const sent = await Promise.all(
				to.map((relay, i) => send(relay, accounts.slice(i * share, (i + 1) * share), nonce, nonce + 1)),
			);
			const seconds = (performance.now() - begun) / 1000;
			const count = sent.reduce((sum, one) => sum + one.count, 0);
			nonce += 1;
			await delivered(core);
			if (round === 0) continue;
			micros.push((core.process.cpuMicros() - before) / count);
			rates.push(count / seconds);
		}
	}
	const [direct = 0, through = 0] = ways.map(({ micros }) => median(micros));
	const [one = 0, edge = 0, two = 0, four = 0] = ways.map(({ rates }) => median(rates));
	return [
		{ name: "a submission's CPU time in the core, sent to it", value: `${direct.toFixed(0)} µs` },
		{ name: "  sent through an edge, times that (goal: 0.75 at most)", value: (through / direct).toFixed(2) },
		{ name: "durable submissions a second by the clock, to the core", value: one.toFixed(0) },
		{ name: "  through an edge", value: edge.toFixed(0) },
		{ name: "  to two relays", value: two.toFixed(0) },
		{ name: "  to four relays", value: four.toFixed(0) },
	];
}

/**
 * Searchers on an edge, and at one size as many on the core at the same time: when each transaction
 * is shown to them.
 */
async function feeds({ chain, core, edges: [edge] }: System): Promise<readonly Figure[]> {
	if (edge === undefined) return [];
	const figures: Figure[] = [];
	for (const [i, { count, news, pauseMs }] of CROWDS.entries()) {
		const at = count === COMPARED ? [edge, core] : [edge];
		const groups = await Promise.all(at.map(({ url }) => startSearchers(url, count)));
		const accounts = benchAccounts(10_000 + (i + 1) * 1_000).slice(-news);
		await fund(chain, accounts);
		const before = edge.process.cpuMicros();
		const sent = await share(core, accounts, pauseMs);
		const told = await Promise.all(groups.map((group) => group.times(sent.size)));
		const frame = (edge.process.cpuMicros() - before) / (sent.size * count);
		for (const group of groups) await group.stop();
		const [onEdge, onCore] = told as [Told, Told | undefined];
		const after = (times: Told, which: 0 | 1) =>
			ms(median([...sent].map(([hash, sentAt]) => (times.get(hash)?.[which] ?? Number.NaN) - sentAt)));
		const searchers = `${count.toLocaleString("en")} searchers`;
		figures.push(
			{ name: `${searchers} on an edge: the median has it after`, value: after(onEdge, 0) },
			{ name: "  the last one", value: after(onEdge, 1) },
			{
				name: "  CPU time of the edge for each of them",
				value: `${frame.toFixed(1)} µs`,
				growth: { chart: "CPU of a frame, by searchers", at: count },
			},
		);
		if (onCore === undefined) continue;
		const later = [...sent.keys()].map(
			(hash) => (onEdge.get(hash)?.[0] ?? Number.NaN) - (onCore.get(hash)?.[0] ?? 0),
		);
		figures.push(
			{ name: `  ${searchers} on the core: the median has it after`, value: after(onCore, 0) },
			{ name: "  on the edge later by (goal: under 10 ms)", value: ms(median(later)) },
		);
	}
	return figures;
}

/** The core's cost of a disclosed transaction with one edge, with four and with sixteen. */
async function manyEdges({ chain, core, databaseUrl }: System): Promise<readonly Figure[]> {
	const reader = new HolderReader(
		{ url: databaseUrl, verify: false, name: "bench", store: "relay" },
		{ clock: systemClock },
	);
	const secret = (await reader.read())?.secret ?? "";
	await reader.close();
	const figures: Figure[] = [];
	// The first round is not counted: the code is cold then.
	for (const [i, count] of [1, 1, 4, 16].entries()) {
		const more = count - 1;
		const fakes =
			more === 0
				? null
				: MeasuredProcess.part("edges", { TARGET_URL: core.url, COUNT: String(more), SECRET: secret });
		await fakes?.printed(/edges ready/);
		const accounts = benchAccounts(20_000 + (i + 1) * FAST_NEWS).slice(-FAST_NEWS);
		await fund(chain, accounts);
		const bodies = accounts.map((account) => submissionOf(benchTransaction(account, 0)));
		const before = core.process.cpuMicros();
		await load(`${core.url}/maxbackruns`, bodies, CONNECTIONS);
		await delivered(core);
		const micros = (core.process.cpuMicros() - before) / bodies.length;
		if (i > 0)
			figures.push({
				name: `a shared transaction's CPU time in the core, ${count} ${count === 1 ? "edge" : "edges"}`,
				value: `${micros.toFixed(0)} µs`,
				growth: { chart: "CPU of a disclosure in the core, by edges", at: count },
			});
		await fakes?.stop();
	}
	return figures;
}

/**
 * When each hash was known to the searcher in the middle and to the last one, in ms since the
 * epoch.
 */
type Told = ReadonlyMap<string, readonly [middle: number, last: number]>;

async function startSearchers(url: string, count: number) {
	const process = MeasuredProcess.part("searchers", { TARGET_URL: url, COUNT: String(count) });
	const told = new Map<string, readonly [number, number]>();
	process.onLine((line) => {
		const [, hash, middle, last] = /^told (\S+) (\S+) (\S+)$/.exec(line) ?? [];
		if (hash !== undefined) told.set(hash, [Number(middle), Number(last)]);
	});
	await process.printed(/searchers ready/);
	return {
		/** Waits for so many transactions. */
		async times(wanted: number): Promise<Told> {
			await until("all searchers were notified", () => told.size >= wanted, START_MS);
			return told;
		},
		stop: () => process.stop(),
	};
}

/**
 * Submits a transaction of each account that is shown to all searchers at once; resolves to when
 * each was sent, by hash.
 */
async function share(
	core: Relay,
	accounts: readonly TestAccount[],
	pauseMs: number,
): Promise<ReadonlyMap<string, number>> {
	const sent = new Map<string, number>();
	for (const account of accounts) {
		const body = submissionOf(benchTransaction(account, 0));
		const at = performance.timeOrigin + performance.now();
		const { answers } = await load(`${core.url}/maxbackruns`, [body], 1);
		const hash = (JSON.parse(answers[0] ?? "{}") as { result?: string }).result;
		if (hash === undefined) throw new Error(`a submission was refused: ${answers[0]}`);
		sent.set(hash, at);
		await new Promise((resolve) => setTimeout(resolve, pauseMs));
	}
	return sent;
}

function ms(value: number): string {
	return `${value.toFixed(1)} ms`;
}
