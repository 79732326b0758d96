// Boost beside bare proxies, in one run and before the same relay that does nothing: CPU time per read and per
// submission, beside the parts of a submission alone, and how much later answers come.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Pool } from "undici";
import { MeasuredProcess, procfileFlags } from "./childProcess.ts";
import { type BenchProxy, startInstalledProxies } from "./installedProxies.ts";
import { benchAccounts, benchTransaction, CONNECTIONS, type Figure, load, submissionOf } from "./load.ts";

/** The machine's speed drifts: all are measured in turn, so many times, and each one's best counts. */
const ROUNDS = 4;
const READS = 8_000;
const SUBMISSIONS = 4_000;
const SENDERS = 500;
/** Requests one behind another, for the time that each takes. */
const TIMED = 1_000;
/** Submissions at a steady rate, for the time that the slowest take. */
const STEADY = 4_000;
const STEADY_PER_SECOND = 200;

const READ = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_blockNumber", params: [] });

/** Runs it; takes about half a minute. */
export async function benchBoost(): Promise<readonly Figure[]> {
	const stub = MeasuredProcess.part("relayStub");
	const target = await stub.url();
	const proxies: BenchProxy[] = [];
	try {
		proxies.push(await startBoost(target));
		proxies.push(await startProxy("http-proxy", "httpProxy", target));
		proxies.push(await startProxy("undici", "undici", target));
		proxies.push(...(await startInstalledProxies(target)));
		const reads = await measure(proxies, () => new Array<string>(READS).fill(READ));
		const grown = new Map<string, number>();
		const submissions = await measure(proxies, nextSubmissions(), grown);
		const parts = await MeasuredProcess.part("boostParts").times();
		const delays = await measureDelays(target, proxies[0]?.url ?? "");
		const memory = {
			name: `boost: resident memory of an open submission, at ${(ROUNDS + 1) * SUBMISSIONS} (goal: 3 KiB at most)`,
			value: `${((grown.get("boost") ?? Number.NaN) / 1024).toFixed(1)} KiB`,
		};
		return [...figures(reads, submissions, parts, delays), memory];
	} finally {
		for (const proxy of proxies) await proxy.stop();
		await stub.stop();
	}
}

type Costs = ReadonlyMap<string, number>;

function figures(
	reads: Costs,
	submissions: Costs,
	parts: Readonly<Record<string, number>>,
	delays: readonly Figure[],
): readonly Figure[] {
	const of = (costs: Costs, name: string) => costs.get(name) ?? Number.NaN;
	const { decodeMicros = Number.NaN, putMicros = Number.NaN } = parts;
	const sum = of(submissions, "undici") + decodeMicros + putMicros;
	const rows = (costs: Costs, what: string) =>
		[...costs].map(([name, value]) => ({ name: `  ${what} by ${name}`, value: micros(value) }));
	return [
		{
			name: "boost: a read's CPU by bare http-proxy's (goal: 1.0 at most)",
			value: ratio(of(reads, "boost") / of(reads, "http-proxy")),
		},
		...rows(reads, "a read"),
		{
			name: "boost: a submission's CPU by its parts' (goal: 1.5 at most)",
			value: ratio(of(submissions, "boost") / sum),
		},
		{ name: "  the sum of: proxying by undici, decoding, journal", value: micros(sum) },
		{ name: "  decoding and recovering", value: micros(decodeMicros) },
		{ name: "  journal", value: micros(putMicros) },
		...rows(submissions, "a submission"),
		...delays,
	];
}

/** CPU time of a request in µs by name: the least of all rounds. `grown`: resident bytes that each has left. */
async function measure(
	proxies: readonly BenchProxy[],
	make: () => readonly string[],
	grown = new Map<string, number>(),
): Promise<Costs> {
	const costs = new Map<string, number>();
	const before = new Map<string, number>();
	for (let round = 0; round <= ROUNDS; round++) {
		for (const { name, process, url } of proxies) {
			const bodies = make();
			const begun = process.cpuMicros();
			const { answers } = await load(`${url}/fast`, bodies, CONNECTIONS);
			const cost = (process.cpuMicros() - begun) / bodies.length;
			const bytes = process.residentBytes();
			const first = before.get(name) ?? bytes;
			before.set(name, first);
			grown.set(name, (bytes - first) / (round * bodies.length));
			const refused = answers.find((answer) => !answer.includes('"result"'));
			if (refused !== undefined) throw new Error(`${name} did not pass a request on: ${refused}`);
			// The first round finds the code cold.
			if (round > 0) costs.set(name, Math.min(cost, costs.get(name) ?? cost));
		}
	}
	return costs;
}

