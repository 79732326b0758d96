// Measures the relay with 1,000, 10,000 and 100,000 transactions pending on /nochecks: a head, with
// which each of them goes to a builder again, a submission and a bid. The figures of a head are the
// time until all are sent, the CPU time of all threads and of the event loop's, and how long others
// wait meanwhile.

import { setTimeout as pause } from "node:timers/promises";
import { type DevChain, startDevChain } from "../devnet/devChain.ts";
import { PAYS_COINBASE } from "../support/contracts.ts";
import { rawTransaction, type TestAccount } from "../support/txFactory.ts";
import {
	benchAccounts,
	benchTransaction,
	CONNECTIONS,
	callOf,
	delivered,
	type Figure,
	fund,
	load,
	median,
	nextHead,
	type Relay,
	send,
	startRelay,
	startSink,
	submissionOf,
} from "./load.ts";

const SENDERS = 2_000;
/** Submissions at each size, and accounts that submit no other. */
const MORE = 1_000;
/** Targets at each size, and the accounts that bid once for one of them. */
const [TARGETS, BIDDERS] = [25, 200];
/** The address of a contract that pays bids. */
const PAYER = `0x${"9a".repeat(20)}`;
/**
 * Pending transactions, and the submissions for them: the accounts from and up to, and their
 * nonces. More than 64 of one account are not accepted.
 */
const STEPS: readonly (readonly [number, readonly (readonly [number, number, number, number])[]])[] = [
	[1_000, [[0, 1_000, 0, 1]]],
	[10_000, [[0, 1_000, 1, 10]]],
	[
		100_000,
		[
			[0, 1_000, 10, 50],
			[1_000, 2_000, 0, 50],
		],
	],
];
/**
 * The first one of each size is not counted: the code is cold then, or new transactions are signed.
 */
const HEADS = 4;
/** Builders, each of which gets each of {@link FANNED_OUT} transactions at a head. */
const BUILDERS = [1, 5, 20] as const;
const FANNED_OUT = 1_000;
/** Between two questions of somebody else, in ms. */
const ASK_MS = 3;

type Sink = Awaited<ReturnType<typeof startSink>>;

/** Runs it; takes about two minutes. */
export async function benchHeadGrowth(): Promise<readonly Figure[]> {
	const chain = await startDevChain();
	const sink = await startSink();
	try {
		const relay = await startRelay(chain, sink.url, { ETH_WS_URL: chain.wsUrl });
		const accounts = benchAccounts(SENDERS + (MORE + TARGETS) * STEPS.length + BIDDERS);
		await fund(chain, accounts);
		const others = accounts.slice(SENDERS);
		const bidders = others.splice(-BIDDERS);
		const figures: Figure[] = [];
		for (const [pending, more] of STEPS) {
			for (const [first, last, from, to] of more) await send(relay, accounts.slice(first, last), from, to);
			await delivered(relay);
			const heads: HeadFigures[] = [];
			for (let head = 0; head < HEADS; head += 1) {
				const figuresOfHead = await measureHead(relay, pending, sink, () => nextHead(chain));
				if (head > 0) heads.push(figuresOfHead);
			}
			const of = (name: keyof HeadFigures) => `${median(heads.map((head) => head[name])).toFixed(0)} ms`;
			const growth = (what: string) => ({ chart: `${what}, by pending transactions`, at: pending });
			const each = median(heads.map(({ cpuMs }) => (1_000 * cpuMs) / pending));
			const submission = await cpuOf(relay, () => send(relay, others.splice(0, MORE), 0, 1));
			const bid = await cpuOfBid(relay, chain, others.splice(0, TARGETS), bidders);
			figures.push(
				{
					name: `${pending.toLocaleString("en")} pending at a head: all are sent after`,
					value: of("outMs"),
				},
				{ name: "  the relay's CPU time, all threads", value: of("cpuMs") },
				{ name: "  for each transaction", value: micros(each), growth: growth("head: CPU for each") },
				{ name: "  of that its event loop's", value: of("mainMs") },
				{ name: "  others wait at most", value: of("waitMs"), growth: growth("head: others wait") },
				{
					name: "  CPU time of a submission",
					value: micros(submission),
					growth: growth("CPU of a submission"),
				},
				{ name: "  CPU time of a bid", value: micros(bid), growth: growth("CPU of a bid") },
			);
		}
		await relay.stop();
		for (const count of BUILDERS) figures.push(...(await fannedOut(chain, sink, accounts, count)));
		return figures;
	} finally {
		await sink.stop();
		await chain.stop();
	}
}

