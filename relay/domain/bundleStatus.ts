// The status of a bundle, block by block, as its owner sees it. Types and two lists.

import type { DeliveryAnswer } from "./events.ts";

/**
 * `ACCEPTED`: waits for its block, or for its target to be sent. `BEST`: the highest bid, sent to builders. `RUNNER_UP`: one of
 * the next best, also sent. `OUTBID`: kept by the relay in case a better bid is withdrawn. `SENT`: a plain bundle that was
 * sent. The others are final for that block.
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

/** All reasons why a bundle was not included or was dropped. */
export const BUNDLE_REASONS = [
	/** A better bid is in the block, or better ones were sent and none is in it. */
	"outbid",
	/** Bidders that have paid before, or have had fewer places in vain, stood before it. */
	"unproven",
	/** Its bidder is barred for having paid less than was bid. */
	"barred",
	/** A better bid on another target uses the backrun's nonce. */
	"nonceTaken",
	/** The block contains the target, but not the backrun. */
	"notChosen",
	/** The block does not contain the target. */
	"targetNotIncluded",
	/** The target is no longer pending. */
	"targetGone",
	/** Its simulation reverts. */
	"reverted",
	/** Its simulation no longer pays anything. */
	"paysNothing",
	/** It is invalid in the block: nonce, funds or fee cap. */
	"invalid",
	/** It could not be simulated in time. */
	"notSimulated",
	/** The block's time is, or was expected to be, outside of its minTimestamp and maxTimestamp. */
	"timestamp",
	/** One of its transactions was mined by itself. */
	"transactionMined",
	/** The block that held it is no longer in the chain. */
	"reorganised",
] as const;
export type BundleReason = (typeof BUNDLE_REASONS)[number];

/** A builder's response to a bundle or its cancel. */
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
	/** Wei paid by transfer in the last simulation; null for a plain bundle. */
	bid: bigint | null;
	/** The bid that is in the block instead; null until it was read from the chain, and if there is none. */
	winner: Winner | null;
	/** Wei actually paid by transfers; null until it was read from the chain. */
	paid: bigint | null;
	/** Whether builders were to have it at some time. */
	placed: boolean;
	/** The block that contains it, or null. */
	blockHash: string | null;
	/** When it was made, in ms since the epoch. */
	readonly since: number;
	/** When it last changed, in ms since the epoch. */
	at: number;
	readonly deliveries: BundleDelivery[];
}

/** The bid that is in a block behind its target. */
export interface Winner {
	/** Hash of its backrun. */
	readonly backrun: string;
	/** Wei actually paid by transfers; null if the node can't trace it. */
	readonly paid: bigint | null;
}

/** The parties under which a bid's payments are counted. */
export interface Bidder {
	/** The bundle's owner; null if no longer known. */
	readonly owner: string | null;
	/** The client that it came from; null if no longer known. */
	readonly client: string | null;
	/** The backrun's signer. */
	readonly sender: string;
}

/** A bar: the bidder's bids are rejected. */
export interface Bar {
	/** The last block for which bids are rejected. */
	readonly until: number;
	/** Wei that were bid, and paid, in `block`. */
	readonly bid: bigint;
	readonly paid: bigint;
	readonly block: number;
}

/** How a bidder stands by what it has paid (auction/payments.ts) and the places that it has had (auction/placesHad.ts). */
export interface Standing {
	readonly bar: Bar | null;
	/** The highest bid in wei for which it is proven; 0: none. */
	readonly provenUpTo: bigint;
	/** The last block for which its bids that it is not proven for stand behind all others; null: they do not. */
	readonly spentUntil: number | null;
}

/** The status record of an owner's bundle. */
export interface BundleRecord {
	readonly owner: string;
	/** The network by which the number of bundles is limited, whoever has signed them. */
	readonly client: string;
	readonly hash: string;
	/** Null for a plain bundle. */
	readonly bidder: Bidder | null;
	/** Null for a plain bundle. */
	readonly target: string | null;
	/** When it came, in ms since the epoch. */
	readonly receivedAt: number;
	/** When its first simulation had ended; null if it was withdrawn before. */
	simulatedAt: number | null;
	firstBlock: number;
	lastBlock: number;
	/** In block order. */
	readonly blocks: BundleBlockStatus[];
}
