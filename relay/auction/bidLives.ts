// The life of each bid. Accepted, it is `live`: it takes part in the auction. In a block it has `landed`, and is live again if that
// block leaves the chain within the blocks that are kept. When it ends otherwise it is `leaving` while builders may still have
// it: they are told by who works out its target's places next. Then it is `over`.

import type { BundleReason, BundleStage } from "../domain/bundleStatus.ts";
import type { Block } from "../domain/chain.ts";
import type { Bid } from "./bid.ts";
import type { Bids } from "./bids.ts";
import type { BundleTable } from "./bundleTable.ts";

export type BidLife = "live" | "landed" | "leaving" | "over";

export interface BidLivesDependencies {
	/** The live ones. */
	readonly bids: Bids;
	readonly table: Pick<BundleTable, "change" | "freeUuid">;
	/** The number of the next block. */
	readonly nextBlock: () => number;
	/** Told of the targets whose places may change when a bid has ended: its own, and those that its nonce was taken on. */
	readonly onEnd: (targets: readonly string[]) => void;
}

/** Blocks for which landed bids are kept, for reorganisations and for a settlement that comes late. */
export const KEPT_BLOCKS = 64;

export class BidLives {
	readonly #deps: BidLivesDependencies;
	readonly #landed = new Map<Bid, Pick<Block, "number" | "hash">>();
	readonly #leaving = new Set<Bid>();

	constructor(dependencies: BidLivesDependencies) {
		this.#deps = dependencies;
	}

	/** Where the bid is in its life. */
	of(bid: Bid): BidLife {
		if (this.#deps.bids.holds(bid)) return "live";
		if (this.#landed.has(bid)) return "landed";
		return this.#leaving.has(bid) ? "leaving" : "over";
	}

	/** From live to landed: it is in `block`. */
	land(bid: Bid, { number, hash }: Pick<Block, "number" | "hash">): void {
		const { bids, table } = this.#deps;
		table.change(bid.record, number, { stage: "INCLUDED", reason: null, blockHash: hash, winner: null });
		bids.remove(bid);
		this.#landed.set(bid, { number, hash });
	}

	/** From landed to live: all that were in `blocks`, which have left the chain. */
	revive(blocks: readonly Pick<Block, "hash">[]): void {
		const { bids, table } = this.#deps;
		const gone = new Set(blocks.map((block) => block.hash));
		for (const [bid, { number, hash }] of this.#landed) {
			if (!gone.has(hash)) continue;
			const change = { stage: "NOT_INCLUDED", reason: "reorganised", blockHash: null, paid: null } as const;
			table.change(bid.record, number, change);
			this.#landed.delete(bid);
			bids.add(bid);
		}
	}

	/** Its owner has no more use for a landed bid: should its block leave the chain, it is for no later one. */
	endAtBlock(bid: Bid): void {
		const block = this.#landed.get(bid);
		if (block === undefined) return;
		bid.lastBlock = block.number;
		this.#deps.table.freeUuid(bid.entry);
	}

	/** Ends a live bid with a status for the next block, or the nearest one that the bid is for. */
	end(bid: Bid, stage: BundleStage, reason: BundleReason | null): void {
		const { table, nextBlock } = this.#deps;
		const block = Math.min(Math.max(bid.firstBlock, nextBlock()), bid.lastBlock);
		if (this.endSilently(bid)) table.change(bid.record, block, { stage, reason });
	}

	/** From live to leaving, or over if no builder has it; its status stays. Returns false if it was not live. */
	endSilently(bid: Bid): boolean {
		const { bids, table, onEnd } = this.#deps;
		if (!bids.holds(bid)) return false;
		onEnd(bids.targetsOfNonce(bid));
		bids.remove(bid);
		table.freeUuid(bid.entry);
		bid.runningCheck?.stop.abort();
		if (bid.placement !== null) this.#leaving.add(bid);
		return true;
	}

	/** From leaving to over: those on `targets`, by target. The caller tells their builders. */
	takeLeaving(targets: readonly string[]): ReadonlyMap<string, readonly Bid[]> {
		const taken = new Map<string, Bid[]>(targets.map((target) => [target, []]));
		for (const bid of this.#leaving) {
			const bids = taken.get(bid.target);
			if (bids === undefined) continue;
			this.#leaving.delete(bid);
			bids.push(bid);
		}
		return taken;
	}

	/** To over: leaving ones whose block has passed at `head`, and landed ones whose block is no longer kept. */
	forget(head: number): void {
		for (const bid of this.#leaving) if ((bid.placement?.block ?? 0) <= head) this.#leaving.delete(bid);
		for (const [bid, { number }] of this.#landed) {
			if (number + KEPT_BLOCKS > head) continue;
			this.#landed.delete(bid);
			this.#deps.table.freeUuid(bid.entry);
		}
	}
}
