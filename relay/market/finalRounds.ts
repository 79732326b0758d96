// What became of the bids on each target in a new block: which are in it, which are not and why. What the block pays is read from
// the chain later (settlement.ts), by the rounds that are kept here.

import { type Bid, buildersHolding, isFor } from "../auction/bid.ts";
import { type BidLives, KEPT_BLOCKS } from "../auction/bidLives.ts";
import type { Bids } from "../auction/bids.ts";
import type { BidOut, BidsOut } from "../auction/bidsOut.ts";
import { type BundleTable, statusIn } from "../auction/bundleTable.ts";
import { isAt } from "../domain/bundle.ts";
import type { BundleReason } from "../domain/bundleStatus.ts";
import type { Block } from "../domain/chain.ts";
import type { PaymentLedger } from "./ledger.ts";

/** The bids on a target at the moment of the block that contains it. */
export interface FinalRound {
	/** Those that were with builders. */
	readonly sent: readonly Bid[];
	/** Those that are in the block behind the target. */
	readonly landed: readonly Bid[];
	/** Bids that were for the block and its time, and are not in it. */
	readonly lost: readonly Bid[];
	/** What is right behind the target, by each owner for whom it was out, even if it has been withdrawn or has ended since. */
	readonly behind: readonly BidOut[];
}

/** The market's parts that it works with. */
interface FinalRoundsParts {
	readonly bids: Bids;
	readonly lives: BidLives;
	readonly out: BidsOut;
	readonly table: BundleTable;
	readonly ledger: PaymentLedger;
}

export class FinalRounds {
	readonly #parts: FinalRoundsParts;
	/** By block hash and target, with the block's number. */
	readonly #rounds = new Map<string, FinalRound & { readonly block: number }>();

	constructor(parts: FinalRoundsParts) {
		this.#parts = parts;
	}

	/** The bids on a target in the block with this hash, if it is still kept. */
	find(target: string, blockHash: string): FinalRound | null {
		return this.#rounds.get(`${blockHash} ${target}`) ?? null;
	}

	/** Sets the status of each bid for a new block. Settlement adds the winner and its payment later. */
	apply(block: Block): void {
		const { bids, lives, out, table, ledger } = this.#parts;
		const { number, hash } = block;
		const places = new Map(block.transactions.map((tx, i) => [tx.hash, i]));
		for (const target of new Set([...bids.targets(), ...out.targets(number)])) {
			const place = places.get(target);
			const all = bids.of(target);
			// Anywhere else in the block it was not mined through its bundle.
			const isIn = ({ backrun }: Bid) => place !== undefined && places.get(backrun.hash) === place + 1;
			const missed = all.filter((bid) => isFor(bid, number) && !isIn(bid) && !isReorganised(bid, number));
			const lost = missed.filter((bid) => !isMistimed(bid, block));
			const sent = all.filter((bid) => buildersHolding(bid, number).length > 0);
			const landed = all.filter(isIn);
			if (place !== undefined) {
				for (const bid of sent) if (!isIn(bid)) ledger.hadPlace(bid.bidder, bid.value, number);
				const behind = out.find(target, number, block.transactions[place + 1]?.hash ?? "");
				this.#rounds.set(`${hash} ${target}`, { block: number, sent, landed, lost, behind });
			}
			for (const bid of missed) {
				const isMined = places.has(bid.backrun.hash);
				const reason = isMined
					? "transactionMined"
					: !lost.includes(bid)
						? "timestamp"
						: place === undefined
							? "targetNotIncluded"
							: this.#lossReason(bid, sent, landed);
				table.change(bid.record, number, { stage: "NOT_INCLUDED", reason });
				if (bid.lastBlock <= number || isMined) lives.endSilently(bid);
			}
			for (const bid of landed) lives.land(bid, block);
		}
	}

	/** Forgets the rounds of blocks that are no longer kept at `head`. */
	forget(head: number): void {
		for (const [key, { block }] of this.#rounds) if (block + KEPT_BLOCKS <= head) this.#rounds.delete(key);
	}

	/** Why it is not in the target's block: the first reason that applies, so their order matters. */
	#lossReason(bid: Bid, sent: readonly Bid[], landed: readonly Bid[]): BundleReason {
		if (landed.some(({ value }) => value >= bid.value)) return "outbid";
		if (sent.includes(bid)) return "notChosen";
		if (bid.lastCheck?.result !== "passed" || bid.runningCheck !== null) return "notSimulated";
		if (sent.length === 0) return "notChosen";
		if (sent.some(({ value }) => value >= bid.value)) return "outbid";
		const { provenUpTo } = this.#parts.ledger.standing(bid.bidder);
		return bid.value > provenUpTo ? "unproven" : "nonceTaken";
	}
}

/** Whether the block's time is not one for the bid, or was expected not to be. */
function isMistimed({ record, times }: Bid, { number, timestamp }: Block): boolean {
	return !isAt(times, timestamp) || statusIn(record, number)?.reason === "timestamp";
}

/** Whether the bid was in a block with this number that was reorganised away. */
function isReorganised({ record }: Bid, block: number): boolean {
	return statusIn(record, block)?.reason === "reorganised";
}
