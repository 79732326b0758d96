// Outcomes of the bids on each target in a new block: included, sent to builders, or not sent.
// Later, settlement.ts reads from the chain what the transaction behind the target pays. It uses
// the rounds that are kept here.

import { type Bid, isFor } from "../auction/bid.ts";
import { type BidLives, KEPT_BLOCKS } from "../auction/bidLives.ts";
import type { Bids } from "../auction/bids.ts";
import type { BidOut, BidsOut } from "../auction/bidsOut.ts";
import { type BundleTable, statusIn } from "../auction/bundleTable.ts";
import { isAt } from "../domain/bundle.ts";
import type { BundleReason, BundleRecord } from "../domain/bundleStatus.ts";
import type { Block } from "../domain/chain.ts";

/** The bids on a target in the block that contains it. */
export interface FinalRound {
	/**
	 * The bundles whose status gets the payment of the transaction behind the target: included and
	 * lost ones.
	 */
	readonly records: readonly BundleRecord[];
	/**
	 * The bid right behind the target, even if it has been withdrawn since. Null if there is no
	 * transaction, or none that was sent as a bid.
	 */
	readonly behind: BidOut | null;
}

/** The market classes that it depends on. */
interface FinalRoundsDependencies {
	readonly bids: Bids;
	readonly lives: BidLives;
	readonly out: BidsOut;
	readonly table: BundleTable;
}

/** A bid that was for a block, and why it took no part, as far as the bid itself caused it. */
interface Entrant {
	readonly bid: Bid;
	readonly reason: BundleReason | null;
}

export class FinalRounds {
	readonly #dependencies: FinalRoundsDependencies;
	/** By block hash and target, with the block's number. */
	readonly #rounds = new Map<string, FinalRound & { readonly block: number }>();

	constructor(dependencies: FinalRoundsDependencies) {
		this.#dependencies = dependencies;
	}

	/** The bids on a target in the block with this hash, if it is still kept. */
	find(target: string, blockHash: string): FinalRound | null {
		return this.#rounds.get(`${blockHash} ${target}`) ?? null;
	}

	/** Sets the outcome of each bid in a new block. Settlement adds the payment later. */
	apply(block: Block): void {
		const { lives, out, table } = this.#dependencies;
		const { number, hash } = block;
		const places = new Map(block.transactions.map((tx, i) => [tx.hash, i]));
		for (const [target, entrants] of this.#entrants(block)) {
			const place = places.get(target);
			const behind = place === undefined ? undefined : block.transactions[place + 1]?.hash;
			const records: BundleRecord[] = [];
			for (const { bid, reason } of entrants) {
				// At any other index it was not mined through its bundle.
				const isIn = behind === bid.backrun.hash;
				const went = out.of(bid, number);
				const isMined = places.has(bid.backrun.hash);
				const outcome = isIn
					? ({ stage: "INCLUDED", reason: null, blockHash: hash } as const)
					: place === undefined
						? ({ stage: "TARGET_NOT_MINED", reason: null } as const)
						: ({ stage: went === null ? "NOT_PLACED" : "LOST", reason } as const);
				const isWithdrawn = isWithdrawnFrom(bid, number) && !isIn;
				// Reveal whether it was sent only with its target's block. Otherwise a bidder could
				// learn that for free, with an own target that is not mined.
				const disclosed =
					place === undefined
						? { bid: bid.claimed }
						: { bid: went?.bid ?? bid.claimed, placed: went !== null, isDisclosed: true };
				const own = isMined && !isIn ? { reason: "transactionMined" as const } : {};
				table.change(bid.record, number, isWithdrawn ? disclosed : { ...disclosed, ...outcome, ...own });
				if (isIn) lives.land(bid, block);
				else if (bid.lastBlock <= number || isMined) lives.drop(bid);
				if (isIn || outcome.stage === "LOST") records.push(bid.record);
			}
			if (place === undefined) continue;
			const first = behind === undefined ? null : out.find(target, number, behind);
			this.#rounds.set(`${hash} ${target}`, { block: number, records, behind: first });
		}
	}

	/** Forgets the rounds of blocks that are no longer kept at `head`. */
	forget(head: number): void {
		for (const [key, { block }] of this.#rounds) if (block + KEPT_BLOCKS <= head) this.#rounds.delete(key);
	}

	/** The bids that were for the block, by target. */
	#entrants(block: Block): ReadonlyMap<string, readonly Entrant[]> {
		const { bids, lives } = this.#dependencies;
		const { number } = block;
		const live = bids.targets().flatMap((target) => bids.of(target));
		const entrants: Entrant[] = [
			...lives.endedFor(number),
			...live.filter((bid) => isFor(bid, number)).map((bid) => ({ bid, reason: liveReason(bid, block) })),
		];
		const byTarget = new Map<string, Entrant[]>();
		for (const one of entrants) {
			const known = byTarget.get(one.bid.target);
			if (known === undefined) byTarget.set(one.bid.target, [one]);
			else known.push(one);
		}
		return byTarget;
	}
}

function liveReason({ times, lastCheck, runningCheck }: Bid, { timestamp }: Block): BundleReason | null {
	if (!isAt(times, timestamp)) return "timestamp";
	return lastCheck?.result === "noResult" || runningCheck !== null ? "notSimulated" : null;
}

function isWithdrawnFrom({ record }: Bid, block: number): boolean {
	const stage = statusIn(record, block)?.stage;
	return stage === "REPLACED" || stage === "CANCELLED";
}
