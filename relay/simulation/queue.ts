// The queue in front of the engines: requests with a priority come in, outcomes go out, some at a time. It is
// bounded: when it is full, what matters least is answered at once that it was not simulated. It retries nothing.

import type { Clock, Timer } from "../../shared/clock.ts";
import type { Simulations, Simulator } from "../domain/ports.ts";
import type { SimulationOutcome, SimulationPriority, SimulationRequest } from "../domain/simulation.ts";
import { Fifo } from "./fifo.ts";
import { type JobOutcome, PRIORITIES, type SimulationMetrics } from "./simulationMetrics.ts";

/** Simulations at once: beyond, the node itself would queue them, without knowing what matters. */
const CONCURRENCY = 16;
/** Chains that wait: some seconds of an anvil's work; behind them a block is over anyway. */
const CAPACITY = 20_000;
/** A slot: heads end the waiting before, as long as there are any. */
const MAX_WAIT_MS = 12_000;

export interface SimulationQueueOptions {
	/** Simulations under way at once; 16 unless given. */
	readonly concurrency?: number;
	/** Requests that wait at most; 20,000 unless given. */
	readonly capacity?: number;
	/** How long a request may wait, in ms (and up to an eighth more); 12,000 unless given. */
	readonly maxWaitMs?: number;
}

export interface SimulationQueueDependencies {
	/** Runs one; must answer within a deadline of its own. */
	readonly simulator: Simulator;
	readonly clock: Clock;
	readonly metrics: Pick<SimulationMetrics, "jobs" | "waited" | "ran">;
}

interface Job {
	readonly request: SimulationRequest;
	readonly priority: SimulationPriority;
	/** Monotonic ms. */
	readonly since: number;
	readonly resolve: (outcomes: readonly SimulationOutcome[]) => void;
	readonly reject: (thrown: unknown) => void;
}

/** What is told of a chain that was never run. */
const NOT_RUN = {
	overloaded: "not simulated: too many simulations wait",
	late: "not simulated: it has waited too long",
	stale: "not simulated: its block has come",
	stopped: "not simulated: the relay is stopping",
} as const;

/** A bounded queue by priority; it owns the requests that wait. `stop` empties it and joins what runs. */
export class SimulationQueue implements Simulations {
	readonly #simulator: Simulator;
	readonly #clock: Clock;
	readonly #metrics: SimulationQueueDependencies["metrics"];
	readonly #concurrency: number;
	readonly #capacity: number;
	readonly #maxWaitMs: number;
	readonly #waiting: Readonly<Record<SimulationPriority, Fifo<Job>>>;
	readonly #running = new Set<Promise<void>>();
	#sweep: Timer | undefined;
	#head = -1;
	#stopped = false;

	constructor(options: SimulationQueueOptions, dependencies: SimulationQueueDependencies) {
		this.#simulator = dependencies.simulator;
		this.#clock = dependencies.clock;
		this.#metrics = dependencies.metrics;
		this.#concurrency = options.concurrency ?? CONCURRENCY;
		this.#capacity = options.capacity ?? CAPACITY;
		this.#maxWaitMs = options.maxWaitMs ?? MAX_WAIT_MS;
		this.#waiting = { new: new Fifo(), again: new Fifo(), bid: new Fifo(), held: new Fifo() };
	}

	/** How many wait. */
	get waiting(): number {
		return PRIORITIES.reduce((sum, priority) => sum + this.#waiting[priority].length, 0);
	}

	/** How many are at the node. */
	get running(): number {
		return this.#running.size;
	}

	/**
	 * Like {@link Simulator.simulate}, when it is its turn: those of a higher priority go first, equals in the order
	 * they came. What is not run (queue full, block over, waited too long, stopping) answers one NODE_UNAVAILABLE.
	 */
	simulate(request: SimulationRequest, priority: SimulationPriority): Promise<readonly SimulationOutcome[]> {
		return new Promise((resolve, reject) => {
			const job: Job = { request, priority, since: this.#clock.monotonic(), resolve, reject };
			if (this.#stopped) this.#refuse(job, "stopped");
			else if (this.#isStale(job)) this.#refuse(job, "stale");
			else this.#admit(job);
		});
	}

	/** Tells it the new head (after a reorganisation it may be lower): what waits for that block or an older one is dropped. */
	setHead(block: number): void {
		this.#head = block;
		this.#drop("stale", (job) => this.#isStale(job));
	}

	/** Takes no more, answers all that wait, and resolves when what runs has ended. */
	async stop(): Promise<void> {
		this.#stopped = true;
		this.#sweep?.cancel();
		this.#drop("stopped", () => true);
		await Promise.all(this.#running);
	}

	#admit(job: Job): void {
		this.#waiting[job.priority].push(job);
		this.#startNext();
		if (this.waiting > this.#capacity) this.#evict();
		if (this.waiting > 0) this.#sweep ??= this.#clock.after(this.#maxWaitMs / 8, () => this.#dropLate());
	}

	#isStale(job: Job): boolean {
		return job.request.block.number <= this.#head;
	}

	/** One timer for all that wait, while any do. */
	#dropLate(): void {
		const oldest = this.#clock.monotonic() - this.#maxWaitMs;
		this.#drop("late", (job) => job.since <= oldest);
		this.#sweep = undefined;
		if (this.waiting > 0) this.#sweep = this.#clock.after(this.#maxWaitMs / 8, () => this.#dropLate());
	}

	#drop(outcome: keyof typeof NOT_RUN, matches: (job: Job) => boolean): void {
		for (const priority of PRIORITIES) {
			for (const job of this.#waiting[priority].remove(matches)) this.#refuse(job, outcome);
		}
	}

	/** The newest of the lowest priority goes: the older ones have waited for their turn. */
	#evict(): void {
		for (const priority of [...PRIORITIES].reverse()) {
			const job = this.#waiting[priority].pop();
			if (job === undefined) continue;
			this.#refuse(job, "overloaded");
			return;
		}
	}

	#startNext(): void {
		while (this.#running.size < this.#concurrency) {
			const job = this.#next();
			if (job === undefined) return;
			const running = this.#run(job).finally(() => {
				this.#running.delete(running);
				this.#startNext();
			});
			this.#running.add(running);
		}
	}

	#next(): Job | undefined {
		for (const priority of PRIORITIES) {
			const job = this.#waiting[priority].shift();
			if (job !== undefined) return job;
		}
		return undefined;
	}

	async #run(job: Job): Promise<void> {
		const { priority } = job;
		const start = this.#clock.monotonic();
		this.#metrics.waited({ priority }, (start - job.since) / 1000);
		try {
			const outcomes = await this.#simulator.simulate(job.request);
			this.#metrics.jobs({ priority, outcome: summarise(outcomes) });
			job.resolve(outcomes);
		} catch (thrown) {
			// A defect of ours, since a node's failure is an outcome: for the caller to report.
			job.reject(thrown);
		} finally {
			this.#metrics.ran({ priority }, (this.#clock.monotonic() - start) / 1000);
		}
	}

	#refuse(job: Job, outcome: keyof typeof NOT_RUN): void {
		this.#metrics.jobs({ priority: job.priority, outcome });
		job.resolve([{ ok: false, error: { code: "NODE_UNAVAILABLE", message: NOT_RUN[outcome] } }]);
	}
}

function summarise(outcomes: readonly SimulationOutcome[]): JobOutcome {
	const last = outcomes.at(-1);
	if (last === undefined || last.ok) return "passed";
	return last.error.code === "NODE_UNAVAILABLE" ? "unavailable" : "failed";
}
