// The bids that went to builders for a block, also those that were withdrawn, outbid or ended since: a builder may have been past
// the cancel. What is in the block is judged by this, and not by what is live when the block comes. In memory: after a restart
// a target's events tell what was sent, but not by whom.

import type { Bidder } from "../domain/bundleStatus.ts";
import type { Bid } from "./bid.ts";

/** A bid that was out for a block. */
export interface BidOut {
	/** The hashes of its bundle and of its backrun. */
	readonly bundle: string;
	readonly backrun: string;
	readonly bidder: Bidder;
	/** The least wei that it was out for. */
	readonly bid: bigint;
	/** Names of the builders that it went to. */
	readonly builders: readonly string[];
	/** Who gets the refund. */
	readonly recipient: string;
}

/** Blocks for which all are kept: a reorganisation may bring another block with the same number. */
const KEPT_BLOCKS = 8;

export class BidsOut {
	/** By block and target; of each owner and backrun once, what was sent last at the end. */
	readonly #byBlock = new Map<number, Map<string, Map<string, BidOut>>>();

	/** The bid goes to `builders` for `block`. */
	note(
		{ record, backrun, bidder, target, value }: Bid,
		{ block, builders, recipient }: { block: number } & Pick<BidOut, "builders" | "recipient">,
	): void {
		const byTarget = this.#byBlock.get(block) ?? new Map<string, Map<string, BidOut>>();
		this.#byBlock.set(block, byTarget);
		const all = byTarget.get(target) ?? new Map<string, BidOut>();
		byTarget.set(target, all);
		const key = `${backrun.hash} ${bidder.owner}`;
		const known = all.get(key);
		all.delete(key);
		all.set(key, {
			bundle: record.hash,
			backrun: backrun.hash,
			bidder,
			recipient,
			bid: known === undefined || value < known.bid ? value : known.bid,
			builders: [...new Set([...(known?.builders ?? []), ...builders])],
		});
	}

	/** The targets on which bids were out for `block`. */
	targets(block: number): Iterable<string> {
		return this.#byBlock.get(block)?.keys() ?? [];
	}

	/** What was out behind `target` for `block` with this backrun: once for each owner that has brought it. */
	find(target: string, block: number, backrun: string): readonly BidOut[] {
		const all = this.#byBlock.get(block)?.get(target)?.values() ?? [];
		return [...all].filter((one) => one.backrun === backrun);
	}

	/** Forgets what no block at `head` can have any more. */
	forget(head: number): void {
		for (const block of this.#byBlock.keys()) if (block + KEPT_BLOCKS <= head) this.#byBlock.delete(block);
	}
}
