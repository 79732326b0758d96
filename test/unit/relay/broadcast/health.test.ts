// Whether deliveries are answered at all, as tables of what came when, by a clock moved by hand.

import assert from "node:assert/strict";
import { test } from "node:test";
import { DeliveryHealth } from "../../../../relay/broadcast/health.ts";
import type { DeliveryAnswer } from "../../../../relay/domain/events.ts";
import { ManualClock } from "../../../support/manualClock.ts";

/** Seconds to wait, answers that come, and after each whether all is well; two slots are 24 s. */
type Step = readonly [waitSeconds: number, answer: DeliveryAnswer | null, healthy: boolean];

const TABLE: Readonly<Record<string, readonly Step[]>> = {
	"nothing tried is nothing wrong": [[1_000, null, true]],
	"an answer is one, a rejection too, and quiet afterwards is nothing wrong": [
		[0, "accepted", true],
		[24.001, null, true],
		[0, "rejected", true],
		[24.001, null, true],
	],
	"two slots without an answer are not healthy, until one comes": [
		[0, "accepted", true],
		[12, "failed", true],
		[12, "timeout", true],
		[0.001, null, false],
		[0, "failed", false],
		[0, "rejected", true],
	],
	"one answer in two slots is enough": [
		[0, "timeout", false],
		[0, "rejected", true],
		[20, "timeout", true],
		[0, "accepted", true],
		[20, "failed", true],
	],
	"what failed is forgotten when nothing was tried for two slots": [
		[0, "timeout", false],
		[24, null, false],
		[0.001, null, true],
	],
	"what never left says nothing of the builders": [
		[0, "unsent", true],
		[10, "unsent", true],
	],
};

for (const [name, steps] of Object.entries(TABLE)) {
	test(name, async () => {
		const clock = new ManualClock();
		const health = new DeliveryHealth({ windowMs: 24_000 }, { clock });
		for (const [i, [waitSeconds, answer, healthy]] of steps.entries()) {
			await clock.advance(waitSeconds * 1_000);
			if (answer !== null) health.note(answer);
			assert.equal(health.healthy, healthy, `step ${i + 1}`);
		}
	});
}
