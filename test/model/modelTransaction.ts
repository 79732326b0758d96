// What the model of control is made of: transactions as its rules look at them, where they can be, and what the chain
// holds of them. Pure; the rules themselves are in model.ts.

/** The submission paths. */
export const PATHS = ["fast", "noreverts", "fullprivacy", "maxbackruns", "nochecks"] as const;
export type Path = (typeof PATHS)[number];

/** Where a settled transaction can be. `PENDING` and `SHARED` are passed through only. */
export type Stage =
	| "QUEUED"
	| "SIMULATION_FAILED"
	| "BROADCAST"
	| "INCLUDED"
	| "REVERTED"
	| "REPLACED"
	| "CANCELLED"
	| "EXPIRED"
	| "DROPPED";

/** A signed transaction, as far as the rules look at it. */
export interface SignedTx {
	readonly hash: string;
	readonly raw: string;
	/** Index of its account. */
	readonly account: number;
	readonly nonce: number;
	/** Wei per gas. */
	readonly maxFee: bigint;
	readonly tip: bigint;
	/** It calls the gate, which reverts while it is shut. */
	readonly gated: boolean;
	/** To its own sender, without data. */
	readonly self: boolean;
}

/** A transaction that the relay has taken. */
export interface ModelTx extends SignedTx {
	path: Path;
	/** Submitted with soft cancellations, where the path has them. */
	soft: boolean;
	/** It was submitted so at any time, also where it expired and came again otherwise. */
	wasSoft: boolean;
	/** Searchers were shown it at any time, also where it expired and came again otherwise. */
	wasShown: boolean;
	/** How it ended, if not by the chain. Kept while it is mined all the same. */
	end: "REPLACED" | "CANCELLED" | "EXPIRED" | null;
	/** It took back another one, and is never sent itself. */
	cancels: boolean;
	/** It expired, since it was last taken. */
	expired: boolean;
	/** It was to be sent to builders at any time. */
	wasSent: boolean;
	/**
	 * Where it was mined when the relay started again, of one that had ended before any builder had it: what the chain does
	 * with it from then on is not seen. Null: the relay watches it.
	 */
	settled: { readonly mined: Mined | undefined } | null;
	/** It has passed a simulation since it was taken. */
	passed: boolean;
	/** The first block of its life; null until its nonce is next in line. */
	firstBlock: number | null;
	/** What is done with it for the next block while it is pending; null else. */
	now: "send" | "sendPrivately" | "hold" | "wait" | null;
}

export interface Mined {
	readonly block: number;
	readonly blockHash: string;
	readonly reverted: boolean;
}

/** The chain as a node tells it. */
export interface ChainView {
	readonly head: number;
	/** Of each account, after the head. */
	readonly nonces: readonly number[];
	/** By hash. */
	readonly mined: ReadonlyMap<string, Mined>;
}

/** The hash, or an error whose message begins so. */
export type Answer = { readonly hash: string } | { readonly error: string };

/** The paths that are simulated for each block, may not revert, and have soft cancellations. */
export function isNoRevert(path: Path): boolean {
	return path === "noreverts" || path === "fullprivacy";
}

/** 10 % more on both fees, fractions of a wei left out. */
export function isBump(fresh: SignedTx, held: SignedTx): boolean {
	return fresh.maxFee >= bumped(held.maxFee) && fresh.tip >= bumped(held.tip);
}

/** The least that is enough in the place of a fee, in wei. */
export function bumped(fee: bigint): bigint {
	const more = (fee * 11n) / 10n;
	return more > fee ? more : fee + 1n;
}

/** A transaction in a few letters, for people. */
export function short({ hash, account, nonce }: SignedTx): string {
	return `${hash.slice(0, 8)}(a${account} n${nonce})`;
}
