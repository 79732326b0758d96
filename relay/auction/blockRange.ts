// Reads which blocks a bundle is for, relative to the head. Pure.

import { type BlockRange, type BundleRefusal, MAX_BLOCKS_AHEAD } from "../domain/bundle.ts";

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
