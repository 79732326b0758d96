// Who wins: which bids shall be with which builder behind their targets, worked out anew each time from the bids alone; and the
// bundle that a winner goes out in. Pure.

import type { OutgoingBundle } from "../domain/bundle.ts";
import type { Bidder } from "../domain/bundleStatus.ts";
import { policyOf } from "../domain/endpoints.ts";
import type { PrivateTransaction } from "../domain/transaction.ts";
import type { Bid } from "./bids.ts";

/** What it needs to know of a bid. */
export interface Contender {
	readonly target: string;
	readonly bidder: Bidder;
	/** The backrun's nonce. */
	readonly nonce: bigint;
	/** Names of the builders that may have it; null: all. */
	readonly builders: readonly string[] | null;
	/** Wei. */
	readonly value: bigint;
	/** Of equal bids the one with the lower number, the earlier, wins. */
	readonly seq: number;
}

export interface WinnersOptions<B> {
	/** Bids of one target that are with one builder at most. */
	readonly places: number;
	/** Names of the builders that have the target and pay refunds. */
	readonly buildersOf: (target: string) => readonly string[];
	/** Whether it ranks behind everybody else's. */
	readonly isBehind: (bid: B) => boolean;
}

/** Where a bid shall be. */
export interface Place {
	readonly builders: readonly string[];
	/** Whether it is the best one at any of them. */
	readonly isBest: boolean;
}

/**
 * The best bids of each target at each builder: distinct by owner, by the backrun's sender and by the contract that it
 * calls, so that no single bidder takes all places. A sender's nonce is given out once at a builder: of two targets whose
 * bids share one, the one where it ranks higher (pays more) keeps it.
 */
export function winners<B extends Contender>(
	bids: readonly B[],
	{ places, buildersOf, isBehind }: WinnersOptions<B>,
): ReadonlyMap<B, Place> {
	const behind = new Set(bids.filter(isBehind));
	const ranked = [...bids].sort((a, b) => Number(behind.has(a)) - Number(behind.has(b)) || compare(a, b));
	const names = new Set(ranked.flatMap(({ target }) => buildersOf(target)));
	const won = new Map<B, { builders: string[]; isBest: boolean }>();
	for (const name of names) {
		const taken = new Set<string>();
		const counts = new Map<string, number>();
		for (const bid of ranked) {
			const { target, bidder, nonce, builders } = bid;
			const count = counts.get(target) ?? 0;
			if (count >= places || builders?.includes(name) === false || !buildersOf(target).includes(name))
				continue;
			const claims = [
				`nonce ${bidder.sender} ${nonce}`,
				`owner ${target} ${bidder.owner}`,
				`sender ${target} ${bidder.sender}`,
				`contract ${target} ${bidder.contract}`,
			];
			if (claims.some((claim) => taken.has(claim))) continue;
			for (const claim of claims) taken.add(claim);
			counts.set(target, count + 1);
			const place = won.get(bid) ?? { builders: [], isBest: false };
			place.builders.push(name);
			place.isBest ||= count === 0;
			won.set(bid, place);
		}
	}
	return won;
}

/** Below zero where `a` pays more, or as much and came earlier. */
export function compare(a: Pick<Contender, "value" | "seq">, b: Pick<Contender, "value" | "seq">): number {
	if (a.value !== b.value) return a.value > b.value ? -1 : 1;
	return a.seq - b.seq;
}

/** Under which name an owner's bid on a target goes out: one of each is out at a time, and his next takes its place. */
export function backrunName(target: string, owner: string): string {
	return `backrun ${target} ${owner}`;
}

/** The bundle for `block`; `refundPercent` is the user's share of what the backrun brings. */
export function backrunBundle(
	bid: Bid,
	{ tx, path, refundRecipient }: PrivateTransaction,
	block: number,
	refundPercent: number,
): OutgoingBundle {
	return {
		name: backrunName(bid.target, bid.owner),
		transactions: [
			{ tx, mayRevert: policyOf(path).mayRevert, mayDrop: false },
			{ tx: bid.backrun, mayRevert: false, mayDrop: true },
		],
		...{ block, client: bid.client, isPlain: false },
		refund: {
			percent: refundPercent,
			recipient: refundRecipient ?? tx.from,
			bodyIdx: 0,
			of: bid.backrun.hash,
		},
	};
}
