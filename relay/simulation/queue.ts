// The queue in front of the node's simulations. Clients are served in fair order by the gas that
// they request. So hundreds of expensive bids of one client do not delay others. Length and waiting
// time are bounded; nothing is retried.

import type { Clock, Timer } from "../../shared/clock.ts";
import type { SlotLength } from "../../shared/ethereum/slots.ts";
import { FairScheduler, OverloadedError } from "../../shared/shares/scheduler.ts";
import type { Simulations, Simulator } from "../domain/ports.ts";
import type { SimulationOutcome, SimulationRequest } from "../domain/simulation.ts";
import { type JobOutcome, PRIORITIES, type SimulationMetrics } from "./simulationMetrics.ts";

/**
 * Simulations at once. A client that is alone may use half of them. With more, the node would queue
 * them in unfair order.
 */
const CONCURRENCY = 8;
/**
 * Requests that may wait: some seconds of work for anvil, after which their block has come anyway.
 */
const CAPACITY = 20_000;
/** A slot of Ethereum; usually a new head ends the wait before. */
const MAX_WAIT_MS = 12_000;

export interface SimulationQueueOptions {
	/** Simulations at once. Default 8. */
	readonly concurrency?: number;
	/**
	 * Maximum number of waiting requests. Default 20,000. Beyond it, the last request of the client
	 * with the most of them is not run.
	 */
	readonly capacity?: number;
	/**
	 * How long a request may wait, in ms: this long and at least a slot, plus at most an eighth.
	 * Default 12,000.
	 */
	readonly maxWaitMs?: number;
	/** Default: the wait is limited by `maxWaitMs` alone. */
	readonly slot?: SlotLength;
}

export interface SimulationQueueDependencies {
	/** Must have a deadline of its own. */
	readonly simulator: Simulator;
	readonly clock: Clock;
	readonly metrics: Pick<SimulationMetrics, "jobs" | "waited" | "ran">;
}

/** The error messages of requests that were never run. */
const NOT_RUN = {
	overloaded: "not simulated: too many simulations wait",
	late: "not simulated: it has waited too long",
	stale: "not simulated: its block has arrived",
	withdrawn: "not simulated: it was withdrawn",
	stopped: "not simulated: the relay is stopping",
} as const;
type WhyNotRun = keyof typeof NOT_RUN;

/** Ends the waiting of a request. */
class NotRunError extends Error {
	readonly why: WhyNotRun;
	constructor(why: WhyNotRun) {
		super(NOT_RUN[why]);
		this.name = "NotRunError";
		this.why = why;
	}
}

interface Waiting {
	readonly request: SimulationRequest;
	/** Monotonic ms. */
	readonly since: number;
	/** Ends the wait without a run; does nothing while it runs. */
	end: (why: WhyNotRun) => void;
}

export class SimulationQueue implements Simulations {
	readonly #simulator: Simulator;
	readonly #clock: Clock;
	readonly #metrics: SimulationQueueDependencies["metrics"];
	readonly #options: SimulationQueueOptions;
	readonly #scheduler: FairScheduler;
	/** The oldest first. */
	readonly #waiting = new Set<Waiting>();
	readonly #running = new Set<Promise<unknown>>();
	#sweep: Timer | undefined;
	#head = -1;
	#stopped = false;

