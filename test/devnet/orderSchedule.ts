// Sorts orders into a block by what they pay, so that every nonce fits, and says why the others are
// left out. A pure function.

import type { Order, OrderTransaction } from "./orderBook.ts";

/** An order that may be placed in a block. */
export interface Candidate {
	readonly order: Order;
	/** Hashes of its droppable transactions that are left out. */
	readonly dropped: ReadonlySet<string>;
	/** Lower tiers come first, whatever they pay. */
	readonly tier: number;
	/** Payment per gas: higher ones come first within a tier, then older orders. */
	readonly rank: bigint;
	/** Wei that the builder keeps of its payment. */
	readonly net: bigint;
}

/** A placed candidate; `transactions` are without the dropped ones. */
export interface Placed<C extends Candidate> {
	readonly candidate: C;
	readonly transactions: readonly OrderTransaction[];
}

/** Why a candidate is not placed. */
export interface Unplaced {
	readonly reason: "duplicate" | "nonceTooLow" | "nonceGap";
	/** The transaction that does not fit. */
	readonly at: string;
}

/**
 * Places candidates one by one. An order waits until another one brings the nonce before its own,
 * as builders do it. Only one of the orders that begin with the same transaction can be in the
 * block: the order that leaves the builder most, and among equals the order with most transactions.
 * So a target with a backrun goes before the target alone, and the backrun that pays most before
 * the others. `unplaced` is by the order's id.
 */
export function schedule<C extends Candidate>(
	candidates: readonly C[],
	nonces: ReadonlyMap<string, number>,
): { readonly sequence: readonly Placed<C>[]; readonly unplaced: ReadonlyMap<number, Unplaced> } {
	const next = new Map(nonces);
	const used = new Set<string>();
	const waiting = new Set([...candidates].sort(byPay));
	const sequence: Placed<C>[] = [];
	const unplaced = new Map<number, Unplaced>();
	for (;;) {
		const placed = firstThatFits();
		if (placed === null) return { sequence, unplaced };
		for (const tx of placed.transactions) {
			used.add(tx.hash);
			next.set(tx.from, tx.nonce + 1);
		}
		sequence.push(placed);
		waiting.delete(placed.candidate);
		unplaced.delete(placed.candidate.order.id);
	}

	function firstThatFits(): Placed<C> | null {
		let found: Placed<C> | null = null;
		for (const candidate of waiting) {
			// Behind the first only its rivals are looked at.
			if (found !== null && !isBetter(candidate, found.candidate)) continue;
			const fit = fitOf(candidate, next, used);
			if ("transactions" in fit) found = { candidate, transactions: fit.transactions };
			else if (found === null) {
				unplaced.set(candidate.order.id, fit);
				// Nonces never go back.
				if (fit.reason !== "nonceGap") waiting.delete(candidate);
			}
		}
		return found;
	}
}

function byPay(a: Candidate, b: Candidate): number {
	if (a.tier !== b.tier) return a.tier - b.tier;
	if (a.rank !== b.rank) return a.rank > b.rank ? -1 : 1;
	return a.order.id - b.order.id;
}

/** Whether `one` is a rival for the same place that leaves more. */
function isBetter(one: Candidate, other: Candidate): boolean {
	const [mine, theirs] = [one.order.transactions, other.order.transactions];
	if (one.tier !== other.tier || mine[0]?.hash !== theirs[0]?.hash) return false;
	return one.net === other.net ? mine.length > theirs.length : one.net > other.net;
}

/**
 * The candidate's transactions at this point, or why it does not fit. Drops droppable transactions
 * whose nonce does not fit.
 */
function fitOf(
	{ order, dropped }: Candidate,
	nonces: ReadonlyMap<string, number>,
	used: ReadonlySet<string>,
): Omit<Placed<Candidate>, "candidate"> | Unplaced {
	const own = new Map<string, number>();
	const transactions: OrderTransaction[] = [];
	let skipped: Unplaced = { reason: "duplicate", at: order.transactions[0]?.hash ?? "" };
	for (const tx of order.transactions) {
		if (dropped.has(tx.hash)) continue;
		const expected = own.get(tx.from) ?? nonces.get(tx.from) ?? 0;
		if (tx.nonce === expected) {
			own.set(tx.from, tx.nonce + 1);
			transactions.push(tx);
			continue;
		}
		const late = used.has(tx.hash) ? "duplicate" : "nonceTooLow";
		skipped = { reason: tx.nonce < expected ? late : "nonceGap", at: tx.hash };
		if (!tx.mayDrop) return skipped;
	}
	return transactions.length > 0 ? { transactions } : skipped;
}
