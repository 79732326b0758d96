// One plain bundle, which holds a searcher's own transactions and runs behind no shared one; what makes two of them the same,
// and how many there may be. Pure.

import type { SharesOptions } from "../../shared/shares/shares.ts";
import type { OutgoingBundle, Range } from "../domain/bundle.ts";
import type { BundleRecord } from "../domain/bundleStatus.ts";

export interface PlainLimits {
	readonly transactions: SharesOptions;
	readonly bytes: SharesOptions;
}

/** Transactions of all plain bundles at most, since each is tried at each head, and their bytes. */
export const PLAIN_LIMITS: PlainLimits = {
	transactions: { total: 20_000, perClient: 2_000 },
	bytes: { total: 128 * 1024 * 1024, perClient: 8 * 1024 * 1024 },
};

/** A bundle on its way through the blocks of its range. */
export interface PlainBundle {
	/** What its owner is told. */
	readonly record: BundleRecord;
	readonly uuid: string | null;
	readonly outgoing: Omit<OutgoingBundle, "block">;
	/** Of its transactions. */
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
	const { record, uuid, landed, firstBlock, lastBlock } = bundle;
	const isIt = record.owner === owner && uuid === null && record.hash === hash && landed === null;
	return isIt && range.first <= lastBlock + 1 && firstBlock <= range.last + 1;
}

/** Under which name it goes out: an owner's uuid, or without one itself. */
export function nameOf(owner: string, uuid: string | null, itself: readonly unknown[]): string {
	return `bundle ${JSON.stringify([owner, uuid === null ? itself : uuid])}`;
}

/** Whether `bundle` is the very same as `old`, which is out for one of its blocks if it is out. */
export function isSameAs(old: PlainBundle, bundle: PlainBundle): boolean {
	const isFor = old.outFor === null || isIn(bundle, old.outFor);
	return old.landed === null && isFor && contentOf(old) === contentOf(bundle);
}

function contentOf({ record, outgoing, builders }: PlainBundle): string {
	const mayRevert = outgoing.transactions.map((one) => one.mayRevert);
	return JSON.stringify([record.hash, outgoing.refund, mayRevert, builders]);
}

/** Whether it is for `block`. */
export function isIn({ firstBlock, lastBlock }: PlainBundle, block: number): boolean {
	return firstBlock <= block && block <= lastBlock;
}
