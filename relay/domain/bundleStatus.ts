// The status of a bundle, block by block, as its owner sees it. Types and two lists.

import type { DeliveryAnswer } from "./events.ts";

/**
 * `ACCEPTED`: before its block, whatever others bid. With the block a bid is `INCLUDED`, `LOST` (a
 * builder had it), `NOT_PLACED` (none had it) or `TARGET_NOT_MINED`. A plain bundle that was sent
 * is `SENT`, and then `INCLUDED`, `NOT_INCLUDED` or `DROPPED`. The owner causes `REPLACED` and
 * `CANCELLED`.
 */
export const BUNDLE_STAGES = [
	"ACCEPTED",
	"SENT",
	"INCLUDED",
	"LOST",
	"NOT_PLACED",
	"TARGET_NOT_MINED",
	"NOT_INCLUDED",
	"REPLACED",
	"CANCELLED",
	"DROPPED",
] as const;
export type BundleStage = (typeof BUNDLE_STAGES)[number];

/** Why a bundle is not in a block, as far as the bundle itself caused it. */
export const BUNDLE_REASONS = [
	/** Builders had the plain bundle and left it out. */
	"notChosen",
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
	/** The block that contained it has left the chain. */
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
	/** Wei that it paid by transfer in its last simulation; null for a plain bundle. */
	bid: bigint | null;
	/**
	 * Wei that the transaction directly behind the target paid by transfers. If the bid is
	 * `INCLUDED`, that is the bid itself. Null until it was read from the chain, if there was none,
	 * or if the node can't trace it.
	 */
	paid: bigint | null;
	/** Whether builders had it. For a bid, set only once that is disclosed. */
	placed: boolean;
	/**
	 * Whether builders' answers are disclosed. A bid's are only with the block of its target, since
	 * they reveal other bids.
	 */
	isDisclosed: boolean;
	/** The block that contains it, or null. */
	blockHash: string | null;
	/** When it was created, in ms since the epoch. */
	readonly since: number;
	/** When it last changed, in ms since the epoch. */
	at: number;
	readonly deliveries: BundleDelivery[];
}

/** A bidder. */
export interface Bidder {
	/**
	 * The bundle's owner: the address that signed the request, else the client's; null if no longer
	 * known.
	 */
	readonly owner: string | null;
	/** The client that it came from; null if no longer known. */
	readonly client: string | null;
	/** The backrun's signer. */
	readonly sender: string;
}

/**
 * The key of a bidder's record: the key that signed the bundle, else the backrun's sender with the
 * client that sent it.
 */
export function bidderKey({ owner, client, sender }: Bidder): string {
	return owner !== null && isKeys(owner) ? owner : `${sender} ${client}`;
}

/** Whether the owner of a bundle is a key that signed it, and not the client that sent it. */
export function isKeys(owner: string): boolean {
	return /^0x[0-9a-f]{40}$/.test(owner);
}

/** The client in a {@link bidderKey}; null if a key has signed. */
export function clientIn(bidder: string): string | null {
	const space = bidder.indexOf(" ");
	return space === -1 ? null : bidder.slice(space + 1);
}

/** A reader of its own bundles. */
export interface BundleReader {
	/** The owner whose bundles it sees. */
	readonly owner: string;
	/** The client that sent the request. */
	readonly client: string;
	/** Whether it also sees live bundles, and not only blocks that have arrived. */
	readonly isLive: boolean;
}

/** The status record of an owner's bundle. */
export interface BundleRecord {
	readonly owner: string;
	/** The client's network, which limits the number of bundles for all of its signers together. */
	readonly client: string;
	readonly hash: string;
	/** Null for a plain bundle. */
	readonly bidder: Bidder | null;
	/** Null for a plain bundle. */
	readonly target: string | null;
	/** When it arrived, in ms since the epoch. */
	readonly receivedAt: number;
	/**
	 * From the disclosure of its target to its arrival, in ms; null for a plain bundle, or if the
	 * time of the disclosure is not known.
	 */
	readonly feedMs: number | null;
	/** When its first simulation had ended; null if it was withdrawn before. */
	simulatedAt: number | null;
	firstBlock: number;
	lastBlock: number;
	/** In block order. */
	readonly blocks: BundleBlockStatus[];
}

/** The bundle in the blocks up to `head`, which have arrived; null if there is none. */
export function settledPart(record: BundleRecord, head: number): BundleRecord | null {
	const blocks = record.blocks.filter(({ block }) => block <= head);
	return blocks.length === 0 ? null : { ...record, blocks };
}
