// Divides a request's time among its attempts at the upstreams. Pure.

import type { RequestState } from "./request.ts";

/** The share of the budget that the first of two upstreams gets for a submission. */
const SHARE = 0.4;
/** The minimum for each upstream, in ms, if the budget is at least twice as long. */
const FLOOR_MS = 1_000;
/** The share of the time for a read that is reserved for the second upstream. */
const READ_RESERVE = 0.2;

/** Ms left of a request's budget at `now` (monotonic ms), at least 0. */
export function leftMs({ until }: Pick<RequestState, "until">, now: number): number {
	return Math.max(0, until - now);
}

/** The deadline of a submission to the first of two upstreams, in ms. */
export function submissionShareMs(budgetMs: number): number {
	return Math.max(budgetMs * SHARE, Math.min(FLOOR_MS, budgetMs / 2));
}

/**
 * The deadline of one attempt in ms when `left` of `budgetMs` remain; 0 if no time is left.
 * `others`: whether another upstream can be tried afterwards. The last upstream gets all the
 * remaining time.
 */
export function attemptMs(
	kind: "read" | "submission",
	budgetMs: number,
	left: number,
	others: boolean,
): number {
	if (left <= 0) return 0;
	if (!others) return left;
	if (kind === "read") return left * (1 - READ_RESERVE);
	return Math.min(submissionShareMs(budgetMs), Math.max(left - FLOOR_MS, left / 2));
}

/** Deadline of a cancel at an unavailable upstream, in ms. */
const UNAVAILABLE_MS = 500;

/**
 * The time of a client's cancel at an upstream when `left` ms remain, and whether it ignores the
 * breaker. An unavailable upstream may still be alive, so it is tried briefly.
 */
export function cancelReach(
	isUnavailable: boolean,
	left: number,
): { readonly deadlineMs: number; readonly anyway: boolean } {
	return { deadlineMs: isUnavailable ? Math.min(UNAVAILABLE_MS, left / 2) : left / 2, anyway: isUnavailable };
}
