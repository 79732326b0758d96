// Random scenarios of submissions, outages, cancels, blocks, losses and faults: whatever comes, nothing that ended is
// handed over, nothing goes where it may not or before its turn, and in the end everything is where it belongs.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { reconcileFixture } from "./reconcileFixture.ts";
import { Scenario, STEPS, type Step } from "./reconcileScenario.ts";

const SCENARIO = fc.array(
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
			fc.asyncProperty(SCENARIO, fc.boolean(), async (steps, relayFirst) => {
				const fixture = await reconcileFixture({ dialect });
				const scenario = new Scenario(fixture);
				await fixture.observer.start();
				for (const step of steps) await scenario.play(step);
				await scenario.settleAt(relayFirst ? "relay" : "fallback");
				await scenario.settleAt(relayFirst ? "fallback" : "relay");
				await scenario.settleAll();
				await fixture.stop();
				assert.deepEqual(scenario.faults, []);
				assert.equal(fixture.clock.timers > 2, false, "no timer is left behind");
			}),
			{ numRuns: 25, includeErrorInReport: true },
		);
	});
}
