// Benchmarks of several relays on one database: what the core spends on what comes through an edge, and how fast news are there.

import { systemClock } from "../../shared/clock.ts";
import { HolderReader } from "../../shared/kv/postgres/holder.ts";
import { startDevChain } from "../devnet/devChain.ts";
import { freePort } from "../devnet/freePort.ts";
import { startPostgres } from "../support/postgresServer.ts";
import { readyStatus } from "../support/processes.ts";
import { until } from "../support/until.ts";
import {
	benchAccounts,
	delivered,
	type Figure,
	fund,
	median,
	type Relay,
	send,
	startRelay,
	startSink,
} from "./load.ts";

const RELAYS = 4;
const SENDERS = 1_500;
/** The first one of each is not counted: the code is cold then, and the accounts are not known. */
const ROUNDS = 5;
const START_MS = 60_000;

/** Runs it; takes about a minute. */
export async function benchScale(): Promise<readonly Figure[]> {
	const chain = await startDevChain();
	const sink = await startSink();
	const postgres = await startPostgres({ connections: 100 });
	const relays: Relay[] = [];
	try {
		const url = await postgres.newDatabase();
		for (let i = 0; i < RELAYS; i += 1) {
			const port = String(await freePort());
			const relay = await startRelay(chain, sink.url, {
				...{ DATABASE_URL: url, PORT: port, INTERNAL_URL: `http://127.0.0.1:${port}` },
			});
			relays.push(relay);
			await until("it is ready", async () => (await readyStatus(relay.url)) === 200, START_MS);
		}
		const [core, edge] = relays as [Relay, Relay];
		const accounts = benchAccounts(SENDERS);
		await fund(chain, accounts);
		const ways = [core, edge].map((relay) => ({ relay, micros: [] as number[], rates: [] as number[] }));
		let nonce = 0;
		for (let round = 0; round < ROUNDS; round += 1) {
			for (const { relay, micros, rates } of round % 2 === 0 ? ways : [...ways].reverse()) {
				const before = core.process.cpuMicros();
				const { seconds, count } = await send(relay, accounts, nonce, nonce + 1);
				nonce += 1;
				await delivered(core);
				if (round === 0) continue;
				micros.push((core.process.cpuMicros() - before) / count);
				rates.push(count / seconds);
			}
		}
		const [direct = 0, through = 0] = ways.map(({ micros }) => median(micros));
		const [directRate = 0, throughRate = 0] = ways.map(({ rates }) => median(rates));
		return [
			{ name: "a submission's CPU time in the core, sent to it", value: `${direct.toFixed(0)} µs` },
			{ name: "  sent through an edge (goal: 0.75 at most)", value: (through / direct).toFixed(2) },
			{ name: "durable submissions a second by the clock, to the core", value: directRate.toFixed(0) },
			{ name: "  through an edge", value: throughRate.toFixed(0) },
		];
	} finally {
		for (const relay of relays) await relay.stop();
		await postgres.stop();
		await sink.stop();
		await chain.stop();
	}
}
void systemClock;
void HolderReader;
