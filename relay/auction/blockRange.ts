// Which blocks a bundle is for: what was asked for and the head come in, whole numbers or a refusal go out. Pure.

import { type BlockRange, type BundleRefusal, MAX_BLOCKS_AHEAD } from "../domain/bundle.ts";

/** First and last block, both included. */
export interface Range {
	readonly first: number;
	readonly last: number;
}

/**
 * The blocks of a bundle when `head` is the head. No block, and the head's own number, mean the next one; a range that
 * has begun counts from the next one on while its last block is still to come.
 */
export function blockRange(
	{ first, last }: BlockRange,
	head: number,
):
	| ({ readonly ok: true } & Range)
	| { readonly ok: false; readonly code: BundleRefusal; readonly message: string } {
	const next = BigInt(head + 1);
	if (first === null || (first === BigInt(head) && (last ?? first) === first)) {
		return { ok: true, first: head + 1, last: head + 1 };
	}
	const end = last ?? first;
	if (end < next) return { ok: false, code: "BLOCK_PAST", message: `bundle block ${end} is in the past` };
	if (first > BigInt(head + MAX_BLOCKS_AHEAD)) {
		return { ok: false, code: "BLOCK_TOO_FAR", message: `bundle block ${first} is too far ahead` };
	}
	return { ok: true, first: Number(first < next ? next : first), last: Number(end) };
}
