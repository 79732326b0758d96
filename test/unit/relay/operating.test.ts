// What operators read of a relay: the checks of /readyz, and the series that are there from the start.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ENDPOINTS } from "../../../relay/domain/endpoints.ts";
import { STAGES } from "../../../relay/domain/record.ts";
import { REJECTION_CODES } from "../../../relay/domain/rejection.ts";
import { relayMetrics, STEPS, watchRelay } from "../../../relay/metrics.ts";
import { type Readings, readinessChecks } from "../../../relay/readiness.ts";
import { Metrics } from "../../../shared/metrics.ts";

/** Which checks fail where all is well but this; the head is as old as it may be. */
const READINESS: readonly (readonly [Partial<Readings>, readonly string[]])[] = [
	[{}, []],
	[{ isNodeWell: () => false }, ["node: the node does not answer"]],
	[{ headAgeMs: () => 60_001 }, ["head: the head is too old"]],
	[{ isStoreWell: async () => false }, ["store: the last write failed"]],
	[
		{ isStoreHeld: () => false, isStoreWell: () => Promise.reject(new Error("not to be asked")) },
		["store: the store does not answer, or is another relay's"],
	],
	[{ isDelivering: () => false }, ["delivery: no builder answers"]],
];

test("what is not well is named by /readyz, in words of ours, and nothing else", async () => {
	for (const [readings, expected] of READINESS) {
		const checks = readinessChecks({
			...{ isNodeWell: () => true, headAgeMs: () => 60_000, maxHeadAgeMs: 60_000 },
			...{ isStoreWell: async () => true, isStoreHeld: () => true, isDelivering: () => true },
			...readings,
		});
		const failed: string[] = [];
		for (const { name, check } of checks) {
			const result = await check();
			if (!result.ok) failed.push(`${name}: ${result.reason}`);
		}
		assert.deepEqual([checks.length, failed], [4, expected]);
	}
});

async function series(metrics: Metrics): Promise<Map<string, number>> {
	const lines = (await metrics.text()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
	return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.split(" ").at(-1))]));
}

test("every series of a closed list is there at zero before anything happened", async () => {
	const registry = new Metrics();
	relayMetrics(registry, ["one", "two"]);
	const all = await series(registry);
	const deliveries = ["bundle", "backrun", "private", "cancel"].flatMap((kind) =>
		["accepted", "rejected", "failed", "timeout", "unsent"].map((answer) => ({ kind, answer })),
	);
	const submissions = Object.keys(ENDPOINTS).flatMap((path) =>
		["accepted", "known", "cancels", "failed", ...REJECTION_CODES].map((outcome) => ({ path, outcome })),
	);
	const expected = [
		...STAGES.map((stage) => `relay_stage_total{stage="${stage}"}`),
		...STEPS.map((step) => `relay_step_seconds_count{step="${step}"}`),
		...["one", "two"].map((builder) => `relay_delivery_seconds_count{builder="${builder}"}`),
		...deliveries.map(
			({ kind, answer }) => `relay_deliveries_total{builder="two",kind="${kind}",answer="${answer}"}`,
		),
		...submissions.map(({ path, outcome }) => `relay_submissions_total{path="${path}",outcome="${outcome}"}`),
		...["chain", "accounts", "heads"].map((task) => `relay_task_failures_total{task="${task}"}`),
	];
	for (const name of expected) assert.equal(all.get(name), 0, name);
});

test("gauges tell what is now", async () => {
	const registry = new Metrics();
	let pending = 3;
	const expected = {
		...{ pending_transactions: 7, transaction_records: 4, lane_depth: 5, head_number: -1 },
		...{ head_age_seconds: 1.5, subscriptions: 6, bids: 8, barred_bidders: 9, oldest_pending_seconds: 10 },
		...{ 'lane_fullness{of="all"}': 0.25, 'lane_fullness{of="client"}': 0.5 },
	};
	watchRelay(registry, {
		...{
			pending: () => pending,
			records: () => 4,
			lanes: () => 5,
			head: () => -1,
			bids: () => 8,
			oldestAgeSeconds: () => 10,
		},
		...{ headAgeSeconds: () => 1.5, subscriptions: () => 6, barred: () => 9 },
		lanesFullness: () => ({ all: 0.25, client: 0.5 }),
	});
	pending = 7;
	const all = await series(registry);
	for (const [name, value] of Object.entries(expected)) assert.equal(all.get(`relay_${name}`), value, name);
});
