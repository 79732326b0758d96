// The last report of each relay, as the core lists them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type RelayReport, RelayReports } from "../../../../relay/edge/relayReports.ts";
import { ManualClock } from "../../../support/manualClock.ts";

function reportOf(name: string, role: RelayReport["role"] = "edge", problems: readonly string[] = []) {
	const since = "2026-01-01T00:00:00.000Z";
	return { name, role, since, version: "1.0.0", head: 5, subscriptions: 0, problems };
}

test("lists the core first, and each relay's last report with its age", async () => {
	const clock = new ManualClock();
	const reports = new RelayReports({ clock });
	reports.note(reportOf("b"));
	reports.note(reportOf("c", "core"));
	await clock.advance(4_000);
	reports.note(reportOf("a"));
	reports.note(reportOf("b", "edge", ["the node does not answer"]));
	await clock.advance(1_000);
	assert.deepEqual(
		reports.list().map(({ name, secondsAgo, problems }) => [name, secondsAgo, problems.length]),
		[
			["c", 5, 0],
			["a", 1, 0],
			["b", 1, 1],
		],
	);
});

test("forgets a relay after an hour, and the oldest reports of more than 64 relays", async () => {
	const clock = new ManualClock();
	const reports = new RelayReports({ clock });
	for (let i = 0; i < 70; i++) reports.note(reportOf(`relay ${i}`));
	assert.equal(reports.list().length, 64);
	assert.ok(!reports.list().some(({ name }) => name === "relay 5"));
	await clock.advance(3_600_000);
	assert.deepEqual(reports.list(), []);
});
