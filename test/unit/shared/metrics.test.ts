// Tests metrics as Prometheus text: which series exist from the start, and what they count.

import assert from "node:assert/strict";
import { test } from "node:test";
import { labelSets, Metrics } from "../../../shared/metrics.ts";

async function lines(metrics: Metrics): Promise<string[]> {
	return (await metrics.text()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
}

test("every combination of labels, in order", () => {
	assert.deepEqual(labelSets({ a: ["x", "y"], b: ["1", "2"] }), [
		{ a: "x", b: "1" },
		{ a: "x", b: "2" },
		{ a: "y", b: "1" },
		{ a: "y", b: "2" },
	]);
	assert.deepEqual(labelSets({ a: ["x"], b: [] }), []);
	assert.deepEqual(labelSets({}), [{}]);
});

test("a counter's series are there at zero, and count by one or by more", async () => {
	const metrics = new Metrics();
	const count = metrics.counter("seen_total", "Seen", labelSets({ kind: ["a", "b"] }));
	assert.deepEqual(await lines(metrics), ['seen_total{kind="a"} 0', 'seen_total{kind="b"} 0']);
	count({ kind: "a" });
	count({ kind: "b" }, 5);
	count({ kind: "b" });
	assert.deepEqual(await lines(metrics), ['seen_total{kind="a"} 1', 'seen_total{kind="b"} 6']);
});

test("a histogram's series are there at zero, and take seconds", async () => {
	const metrics = new Metrics();
	const observe = metrics.histogram("took_seconds", "Took", labelSets({ step: ["a"] }));
	const before = await lines(metrics);
	assert.ok(before.includes('took_seconds_count{step="a"} 0'));
	observe({ step: "a" }, 0.003);
	observe({ step: "a" }, 100);
	const after = await lines(metrics);
	for (const line of [
		'took_seconds_bucket{le="0.0025",step="a"} 0',
		'took_seconds_bucket{le="0.005",step="a"} 1',
		'took_seconds_bucket{le="10",step="a"} 1',
		'took_seconds_bucket{le="+Inf",step="a"} 2',
		'took_seconds_sum{step="a"} 100.003',
		'took_seconds_count{step="a"} 2',
	]) {
		assert.ok(after.includes(line), line);
	}
});

test("a gauge is read when it is asked for", async () => {
	const metrics = new Metrics();
	let value = 1;
	metrics.gauge("depth", "Depth", () => value);
	assert.deepEqual(await lines(metrics), ["depth 1"]);
	value = 7;
	assert.deepEqual(await lines(metrics), ["depth 7"]);
});

test("a gauge of many series is read for each of them", async () => {
	const metrics = new Metrics();
	let state = "open";
	metrics.gauges("state", "State", labelSets({ state: ["open", "closed"] }), (labels) =>
		labels.state === state ? 1 : 0,
	);
	assert.deepEqual(await lines(metrics), ['state{state="open"} 1', 'state{state="closed"} 0']);
	state = "closed";
	assert.deepEqual(await lines(metrics), ['state{state="open"} 0', 'state{state="closed"} 1']);
});

test("two processes' metrics in one test know nothing of each other, and one name is one series", async () => {
	const [one, two] = [new Metrics(), new Metrics()];
	one.counter("x_total", "X", [{}])({});
	two.counter("x_total", "X", [{}]);
	assert.deepEqual([await lines(one), await lines(two)], [["x_total 1"], ["x_total 0"]]);
	assert.throws(() => one.counter("x_total", "X", [{}]));
	assert.match(one.contentType, /^text\/plain; version=0\.0\.4/);
});
