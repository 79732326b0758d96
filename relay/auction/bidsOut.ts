// The bids that were sent to builders for a block. Bids that were withdrawn, evicted or replaced
// since are included: a builder may have been past the cancel. In memory: after a restart, a
// target's events show what was sent, but not by whom.

import { type Bidder, bidderKey } from "../domain/bundleStatus.ts";
import type { Bid } from "./bid.ts";

/** A bid that was sent for a block. */
export interface BidOut {
	/** The hashes of its bundle and of its backrun. */
	readonly bundle: string;
	readonly backrun: string;
	readonly bidder: Bidder;
	/**
	 * The order of its acceptance: see {@link Bid.seq}. If the same bid replaced it, the first
	 * one's.
	 */
	readonly seq: number;
	/** Wei that it claimed when it was last sent. */
	readonly bid: bigint;
	/** Names of the builders that it was sent to. */
	readonly builders: readonly string[];
	/** The recipient of the refund. */
	readonly recipient: string;
}

/**
 * How many blocks the bids are kept: a reorganisation may bring another block with the same number.
 */
const KEPT_BLOCKS = 8;

export class BidsOut {
	/** By block and target; each bidder and backrun once. */
	readonly #byBlock = new Map<number, Map<string, Map<string, BidOut>>>();

	/** Records that the bid is sent to `builder` for `block`. */
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

	/** The bid as it was sent for `block`; null: no builder had it. */
	of({ target, backrun, bidder }: Bid, block: number): BidOut | null {
		return this.#byBlock.get(block)?.get(target)?.get(keyOf(backrun.hash, bidder)) ?? null;
	}

	/**
	 * The bid with this backrun that was sent behind `target` for `block`; null: none. If there are
	 * several, the first accepted. Anybody who receives a bundle has the backrun's bytes, and can
	 * bid with them too.
	 */
	find(target: string, block: number, backrun: string): BidOut | null {
		const all = [...(this.#byBlock.get(block)?.get(target)?.values() ?? [])];
		const [first] = all.filter((one) => one.backrun === backrun).sort((one, other) => one.seq - other.seq);
		return first ?? null;
	}

	/** Forgets bids that no block at `head` can contain any more. */
	forget(head: number): void {
		for (const block of this.#byBlock.keys()) if (block + KEPT_BLOCKS <= head) this.#byBlock.delete(block);
	}
}

function keyOf(backrun: string, bidder: Bidder): string {
	return `${backrun} ${bidderKey(bidder)}`;
}
