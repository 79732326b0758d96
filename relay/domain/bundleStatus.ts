// What becomes of a bundle, for the one who sent it: its stages, block by block. Pure types and two lists.

import type { DeliveryAnswer } from "./events.ts";

/**
 * `ACCEPTED`: waits for its block, or for its target to go out. `BEST`: the dearest bid, which is with the builders.
 * `RUNNER_UP`: one of the next best, which are with the builders too. `OUTBID`: kept by the relay in case a better one
 * falls out. `SENT`: a plain bundle that is with the builders. The others end it for that block.
 */
export const BUNDLE_STAGES = [
	"ACCEPTED",
	"BEST",
	"RUNNER_UP",
	"OUTBID",
	"SENT",
	"INCLUDED",
	"NOT_INCLUDED",
	"REPLACED",
	"CANCELLED",
	"DROPPED",
] as const;
export type BundleStage = (typeof BUNDLE_STAGES)[number];

/** Why a bundle ended without being included, or fell out; the whole list. */
export const BUNDLE_REASONS = [
	/** A better bid is in the block; or better ones were sent, and none is in it. */
	"outbid",
	/** Its bidder has lost dearer bids again and again: others were sent before it. */
	"rankedBehind",
	/** Its bidder paid less than was bid before. */
	"barred",
	/** A better bid on another target had the backrun's nonce. */
	"nonceTaken",
	/** The block came with the target, without the backrun. */
	"notChosen",
	/** The block came without the target. */
	"targetNotIncluded",
	/** The target was mined, replaced, cancelled, or has ended otherwise. */
	"targetGone",
	/** It no longer executes behind its target; or as a plain bundle in its block. */
	"reverted",
	/** It pays nothing any more. */
	"paysNothing",
	/** It can't be in the block: nonce, funds, fee cap. */
	"invalid",
	/** It could not be simulated in time. */
	"notSimulated",
	/** One of its transactions was mined by itself. */
	"transactionMined",
	/** The block that held it is no longer in the chain. */
	"reorganised",
] as const;
export type BundleReason = (typeof BUNDLE_REASONS)[number];

/** How one builder took a bundle or its cancel. */
export interface BundleDelivery {
	readonly at: number;
	readonly builder: string;
	readonly kind: "bundle" | "cancel";
	readonly answer: DeliveryAnswer;
	/** From sending to the answer, in ms. */
	readonly ms: number;
}

/** A bundle in one block of its range. */
export interface BundleBlockStatus {
	readonly block: number;
	stage: BundleStage;
	reason: BundleReason | null;
	/** Wei that the backrun pays by transfer, as last simulated; null for a plain bundle. */
	bid: bigint | null;
	/** The bid that is in the block in its stead; null until the chain has told, and where there is none. */
	winner: Winner | null;
	/** Wei that it really paid by transfers, in the block that holds it; null until the chain has told. */
	paid: bigint | null;
	/** The block that holds it. */
	blockHash: string | null;
	/** When it last changed, in ms since the epoch. */
	at: number;
	readonly deliveries: BundleDelivery[];
}

/** The bid that is in a block behind its target. */
export interface Winner {
	/** Hash of its backrun. */
	readonly backrun: string;
	/** Wei that it really paid by transfers; null where the node can't tell. */
	readonly paid: bigint | null;
}

/** Who answers for a bid: what it paid in its block is remembered of each of them. */
export interface Bidder {
	/** Who sent the bundle; null where that is no longer known. */
	readonly owner: string | null;
	/** The client that it came from; null where that is no longer known. */
	readonly client: string | null;
	/** Who signed the backrun. */
	readonly sender: string;
	/** What the backrun calls. */
	readonly contract: string;
}

/** That a bidder's bids are refused, and for what. */
export interface Bar {
	/** The last block for which they are. */
	readonly until: number;
	/** Wei that were bid and paid in `block`. */
	readonly bid: bigint;
	readonly paid: bigint;
	readonly block: number;
}

/** How a bidder stands, by what its backruns did in blocks of the chain. */
export interface Standing {
	readonly bar: Bar | null;
	/** The last block for which its bids rank behind everybody else's; null: they don't. */
	readonly behindUntil: number | null;
}

/** All that is known of one bundle of one owner. */
export interface BundleRecord {
	readonly owner: string;
	readonly hash: string;
	/** Null for a plain bundle. */
	readonly bidder: Bidder | null;
	/** Null for a plain bundle. */
	readonly target: string | null;
	readonly receivedAt: number;
	firstBlock: number;
	lastBlock: number;
	/** In order of their numbers. */
	readonly blocks: BundleBlockStatus[];
}
