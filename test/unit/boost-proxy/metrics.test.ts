// Boost's series: all exist from the start, and the gauges show the current state.

import assert from "node:assert/strict";
import { test } from "node:test";
import { TRIP_REASONS, type Upstreams } from "../../../boost-proxy/domain/ports.ts";
import { FAULTS } from "../../../boost-proxy/domain/request.ts";
import { METHOD_LABELS } from "../../../boost-proxy/ingress/methods.ts";
import { boostMetrics, watchBoost } from "../../../boost-proxy/metrics.ts";
import type { Rows } from "../../../boost-proxy/rows/rows.ts";
import { Metrics } from "../../../shared/metrics.ts";
import { PlayedBreaker } from "./ingress/passFixture.ts";

async function series(metrics: Metrics): Promise<Map<string, number>> {
	const lines = (await metrics.text()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
	return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.split(" ").at(-1))]));
}

test("every series starts at zero", async () => {
	const registry = new Metrics();
	boostMetrics(registry);
	const all = await series(registry);
	for (const name of [
		...Object.keys(TRIP_REASONS).map((reason) => `boost_trips_total{upstream="fallback",reason="${reason}"}`),
		...[...FAULTS, "answered", "aborted"].map(
			(outcome) => `boost_attempts_total{upstream="relay",kind="submission",outcome="${outcome}"}`,
		),
		...[...FAULTS, "ok", "staleHead", "notReady", "probe"].map(
			(result) => `boost_probes_total{upstream="relay",result="${result}"}`,
		),
		...METHOD_LABELS.map((method) => `boost_requests_total{method="${method}",outcome="refused"}`),
		'boost_handovers_total{to="fallback",outcome="acknowledged"}',
		'boost_submissions_total{path="noreverts",outcome="known"}',
		'boost_request_seconds_count{kind="byHash"}',
		'boost_passed_total{outcome="gone"}',
		'boost_task_failures_total{task="following the chain"}',
		"boost_journal_faults_total",
	])
		assert.equal(all.get(name), 0, name);
});

test("gauges show the current state, and stay 0 without a fallback", async () => {
	const registry = new Metrics();
	const breaker = new PlayedBreaker();
	const journal = {
		liveCount: 4,
		isDurable: true,
		isFull: false,
		fullness: { all: 0.5, client: 1 },
		allLive: () => [{ receivedAt: 1_000 }],
	};
	const upstreams = { relay: { breaker }, fallback: null } as unknown as Upstreams;
	watchBoost(registry, {
		upstreams,
		rows: journal as unknown as Rows,
		homes: null,
		clock: { now: () => 3_500 },
		websockets: () => 5,
	});
	const read = async () => {
		const all = await series(registry);
		const states = ["closed", "open", "half-open"];
		return {
			relay: states.map((state) => all.get(`boost_breaker_state{upstream="relay",state="${state}"}`)),
			fallback: states.map((state) => all.get(`boost_breaker_state{upstream="fallback",state="${state}"}`)),
			inFlight: ["relay", "fallback"].map((one) => all.get(`boost_in_flight{upstream="${one}"}`)),
			journal: [all.get("boost_journal_depth"), all.get("boost_journal_durable")],
			fullness: ["all", "client"].map((of) => all.get(`boost_journal_fullness{of="${of}"}`)),
			websockets: all.get("boost_websockets"),
		};
	};
	const usual = { fallback: [0, 0, 0], inFlight: [3, 0], fullness: [0.5, 1], websockets: 5 };
	assert.deepEqual(await read(), { ...usual, relay: [1, 0, 0], journal: [4, 1] });
	breaker.state = "half-open";
	Object.assign(journal, { liveCount: 0, isDurable: false });
	assert.deepEqual(await read(), { ...usual, relay: [0, 0, 1], journal: [0, 0] });
	Object.assign(journal, { liveCount: 1, isDurable: true, isFull: true });
	assert.deepEqual(await read(), { ...usual, relay: [0, 0, 1], journal: [1, 0] });
});
