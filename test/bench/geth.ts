// A submission to the relay beside one to a public node: the same transactions go to a
// go-ethereum's own pool and to a relay before it, in turns. The node keeps them in memory. The
// relay writes each to the disk before it answers, and signs it and posts it to a builder.

import { GETH, type GethChain, startGeth } from "../devnet/gethChain.ts";
import { cpuMicrosOf } from "./childProcess.ts";
import {
	benchAccounts,
	benchTransaction,
	CONNECTIONS,
	delivered,
	type Figure,
	load,
	median,
	type Relay,
	startRelay,
	startSink,
	submissionOf,
} from "./load.ts";

const SENDERS = 1_500;
/** The first one of each is not counted: the code is cold then, and the accounts are not known. */
const ROUNDS = 7;
const WEI = 10n ** 20n;
const CHART = "CPU of a submission, pooled";
/** The node's pool has room for all of them. */
const POOL = ["--txpool.globalslots", "100000", "--txpool.globalqueue", "100000"];

/** Runs it; takes about half a minute. No figures without GETH. */
export async function benchGeth(): Promise<readonly Figure[]> {
	if (GETH === undefined) return [];
	const accounts = benchAccounts(SENDERS);
	const balance = `0x${WEI.toString(16)}`;
	const alloc = Object.fromEntries(accounts.map(({ address }) => [address.slice(2), { balance }]));
	const node = await startGeth({ alloc, args: POOL, genesisTimestamp: Math.floor(Date.now() / 1_000) });
	const sink = await startSink();
	const relay = await startRelay(node, sink.url);
	const targets = [targetOf(node), targetOfRelay(relay)];
	try {
		for (let nonce = 0; nonce < ROUNDS; nonce += 1) {
			const bodies = accounts.map((account) => submissionOf(benchTransaction(account, nonce)));
			for (const target of nonce % 2 === 0 ? targets : [...targets].reverse())
				await submit(bodies, target, nonce > 0);
		}
	} finally {
		await relay.stop();
		await sink.stop();
		await node.stop();
	}
	const [geth, ours] = targets.map(({ micros, rates }) => ({ micros: median(micros), rate: median(rates) }));
	if (geth === undefined || ours === undefined) return [];
	return [
		{
			name: "a durable submission's CPU time, times go-ethereum's eth_sendRawTransaction",
			value: (ours.micros / geth.micros).toFixed(2),
		},
		{
			name: "  by go-ethereum, in memory",
			value: `${geth.micros.toFixed(0)} µs`,
			bar: { chart: CHART, of: "go-ethereum" },
		},
		{
			name: "  by the relay, on disk and at a builder",
			value: `${ours.micros.toFixed(0)} µs`,
			bar: { chart: CHART, of: "relay" },
		},
		{ name: "submissions a second by the clock, to go-ethereum", value: geth.rate.toFixed(0) },
		{ name: "  to the relay", value: ours.rate.toFixed(0) },
	];
}

/** A server that is sent all transactions, and its figures by round. */
interface Target {
	readonly url: string;
	/** CPU time of all its threads so far, in µs. */
	readonly cpuMicros: () => number;
	/** Resolves when the work behind the answers is done. */
	readonly done: () => Promise<void>;
	readonly micros: number[];
	readonly rates: number[];
}

function targetOf({ url, pid }: GethChain): Target {
	const done = () => Promise.resolve();
	return { url, cpuMicros: () => cpuMicrosOf(pid), done, micros: [], rates: [] };
}

function targetOfRelay(relay: Relay): Target {
	const { url, process } = relay;
	const done = () => delivered(relay);
	return { url: `${url}/nochecks`, cpuMicros: () => process.cpuMicros(), done, micros: [], rates: [] };
}

/** Sends all, and notes the figures if the round `counts`. Throws where one is refused. */
async function submit(bodies: readonly string[], target: Target, counts: boolean): Promise<void> {
	const before = target.cpuMicros();
	const { seconds, answers } = await load(target.url, bodies, CONNECTIONS);
	await target.done();
	const refused = answers.find((answer) => !answer.includes('"result"'));
	if (refused !== undefined) throw new Error(`a submission was refused: ${refused}`);
	if (!counts) return;
	target.micros.push((target.cpuMicros() - before) / bodies.length);
	target.rates.push(bodies.length / seconds);
}
