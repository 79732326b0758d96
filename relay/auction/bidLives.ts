// The life of each bid. An accepted bid is `live`: it takes part in the auction. A bid in a block
// has `landed`. It is live again if that block leaves the chain while it is kept. A bid that ends
// otherwise has `ended`: its owner receives the outcome with the next block of its range. After
// that it is `over`.

import type { BundleReason } from "../domain/bundleStatus.ts";
import type { Block } from "../domain/chain.ts";
import type { Bid } from "./bid.ts";
import type { Bids } from "./bids.ts";
import type { BundleTable, Withdrawal } from "./bundleTable.ts";

export interface BidLivesDependencies {
	/** The live bids. */
	readonly bids: Bids;
	readonly table: Pick<BundleTable, "change" | "freeUuid">;
	/** The number of the next block. */
	readonly nextBlock: () => number;
}

/** A bid that has ended, and the block with which its owner learns that. */
export interface EndedBid {
	readonly bid: Bid;
	readonly block: number;
	/** The reason, as far as it lies with the bid itself. */
	readonly reason: BundleReason | null;
}

/** How many blocks landed bids are kept, for reorganisations and for a late settlement. */
export const KEPT_BLOCKS = 64;

export class BidLives {
	readonly #dependencies: BidLivesDependencies;
	readonly #landed = new Map<Bid, Pick<Block, "number" | "hash">>();
	readonly #ended = new Map<Bid, EndedBid>();

	constructor(dependencies: BidLivesDependencies) {
		this.#dependencies = dependencies;
	}

	/** The bids whose end is reported with `block`. */
	endedFor(block: number): readonly EndedBid[] {
		return [...this.#ended.values()].filter((one) => one.block === block);
	}

	/** From live or ended to landed: it is in `block`. */
	land(bid: Bid, { number, hash }: Pick<Block, "number" | "hash">): void {
		this.#dependencies.bids.remove(bid);
		this.#ended.delete(bid);
		this.#landed.set(bid, { number, hash });
	}

	/** From landed to live: all bids that were in `blocks`, which have left the chain. */
	revive(blocks: readonly Pick<Block, "hash">[]): void {
		const { bids, table } = this.#dependencies;
		const gone = new Set(blocks.map((block) => block.hash));
		for (const [bid, { number, hash }] of this.#landed) {
			if (!gone.has(hash)) continue;
			table.change(bid.record, number, { stage: "LOST", reason: "reorganised", blockHash: null, paid: null });
			this.#landed.delete(bid);
			bids.add(bid);
		}
	}

	/**
	 * Withdraws the bid for its owner, who does not know whether it is still live. If it has landed
	 * and its block leaves the chain, it is for no later block.
	 */
	withdraw(bid: Bid, how: Withdrawal): void {
		const { table } = this.#dependencies;
		const landed = this.#landed.get(bid);
		const ended = landed === undefined ? (this.#ended.get(bid) ?? this.end(bid, null)) : null;
		if (landed !== undefined) bid.lastBlock = landed.number;
		if (ended !== null) table.change(bid.record, ended.block, { stage: how });
		table.freeUuid(bid.entry);
	}

	/**
	 * From live to ended. The end is reported with the next block, or the nearest one that the bid
	 * is for. Until then it keeps its uuid, as a live bid does. Null if it was not live.
	 */
	end(bid: Bid, reason: BundleReason | null): EndedBid | null {
		const block = Math.min(Math.max(bid.firstBlock, this.#dependencies.nextBlock()), bid.lastBlock);
		if (!this.#dependencies.bids.remove(bid)) return null;
		bid.runningCheck?.stop.abort();
		const ended = { bid, block, reason };
		this.#ended.set(bid, ended);
		return ended;
	}

	/** The same bid was submitted again: its ended versions are over. */
	comesAgain({ owner, target, backrun }: Pick<Bid, "owner" | "target" | "backrun">): void {
		for (const bid of this.#ended.keys()) {
			if (bid.owner !== owner || bid.target !== target || bid.backrun.hash !== backrun.hash) continue;
			this.#ended.delete(bid);
			this.#dependencies.table.freeUuid(bid.entry);
		}
	}

	/** From live to over: nothing more is reported. Returns false if it was not live. */
	drop(bid: Bid): boolean {
		const { bids, table } = this.#dependencies;
		if (!bids.remove(bid)) return false;
		table.freeUuid(bid.entry);
		bid.runningCheck?.stop.abort();
		return true;
	}

	/**
	 * To over: ended bids whose block has passed at `head`, and landed bids whose block is no
	 * longer kept.
	 */
	forget(head: number): void {
		for (const [bid, { block }] of this.#ended) {
			if (block > head) continue;
			this.#ended.delete(bid);
			this.#dependencies.table.freeUuid(bid.entry);
		}
		for (const [bid, { number }] of this.#landed) {
			if (number + KEPT_BLOCKS > head) continue;
			this.#landed.delete(bid);
			this.#dependencies.table.freeUuid(bid.entry);
		}
	}
}
