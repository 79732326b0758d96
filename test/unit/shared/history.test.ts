// The figures of the last hour and the last day, with a clock that is moved by hand.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Figure, History } from "../../../shared/history.ts";
import { Metrics } from "../../../shared/metrics.ts";
import { ManualClock } from "../../support/manualClock.ts";

const MINUTE_MS = 60_000;
const START = Date.UTC(2026, 0, 1, 12, 0, 30);

async function started(figures: Readonly<Record<string, Figure>>, clock = new ManualClock(START)) {
	const history = new History(figures, { clock });
	await history.start();
	return { history, clock };
}

test("shows a counter's increase in each whole minute, and in the first one while it goes on", async () => {
	let sent = 100;
	const { history, clock } = await started({ sent: { kind: "sum", read: () => sent } });
	sent += 3;
	await clock.advance(1_000);
	assert.deepEqual(history.report().hour.columns, { sent: [3] });
	await clock.advance(29_000);
	sent += 5;
	await clock.advance(MINUTE_MS);
	sent += 1;
	await clock.advance(1_000);
	const { hour } = history.report();
	assert.deepEqual(hour.columns, { sent: [3, 5] });
	assert.deepEqual(
		hour.times.map((s) => new Date(s * 1_000).toISOString().slice(11, 19)),
		["12:01:00", "12:02:00"],
	);
});

test("adds up quarters of an hour at :00, :15, :30 and :45", async () => {
	let sent = 0;
	const { history, clock } = await started({ sent: { kind: "sum", read: () => sent } });
	for (let minute = 0; minute < 40; minute++) {
		sent += 1;
		await clock.advance(MINUTE_MS);
	}
	const { day } = history.report();
	assert.deepEqual(
		day.times.map((s) => new Date(s * 1_000).toISOString().slice(11, 16)),
		["12:15", "12:30"],
	);
	assert.deepEqual(day.columns.sent, [15, 15]);
});

test("keeps sixty minutes and a day of quarters, however long the process runs", async () => {
	const { history, clock } = await started({ one: { kind: "level", read: () => 7 } });
	await clock.advance(30 * 60 * MINUTE_MS);
	await clock.advance(1_000);
	const { hour, day } = history.report();
	assert.deepEqual([hour.times.length, day.times.length], [60, 96]);
	const span = ({ times }: { readonly times: readonly number[] }) => (times.at(-1) ?? 0) - (times[0] ?? 0);
	assert.ok(span(hour) <= 3_600 && span(day) <= 86_400, `${span(hour)} s and ${span(day)} s`);
});

test("takes median and percentiles from what a histogram got in the period", async () => {
	const metrics = new Metrics();
	const observe = metrics.histogram("took_seconds", "Took", [{ of: "a" }, { of: "b" }]);
	const read = () => metrics.buckets("took_seconds", { of: "a" });
	const { history, clock } = await started({
		took: { kind: "times", read, quantiles: [0.5, 0.99], scale: 1_000 },
	});
	for (let i = 0; i < 100; i++) observe({ of: "a" }, i < 90 ? 0.0009 : 0.2);
	observe({ of: "b" }, 9);
	await clock.advance(MINUTE_MS);
	observe({ of: "a" }, 0.04);
	await clock.advance(2 * MINUTE_MS);
	const { columns } = history.report().hour;
	const [median, , none] = columns["took 0.5"] ?? [];
	assert.ok(median !== null && (median ?? 0) > 0.5 && (median ?? 0) <= 1, `0.9 ms: ${median}`);
	assert.ok(Number(columns["took 0.99"]?.[0]) > 100, "0.2 s are in the 99th percentile");
	assert.ok(Number(columns["took 0.5"]?.[1]) > 25 && Number(columns["took 0.5"]?.[1]) <= 50, "40 ms alone");
	assert.equal(none, null);
});

test("counts blocks in whole numbers", async () => {
	const metrics = new Metrics();
	const observe = metrics.histogram("blocks", "Blocks", [{}], [1, 2, 3, 5]);
	const read = () => metrics.buckets("blocks");
	const { history, clock } = await started({
		blocks: { kind: "times", read, quantiles: [0.5, 0.9], isWhole: true },
	});
	for (const blocks of [1, 2, 2, 2, 3]) observe({}, blocks);
	await clock.advance(1_000);
	assert.deepEqual(history.report().hour.columns, { "blocks 0.5": [2], "blocks 0.9": [3] });
});

test("shows nothing for what is not known, and a counter from its beginning", async () => {
	const metrics = new Metrics();
	const { history, clock } = await started({
		late: { kind: "sum", read: () => metrics.sum("late_total", { of: "x" }) },
		level: { kind: "level", read: () => metrics.sum("level") },
	});
	await clock.advance(MINUTE_MS);
	const count = metrics.counter("late_total", "Late", [{ of: "x" }, { of: "y" }]);
	count({ of: "x" }, 4);
	count({ of: "y" }, 9);
	metrics.gauge("level", "Level", () => 12_345);
	await clock.advance(MINUTE_MS);
	assert.deepEqual(history.report().hour.columns, { late: [null, 4], level: [null, 12_300] });
});

test("a clock that is set back leaves no time twice, and one that is set forward leaves a gap", async () => {
	const { history, clock } = await started({ one: { kind: "level", read: () => 1 } });
	await clock.advance(10 * MINUTE_MS);
	clock.set(-5 * MINUTE_MS);
	await clock.advance(3 * MINUTE_MS);
	clock.set(20 * MINUTE_MS);
	await clock.advance(3 * MINUTE_MS);
	const { times } = history.report().hour;
	assert.deepEqual(
		[...times].sort((a, b) => a - b),
		times,
	);
	assert.equal(new Set(times).size, times.length);
});

test("ends with the process", async () => {
	const { history, clock } = await started({});
	await history.stop();
	assert.equal(clock.timers, 0);
});
