// Which results are news to clients whose core has changed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ReportedTopics } from "../../../../relay/edge/reportedTopics.ts";

const TOPIC = "transaction 0x01";
const status = (stage: string, more: object = {}) => ({ stage, ...more });

const WAITS = status("PENDING", { reason: "max fee 1, base fee 2" });

/** The previous core's reports, the next core's reports, and which of these are news. */
const ROWS: readonly (readonly [
	reported: readonly object[],
	said: readonly object[],
	news: readonly object[],
])[] = [
	[[status("PENDING")], [status("PENDING"), status("BROADCAST")], [status("BROADCAST")]],
	[[status("BROADCAST")], [status("PENDING"), status("SHARED"), status("BROADCAST")], []],
	[[status("SHARED")], [status("PENDING"), status("SHARED"), status("BROADCAST")], [status("BROADCAST")]],
	[[status("BROADCAST")], [status("PENDING"), status("INCLUDED")], [status("INCLUDED")]],
	[[status("BROADCAST")], [status("SIMULATION_FAILED")], [status("SIMULATION_FAILED")]],
	[[status("PENDING", { fastMode: true })], [status("PENDING")], [status("PENDING")]],
	// The base fee has risen above its fee cap.
	[[status("BROADCAST")], [status("PENDING"), WAITS], [WAITS]],
	// Its block has left the chain.
	[[status("INCLUDED")], [status("PENDING"), status("BROADCAST")], [status("PENDING"), status("BROADCAST")]],
	[
		[status("BROADCAST"), status("INCLUDED")],
		[status("INCLUDED"), status("BROADCAST"), status("INCLUDED")],
		[status("BROADCAST"), status("INCLUDED")],
	],
	// A bundle, block by block.
	[
		[status("SENT", { block: 1 }), status("ACCEPTED", { block: 2 })],
		[status("ACCEPTED", { block: 1 }), status("SENT", { block: 1 }), status("SENT", { block: 2 })],
		[status("SENT", { block: 2 })],
	],
	[[], [status("PENDING")], [status("PENDING")]],
];

for (const [reported, said, news] of ROWS) {
	const list = (results: readonly object[]) => results.map((one) => JSON.stringify(one)).join(", ");
	test(`reported ${list(reported)}; the next core reports ${list(said)}`, () => {
		const topics = new ReportedTopics();
		topics.begin(TOPIC, reported.slice(0, 1));
		for (const one of reported.slice(1)) assert.equal(topics.isNews(TOPIC, JSON.stringify(one)), true);
		topics.coreChanged();
		assert.deepEqual(
			said.filter((one) => topics.isNews(TOPIC, JSON.stringify(one))),
			news,
		);
	});
}

test("the current status is no news if it was reported last; a change is, also to the same status", () => {
	const topics = new ReportedTopics();
	topics.begin(TOPIC, [status("BROADCAST")]);
	const text = JSON.stringify(status("BROADCAST"));
	assert.equal(topics.isNews(TOPIC, text, true), false);
	assert.equal(topics.isNews(TOPIC, text), true);
	topics.end(TOPIC);
	assert.equal(topics.isNews(TOPIC, text, true), true, "nobody has followed it");
});
