// Asks a probe again and again, never twice at a time: what comes in is when the next one is due, what goes out is each
// one's word. It does not know what the word means.

import { type Clock, DeadlineError, type Timer, withDeadline } from "../../shared/clock.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import type { Probe, ProbeWord } from "../domain/breakerPorts.ts";

/** A probe's word; `probe`: it threw, which none may. */
export type HeardWord = ProbeWord | "probe";

export interface ProbeLoopOptions {
	/** From the begin of one probe to that of the next, in ms. */
	readonly intervalMs: number;
	/** The probe's own deadline, in ms. */
	readonly timeoutMs: number;
	/** Between the begins of two probes that {@link ProbeLoop.soon} asks for, in ms. */
	readonly gapMs: number;
}

/** `Context` is what is remembered from a probe's begin to its word. */
export interface ProbeLoopDependencies<Context> {
	readonly probe: Probe;
	readonly clock: Clock;
	readonly log: Logger;
	readonly begun: () => Context;
	/** Says when the next one is due, by the loop's methods. */
	readonly heard: (word: HeardWord, context: Context, tookMs: number) => void;
}

/** A probe that has not ended after so many times its own deadline never will: it counts as timed out. */
const OVERDUE = 1.2;

/** At most one probe is due, and at most one runs. */
export class ProbeLoop<Context> {
	readonly #options: ProbeLoopOptions;
	readonly #dependencies: ProbeLoopDependencies<Context>;
	readonly #clock: Clock;
	#timer: Timer | undefined;
	/** Monotonic ms; without a timer it fell due while another one ran, whose end begins it. */
	#dueAt: number | null = null;
	#startedAt = Number.NEGATIVE_INFINITY;
	#running: Promise<void> | undefined;
	#isStopped = false;

	constructor(options: ProbeLoopOptions, dependencies: ProbeLoopDependencies<Context>) {
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

	/** One begins now unless one runs; a moment later where the last has only just begun: faults come in swarms. */
	soon(): void {
		if (this.#running !== undefined) return;
		const wait = this.#startedAt + this.#options.gapMs - this.#clock.monotonic();
		if (wait <= 0) this.atOnce();
		else if ((this.nextMs ?? Number.POSITIVE_INFINITY) > wait) this.plan(wait);
	}

	/** A probe runs from now on, this one or the one under way. */
	ensure(): void {
		if (this.#running === undefined) this.atOnce();
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
		this.#running = this.#run(this.#dependencies.begun());
	}

	async #run(context: Context): Promise<void> {
		const { heard, log } = this.#dependencies;
		const word = await this.#ask();
		this.#running = undefined;
		if (this.#isStopped) return;
		try {
			heard(word, context, this.#clock.monotonic() - this.#startedAt);
		} catch (thrown) {
			// Whatever went wrong: with no probe due a breaker would stay as it is for ever.
			log.error("a probe's word was not taken", { fault: safeError(thrown) });
			if (this.nextMs === null) this.planNext();
		}
		if (this.#dueAt !== null && this.#timer === undefined) this.#begin();
	}

	async #ask(): Promise<HeardWord> {
		const { probe, log } = this.#dependencies;
		try {
			return await withDeadline(this.#clock, "probe", this.#options.timeoutMs * OVERDUE, probe);
		} catch (thrown) {
			if (thrown instanceof DeadlineError) return "timeout";
			log.error("a probe failed by itself", { fault: safeError(thrown) });
			return "probe";
		}
	}
}