/** CPU time of all threads for each of what `work` sends, in µs. */
async function cpuOf(relay: Relay, work: () => Promise<{ readonly count: number }>): Promise<number> {
	await delivered(relay);
	const before = relay.process.cpuMicros();
	const { count } = await work();
	await delivered(relay);
	return (relay.process.cpuMicros() - before) / count;
}

/** The same for a bid: each of `bidders` bids once, on targets of `accounts` that are disclosed. */
async function cpuOfBid(
	relay: Relay,
	chain: DevChain,
	accounts: readonly TestAccount[],
	bidders: readonly TestAccount[],
): Promise<number> {
	const submissions = accounts.map((account) => submissionOf(benchTransaction(account, 0)));
	const { answers } = await load(`${relay.url}/maxbackruns`, submissions, CONNECTIONS);
	const targets = answers.map((answer) => (JSON.parse(answer) as { result: string }).result);
	await delivered(relay);
	const blockNumber = `0x${(Number(await chain.rpc("eth_blockNumber")) + 1).toString(16)}`;
	await chain.rpc("anvil_setCode", [PAYER, PAYS_COINBASE]);
	const backrun = (by: TestAccount) =>
		`0x${rawTransaction({ by, gasLimit: 100_000, to: PAYER, value: 1_000_000_000 }).toString("hex")}`;
	const bodies = bidders.map((bidder, i) =>
		callOf("eth_sendBundle", {
			txs: [targets[i % targets.length], backrun(bidder)],
			blockNumber,
		}),
	);
	return cpuOf(relay, async () => {
		const { answers } = await load(relay.url, bodies, CONNECTIONS);
		const refused = answers.find((answer) => !answer.includes('"result"'));
		if (refused !== undefined) throw new Error(`a bid was refused: ${refused}`);
		return { count: bodies.length };
	});
}

/** A head with {@link FANNED_OUT} pending transactions that go to `count` builders. */
async function fannedOut(
	chain: DevChain,
	sink: Sink,
	accounts: readonly TestAccount[],
	count: number,
): Promise<readonly Figure[]> {
	const rows = Array.from({ length: count }, (_, i) => ({ name: `sink${i}`, url: `${sink.url}/${i}` }));
	const own = { ETH_WS_URL: chain.wsUrl, BUILDERS: JSON.stringify(rows) };
	const relay = await startRelay(chain, sink.url, own);
	await send(relay, accounts.slice(0, FANNED_OUT), 0, 1);
	const sent = FANNED_OUT * count;
	const heads: HeadFigures[] = [];
	for (let head = 0; head < HEADS; head += 1) {
		heads.push(await measureHead(relay, sent, sink, () => nextHead(chain)));
	}
	await relay.stop();
	const [, ...warm] = heads;
	const each = median(warm.map(({ cpuMs }) => (1_000 * cpuMs) / sent));
	return [
		{
			name: `${FANNED_OUT.toLocaleString("en")} pending at a head, ${count} ${count === 1 ? "builder" : "builders"}: CPU time of a delivery`,
			value: micros(each),
			growth: { chart: "CPU of a delivery, by builders", at: count },
		},
		{ name: "  all are sent after", value: `${median(warm.map(({ outMs }) => outMs)).toFixed(0)} ms` },
	];
}

interface HeadFigures {
	readonly outMs: number;
	readonly cpuMs: number;
	readonly mainMs: number;
	readonly waitMs: number;
}

async function measureHead(
	relay: Relay,
	pending: number,
	sink: Sink,
	mine: () => Promise<void>,
): Promise<HeadFigures> {
	await delivered(relay);
	const { process } = relay;
	const before = { count: sink.count(), cpu: process.cpuMicros(), main: process.mainThreadMicros() };
	let isOut = false;
	let waitMs = 0;
	const begun = performance.now();
	const other = (async () => {
		while (!isOut) {
			const asked = performance.now();
			await (await fetch(`${relay.url}/livez`)).text();
			waitMs = Math.max(waitMs, performance.now() - asked);
			await pause(ASK_MS);
		}
	})();
	await mine();
	while (sink.count() - before.count < pending) await pause(1);
	const outMs = performance.now() - begun;
	await delivered(relay);
	isOut = true;
	await other;
	const cpuMs = (process.cpuMicros() - before.cpu) / 1_000;
	return { outMs, cpuMs, mainMs: (process.mainThreadMicros() - before.main) / 1_000, waitMs };
}

function micros(value: number): string {
	return `${value.toFixed(0)} µs`;
}
