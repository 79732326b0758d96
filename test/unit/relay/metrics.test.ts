// The relay's series: all there at zero from the start, with labels of closed lists, and counted as they are called.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ENDPOINTS } from "../../../relay/domain/endpoints.ts";
import { STAGES } from "../../../relay/domain/record.ts";
import { REJECTION_CODES } from "../../../relay/domain/rejection.ts";
import { relayMetrics, STEPS, watchRelay } from "../../../relay/metrics.ts";
import { Metrics } from "../../../shared/metrics.ts";

async function series(metrics: Metrics): Promise<Map<string, number>> {
	const lines = (await metrics.text()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
	return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.split(" ").at(-1))]));
}

test("every series of a closed list is there at zero before anything happened", async () => {
	const registry = new Metrics();
	relayMetrics(registry, ["one", "two"]);
	const all = await series(registry);
	const expected = [
		...STAGES.map((stage) => `relay_stage_total{stage="${stage}"}`),
		...STEPS.map((step) => `relay_step_seconds_count{step="${step}"}`),
		...["one", "two"].flatMap((builder) => [
			`relay_delivery_seconds_count{builder="${builder}"}`,
			...["accepted", "rejected", "failed", "timeout", "unsent"].flatMap((answer) =>
				["bundle", "private", "cancel"].map(
					(kind) => `relay_deliveries_total{builder="${builder}",kind="${kind}",answer="${answer}"}`,
				),
			),
		]),
		...Object.keys(ENDPOINTS).flatMap((path) =>
			["accepted", "known", "failed", ...REJECTION_CODES].map(
				(outcome) => `relay_submissions_total{path="${path}",outcome="${outcome}"}`,
			),
		),
		// The background tasks that there are.
		...["chain", "accounts", "heads"].map((task) => `relay_task_failures_total{task="${task}"}`),
	];
	for (const name of expected) assert.equal(all.get(name), 0, name);
});

test("what is called is counted", async () => {
	const registry = new Metrics();
	const metrics = relayMetrics(registry, ["one"]);
	metrics.stage({ stage: "BROADCAST" });
	metrics.delivery({ builder: "one", kind: "bundle", answer: "timeout" });
	metrics.delivery({ builder: "one", kind: "bundle", answer: "timeout" });
	metrics.deliverySeconds({ builder: "one" }, 0.25);
	metrics.submission({ path: "fast", outcome: "UNDERPRICED" });
	const all = await series(registry);
	assert.equal(all.get('relay_stage_total{stage="BROADCAST"}'), 1);
	assert.equal(all.get('relay_deliveries_total{builder="one",kind="bundle",answer="timeout"}'), 2);
	assert.equal(all.get('relay_delivery_seconds_sum{builder="one"}'), 0.25);
	assert.equal(all.get('relay_submissions_total{path="fast",outcome="UNDERPRICED"}'), 1);
});

test("gauges tell what is now", async () => {
	const registry = new Metrics();
	let pending = 3;
	watchRelay(registry, {
		pending: () => pending,
		oldestAgeSeconds: () => 10,
		records: () => 4,
		lanes: () => 5,
		lanesFullness: () => ({ all: 0.25, client: 0.5 }),
		head: () => -1,
		headAgeSeconds: () => 1.5,
		subscriptions: () => 6,
		bids: () => 8,
		barred: () => 9,
	});
	pending = 7;
	const all = await series(registry);
	assert.deepEqual(
		[
			...["pending_transactions", "ledger_transactions", "lane_depth", "head_number"],
			...["head_age_seconds", "subscriptions", "bids", "barred_bidders"],
			...['lane_fullness{of="all"}', 'lane_fullness{of="client"}'],
		].map((name) => all.get(`relay_${name}`)),
		[7, 4, 5, -1, 1.5, 6, 8, 9, 0.25, 0.5],
	);
});
