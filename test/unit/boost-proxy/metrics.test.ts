// Boost's series: all of them there from the start, and each counts what it is called for.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Upstreams } from "../../../boost-proxy/domain/ports.ts";
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

test("every series is there at zero before anything happened", async () => {
	const registry = new Metrics();
	boostMetrics(registry);
	const all = await series(registry);
	const both = <T>(of: (upstream: string) => readonly T[]): readonly T[] => ["relay", "fallback"].flatMap(of);
	const expected = [
		...both((upstream) =>
			[...FAULTS, "faults", "storm", "silence", "staleHead", "notReady", "probe", "forced"].map(
				(reason) => `boost_trips_total{upstream="${upstream}",reason="${reason}"}`,
			),
		),
		...both((upstream) =>
			["read", "submission"].flatMap((kind) =>
				[...FAULTS, "answered", "cut"].map(
					(outcome) => `boost_attempts_total{upstream="${upstream}",kind="${kind}",outcome="${outcome}"}`,
				),
			),
		),
		...both((upstream) =>
			["ok", ...FAULTS, "staleHead", "notReady", "probe"].map(
				(word) => `boost_probes_total{upstream="${upstream}",word="${word}"}`,
			),
		),
		...both((to) =>
			["acknowledged", "rejected", "failed"].map(
				(outcome) => `boost_handovers_total{to="${to}",outcome="${outcome}"}`,
			),
		),
		...["fast", "noreverts"].flatMap((path) =>
			["acknowledged", "known", "cancels", "rejected", "unavailable"].map(
				(outcome) => `boost_submissions_total{path="${path}",outcome="${outcome}"}`,
			),
		),
		...METHOD_LABELS.flatMap((method) =>
			["ok", "refused", "limited", "unavailable", "internal"].map(
				(outcome) => `boost_requests_total{method="${method}",outcome="${outcome}"}`,
			),
		),
		...["submission", "sync", "cancel", "nonce", "byHash", "read", "relay"].map(
			(kind) => `boost_request_seconds_count{kind="${kind}"}`,
		),
		...["answered", "unavailable", "failed", "gone"].map(
			(outcome) => `boost_passed_total{outcome="${outcome}"}`,
		),
		"boost_journal_faults_total",
		...["reconcile", "following the relay", "following the chain", "chain"].map(
			(task) => `boost_task_failures_total{task="${task}"}`,
		),
	];
	for (const name of expected) assert.equal(all.get(name), 0, name);
});

test("what is called is counted, and no name of a client's makes a series", async () => {
	const registry = new Metrics();
	const metrics = boostMetrics(registry);
	const before = (await series(registry)).size;
	metrics.call("eth_sendRawTransaction", "ok", 0.2);
	metrics.call("eth_call", "reverted", 0.1);
	metrics.call("eth_call", "foreign", 0.1);
	metrics.call("unknown", "rateLimit", 0);
	metrics.trip({ upstream: "relay", reason: "silence" });
	metrics.attempt({ upstream: "fallback", kind: "submission", outcome: "limited" });
	metrics.submission({ path: "noreverts", outcome: "acknowledged" });
	metrics.handover({ to: "fallback", outcome: "acknowledged" });
	metrics.journalFault({});
	metrics.probe({ upstream: "relay", word: "staleHead" });
	metrics.passed({ outcome: "gone" });
	metrics.taskFailed({ task: "reconcile" });
	const all = await series(registry);
	assert.equal(all.size, before);
	for (const [name, value] of [
		['boost_requests_total{method="eth_sendRawTransaction",outcome="ok"}', 1],
		['boost_requests_total{method="eth_call",outcome="refused"}', 2],
		['boost_requests_total{method="unknown",outcome="limited"}', 1],
		['boost_request_seconds_sum{kind="submission"}', 0.2],
		['boost_request_seconds_count{kind="read"}', 2],
		['boost_trips_total{upstream="relay",reason="silence"}', 1],
		['boost_attempts_total{upstream="fallback",kind="submission",outcome="limited"}', 1],
		['boost_submissions_total{path="noreverts",outcome="acknowledged"}', 1],
		['boost_handovers_total{to="fallback",outcome="acknowledged"}', 1],
		["boost_journal_faults_total", 1],
		['boost_probes_total{upstream="relay",word="staleHead"}', 1],
		['boost_passed_total{outcome="gone"}', 1],
		['boost_task_failures_total{task="reconcile"}', 1],
	] as const) {
		assert.equal(all.get(name), value, name);
	}
});

test("gauges tell what is now, and of a fallback that is not there nothing", async () => {
	const registry = new Metrics();
	const breaker = new PlayedBreaker();
	const journal = {
		depth: 4,
		isDurable: true,
		isFull: false,
		fullness: { all: 0.5, client: 1 },
		open: () => [{ receivedAt: 1_000 }],
	};
	const upstreams = { relay: { breaker }, fallback: null } as unknown as Upstreams;
	watchBoost(registry, {
		upstreams,
		rows: journal as unknown as Rows,
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
	Object.assign(journal, { depth: 0, isDurable: false });
	assert.deepEqual(await read(), { ...usual, relay: [0, 0, 1], journal: [0, 0] });
	Object.assign(journal, { depth: 1, isDurable: true, isFull: true });
	assert.deepEqual(await read(), { ...usual, relay: [0, 0, 1], journal: [1, 0] });
});
