// How the time of a client's request is shared between the upstreams that are asked one after
// another.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { attemptMs } from "../../../../boost-proxy/domain/budget.ts";

test("the shares of a request's time", () => {
	for (const [kind, budgetMs, leftMs, others, ms] of [
		["submission", 10_000, 10_000, true, 4_000],
		["submission", 10_000, 6_000, false, 6_000],
		["submission", 10_000, 4_500, true, 3_500],
		["submission", 10_000, 0, false, 0],
		// A short budget is shared in halves rather than left to one.
		["submission", 2_000, 2_000, true, 1_000],
		["submission", 500, 500, true, 250],
		["read", 10_000, 10_000, true, 8_000],
		["read", 10_000, 10_000, false, 10_000],
	] as const) {
		assert.equal(attemptMs(kind, budgetMs, leftMs, others), ms, `${kind}, ${leftMs} of ${budgetMs}`);
	}
	const times = fc.integer({ min: 100, max: 60_000 });
	fc.assert(
		fc.property(
			times,
			times,
			fc.constantFrom("read" as const, "submission" as const),
			(budget, spent, kind) => {
				const left = budget - spent;
				const [first, last] = [true, false].map((others) => attemptMs(kind, budget, left, others));
				return left <= 0
					? first === 0 && last === 0
					: Number(first) > 0 && Number(first) < left && last === left;
			},
		),
	);
});
