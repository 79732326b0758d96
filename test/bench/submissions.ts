// Durable submissions: a relay process takes signed transactions on /nochecks, and beside it the
// parts of that work are measured alone in the same run. CPU time counts: what one core could do,
// whatever else the machine does.

import { systemClock } from "../../shared/clock.ts";
import type { SharedStore } from "../../shared/kv/port.ts";
import { openPostgres } from "../../shared/kv/postgres/postgres.ts";
import { silentLogger } from "../../shared/log.ts";
import { type DevChain, startDevChain } from "../devnet/devChain.ts";
import { startPostgres } from "../support/postgresServer.ts";
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
	send,
	startRelay,
	startSink,
	submissionOf,
} from "./load.ts";

const SENDERS = 2_000;
const PER_SENDER = 9;
/** The pool takes 64 of each sender. */
const PENDING_SENDERS = 850;
const PENDING_PER_SENDER = 59;

/** The two rows of a submission of 200 bytes. */
const [SUBMISSION_BYTES, RECORD_BYTES] = [400, 280];
/** Senders in the comparison of the stores. */
const ENGINE_SENDERS = 1_500;
/** The first one of each is not counted: the code is cold then, and the accounts are not known. */
const ROUNDS = 7;

/** Runs it; takes about half a minute. */
export async function benchSubmissions(): Promise<readonly Figure[]> {
	const chain = await startDevChain();
	const sink = await startSink();
	try {
		// Before and behind the relay: the machine's speed drifts.
		const early = await measureParts(sink.url);
		const relay = await startRelay(chain, sink.url);
		const accounts = benchAccounts(SENDERS);
		await fund(chain, accounts);
		// The first ones find the code warm and the accounts known.
		await send(relay, accounts, 0, PER_SENDER / 3);
		await delivered(relay);
		const [before, loopBefore] = [relay.process.cpuMicros(), relay.process.mainThreadMicros()];
		const { seconds, count } = await send(relay, accounts, PER_SENDER / 3, PER_SENDER);
		// Signing and posting to the builder go on behind the answers, and count.
		await delivered(relay);
		const micros = (relay.process.cpuMicros() - before) / count;
		const loopMicros = (relay.process.mainThreadMicros() - loopBefore) / count;
		await relay.stop();
		const late = await measureParts(sink.url);
		const parts = Object.fromEntries(
			Object.entries(early).map(([name, value]) => [name, (value + (late[name] ?? value)) / 2]),
		);
		const sum = Object.values(parts).reduce((a, b) => a + b, 0);
		const perPending = await measureMemory(chain, sink.url);
		return [
			{ name: "durable submissions a second of one core's time", value: rate(micros) },
			{ name: "  the sum of its parts alone", value: rate(sum) },
			{ name: "  share of that sum reached (goal: 60 % at least)", value: percent(sum / micros) },
			...Object.entries(parts).map(([name, value]) => ({
				name: `  ${name.replace("Micros", "")}`,
				value: `${value.toFixed(0)} µs`,
			})),
			{ name: "  a submission in all", value: `${micros.toFixed(0)} µs` },
			{ name: "  by the thread with the event loop alone", value: `${loopMicros.toFixed(0)} µs` },
			{ name: "durable submissions a second by the clock", value: (count / seconds).toFixed(0) },
			{ name: "  that the event loop's thread has time for", value: rate(loopMicros) },
			{
				name: "resident memory per pending transaction, at 50,000",
				value: kibibytes(perPending.own + perPending.mapped),
			},
			{ name: "  without the pages of the store", value: kibibytes(perPending.own) },
		];
	} finally {
		await sink.stop();
		await chain.stop();
	}
}

async function measureParts(sinkUrl: string): Promise<Readonly<Record<string, number>>> {
	const echo = MeasuredProcess.part("echo");
	const url = await echo.url();
	const [account] = benchAccounts(1);
	const bodies = new Array<string>(5_000).fill(submissionOf(benchTransaction(account, 0)));
	await load(url, bodies, CONNECTIONS);
	const before = echo.cpuMicros();
	await load(url, bodies, CONNECTIONS);
	const httpMicros = (echo.cpuMicros() - before) / bodies.length;
	await echo.stop();
	const alone = MeasuredProcess.part("relayParts", { SINK_URL: sinkUrl });
	return { httpMicros, ...(await alone.times()) };
}

