// Types of the bundles that searchers send (bids and plain bundles), with their block ranges,
// hashes and rejection codes. Pure.

import { bytesToHex, hexToBytes } from "../../shared/ethereum/hex.ts";
import { keccak256 } from "../../shared/ethereum/signatures.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { type NextBlock, timestampBehind } from "./chain.ts";
import type { Payout } from "./refund.ts";

/** Most blocks from the head to a bundle's first block, and from its first to its last. */
export const MAX_BLOCKS_AHEAD = 30;

/** The requested blocks, both included; a null `first` means the next block. */
export interface BlockRange {
	readonly first: bigint | null;
	/** Null: the first one alone. */
	readonly last: bigint | null;
}

/** The times of the blocks that a bundle is for, in seconds since the epoch, both included. */
export interface TimeRange {
	/** 0: no limit. */
	readonly from: number;
	/** Infinity: no limit. */
	readonly until: number;
}

/** Whether a block at this time, in seconds since the epoch, is within `times`. */
export function isAt(times: TimeRange | null, timestamp: number): boolean {
	return times === null || (times.from <= timestamp && timestamp <= times.until);
}

/** The fields that all bundles have. */
export interface BundleEnvelope {
	/**
	 * The owner of the bundle and its uuid: the signer's address, or the network address if the
	 * request is not signed.
	 */
	readonly owner: string;
	/** The client's network, which limits apply to. */
	readonly network: string;
	readonly blocks: BlockRange;
	/** Null: any time. */
	readonly times: TimeRange | null;
	/** Chosen by the owner; null: it can be neither replaced nor cancelled. */
	readonly uuid: string | null;
	/** Names of the allowed builders; null: all. */
	readonly builders: readonly string[] | null;
}

/** A bid: a backrun behind a pending transaction that is disclosed to searchers. */
export interface BidRequest extends BundleEnvelope {
	/** Hash of the target, lower case. */
	readonly target: string;
	/** The signed backrun; must not be changed afterwards. */
	readonly backrun: Uint8Array;
}

/** A plain bundle: signed transactions to be mined in this order with nothing between. */
export interface PlainBundleRequest extends BundleEnvelope {
	readonly body: readonly { readonly raw: Uint8Array; readonly canRevert: boolean }[];
	/** Null: nothing is refunded. */
	readonly refund: {
		/** The entry of the body whose sender gets the refund. */
		readonly bodyIdx: number;
		readonly percent: number;
		/** Lower case; null: the sender of that entry. */
		readonly recipient: string | null;
	} | null;
}

/** All reasons why a bundle is rejected. */
export const BUNDLE_REJECTIONS = [
	"NO_BIDDING",
	"TARGET_NOT_FOUND",
	"BLOCK_PAST",
	"BLOCK_TOO_FAR",
	"BAD_TRANSACTION",
	"BUNDLE_REVERTED",
	"BACKRUN_REVERTED",
	"BACKRUN_INVALID",
	"PAYS_NOTHING",
	"LIMIT",
] as const;
export type BundleRejection = (typeof BUNDLE_REJECTIONS)[number];

/** The result of submitting a bundle. */
export type BundleOutcome =
	| { readonly outcome: "accepted"; readonly hash: string }
	| {
			readonly outcome: "rejected";
			readonly code: BundleRejection;
			/** Shown to the searcher; fixed by the interface. */
			readonly message: string;
			/** Whether a simulation was spent on it. */
			readonly simulated: boolean;
	  };

export type RejectedBundle = Extract<BundleOutcome, { outcome: "rejected" }>;

/** Makes a rejection. */
export function rejectedBundle(code: BundleRejection, message: string, simulated = false): RejectedBundle {
	return { outcome: "rejected", code, message, simulated };
}

