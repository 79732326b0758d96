// Boost beside bare proxies, in one run and before the same relay that does nothing: CPU time per
// read and per submission, beside the parts of a submission alone, and how much later answers come.

import { mkdtempSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Pool } from "undici";
import { MeasuredProcess, procfileFlags } from "./childProcess.ts";
import { type BenchProxy, startInstalledProxies } from "./installedProxies.ts";
import {
	benchAccounts,
	benchTransaction,
	CONNECTIONS,
	type Figure,
	load,
	median,
	submissionOf,
} from "./load.ts";

/**
 * The machine's speed drifts: all are measured in turn, so many times, and the median of each
 * counts.
 */
const ROUNDS = 20;
/** Rounds before that, which find the code cold. */
const COLD_ROUNDS = 5;
/** In a round. */
const READS = 2_000;
const SUBMISSIONS = 800;
const SENDERS = 400;
/** Requests one behind another, for the time that each takes. */
const TIMED = 1_000;
/** Submissions at a steady rate, for the time that the slowest take. */
const STEADY = 4_000;
const STEADY_PER_SECOND = 200;
const FLUSHES = 1_000;

const READ = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_blockNumber", params: [] });

/** Runs it; takes two minutes. */
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
		proxies.push(await startProxy(PARTS, "boostParts", target));
		const grown = new Map<string, number>();
		const submissions = await measure(proxies, nextSubmissions(), grown);
		const delays = await measureDelays(target, proxies[0]?.url ?? "");
		const memory = {
			name: `boost: resident memory of an open submission, at ${(COLD_ROUNDS + ROUNDS) * SUBMISSIONS} (goal: 3 KiB at most)`,
			value: `${((grown.get("boost") ?? Number.NaN) / 1024).toFixed(1)} KiB`,
		};
		return [...figures(reads, submissions, delays), memory];
	} finally {
		for (const proxy of proxies) await proxy.stop();
		await stub.stop();
	}
}

/** Measured together in one process, since what each costs depends on the load of the machine. */
const PARTS = "its parts: proxying by undici, decoding, journal";

type Costs = ReadonlyMap<string, number>;

function figures(reads: Costs, submissions: Costs, delays: readonly Figure[]): readonly Figure[] {
	const of = (costs: Costs, name: string) => costs.get(name) ?? Number.NaN;
	const rows = (costs: Costs, what: string) =>
		[...costs].map(([name, value]) => ({
			...{ name: `  ${what} by ${name}`, value: micros(value) },
			...(name !== PARTS && { bar: { chart: `CPU of ${what}, proxied`, of: name } }),
		}));
	return [
		{
			name: "boost: a read's CPU by bare http-proxy's (goal: 1.0 at most)",
			value: ratio(of(reads, "boost") / of(reads, "http-proxy")),
		},
		...rows(reads, "a read"),
		{
			name: "boost: a submission's CPU by its parts' (goal: 1.5 at most)",
			value: ratio(of(submissions, "boost") / of(submissions, PARTS)),
		},
		...rows(submissions, "a submission"),
		...delays,
	];
}

/**
 * CPU time of a request in µs by name: the median of all rounds. `grown`: resident bytes that each
 * has left.
 */
async function measure(
	proxies: readonly BenchProxy[],
	make: () => readonly string[],
	grown = new Map<string, number>(),
): Promise<Costs> {
	const costs = new Map<string, number[]>(proxies.map(({ name }) => [name, []]));
	const before = new Map<string, number>();
	for (let round = 1 - COLD_ROUNDS; round <= ROUNDS; round++) {
		const bodies = make();
		// Each is as often behind as before another one.
		for (const { name, process, url } of round % 2 === 0 ? proxies : [...proxies].reverse()) {
			const begun = process.cpuMicros();
			const { answers } = await load(`${url}/fast`, bodies, CONNECTIONS);
			const cost = (process.cpuMicros() - begun) / bodies.length;
			const bytes = process.residentBytes();
			const first = before.get(name) ?? bytes;
			if (round <= 0) before.set(name, bytes);
			else grown.set(name, (bytes - first) / (round * bodies.length));
			const refused = answers.find((answer) => !answer.includes('"result"'));
			if (refused !== undefined) throw new Error(`${name} did not pass a request on: ${refused}`);
			if (round > 0) costs.get(name)?.push(cost);
		}
	}
	return new Map([...costs].map(([name, all]) => [name, median(all)]));
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
	rows.push({
		name: "  99 of 100 flushes of 4 KiB by the disk alone, beyond the median",
		value: `${(await flushMs()).toFixed(1)} ms`,
	});
	return rows;
}

/**
 * How much longer than the one in the middle 99 of 100 flushes of the disk take, at the same rate.
 */
async function flushMs(): Promise<number> {
	const folder = mkdtempSync(join(tmpdir(), "leeward-bench-"));
	const file = await open(join(folder, "file"), "w");
	const page = Buffer.alloc(4_096, 1);
	const times: number[] = [];
	const begun = performance.now();
	for (let i = 0; i < FLUSHES; i += 1) {
		await pause(begun + (i * 1_000) / STEADY_PER_SECOND - performance.now());
		const before = performance.now();
		await file.write(page, 0, page.length, (i % 256) * page.length);
		await file.datasync();
		times.push(performance.now() - before);
	}
	await file.close();
	rmSync(folder, { recursive: true });
	times.sort((a, b) => a - b);
	return (times[Math.floor(FLUSHES * 0.99)] ?? Number.NaN) - median(times);
}

/** The time of each at a steady rate, independent of the others; the shortest first. */
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
	return median(times);
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
	return started("boost", process, folder);
}

async function startProxy(name: string, part: string, target: string): Promise<BenchProxy> {
	const folder = mkdtempSync(join(tmpdir(), "leeward-bench-"));
	const env = { TARGET_URL: target, DATA_DIR: folder };
	const process = MeasuredProcess.part(part, env, procfileFlags("boost"));
	return started(name, process, folder);
}

async function started(name: string, process: MeasuredProcess, folder: string): Promise<BenchProxy> {
	return {
		name,
		process,
		url: await process.url(),
		async stop() {
			await process.stop();
			rmSync(folder, { recursive: true, force: true });
		},
	};
}

function micros(value: number): string {
	return `${value.toFixed(0)} µs`;
}

function ratio(value: number): string {
	return value.toFixed(2);
}
