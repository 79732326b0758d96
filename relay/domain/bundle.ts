// Bundles as searchers send them: a bid behind a shared transaction, or transactions of their own; their blocks, their hash and
// the closed list of refusals. Pure; what becomes of a bundle stands in bundleStatus.ts.

import { bytesToHex, hexToBytes } from "../../shared/ethereum/hex.ts";
import { keccak256 } from "../../shared/ethereum/signatures.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";

/** How far above the head a bundle's first block may be, and its last block above its first. */
export const MAX_BLOCKS_AHEAD = 30;

/** The blocks that a bundle asks for; null: the next one. Both are included. */
export interface BlockRange {
	readonly first: bigint | null;
	/** Null: the first one alone. */
	readonly last: bigint | null;
}

/** What all bundles have. */
export interface BundleEnvelope {
	/** Who sent it, and who owns its uuid: the signer's address, or the network address of one who did not sign. */
	readonly owner: string;
	/** The network that it came from: what its clients send together is bounded. */
	readonly network: string;
	readonly blocks: BlockRange;
	/** Any text of the owner's; null: it can be neither replaced nor cancelled. */
	readonly uuid: string | null;
	/** Names of the builders that may have it; null: all. */
	readonly builders: readonly string[] | null;
}

/** A bid: a backrun behind a pending transaction that is shared with searchers. */
export interface BidRequest extends BundleEnvelope {
	/** Hash of the target, lower case. */
	readonly target: string;
	/** The signed backrun; must not be changed afterwards. */
	readonly backrun: Uint8Array;
}

/** A plain bundle: signed transactions that shall be mined in this order with nothing between. */
export interface PlainBundleRequest extends BundleEnvelope {
	readonly body: readonly { readonly raw: Uint8Array; readonly canRevert: boolean }[];
	/** Null: nothing is refunded. */
	readonly refund: {
		/** The entry of the body that is owed the refund. */
		readonly bodyIdx: number;
		readonly percent: number;
		/** Lower case; null: the sender of that entry. */
		readonly recipient: string | null;
	} | null;
}

/** Why a bundle is refused; the whole list. */
export const BUNDLE_REFUSALS = [
	"NO_BIDDING",
	"BARRED",
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
export type BundleRefusal = (typeof BUNDLE_REFUSALS)[number];

/** What became of a bundle that was sent in. */
export type BundleOutcome =
	| { readonly outcome: "accepted"; readonly hash: string }
	| {
			readonly outcome: "refused";
			readonly code: BundleRefusal;
			/** For the searcher, in the words of the interface. */
			readonly message: string;
			/** Whether a simulation was spent on it. */
			readonly simulated: boolean;
	  };

/** Shorthand for a refusal. */
export function refusedBundle(
	code: BundleRefusal,
	message: string,
	simulated = false,
): Extract<BundleOutcome, { outcome: "refused" }> {
	return { outcome: "refused", code, message, simulated };
}

/** A refund that a bundle asks its builder for. */
export interface BundleRefund {
	/** Of what {@link BundleRefund.of} brings; 0 to 100. A builder's row may lower it. */
	readonly percent: number;
	/** Lower-case address. */
	readonly recipient: string;
	/** The entry that is owed it (MEV-Share's `bodyIdx`). */
	readonly bodyIdx: number;
	/** Hash of the transaction whose proceeds are shared; null: the builder's default, the last one. */
	readonly of: string | null;
}

/** Transactions on their way to the builders, for one block, in this order with nothing between. */
export interface OutgoingBundle {
	/** What goes out under the same name takes its place at the builders. */
	readonly name: string;
	readonly transactions: readonly {
		readonly tx: DecodedTransaction;
		readonly mayRevert: boolean;
		/** The rest may land without it, where the builder knows such a thing. */
		readonly mayDrop: boolean;
	}[];
	readonly block: number;
	/** Null: nothing is refunded. */
	readonly refund: BundleRefund | null;
	/** Whose turn and share of the builders' lanes it takes: the network of whoever sent it (`BundleEnvelope.network`). */
	readonly client: string;
	/** A searcher's own transactions alone: it goes behind whatever holds a user's, as a backrun behind its target does. */
	readonly isPlain: boolean;
}

/** keccak256 of the hashes (32 bytes of 0x hex each) in a row. */
export function bundleHash(hashes: readonly string[]): string {
	return bytesToHex(keccak256(Buffer.concat(hashes.map((hash) => hexToBytes(hash) ?? Buffer.alloc(0)))));
}

/** First and last block, both included. */
export interface Range {
	readonly first: number;
	readonly last: number;
}

/** Blocks, or why there are none. */
export type RangeOutcome =
	| ({ readonly ok: true } & Range)
	| { readonly ok: false; readonly code: BundleRefusal; readonly message: string };

/**
 * The blocks of a bundle when `head` is the head. No block, and the head's own number, mean the next one; a range that
 * has begun counts from the next one on while its last block is still to come.
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
 * What is still to come, when `next` is the next block, of the `range` that was read from `asked` before: of one that
 * asked for whatever block is the next one, that.
 */
export function comingOf(asked: BlockRange, { first, last }: Range, next: number): RangeOutcome {
	if (asked.first === null) return { ok: true, first: next, last: next };
	return last < next ? past(last) : { ok: true, first: Math.max(first, next), last };
}

function past(block: bigint | number): RangeOutcome {
	return { ok: false, code: "BLOCK_PAST", message: `bundle block ${block} is in the past` };
}
