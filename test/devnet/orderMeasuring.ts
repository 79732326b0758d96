// Measures by trial blocks what each order pays, or why it cannot be in a block at all. It does not choose among
// them: blockBuilding.ts does.

import type { Order } from "./orderBook.ts";
import { type Candidate, type Placed, schedule, type Unplaced } from "./orderSchedule.ts";
import type { Pushed } from "./poolPush.ts";
import type { TriedBlock, TriedTransaction } from "./trialChain.ts";

/** An order while a block is put together. */
export interface Entry {
	readonly order: Order;
	/** Hashes of droppable transactions that did not go through. */
	readonly dropped: Set<string>;
	/** Unknown until it went through in a trial. Wei, gas. */
	pay: { readonly gain: bigint; readonly gas: bigint } | null;
	/** It does not go through on the head alone; it may still do so behind others. */
	failsAlone: boolean;
	/** Set once it is certain that it stays out. */
	out: Failure | null;
}

/** Why an order stays out, and at which transaction (hash). */
export interface Failure {
	readonly reason: Unplaced["reason"] | "reverted" | "invalid" | "blockFull" | "refundFailed";
	readonly at: string | null;
}

/** How an order came out of a trial. */
export type Verdict =
	| { readonly kind: "passed"; readonly gain: bigint; readonly gas: bigint }
	/** It failed at a droppable transaction: it may be tried without. */
	| { readonly kind: "drop"; readonly hash: string }
	| { readonly kind: "failed"; readonly failure: Failure };

/** What measuring needs. */
export interface MeasuringOptions {
	readonly entries: readonly Entry[];
	readonly nonces: ReadonlyMap<string, number>;
	readonly baseFee: bigint;
	readonly gasLimit: bigint;
	readonly tryBlock: (transactions: readonly Pushed[], gasLimit: bigint) => Promise<TriedBlock>;
	/** Filled with the last outcome of every transaction that was mined in a trial. */
	readonly known: Map<string, TriedTransaction>;
}

/** Pay for each gas is kept with nine decimals of a wei. */
const RANK_SCALE = 1_000_000_000n;
/** Each round measures one of the orders that exclude each other; so many competing ones are enough. */
const MAX_ROUNDS = 200;
/** Where there are more orders than a block holds, so many blocks' worth of them are measured in one round. */
const MAX_ROOM = 4n;

/** Tries all orders, as many together as do not exclude each other, until each has its pay or fails alone. */
export async function measure(options: MeasuringOptions): Promise<void> {
	for (let round = 0; round < MAX_ROUNDS; round++) {
		const open = options.entries.filter(
			({ pay, failsAlone, out }) => pay === null && !failsAlone && out === null,
		);
		for (const entry of open) entry.pay = payOfKnown(entry, options.known);
		const verdicts = await tryTogether(new Set(open.filter(({ pay }) => pay === null)), options);
		if (verdicts.size === 0) return;
		for (const [entry, verdict] of verdicts) {
			// There was no room: it comes into the next round.
			if (verdict.kind === "failed" && verdict.failure.reason === "blockFull" && verdicts.size > 1) continue;
			// What failed in company may be good alone: two orders may want the same opportunity.
			if (verdict.kind !== "passed") await measureAlone(entry, options);
		}
	}
}

/** The candidate for the schedule; without a known pay an estimate from its fees decides. */
export function candidateOf(
	entry: Entry,
	tier: number,
	known: ReadonlyMap<string, TriedTransaction>,
	baseFee: bigint,
): Candidate {
	const { order, dropped } = entry;
	if (entry.pay === null) return { order, dropped, tier, rank: estimate(order, baseFee), net: 0n };
	const { gain, gas } = entry.pay;
	const refunded = order.refunds.reduce((sum, refund) => {
		const of = refund.of.reduce((all, hash) => all + (known.get(hash)?.gain ?? 0n), 0n);
		return sum + (of * refund.millionths) / 1_000_000n;
	}, 0n);
	const net = gain - refunded;
	return { order, dropped, tier, rank: (net * RANK_SCALE) / (gas > 0n ? gas : 1n), net };
}