/** A refund that a bundle requests from its builder. */
export interface BundleRefund {
	/** Percent of the proceeds of {@link BundleRefund.of}, 0 to 100. A builder's row may lower it. */
	readonly percent: number;
	/** Lower-case address. */
	readonly recipient: string;
	/** The entry whose sender gets the refund (MEV-Share's `bodyIdx`). */
	readonly bodyIdx: number;
	/**
	 * Hash of the transaction that the refund percentage applies to; null: the builder's default,
	 * the last one.
	 */
	readonly of: string | null;
	/**
	 * The least proceeds in wei, and the values that the cost of paying the refund depends on.
	 * Absent: unknown, and then the refund is requested whatever it costs.
	 */
	readonly payout?: Payout & { readonly brings: bigint };
}

/**
 * The kind of a bundle: a user's transaction alone, a bid behind it, or a searcher's plain bundle.
 */
export type BundleKind = "user" | "bid" | "plain";

/** A bundle as it is sent to builders for one block. */
export interface OutgoingBundle {
	/** A later bundle with the same name replaces this one at the builders. */
	readonly name: string;
	readonly transactions: readonly {
		readonly tx: DecodedTransaction;
		readonly mayRevert: boolean;
		/** Whether the rest may be mined without it, at builders that support that. */
		readonly mayDrop: boolean;
	}[];
	readonly block: number;
	/** The builder checks them against its block; null: any time. */
	readonly times: TimeRange | null;
	/** Null: nothing is refunded. */
	readonly refund: BundleRefund | null;
	/** The client (`BundleEnvelope.network`) whose quota of the builder queues it uses. */
	readonly client: string;
	/** The id of the request that brought the user's transaction in it; null for a plain bundle. */
	readonly requestId: string | null;
	readonly kind: BundleKind;
	/**
	 * The slot of a bid. In a builder queue, the first slot of every target goes before the second
	 * of any.
	 */
	readonly slot?: number;
	/** Wei that the builder earns by it, default 0. A client's highest goes first. */
	readonly worth?: number;
}

/** keccak256 of the concatenated hashes (0x hex of 32 bytes each). */
export function bundleHash(hashes: readonly string[]): string {
	return bytesToHex(keccak256(Buffer.concat(hashes.map((hash) => hexToBytes(hash) ?? Buffer.alloc(0)))));
}

/** First and last block, both included. */
export interface Range {
	readonly first: number;
	readonly last: number;
}

/** The range, or a rejection. */
export type RangeOutcome =
	| ({ readonly ok: true } & Range)
	| { readonly ok: false; readonly code: BundleRejection; readonly message: string };

/**
 * The blocks of a bundle at the head `head`. No block, or the head's own number, means the next
 * block. A range that has begun is cut to the coming blocks.
 */
export function blockRange({ first, last }: BlockRange, head: number): RangeOutcome {
	const next = BigInt(head + 1);
	if (first === null || (first === BigInt(head) && (last ?? first) === first)) {
		return { ok: true, first: head + 1, last: head + 1 };
	}
	const end = last ?? first;
	if (end < next) return past(end);
	if (first > BigInt(head + MAX_BLOCKS_AHEAD)) {
		return { ok: false, code: "BLOCK_TOO_FAR", message: `bundle block ${first} is too far ahead` };
	}
	return { ok: true, first: Number(first < next ? next : first), last: Number(end) };
}

/**
 * The coming part of a range that was read from `asked` earlier, now that `next` is the next block.
 */
export function comingOf(asked: BlockRange, { first, last }: Range, next: number): RangeOutcome {
	if (asked.first === null) return { ok: true, first: next, last: next };
	return last < next ? past(last) : { ok: true, first: Math.max(first, next), last };
}

/**
 * The first block of a range whose expected time is within `times`; if there is none, the first
 * block.
 */
export function firstAt({ first, last }: Range, times: TimeRange | null, next: NextBlock): number {
	let block = first;
	while (block <= last && !isAt(times, timestampBehind(next, block - next.number))) block += 1;
	return block <= last ? block : first;
}

function past(block: bigint | number): RangeOutcome {
	return { ok: false, code: "BLOCK_PAST", message: `bundle block ${block} is in the past` };
}
