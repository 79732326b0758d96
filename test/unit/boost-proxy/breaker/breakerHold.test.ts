// For how long an upstream is left alone: each relapse doubles it up to a maximum, and a probation that ends well forgets.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Hold, type HoldOptions } from "../../../../boost-proxy/breaker/breakerHold.ts";

/** A hold of one that has answered before. */
function proven(options: Omit<HoldOptions, "startMs">, random: () => number): Hold {
	const hold = new Hold({ startMs: 1_000, ...options }, random);
	hold.prove();
	return hold;
}

test("the probation lasts twice the last hold, or twice a whole recovery where that is longer", () => {
	for (const [recoveryMs, probationMs] of [
		[3_000, 6_000],
		[500, 4_000],
	] as const) {
		const hold = proven({ holdMs: 2_000, holdMaxMs: 60_000, recoveryMs }, () => 0.5);
		assert.equal(hold.isProbation(0), false);
		assert.equal(hold.opened(0), 2_000);
		assert.equal(hold.isProbation(1), false, "while it is open there is none");
		hold.closed(10_000);
		assert.equal(hold.isProbation(10_000 + probationMs - 1), true);
		assert.equal(hold.isProbation(10_000 + probationMs), false);
	}
});

test("a relapse doubles the hold, up to its maximum, and one that comes after the probation does not", () => {
	const hold = proven({ holdMs: 1_000, holdMaxMs: 5_000, recoveryMs: 100 }, () => 0.5);
	const holds = [hold.opened(0)];
	let now = 10_000;
	for (let i = 0; i < 40; i++) {
		hold.closed(now);
		holds.push(hold.opened(now + 1));
		now += 10_000;
	}
	assert.deepEqual(holds.slice(0, 4), [1_000, 2_000, 4_000, 5_000]);
	assert.equal(holds.at(-1), 5_000);
	hold.closed(now);
	assert.equal(hold.opened(now + 10_000), 1_000);
	hold.closed(now);
	hold.forget();
	assert.equal(hold.isProbation(now + 1), false);
	assert.equal(hold.opened(now + 1), 1_000);
});

test("the jitter is a fifth either way, within the maximum", () => {
	const options = { holdMs: 1_000, holdMaxMs: 5_000, recoveryMs: 100 };
	assert.equal(Math.round(proven(options, () => 0).opened(0)), 800);
	assert.equal(Math.round(proven(options, () => 1).opened(0)), 1_200);
	assert.equal(proven({ ...options, holdMaxMs: 1_000 }, () => 1).opened(0), 1_000);
});

test("one that has never answered is asked again soon, and its first good word begins no probation", () => {
	const hold = new Hold({ startMs: 700, holdMs: 2_000, holdMaxMs: 60_000, recoveryMs: 3_000 }, () => 0.5);
	assert.deepEqual([hold.isProven, hold.opened(0), hold.opened(10)], [false, 700, 700]);
	hold.closed(1_000);
	assert.deepEqual([hold.isProven, hold.isProbation(1_001), hold.opened(2_000)], [true, false, 2_000]);
});
