// Metrics as Prometheus text.

import assert from "node:assert/strict";
import { test } from "node:test";
import { labelSets, Metrics } from "../../../shared/metrics.ts";

async function lines(metrics: Metrics): Promise<string[]> {
	return (await metrics.text()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
}

test("every series exists at zero; a gauge is read at each scrape", async () => {
	const metrics = new Metrics();
	const count = metrics.counter("seen_total", "Seen", labelSets({ kind: ["a", "b"], of: ["x"] }));
	let state = "open";
	metrics.gauges("state", "State", labelSets({ state: ["open", "closed"] }), (of) =>
		of.state === state ? 1 : 0,
	);
	assert.deepEqual(await lines(metrics), [
		...['seen_total{kind="a",of="x"} 0', 'seen_total{kind="b",of="x"} 0'],
		...['state{state="open"} 1', 'state{state="closed"} 0'],
	]);
	count({ kind: "a", of: "x" });
	count({ kind: "b", of: "x" }, 5);
	count({ kind: "b", of: "x" });
	state = "closed";
	assert.deepEqual(await lines(metrics), [
		...['seen_total{kind="a",of="x"} 1', 'seen_total{kind="b",of="x"} 6'],
		...['state{state="open"} 0', 'state{state="closed"} 1'],
	]);
});