/** Reads from a trial how an order came out; `gasBefore` is what the block had used before it. */
export function verdictOf(placed: Placed, tried: TriedBlock, gasBefore: bigint, gasLimit: bigint): Verdict {
	let gain = 0n;
	let gas = 0n;
	for (const tx of placed.transactions) {
		const outcome = tried.get(tx.hash);
		if (outcome !== undefined && (!outcome.reverted || tx.mayRevert)) {
			gain += outcome.gain;
			gas += outcome.gasUsed;
			continue;
		}
		if (tx.mayDrop) return { kind: "drop", hash: tx.hash };
		const full = gasBefore + gas + tx.gasLimit > gasLimit;
		const missing = full ? "blockFull" : "invalid";
		return { kind: "failed", failure: { reason: outcome === undefined ? missing : "reverted", at: tx.hash } };
	}
	return { kind: "passed", gain, gas };
}

/** Tries one order without one droppable transaction after the other, until it passes or fails for good. */
async function measureAlone(entry: Entry, options: MeasuringOptions): Promise<void> {
	for (let left = entry.order.transactions.length; left >= 0; left--) {
		const verdict = (await tryTogether(new Set([entry]), options)).get(entry);
		if (verdict?.kind === "drop") continue;
		entry.failsAlone = verdict?.kind !== "passed";
		return;
	}
}

/**
 * One trial of `fresh`, with those measured ones that bring them nonces. Notes pay and dropped transactions; the
 * verdicts on those that had a place.
 */
async function tryTogether(
	fresh: ReadonlySet<Entry>,
	options: MeasuringOptions,
): Promise<Map<Entry, Verdict>> {
	const { entries, known, baseFee } = options;
	const verdicts = new Map<Entry, Verdict>();
	if (fresh.size === 0) return verdicts;
	const senders = new Set([...fresh].flatMap(({ order }) => order.transactions.map(({ from }) => from)));
	const providers = entries.filter(
		(entry) => entry.pay !== null && entry.order.transactions.some(({ from }) => senders.has(from)),
	);
	const byOrder = new Map([...fresh, ...providers].map((entry) => [entry.order.id, entry]));
	const candidates = [...byOrder.values()].map((entry) =>
		// Large ones first: what a target pays is then known without trying it alone.
		candidateOf(entry, fresh.has(entry) ? -entry.order.transactions.length : 1, known, baseFee),
	);
	const { sequence } = schedule(candidates, options.nonces);
	const transactions = sequence.flatMap((placed) => placed.transactions);
	const room = roomFor(transactions, options.gasLimit);
	const tried = await options.tryBlock(transactions, room);
	for (const [hash, outcome] of tried) known.set(hash, outcome);
	let gas = 0n;
	for (const placed of sequence) {
		const entry = byOrder.get(placed.candidate.order.id);
		const verdict = verdictOf(placed, tried, gas, room);
		for (const { hash } of placed.transactions) gas += tried.get(hash)?.gasUsed ?? 0n;
		if (entry === undefined || !fresh.has(entry)) continue;
		verdicts.set(entry, verdict);
		if (verdict.kind === "passed") entry.pay = { gain: verdict.gain, gas: verdict.gas };
		if (verdict.kind === "drop") entry.dropped.add(verdict.hash);
	}
	return verdicts;
}

/** The gas limit of a block in which they are measured: what one transaction pays hardly ever depends on it. */
function roomFor(transactions: readonly { readonly gasLimit: bigint }[], gasLimit: bigint): bigint {
	const wanted = transactions.reduce((sum, tx) => sum + tx.gasLimit, 0n);
	const most = MAX_ROOM * gasLimit;
	return wanted <= gasLimit ? gasLimit : wanted < most ? wanted : most;
}

/** The pay of a single transaction that another order held in a trial: the target of a measured bundle. */
function payOfKnown(entry: Entry, known: ReadonlyMap<string, TriedTransaction>): Entry["pay"] {
	const [tx, ...more] = entry.order.transactions;
	const outcome = tx === undefined || more.length > 0 ? undefined : known.get(tx.hash);
	if (tx === undefined || outcome === undefined || (outcome.reverted && !tx.mayRevert)) return null;
	return { gain: outcome.gain, gas: outcome.gasUsed };
}

function estimate(order: Order, baseFee: bigint): bigint {
	let pay = 0n;
	let gas = 0n;
	for (const tx of order.transactions) {
		const tip = tx.maxFeePerGas - baseFee;
		if (tip > tx.maxPriorityFeePerGas) pay += tx.maxPriorityFeePerGas * tx.gasLimit;
		else pay += tip * tx.gasLimit;
		gas += tx.gasLimit;
	}
	return (pay * RANK_SCALE) / (gas > 0n ? gas : 1n);
}
