// The metrics of simulations.

import { type Count, labelSets, type Metrics, type Observe } from "../../shared/metrics.ts";
import type { SimulationPriority } from "../domain/simulation.ts";
import { ENGINE_NAMES } from "./engines/engine.ts";

/** Highest first, within one client. */
export const PRIORITIES: readonly SimulationPriority[] = ["new", "again", "bid", "held"];

/**
 * How a job left the queue. If it ran: all passed, one failed, or the node gave no verdict. If it
 * never ran: pushed out of a full queue, waited too long, its block had come, withdrawn by the
 * caller, or the relay stopped.
 */
const JOB_OUTCOMES = [
	"passed",
	"failed",
	"unavailable",
	"overloaded",
	"late",
	"stale",
	"withdrawn",
	"stopped",
] as const;
export type JobOutcome = (typeof JOB_OUTCOMES)[number];

export interface SimulationMetrics {
	readonly jobs: Count<"priority" | "outcome">;
	/** Seconds in the queue, of the jobs that ran. */
	readonly waited: Observe<"priority">;
	/** Seconds at the node. */
	readonly ran: Observe<"priority">;
	/** Counts chains by the engine that ran them. */
	readonly runs: Count<"engine">;
	/** Adds the gauges of waiting and running simulations. */
	watch(queue: { readonly waiting: number; readonly running: number }): void;
}

export function createSimulationMetrics(metrics: Metrics): SimulationMetrics {
	const byPriority = labelSets({ priority: PRIORITIES });
	const byEngine = labelSets({ engine: ENGINE_NAMES });
	return {
		jobs: metrics.counter(
			"relay_simulations_total",
			"Simulated chains by priority and outcome",
			labelSets({ priority: PRIORITIES, outcome: JOB_OUTCOMES }),
		),
		waited: metrics.histogram(
			"relay_simulation_wait_seconds",
			"Time from the request to the start of a simulation",
			byPriority,
		),
		ran: metrics.histogram("relay_simulation_seconds", "Time that a simulation took at the node", byPriority),
		runs: metrics.counter("relay_simulation_engine_runs_total", "Chains run by each engine", byEngine),
		watch(queue) {
			metrics.gauge("relay_simulation_queue_length", "Simulations that wait", () => queue.waiting);
			metrics.gauge("relay_simulations_running", "Simulations in flight", () => queue.running);
		},
	};
}
