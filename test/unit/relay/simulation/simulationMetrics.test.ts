// The series of simulations: they must all be there before anything happened, and count afterwards.

import assert from "node:assert/strict";
import { it } from "node:test";
import { createSimulationMetrics } from "../../../../relay/simulation/simulationMetrics.ts";
import { Metrics } from "../../../../shared/metrics.ts";

it("has all series from the start, and shows what is recorded", async () => {
	const registry = new Metrics();
	const metrics = createSimulationMetrics(registry);
	const queue = { waiting: 3, running: 2 };
	metrics.watch(queue);
	const before = await registry.text();
	const zeros = before
		.split("\n")
		.filter((line) => line.startsWith("relay_simulations_total{") && line.endsWith(" 0"));
	assert.equal(zeros.length, 4 * 8);
	for (const engine of ["eth_simulateV1", "debug_traceCall"]) {
		assert.ok(before.includes(`relay_simulation_engine_runs_total{engine="${engine}"} 0`));
	}
	metrics.jobs({ priority: "held", outcome: "late" });
	metrics.waited({ priority: "new" }, 0.3);
	metrics.ran({ priority: "again" }, 0.3);
	metrics.runs({ engine: "debug_traceCall" });
	queue.waiting = 7;
	const after = await registry.text();
	for (const line of [
		'relay_simulations_total{priority="held",outcome="late"} 1',
		'relay_simulation_wait_seconds_sum{priority="new"} 0.3',
		'relay_simulation_seconds_count{priority="again"} 1',
		'relay_simulation_engine_runs_total{engine="debug_traceCall"} 1',
		"relay_simulation_queue_length 7",
		"relay_simulations_running 2",
	]) {
		assert.ok(after.includes(line), line);
	}
});
