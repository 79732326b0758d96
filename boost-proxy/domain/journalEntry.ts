// A transaction that boost answers for, from the request on until it is final: who was given it, what its client asked
// for, and how it ended.

import type { BoostPath, UpstreamName } from "./delivery.ts";

/** How an entry ended. `dropped`: refused for good by every upstream that may have it, or its nonce was used by another. */
export const ENDINGS = ["mined", "replaced", "cancelled", "expired", "dropped"] as const;
export type Ending = (typeof ENDINGS)[number];

/** Whether its user ended it: such a one is never sent again. */
export function isUserEnding(ending: Ending): boolean {
	return ending === "cancelled" || ending === "replaced";
}

/** What is known when it is opened. */
export interface NewEntry {
	/** Lower case. */
	readonly hash: string;
	/** Sender, lower case. */
	readonly from: string;
	readonly nonce: bigint;
	readonly raw: Buffer;
	readonly path: BoostPath;
	/** The query as it came, without "?"; "" where none came. */
	readonly search: string;
	/** Whether a self-transfer of its nonce ends it for free. */
	readonly softCancellations: boolean;
	/** The client's network address: who may cancel it. */
	readonly address: string;
	/** Ms since the epoch. */
	readonly receivedAt: number;
	/** Who must get it because they hold an earlier transaction of its nonce. */
	readonly owed: readonly UpstreamName[];
}

/** An entry that is not final. Read-only for everybody but the journal. */
export interface OpenEntry extends Omit<NewEntry, "raw"> {
	/** Length of the signed transaction. */
	readonly bytes: number;
	/** Who acknowledged it, or may have it although no verdict came. */
	readonly holders: readonly UpstreamName[];
	/** True while the request that brought it is under way: that one sees to it, nobody else. */
	readonly underWay: boolean;
	/**
	 * False where its client was told of an error although an upstream may have it: it is followed, but neither handed
	 * over nor sent again.
	 */
	readonly acknowledged: boolean;
	/** When it is given up, in ms since the epoch, unless the relay says that it still follows it. */
	readonly aliveUntil: number;
}

/** One that is final. Those that the user ended are never sent again: see decisions on idempotency. */
export interface EndedEntry {
	readonly hash: string;
	readonly from: string;
	readonly nonce: bigint;
	readonly path: BoostPath;
	readonly address: string;
	readonly ending: Ending;
	/** Ms since the epoch. */
	readonly endedAt: number;
	/** Who may still have it and was not told yet that it was cancelled or replaced. */
	readonly untold: readonly UpstreamName[];
}

/** Whether it was mined or ended by its user: the same bytes mean nothing more. */
export function isFinal(ended: EndedEntry | null): ended is EndedEntry {
	return ended !== null && (ended.ending === "mined" || isUserEnding(ended.ending));
}
