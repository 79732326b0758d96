// Orders a block by what orders pay, so that every nonce fits, and says why the others are left out. Pure arithmetic:
// it tries nothing.

import type { Order, OrderTransaction } from "./orderBook.ts";

/** An order on its way into a block. */
export interface Candidate {
	readonly order: Order;
	/** Hashes of droppable transactions it goes without. */
	readonly dropped: ReadonlySet<string>;
	/** Lower tiers come first, whatever they pay. */
	readonly tier: number;
	/** Pay for each gas; the higher comes first within a tier, then the older order. */
	readonly rank: bigint;
	/** What the builder keeps of it, wei. */
	readonly net: bigint;
}

/** A candidate with its place; `transactions` are those it goes with. */
export interface Placed {
	readonly candidate: Candidate;
	readonly transactions: readonly OrderTransaction[];
}

/** Why a candidate has no place. */
export interface Unplaced {
	readonly reason: "duplicate" | "nonceTooLow" | "nonceGap";
	/** The transaction it failed at. */
	readonly at: string;
}

/** What {@link schedule} answers; `unplaced` by the id of the order. */
export interface Schedule {
	readonly sequence: readonly Placed[];
	readonly unplaced: ReadonlyMap<number, Unplaced>;
}

type Fit = { readonly transactions: readonly OrderTransaction[] } | { readonly unplaced: Unplaced };

/**
 * Places candidates one by one. An order waits until another one brings the nonce before its own, as builders do
 * it. Of orders that begin with the same transaction, of which only one can be in the block, the one that leaves the
 * builder the most takes the place: a target with its backrun goes before the target alone, the one with the backrun
 * that pays the most before the others.
 */
export function schedule(candidates: readonly Candidate[], nonces: ReadonlyMap<string, number>): Schedule {
	const next = new Map(nonces);
	const used = new Set<string>();
	const waiting = [...candidates].sort(byPay);
	const rivals = rivalsOf(waiting);
	const sequence: Placed[] = [];
	const unplaced = new Map<number, Unplaced>();
	for (let at = 0; at < waiting.length; ) {
		const candidate = waiting[at];
		if (candidate === undefined) break;
		const fit = fitOf(candidate, next, used);
		if ("unplaced" in fit) {
			if (fit.unplaced.reason === "nonceGap") {
				at++;
				continue;
			}
			unplaced.set(candidate.order.id, fit.unplaced);
			waiting.splice(at, 1);
			continue;
		}
		const better = (rivals.get(candidate) ?? []).find(
			(other) => waiting.includes(other) && !("unplaced" in fitOf(other, next, used)),
		);
		const chosen = better ?? candidate;
		const chosenFit = better === undefined ? fit : fitOf(better, next, used);
		if ("unplaced" in chosenFit) break;
		for (const tx of chosenFit.transactions) {
			used.add(tx.hash);
			next.set(tx.from, tx.nonce + 1);
		}
		sequence.push({ candidate: chosen, transactions: chosenFit.transactions });
		waiting.splice(waiting.indexOf(chosen), 1);
		// Those passed over may be ready now.
		at = 0;
	}
	for (const candidate of waiting) {
		const fit = fitOf(candidate, next, used);
		if ("unplaced" in fit) unplaced.set(candidate.order.id, fit.unplaced);
	}
	return { sequence, unplaced };
}

function byPay(a: Candidate, b: Candidate): number {
	if (a.tier !== b.tier) return a.tier - b.tier;
	if (a.rank !== b.rank) return a.rank > b.rank ? -1 : 1;
	return a.order.id - b.order.id;
}

/** Whether a candidate can be placed now. A droppable transaction whose nonce does not fit is gone without. */
function fitOf(candidate: Candidate, nonces: ReadonlyMap<string, number>, used: ReadonlySet<string>): Fit {
	const own = new Map<string, number>();
	const transactions: OrderTransaction[] = [];
	let skipped: Unplaced | undefined;
	for (const tx of candidate.order.transactions) {
		if (candidate.dropped.has(tx.hash)) continue;
		const expected = own.get(tx.from) ?? nonces.get(tx.from) ?? 0;
		if (tx.nonce === expected) {
			own.set(tx.from, tx.nonce + 1);
			transactions.push(tx);
			continue;
		}
		const late = used.has(tx.hash) ? "duplicate" : "nonceTooLow";
		skipped = { reason: tx.nonce < expected ? late : "nonceGap", at: tx.hash };
		if (!tx.mayDrop) return { unplaced: skipped };
	}
	if (transactions.length > 0) return { transactions };
	const at = candidate.order.transactions[0]?.hash ?? "";
	return { unplaced: skipped ?? { reason: "duplicate", at } };
}

/**
 * For each candidate those of its tier that begin with the same transaction and leave more, or as much and hold all that it
 * holds and more; the best first.
 */
function rivalsOf(candidates: readonly Candidate[]): Map<Candidate, Candidate[]> {
	const byFirst = new Map<string, Candidate[]>();
	for (const candidate of candidates) {
		const first = candidate.order.transactions[0]?.hash ?? "";
		byFirst.set(first, [...(byFirst.get(first) ?? []), candidate]);
	}
	const found = new Map<Candidate, Candidate[]>();
	for (const group of byFirst.values()) {
		for (const candidate of group) {
			const hashes = candidate.order.transactions.map(({ hash }) => hash);
			const others = group.filter((other) => {
				if (other === candidate || other.tier !== candidate.tier) return false;
				if (other.net !== candidate.net) return other.net > candidate.net;
				const held = new Set(other.order.transactions.map(({ hash }) => hash));
				return held.size > hashes.length && hashes.every((hash) => held.has(hash));
			});
			if (others.length > 0)
				found.set(
					candidate,
					others.sort((a, b) => (a.net < b.net ? 1 : -1)),
				);
		}
	}
	return found;
}
