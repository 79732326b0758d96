// Asks a probe again and again, never twice at a time. Apart from the breaker, which alone knows what an outcome means and
// when the next probe is due.

import { type Clock, DeadlineError, type Timer, withDeadline } from "../../shared/clock.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import type { ProbeOutcome, ProbeResult } from "../domain/ports.ts";

export interface ProberOptions {
	/** From the begin of one probe to that of the next, in ms. */
	readonly intervalMs: number;
	/** The probe's own deadline, in ms. */
	readonly timeoutMs: number;
}

export interface ProberDependencies {
	readonly clock: Clock;
	readonly log: Logger;
	/** Begins a probe: what asks, and what takes the outcome and says when the next one is due. */
	readonly begin: () => {
		ask(): Promise<ProbeResult>;
		ended(outcome: ProbeOutcome, tookMs: number): void;
	};
}

/** A probe that has not ended after so many times its own deadline never will: it counts as timed out. */
const OVERDUE = 1.2;
/** Between the begins of two probes that faults ask for, in ms: these come in swarms. */
const GAP_MS = 50;

/** At most one probe is due, and at most one runs. */
export class Prober {
	readonly #options: ProberOptions;
	readonly #dependencies: ProberDependencies;
	readonly #clock: Clock;
	#timer: Timer | undefined;
	/** Monotonic ms; without a timer it fell due while another one ran, whose end begins it. */
	#dueAt: number | null = null;
	#startedAt = Number.NEGATIVE_INFINITY;
	#running: Promise<void> | undefined;
	#isStopped = false;

	constructor(options: ProberOptions, dependencies: ProberDependencies) {
		this.#options = options;
		this.#dependencies = dependencies;
		this.#clock = dependencies.clock;
	}

	/** When the next one begins, in ms from now; null where none is due and none runs. */
	get nextMs(): number | null {
		const at =
			this.#dueAt ?? (this.#running === undefined ? null : this.#startedAt + this.#options.intervalMs);
		return at === null ? null : Math.max(0, at - this.#clock.monotonic());
	}

	/** One begins in `delayMs`, or when the one under way ends; what was due before is not any more. */
	plan(delayMs: number): void {
		this.rest();
		if (this.#isStopped) return;
		this.#dueAt = this.#clock.monotonic() + delayMs;
		this.#timer = this.#clock.after(delayMs, () => {
			this.#timer = undefined;
			this.#begin();
		});
	}

	/** The next one begins an interval after the last. */
	planNext(intervalMs = this.#options.intervalMs): void {
		this.plan(Math.max(0, this.#startedAt + intervalMs - this.#clock.monotonic()));
	}

	/** One begins now, or when the one under way ends. */
	atOnce(): void {
		this.rest();
		if (this.#isStopped) return;
		this.#dueAt = this.#clock.monotonic();
		this.#begin();
	}

	/** One begins now unless one runs; a moment later where the last has only just begun. */
	soon(): void {
		if (this.#running !== undefined) return;
		const gapMs = Math.min(GAP_MS, this.#options.intervalMs / 2);
		const wait = this.#startedAt + gapMs - this.#clock.monotonic();
		if (wait <= 0) this.atOnce();
		else if ((this.nextMs ?? Number.POSITIVE_INFINITY) > wait) this.plan(wait);
	}

	/** None is due any more. */
	rest(): void {
		this.#timer?.cancel();
		this.#timer = undefined;
		this.#dueAt = null;
	}

	/** Ends it, and joins the probe under way, which its deadline bounds. */
	async stop(): Promise<void> {
		this.#isStopped = true;
		this.rest();
		await this.#running;
	}

	#begin(): void {
		if (this.#running !== undefined || this.#isStopped) return;
		this.#dueAt = null;
		this.#startedAt = this.#clock.monotonic();
		this.#running = this.#run();
	}

	async #run(): Promise<void> {
		const { begin, log, clock } = this.#dependencies;
		const { ask, ended } = begin();
		const outcome = await withDeadline(clock, "probe", this.#options.timeoutMs * OVERDUE, ask).catch(
			(thrown: unknown): ProbeOutcome => {
				if (thrown instanceof DeadlineError) return "timeout";
				log.error("a probe failed by itself", { fault: safeError(thrown) });
				return "probe";
			},
		);
		this.#running = undefined;
		if (this.#isStopped) return;
		try {
			ended(outcome, clock.monotonic() - this.#startedAt);
		} catch (thrown) {
			// Whatever went wrong: with no probe due a breaker would stay as it is for ever.
			log.error("a probe's outcome was not taken", { fault: safeError(thrown) });
			if (this.nextMs === null) this.planNext();
		}
		if (this.#dueAt !== null && this.#timer === undefined) this.#begin();
	}
}
