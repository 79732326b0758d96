// Random stories of submissions, outages, cancels, blocks, losses and faults: whatever comes, nothing that ended is
// handed over, nothing goes where it may not or before its turn, and in the end everything is where it belongs.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { reconcileScene } from "./reconcileScene.ts";
import { STEPS, type Step, Story } from "./reconcileStory.ts";

const STORY = fc.array(
	fc.record<Step>({
		kind: fc.constantFrom(...STEPS),
		n: fc.nat(1_000),
		ms: fc.constantFrom(0, 5, 60, 1_100, 3_000),
	}),
	{ minLength: 5, maxLength: 40 },
);

for (const dialect of ["mevblocker", "flashbots"] as const) {
	test(`whatever comes, with a fallback of the kind ${dialect}`, async () => {
		await fc.assert(
			fc.asyncProperty(STORY, fc.boolean(), async (steps, relayFirst) => {
				const scene = await reconcileScene({ dialect });
				const story = new Story(scene);
				await scene.observer.start();
				for (const step of steps) await story.play(step);
				await story.settleAt(relayFirst ? "relay" : "fallback");
				await story.settleAt(relayFirst ? "fallback" : "relay");
				await story.settleAll();
				await scene.stop();
				assert.deepEqual(story.faults, []);
				assert.equal(scene.clock.timers > 2, false, "no timer is left behind");
			}),
			{ numRuns: 25, includeErrorInReport: true },
		);
	});
}
