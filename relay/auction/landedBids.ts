// Bids that are in a block: they come in as their blocks come, and come back out when a block is reorganised away. Their
// owners are told; nothing is sent here.

import { LRUCache } from "lru-cache";
import type { Block } from "../domain/chain.ts";
import type { Bid } from "./book.ts";
import type { BundleRecords } from "./bundleRecords.ts";

/** Blocks whose bids are remembered. */
const MAX_BLOCKS = 128;

/** The included bids of the last blocks. */
export class LandedBids {
	readonly #bundles: BundleRecords;
	readonly #byBlock = new LRUCache<string, readonly Bid[]>({ max: MAX_BLOCKS });

	constructor(dependencies: { readonly bundles: BundleRecords }) {
		this.#bundles = dependencies.bundles;
	}

	/** A bid is in a block. */
	add(bid: Bid, { number, hash }: Block): void {
		this.#byBlock.set(hash, [...(this.#byBlock.get(hash) ?? []), bid]);
		const change = { stage: "INCLUDED", reason: null, blockHash: hash, outbidBy: null } as const;
		this.#bundles.change(bid, number, change);
	}

	/** A block is no longer in the chain: neither are the bids in it, which are answered. */
	takeBack({ number, hash }: Block): readonly Bid[] {
		const bids = this.#byBlock.get(hash) ?? [];
		this.#byBlock.delete(hash);
		for (const bid of bids) {
			const change = { stage: "NOT_INCLUDED", reason: "reorganised", blockHash: null } as const;
			this.#bundles.change(bid, number, change);
		}
		return bids;
	}
}
