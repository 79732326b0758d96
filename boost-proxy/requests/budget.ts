// How long a request may take: its total and what stands behind comes in, the share of one attempt goes out. Pure.

/** Of the whole, what the first of two upstreams gets of a submission at most. */
const SHARE = 0.4;
/** What each upstream gets at least, in ms, where the budget is long enough for two of it. */
const FLOOR_MS = 1_000;
/** What is left for the other one when the first has had its share of a read, in ms. */
const READ_RESERVE = 0.2;

/** What a submission to the first of two upstreams may take, in ms, with a total of `budgetMs`. */
export function submissionShareMs(budgetMs: number): number {
	return Math.max(budgetMs * SHARE, Math.min(FLOOR_MS, budgetMs / 2));
}

/**
 * The deadline of one attempt in ms, 0 where there is no time: `leftMs` of `budgetMs` are left. With `others` to come a
 * submission gets its share; the last one gets all.
 */
export function attemptMs(
	kind: "read" | "submission",
	budgetMs: number,
	leftMs: number,
	others: boolean,
): number {
	if (leftMs <= 0) return 0;
	if (!others) return leftMs;
	if (kind === "read") return leftMs * (1 - READ_RESERVE);
	return Math.min(submissionShareMs(budgetMs), Math.max(leftMs - FLOOR_MS, leftMs / 2));
}
