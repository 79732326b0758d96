// Durable submissions on PostgreSQL beside LMDB: the same transactions go to a relay on each, in turns, so that both have
// the same machine. PostgreSQL is a real one on loopback, with its commits on disk.

import { startDevChain } from "../devnet/devChain.ts";
import { startPostgres } from "../support/postgresServer.ts";
import { benchAccounts } from "./load.ts";
import { delivered, fund, send, startRelay, startSink } from "./relayLoad.ts";
import type { Figure } from "./submissions.ts";

const SENDERS = 1_500;
/** The first one of each is not counted: the code is cold then, and the accounts are not known. */
const ROUNDS = 7;

/** Runs it; takes about half a minute. */
export async function benchEngines(): Promise<readonly Figure[]> {
	const chain = await startDevChain();
	const sink = await startSink();
	const postgres = await startPostgres();
	try {
		const url = await postgres.newDatabase();
		const engines = [
			{ relay: await startRelay(chain, sink.url), rates: [] as number[], micros: [] as number[] },
			{
				relay: await startRelay(chain, sink.url, { DATABASE_URL: url }),
				rates: [] as number[],
				micros: [] as number[],
			},
		];
		const accounts = benchAccounts(SENDERS);
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
		}
		for (const { relay } of engines) await relay.stop();
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

function median(values: readonly number[]): number {
	const sorted = [...values].sort((a, b) => a - b);
	return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