/** Bodies that were never sent before, at each call. */
function nextSubmissions(): () => readonly string[] {
	const accounts = benchAccounts(SENDERS);
	let nonce = 0;
	return () => {
		const bodies: string[] = [];
		for (; bodies.length < SUBMISSIONS; nonce++) {
			for (const account of accounts) bodies.push(submissionOf(benchTransaction(account, nonce)));
		}
		return bodies;
	};
}

/** How much later the answer in the middle comes through boost than from the relay itself. */
async function measureDelays(target: string, url: string): Promise<readonly Figure[]> {
	const accounts = benchAccounts(SENDERS + TIMED + STEADY).slice(SENDERS);
	const submissions = accounts.map((account) => submissionOf(benchTransaction(account, 0)));
	const rows: Figure[] = [];
	for (const [what, bodies] of [
		["read", new Array<string>(TIMED).fill(READ)],
		["submission", submissions.slice(0, TIMED)],
	] as const) {
		const direct = await medianMs(target, bodies);
		const through = await medianMs(url, bodies);
		rows.push({
			name: `boost: a ${what} comes later, at the median (goal: under 1 ms)`,
			value: `${(through - direct).toFixed(2)} ms`,
		});
	}
	const times = await steadyMs(url, submissions.slice(TIMED));
	const at = (part: number) => times[Math.floor(times.length * part)] ?? Number.NaN;
	rows.push({
		name: `boost: at ${STEADY_PER_SECOND} submissions a second 99 of 100 are answered within, beyond the median (goal: 5 ms)`,
		value: `${(at(0.99) - at(0.5)).toFixed(1)} ms`,
	});
	return rows;
}

/** What each takes at a steady rate, whatever the others take; the shortest first. */
async function steadyMs(url: string, bodies: readonly string[]): Promise<readonly number[]> {
	const pool = new Pool(url, { connections: CONNECTIONS });
	const begun = performance.now();
	const times = await Promise.all(
		bodies.map(async (body, i) => {
			const due = begun + (i * 1_000) / STEADY_PER_SECOND;
			await pause(due - performance.now());
			return post(pool, body);
		}),
	);
	await pool.close();
	return times.sort((a, b) => a - b);
}

/** One behind another over one connection. */
async function medianMs(url: string, bodies: readonly string[]): Promise<number> {
	const pool = new Pool(url, { connections: 1 });
	const times: number[] = [];
	for (const body of bodies) times.push(await post(pool, body));
	await pool.close();
	return times.sort((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN;
}

async function post(pool: Pool, body: string): Promise<number> {
	const begun = performance.now();
	const headers = { "content-type": "application/json" };
	const answer = await pool.request({ method: "POST", path: "/fast", headers, body });
	await answer.body.text();
	return performance.now() - begun;
}

async function startBoost(target: string): Promise<BenchProxy> {
	const folder = mkdtempSync(join(tmpdir(), "leeward-bench-"));
	const process = MeasuredProcess.node("boost-proxy/main.ts", procfileFlags("boost"), {
		PORT: "0",
		HOST: "127.0.0.1",
		RELAY_URL: target,
		FALLBACK_URL: "none",
		BOOST_SECRET: "bench",
		DATA_DIR: folder,
		RATE_LIMIT_RPS: "0",
		LOG_LEVEL: "info",
	});
	return {
		name: "boost",
		process,
		url: await process.url(),
		async stop() {
			await process.stop();
			rmSync(folder, { recursive: true, force: true });
		},
	};
}

async function startProxy(name: string, part: string, target: string): Promise<BenchProxy> {
	const process = MeasuredProcess.part(part, { TARGET_URL: target }, procfileFlags("boost"));
	return { name, process, url: await process.url(), stop: () => process.stop() };
}

function micros(value: number): string {
	return `${value.toFixed(0)} µs`;
}

function ratio(value: number): string {
	return value.toFixed(2);
}
