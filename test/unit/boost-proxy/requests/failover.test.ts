// The shares of a request's time: never more than what is left, at most 40 % for the first of two, a second for each
// where there is that much.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { attemptMs, submissionShareMs } from "../../../../boost-proxy/requests/failover.ts";

test("of ten seconds the first one gets four, the last one all that is left", () => {
	assert.equal(submissionShareMs(10_000), 4_000);
	assert.equal(attemptMs("submission", 10_000, 10_000, true), 4_000);
	assert.equal(attemptMs("submission", 10_000, 6_000, false), 6_000);
	assert.equal(attemptMs("submission", 10_000, 4_500, true), 3_500);
	assert.equal(attemptMs("submission", 10_000, 0, false), 0);
});

test("a short budget is shared in halves rather than left to one", () => {
	assert.equal(attemptMs("submission", 2_000, 2_000, true), 1_000);
	assert.equal(attemptMs("submission", 500, 500, true), 250);
});

test("a read leaves a fifth for the other one", () => {
	assert.equal(attemptMs("read", 10_000, 10_000, true), 8_000);
	assert.equal(attemptMs("read", 10_000, 10_000, false), 10_000);
});

test("no attempt gets more than is left, and something is left for the other one", () => {
	const times = fc.integer({ min: 100, max: 60_000 });
	fc.assert(
		fc.property(times, times, fc.constantFrom("read", "submission"), (budget, spent, kind) => {
			const left = budget - spent;
			const first = attemptMs(kind as "read", budget, left, true);
			const last = attemptMs(kind as "read", budget, left, false);
			if (left <= 0) return first === 0 && last === 0;
			return first > 0 && first < left && last === left;
		}),
	);
});
