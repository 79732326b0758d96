// Findings about a builder, derived from the sum of its conduct. docs/decisions/canaries.md has the
// model and its numbers. Pure.

import type { Conduct } from "./conduct.ts";

/**
 * A finding about a builder. `leaks`: canaries got out. `strips`: it leaves out the backruns that
 * it accepted. `underpays`: it pays less than the owed refunds. `ignoresCancels`: it mines what it
 * said it had cancelled.
 */
export const FINDINGS = ["leaks", "strips", "underpays", "ignoresCancels"] as const;
export type Finding = (typeof FINDINGS)[number];

/**
 * The assumed part of an honest builder's canaries that get out by themselves: by a block that left
 * the chain before this relay saw it.
 */
export const CANARY_NOISE = 1e-4;
/**
 * A builder leaks if two canaries or more got out, and so many would get out by themselves less
 * often than this.
 */
export const CANARY_ERROR = 2e-4;
/** So many transactions show whether backruns are left out, if more than half lack theirs. */
const LEAST_BACKRUNS = 10;

/** The findings about the sum of a builder's conduct. */
export function findingsOf(sum: Conduct): readonly Finding[] {
	const lacking = sum.otherBackrun + sum.noBackrun;
	const found: Readonly<Record<Finding, boolean>> = {
		leaks: sum.leakedCanaries > 1 && atLeast(sum.leakedCanaries, sum.canaries, CANARY_NOISE) < CANARY_ERROR,
		strips: lacking + sum.backrun >= LEAST_BACKRUNS && lacking > sum.backrun,
		// The price of a short refund is known exactly, so the sum is enough.
		underpays: sum.paid < sum.owed && sum.shortRefunds > 1,
		ignoresCancels: sum.minedAfterCancel > 1,
	};
	return FINDINGS.filter((name) => found[name]);
}

/** The probability of `k` or more among `n`, each with probability `p` (binomial distribution). */
export function atLeast(k: number, n: number, p: number): number {
	// The terms from k on, since 1 minus the others is inexact. The later ones are negligible.
	let term = 1;
	for (let i = 0; i < k; i++) term *= ((n - i) / (i + 1)) * p;
	term *= (1 - p) ** (n - k);
	let sum = 0;
	for (let i = k; i <= n && term > 0; i++) {
		sum += term;
		term *= (((n - i) / (i + 1)) * p) / (1 - p);
	}
	return sum;
}
