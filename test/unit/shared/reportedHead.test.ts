// The height that clients are reported, on a clock that the test moves: it never falls because
// another source is behind, and it falls when the chain really went back.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { ReportedHead } from "../../../shared/reportedHead.ts";
import { ManualClock } from "../../support/manualClock.ts";

const OWN_MS = 5_000;
const OTHER_MS = 60_000;

let clock: ManualClock;
let reported: ReportedHead;
beforeEach(() => {
	clock = new ManualClock();
	reported = new ReportedHead({ ownMs: OWN_MS, otherMs: OTHER_MS }, { clock });
});

test("a height rises with the highest report, and does not fall with a lower one", async () => {
	assert.equal(reported.number, null);
	assert.deepEqual(
		[reported.tell(7, "relay"), reported.tell(9, "fallback"), reported.tell(8, "relay")],
		[7, 9, 9],
	);
	await clock.advance(OTHER_MS - 1);
	assert.deepEqual([reported.tell(8, "relay"), reported.number], [9, 9]);
	await clock.advance(1);
	assert.deepEqual([reported.number, reported.tell(8, "relay")], [8, 8]);
});

test("the source that reported it is believed sooner", async () => {
	reported.tell(9, "relay");
	assert.equal(reported.tell(6, "relay"), 9);
	await clock.advance(OWN_MS - 1);
	assert.equal(reported.tell(5, "relay"), 9);
	await clock.advance(1);
	assert.equal(reported.tell(6, "relay"), 6, "it went back");
	assert.equal(reported.tell(7, "fallback"), 7);
});

test("one that says as much in between is no chain that went back", async () => {
	reported.tell(9);
	for (let i = 0; i < 10; i += 1) {
		assert.deepEqual([reported.tell(6), reported.tell(9)], [9, 9]);
		await clock.advance(OWN_MS);
	}
	assert.equal(reported.number, 9);
});

test("less by two sources in turn counts for each anew", async () => {
	reported.tell(9, "relay");
	for (let i = 0; i < 4; i += 1) {
		reported.tell(6, "relay");
		await clock.advance(OWN_MS - 1);
		reported.tell(6, "fallback");
		await clock.advance(1);
	}
	assert.equal(reported.number, 9);
});

test("another branch may be lower at once", () => {
	reported.tell(9);
	reported.restart(7);
	assert.deepEqual([reported.number, reported.tell(8)], [7, 8]);
});
