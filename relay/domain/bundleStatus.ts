// What becomes of a bundle, for the one who sent it: its stages, block by block. Pure types and one list.

import type { DeliveryAnswer } from "./events.ts";

/**
 * `ACCEPTED`: waits for its block, or for its target to go out. `BEST`: a bid that is with the builders. `OUTBID`: a
 * bid that is kept in case the better one falls out. `SENT`: a plain bundle that is with the builders. The others end
 * it for that block.
 */
export const BUNDLE_STAGES = [
	"ACCEPTED",
	"BEST",
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
	/** A better bid was sent. */
	"outbid",
	/** A better bid on another target had the backrun's nonce. */
	"nonceTaken",
	/** The block came with the target, without the backrun. */
	"notChosen",
	/** The block came without the target. */
	"targetNotIncluded",
	/** The target was mined, replaced, cancelled, or has ended otherwise. */
	"targetGone",
	/** It no longer executes behind its target. */
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
	/** Wei that the best bid was dearer by; null until the block is there, and where it was the best. */
	outbidBy: bigint | null;
	/** The block that holds it. */
	blockHash: string | null;
	/** When it last changed, in ms since the epoch. */
	at: number;
	readonly deliveries: BundleDelivery[];
}

/** All that is known of one bundle of one owner. */
export interface BundleRecord {
	readonly hash: string;
	/** Null for a plain bundle. */
	readonly target: string | null;
	readonly receivedAt: number;
	firstBlock: number;
	lastBlock: number;
	/** In order of their numbers. */
	readonly blocks: BundleBlockStatus[];
}