	constructor(options: SimulationQueueOptions, dependencies: SimulationQueueDependencies) {
		this.#simulator = dependencies.simulator;
		this.#clock = dependencies.clock;
		this.#metrics = dependencies.metrics;
		this.#options = options;
		this.#scheduler = new FairScheduler({
			concurrency: options.concurrency ?? CONCURRENCY,
			maxWaiting: options.capacity ?? CAPACITY,
		});
	}

	get #maxWaitMs(): number {
		const { maxWaitMs = MAX_WAIT_MS, slot } = this.#options;
		return Math.max(maxWaitMs, slot?.ms ?? 0);
	}

	/** Number of waiting requests. */
	get waiting(): number {
		return this.#scheduler.waiting;
	}

	/** Number of requests at the node. */
	get running(): number {
		return this.#scheduler.running;
	}

	/**
	 * Like {@link Simulator.simulate}, after waiting. Next is the client that has used the least
	 * gas, and of its requests the one with the highest priority. A request that is not run (queue
	 * full, block over, waited too long, withdrawn, stopping) has one outcome, NODE_UNAVAILABLE.
	 */
	async simulate(request: SimulationRequest): Promise<readonly SimulationOutcome[]> {
		const why = this.#stopped ? "stopped" : this.#isStale(request) ? "stale" : null;
		if (why !== null) return this.#notRun(request, why);
		if (request.signal?.aborted) return this.#notRun(request, "withdrawn");
		const waiting: Waiting = { request, since: this.#clock.monotonic(), end() {} };
		this.#waiting.add(waiting);
		const withdraw = (): void => waiting.end("withdrawn");
		request.signal?.addEventListener("abort", withdraw);
		try {
			const job = this.#scheduler.queue(sharesOf(request), () => {
				this.#waiting.delete(waiting);
				return this.#run(waiting);
			});
			waiting.end = (reason) => {
				this.#waiting.delete(waiting);
				job.withdraw(new NotRunError(reason));
			};
			this.#sweepLater();
			return await job.result;
		} catch (thrown) {
			if (thrown instanceof OverloadedError) return this.#notRun(request, "overloaded");
			if (thrown instanceof NotRunError) return this.#notRun(request, thrown.why);
			// This is a defect of the relay, because a failure of the node is an outcome.
			throw thrown;
		} finally {
			this.#waiting.delete(waiting);
			request.signal?.removeEventListener("abort", withdraw);
		}
	}

	/**
	 * Sets the new head, which may be lower after a reorganisation. Requests for that block or an
	 * older one are dropped.
	 */
	setHead(block: number): void {
		this.#head = block;
		for (const waiting of this.#waiting) if (this.#isStale(waiting.request)) waiting.end("stale");
	}

	/** Refuses new requests, ends all waiting ones, and resolves when the running ones have ended. */
	async stop(): Promise<void> {
		this.#stopped = true;
		this.#sweep?.cancel();
		for (const waiting of this.#waiting) waiting.end("stopped");
		await Promise.allSettled(this.#running);
	}

	#isStale(request: SimulationRequest): boolean {
		return request.block.number <= this.#head;
	}

	/** Ends late requests. One timer serves them all. */
	#dropLate(): void {
		const oldest = this.#clock.monotonic() - this.#maxWaitMs;
		for (const waiting of this.#waiting) if (waiting.since <= oldest) waiting.end("late");
		this.#sweep = undefined;
		this.#sweepLater();
	}

	#sweepLater(): void {
		if (this.#waiting.size === 0) return;
		this.#sweep ??= this.#clock.after(this.#maxWaitMs / 8, () => this.#dropLate());
	}

	#run({ request, since }: Waiting): Promise<readonly SimulationOutcome[]> {
		const running = this.#measured(request, since).finally(() => this.#running.delete(running));
		this.#running.add(running);
		return running;
	}

	async #measured(request: SimulationRequest, since: number): Promise<readonly SimulationOutcome[]> {
		const { priority } = request;
		const start = this.#clock.monotonic();
		this.#metrics.waited({ priority }, (start - since) / 1000);
		try {
			const outcomes = await this.#simulator.simulate(request);
			this.#metrics.jobs({ priority, outcome: summarise(outcomes) });
			return outcomes;
		} finally {
			this.#metrics.ran({ priority }, (this.#clock.monotonic() - start) / 1000);
		}
	}

	#notRun({ priority }: SimulationRequest, why: WhyNotRun): readonly SimulationOutcome[] {
		this.#metrics.jobs({ priority, outcome: why });
		return [{ ok: false, error: { code: "NODE_UNAVAILABLE", message: NOT_RUN[why] } }];
	}
}

/** How a request is scheduled; its cost is the gas that it may use. */
function sharesOf({ client, priority, transactions }: SimulationRequest) {
	const gas = transactions.reduce((sum, tx) => sum + tx.gasLimit, 0n);
	return { client, cost: Math.max(1, Number(gas)), rank: PRIORITIES.indexOf(priority) };
}

function summarise(outcomes: readonly SimulationOutcome[]): JobOutcome {
	const last = outcomes.at(-1);
	if (last === undefined || last.ok) return "passed";
	return last.error.code === "NODE_UNAVAILABLE" ? "unavailable" : "failed";
}
