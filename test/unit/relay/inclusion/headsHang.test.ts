// A node whose connection hangs: its head is asked for again by another one, long before the question's deadline.

import assert from "node:assert/strict";
import { test } from "node:test";
import { HeadTracker } from "../../../../relay/inclusion/heads.ts";
import { UpstreamError } from "../../../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";

type Answer = "hang" | "refuse" | { readonly ok: true; readonly result: unknown };

/** A tracker of a node that answers the questions one after the other so, and every further one by the last. */
async function follow(answers: readonly Answer[]) {
	const clock = new ManualClock();
	const deadlines: number[] = [];
	const node = {
		call: (_call: unknown, deadlineMs = 0) => {
			const answer = answers[Math.min(deadlines.length, answers.length - 1)] ?? "hang";
			deadlines.push(deadlineMs);
			return new Promise<never>((resolve, reject) => {
				if (answer === "refuse") reject(new UpstreamError("unreachable"));
				else if (answer === "hang") clock.after(deadlineMs, () => reject(new UpstreamError("timeout")));
				else resolve(answer as never);
			});
		},
	};
	const tracker = new HeadTracker(
		{ pollMs: 1_000, slotSeconds: 12 },
		{
			node,
			nextBlock: () => Promise.reject(new UpstreamError("unreachable")),
			authorityOf: () => null,
			clock,
			log: silentLogger,
		},
	);
	await tracker.start();
	await clock.advance(0);
	return { clock, deadlines, tracker };
}

test("a question that is not answered is asked again each half second, all within one deadline", async () => {
	const { clock, deadlines, tracker } = await follow(["hang"]);
	await clock.advance(4_999);
	assert.deepEqual(deadlines, [5_000, 4_500, 4_000, 3_500, 3_000, 2_500, 2_000, 1_500, 1_000, 500]);
	assert.equal(tracker.isUnavailable, false);
	await clock.advance(1);
	assert.equal(tracker.isUnavailable, true);
	await tracker.stop();
});

test("the first answer counts, whichever question it is to", async () => {
	const { clock, deadlines, tracker } = await follow(["hang", "hang", { ok: true, result: null }]);
	await clock.advance(1_000);
	// Null is no block: the look has failed, long before the first question's deadline.
	assert.equal(tracker.isUnavailable, true);
	assert.equal(deadlines.length, 3);
	await tracker.stop();
});
