// The height that clients are told, on a clock that the test moves: it never falls because another source is behind, and it
// falls when the chain really went back.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { ToldHead } from "../../../shared/toldHead.ts";
import { ManualClock } from "../../support/manualClock.ts";

const OWN_MS = 5_000;
const OTHER_MS = 60_000;

let clock: ManualClock;
let told: ToldHead;
beforeEach(() => {
	clock = new ManualClock();
	told = new ToldHead({ ownMs: OWN_MS, otherMs: OTHER_MS }, { clock });
});

test("a height rises with whoever says more, and stays while another says less", async () => {
	assert.equal(told.number, null);
	assert.deepEqual([told.tell(7, "relay"), told.tell(9, "fallback"), told.tell(8, "relay")], [7, 9, 9]);
	await clock.advance(OTHER_MS - 1);
	assert.deepEqual([told.tell(8, "relay"), told.number], [9, 9]);
	await clock.advance(1);
	assert.deepEqual([told.number, told.tell(8, "relay")], [8, 8]);
});

test("the source that told it is believed sooner", async () => {
	told.tell(9, "relay");
	assert.equal(told.tell(6, "relay"), 9);
	await clock.advance(OWN_MS - 1);
	assert.equal(told.tell(5, "relay"), 9);
	await clock.advance(1);
	assert.equal(told.tell(6, "relay"), 6, "it went back");
	assert.equal(told.tell(7, "fallback"), 7);
});

test("one that says as much in between is no chain that went back", async () => {
	told.tell(9);
	for (let i = 0; i < 10; i += 1) {
		assert.deepEqual([told.tell(6), told.tell(9)], [9, 9]);
		await clock.advance(OWN_MS);
	}
	assert.equal(told.number, 9);
});

test("less by two sources in turn counts for each anew", async () => {
	told.tell(9, "relay");
	for (let i = 0; i < 4; i += 1) {
		told.tell(6, "relay");
		await clock.advance(OWN_MS - 1);
		told.tell(6, "fallback");
		await clock.advance(1);
	}
	assert.equal(told.number, 9);
});

test("another branch may be lower at once", () => {
	told.tell(9);
	told.restart(7);
	assert.deepEqual([told.number, told.tell(8)], [7, 8]);
});
