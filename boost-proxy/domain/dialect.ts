// How kinds of fallback differ, as a port. No rule of any of them is here.

import type { BoostPath } from "./delivery.ts";

/** How one kind of fallback spells things. Pure, but for reading its words. */
export interface Dialect {
	readonly name: DialectName;
	/** Whether it takes arrays. */
	readonly batches: boolean;
	/** Whether it knows private transactions by hash and counts them in the pending nonce. */
	readonly knowsPrivate: boolean;
	/** Whether a transaction whose nonce has a gap may go there. */
	readonly takesGaps: boolean;
	/** How a user's transaction is cancelled there by hash; null where it can't be. */
	readonly cancelMethod: string | null;
	/** Whether a self-transfer of a nonce that it holds is a cancel without cost there. */
	readonly softCancels: boolean;
	/** Path and query for a submission; what was dropped, by name. */
	target(path: BoostPath, search: string): { readonly target: string; readonly dropped: readonly string[] };
	/** Where a transaction's status is told, behind the base URL; null where nowhere. */
	statusPath(hash: string): string | null;
	/** Whether a −32603 with these words is a verdict all the same. */
	isVerdict(message: string): boolean;
}

export const DIALECTS = ["mevblocker", "flashbots", "plain"] as const;

export type DialectName = (typeof DIALECTS)[number];