/**
 * Growth of the relay's resident memory over 50,000 pending transactions, for each of them, in
 * bytes.
 */
async function measureMemory(
	chain: DevChain,
	sinkUrl: string,
): Promise<{ readonly own: number; readonly mapped: number }> {
	const relay = await startRelay(chain, sinkUrl);
	const accounts = benchAccounts(PENDING_SENDERS);
	await fund(chain, accounts);
	await send(relay, accounts, 0, 1);
	await delivered(relay);
	const before = relay.process.memory();
	const { count } = await send(relay, accounts, 1, PENDING_PER_SENDER + 1);
	await delivered(relay);
	const { own, mapped } = relay.process.memory();
	await relay.stop();
	return { own: (own - before.own) / count, mapped: (mapped - before.mapped) / count };
}

function kibibytes(bytes: number): string {
	return `${(bytes / 1024).toFixed(1)} KiB`;
}

function rate(micros: number): string {
	return (1_000_000 / micros).toFixed(0);
}

function percent(share: number): string {
	return `${(share * 100).toFixed(0)} %`;
}

/**
 * Writes what a relay stores of as many submissions, with as many at a time. Returns the number a
 * second.
 */
async function writeRows(store: SharedStore, round: number): Promise<number> {
	let next = 0;
	const write = async (): Promise<void> => {
		for (let i = next++; i < ENGINE_SENDERS; i = next++) {
			const key = `${round}/${String(i).padStart(80, "0")}`;
			await store.write([
				{ key: `t/${key}`, value: Buffer.alloc(SUBMISSION_BYTES, i) },
				{ key: `r/${key}`, value: Buffer.alloc(RECORD_BYTES, i) },
			]);
		}
	};
	const begun = performance.now();
	await Promise.all(Array.from({ length: CONNECTIONS }, write));
	return (1_000 * ENGINE_SENDERS) / (performance.now() - begun);
}

/**
 * Durable submissions on PostgreSQL beside LMDB, and beside bare group commits of the same rows: in
 * turns, so that all have the same machine. PostgreSQL is a real one on loopback, with its commits
 * on disk. It takes about half a minute.
 */
export async function benchEngines(): Promise<readonly Figure[]> {
	const chain = await startDevChain();
	const sink = await startSink();
	const postgres = await startPostgres();
	try {
		const [url, bareUrl] = [await postgres.newDatabase(), await postgres.newDatabase()];
		const bare = await openPostgres(
			{ url: bareUrl, verify: false, store: "relay" },
			{ clock: systemClock, log: silentLogger },
		);
		const bareRates: number[] = [];
		const relays = [
			await startRelay(chain, sink.url),
			await startRelay(chain, sink.url, { DATABASE_URL: url }),
		];
		const engines = relays.map((relay) => ({ relay, rates: [] as number[], micros: [] as number[] }));
		const accounts = benchAccounts(ENGINE_SENDERS);
		await fund(chain, accounts);
		for (let round = 0; round < ROUNDS; round += 1) {
			for (const { relay, rates, micros } of round % 2 === 0 ? engines : [...engines].reverse()) {
				const before = relay.process.cpuMicros();
				const { seconds, count } = await send(relay, accounts, round, round + 1);
				await delivered(relay);
				if (round === 0) continue;
				rates.push(count / seconds);
				micros.push((relay.process.cpuMicros() - before) / count);
			}
			bareRates.push(await writeRows(bare, round));
		}
		for (const { relay } of engines) await relay.stop();
		await bare.close();
		const [lmdb = 0, postgresql = 0] = engines.map(({ rates }) => median(rates));
		const [lmdbMicros = 0, postgresMicros = 0] = engines.map(({ micros }) => median(micros));
		return [
			{ name: "durable submissions a second by the clock, LMDB", value: lmdb.toFixed(0) },
			{ name: "  PostgreSQL on the same machine", value: postgresql.toFixed(0) },
			{
				name: "  share of LMDB's (goal: 50 % at least)",
				value: `${((100 * postgresql) / lmdb).toFixed(0)} %`,
			},
			{
				name: "  share of bare group commits of the same rows (goal: 75 %)",
				value: percent(postgresql / median(bareRates)),
			},
			{
				name: "  a submission's CPU time in the relay, times LMDB's",
				value: `${(postgresMicros / lmdbMicros).toFixed(2)}`,
			},
		];
	} finally {
		await postgres.stop();
		await sink.stop();
		await chain.stop();
	}
}
