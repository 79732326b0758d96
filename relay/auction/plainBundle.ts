// One plain bundle, which holds a searcher's own transactions and runs behind no shared one: what it is, and what blocks mean for
// it. Pure.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { OutgoingBundle } from "../domain/bundle.ts";
import type { BundleRecord } from "../domain/bundleStatus.ts";
import type { Block } from "../domain/chain.ts";
import type { Range } from "./blockRange.ts";

/** A bundle on its way through the blocks of its range. */
export interface PlainBundle {
	/** What its owner is told. */
	readonly record: BundleRecord;
	readonly owner: string;
	readonly uuid: string | null;
	readonly hash: string;
	readonly outgoing: Omit<OutgoingBundle, "block">;
	readonly hashes: readonly string[];
	readonly bytes: number;
	readonly firstBlock: number;
	readonly lastBlock: number;
	/** Names of the builders that may have it. */
	readonly builders: readonly string[];
	/** The last block that it was sent for; `sentTo` has the builders. */
	outFor: number | null;
	/** The block that holds it, or null. */
	landed: { readonly number: number; readonly hash: string } | null;
	sentTo: readonly string[];
	/** Aborts its simulation in the next block; null while none is running. */
	trial: AbortController | null;
	/** The last block in whose simulation it failed. */
	failedFor: number | null;
	readonly release: () => void;
}

/** Whether `bundle` is a live one of the owner with the same transactions and no uuid, whose blocks overlap or adjoin `range`. */
export function touches(bundle: PlainBundle, owner: string, hash: string, range: Range): boolean {
	const isIt =
		bundle.owner === owner && bundle.uuid === null && bundle.hash === hash && bundle.landed === null;
	return isIt && range.first <= bundle.lastBlock + 1 && bundle.firstBlock <= range.last + 1;
}

/** Under which name it goes out: an owner's uuid, or without one itself. */
export function nameOf(owner: string, uuid: string | null, itself: readonly unknown[]): string {
	return `bundle ${JSON.stringify([owner, uuid === null ? itself : uuid])}`;
}

/** Whether `bundle` is the very same as `old`, which is out for one of its blocks if it is out. */
export function isSameAs(old: PlainBundle, bundle: PlainBundle): boolean {
	const { outFor, landed } = old;
	const isFor = outFor === null || (bundle.firstBlock <= outFor && outFor <= bundle.lastBlock);
	return landed === null && isFor && contentOf(old) === contentOf(bundle);
}

function contentOf({ hash, outgoing, builders }: PlainBundle): string {
	return JSON.stringify([hash, outgoing.refund, outgoing.transactions.map((one) => one.mayRevert), builders]);
}

export function bytesOf(txs: readonly DecodedTransaction[]): number {
	return txs.reduce((sum, tx) => sum + tx.size, 0);
}

/** What a block holds. */
export function hashesOf(block: Block): ReadonlySet<string> {
	return new Set(block.transactions.map((tx) => tx.hash));
}

export function holdsAny(block: ReadonlySet<string>, { hashes }: PlainBundle): boolean {
	return hashes.some((hash) => block.has(hash));
}

export function holdsAll(block: ReadonlySet<string>, { hashes }: PlainBundle): boolean {
	return hashes.every((hash) => block.has(hash));
}

/** `range` with those blocks of `twin` that are still to come when `next` is the next one. */
export function withBlocksOf(range: Range, twin: PlainBundle | undefined, next: number): Range {
	if (twin === undefined) return range;
	const first = Math.max(next, Math.min(range.first, twin.firstBlock));
	return { first, last: Math.max(range.last, twin.lastBlock) };
}

/** Whether it is for `block`. */
export function isIn({ firstBlock, lastBlock }: PlainBundle, block: number): boolean {
	return firstBlock <= block && block <= lastBlock;
}
