// The bids that went to builders for a block, also those that were withdrawn, evicted or replaced since: a builder may have been past
// the cancel. In memory: after a restart a target's events tell what was sent, but not by whom.

import { type Bidder, bidderKey } from "../domain/bundleStatus.ts";
import type { Bid } from "./bid.ts";

/** A bid that was out for a block. */
export interface BidOut {
	/** The hashes of its bundle and of its backrun. */
	readonly bundle: string;
	readonly backrun: string;
	readonly bidder: Bidder;
	/** When it was accepted: see {@link Bid.seq}. Of a bid that was replaced by the same one, the first. */
	readonly seq: number;
	/** Wei that it claimed when it went out last. */
	readonly bid: bigint;
	/** Names of the builders that it left for. */
	readonly builders: readonly string[];
	/** Who gets the refund. */
	readonly recipient: string;
}

/** Blocks for which all are kept: a reorganisation may bring another block with the same number. */
const KEPT_BLOCKS = 8;

export class BidsOut {
	/** By block and target; of each bidder and backrun once. */
	readonly #byBlock = new Map<number, Map<string, Map<string, BidOut>>>();

	/** The bid leaves for `builder` for `block`. */
	note(
		{ record, backrun, bidder, target, value, seq }: Bid,
		{ block, builder, recipient }: { block: number; builder: string } & Pick<BidOut, "recipient">,
	): void {
		const byTarget = this.#byBlock.get(block) ?? new Map<string, Map<string, BidOut>>();
		this.#byBlock.set(block, byTarget);
		const all = byTarget.get(target) ?? new Map<string, BidOut>();
		byTarget.set(target, all);
		const key = keyOf(backrun.hash, bidder);
		const known = all.get(key);
		all.set(key, {
			...{ bundle: record.hash, backrun: backrun.hash, bidder, recipient, bid: value },
			seq: Math.min(seq, known?.seq ?? seq),
			builders: [...new Set([...(known?.builders ?? []), builder])],
		});
	}

	/** What was out of a bid for `block`; null: no builder had it. */
	of({ target, backrun, bidder }: Bid, block: number): BidOut | null {
		return this.#byBlock.get(block)?.get(target)?.get(keyOf(backrun.hash, bidder)) ?? null;
	}

	/**
	 * The bid that was out behind `target` for `block` with this backrun; null: none. Of several the one that was accepted first: whoever
	 * receives a bundle has the backrun's bytes, and can bid with them too.
	 */
	find(target: string, block: number, backrun: string): BidOut | null {
		const all = [...(this.#byBlock.get(block)?.get(target)?.values() ?? [])];
		const [first] = all.filter((one) => one.backrun === backrun).sort((one, other) => one.seq - other.seq);
		return first ?? null;
	}

	/** Forgets what no block at `head` can have any more. */
	forget(head: number): void {
		for (const block of this.#byBlock.keys()) if (block + KEPT_BLOCKS <= head) this.#byBlock.delete(block);
	}
}

function keyOf(backrun: string, bidder: Bidder): string {
	return `${backrun} ${bidderKey(bidder)}`;
}
