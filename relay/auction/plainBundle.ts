// A plain bundle: a searcher's own transactions, without a user's target. Also decides when two
// bundles are the same, and sets the limits. Pure.

import type { SharesOptions } from "../../shared/shares/shares.ts";
import type { OutgoingBundle, Range } from "../domain/bundle.ts";
import type { BundleRecord } from "../domain/bundleStatus.ts";

export interface PlainLimits {
	readonly transactions: SharesOptions;
	readonly bytes: SharesOptions;
}

/**
 * Limits on the transactions of all plain bundles, since each is simulated at each head, and on
 * their bytes.
 */
export const PLAIN_LIMITS: PlainLimits = {
	transactions: { total: 20_000, perClient: 2_000 },
	bytes: { total: 128 * 1024 * 1024, perClient: 8 * 1024 * 1024 },
};

/** An accepted plain bundle. */
export interface PlainBundle {
	/** The bundle's status, as its owner sees it. */
	readonly record: BundleRecord;
	readonly uuid: string | null;
	readonly outgoing: Omit<OutgoingBundle, "block">;
	/** Hashes of its transactions. */
	readonly hashes: readonly string[];
	readonly bytes: number;
	readonly firstBlock: number;
	readonly lastBlock: number;
	/** Names of the allowed builders. */
	readonly builders: readonly string[];
	state: PlainBundleState;
	/** Aborts its simulation in the next block; null while none is running. */
	trial: AbortController | null;
	readonly release: () => void;
}

/**
 * Its last state. `accepted`: nothing has happened yet. `sent`: it was queued for `builders`, for
 * `block`. `failed`: its simulation in `block` failed, or its times do not allow that block, and no
 * builder has it. `landed`: a block contains it, which may leave the chain. `before` is its state
 * before it landed.
 */
export type PlainBundleState =
	| { readonly kind: "accepted" }
	| { readonly kind: "sent"; readonly block: number; readonly builders: readonly string[] }
	| { readonly kind: "failed"; readonly block: number }
	| {
			readonly kind: "landed";
			readonly number: number;
			readonly hash: string;
			readonly before: Exclude<PlainBundleState, { kind: "landed" }>;
	  };

/**
 * The last block for which it was queued at builders; null: none, or its simulation has failed
 * since.
 */
export function sentFor({ state }: Pick<PlainBundle, "state">): number | null {
	return state.kind === "sent" ? state.block : null;
}

/**
 * Whether `bundle` is the owner's live one with this hash and without a uuid, and its blocks
 * overlap or adjoin `range`.
 */
export function touches(bundle: PlainBundle, owner: string, hash: string, range: Range): boolean {
	const { record, uuid, state, firstBlock, lastBlock } = bundle;
	const isIt = record.owner === owner && uuid === null && record.hash === hash && state.kind !== "landed";
	return isIt && range.first <= lastBlock + 1 && firstBlock <= range.last + 1;
}

/** The bundle's name at builders: by the owner's uuid, or, without one, by `itself`. */
export function nameOf(owner: string, uuid: string | null, itself: readonly unknown[]): string {
	return `bundle ${JSON.stringify([owner, uuid === null ? itself : uuid])}`;
}

/**
 * Whether `bundle` has the same content as `old`, and covers the block that `old` was sent for, if
 * any.
 */
export function isSameAs(old: PlainBundle, bundle: PlainBundle): boolean {
	const block = sentFor(old);
	const isFor = block === null || isIn(bundle, block);
	return old.state.kind !== "landed" && isFor && contentOf(old) === contentOf(bundle);
}

function contentOf({ record, outgoing, builders }: PlainBundle): string {
	const mayRevert = outgoing.transactions.map((one) => one.mayRevert);
	return JSON.stringify([record.hash, outgoing.refund, outgoing.times, mayRevert, builders]);
}

/** Whether `block` is in the bundle's range. */
export function isIn({ firstBlock, lastBlock }: PlainBundle, block: number): boolean {
	return firstBlock <= block && block <= lastBlock;
}

/** `range` extended by the coming blocks of `earlier`. */
export function withBlocksOf(range: Range, earlier: PlainBundle | undefined, next: number): Range {
	if (earlier === undefined) return range;
	const first = Math.max(next, Math.min(range.first, earlier.firstBlock));
	return { first, last: Math.max(range.last, earlier.lastBlock) };
}
