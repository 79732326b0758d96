// A loop that repeats one task, never two rounds at a time. The task plans its next round.

import type { Clock, Timer } from "../../shared/clock.ts";
import type { Component } from "../../shared/lifecycle.ts";
import { type Logger, safeError } from "../../shared/log.ts";

/**
 * The shortest time between the starts of two rounds that faults trigger, in ms: faults come in
 * bursts.
 */
const GAP_MS = 50;

export class Rounds {
	readonly #intervalMs: number;
	readonly #work: () => Promise<void>;
	readonly #clock: Clock;
	readonly #log: Logger;
	#timer: Timer | undefined;
	/**
	 * Monotonic ms. Without a timer, the round became due while another one ran, and starts at the
	 * end of that one.
	 */
	#dueAt: number | null = null;
	#startedAt = Number.NEGATIVE_INFINITY;
	#running: Promise<void> | undefined;
	#isStopped = false;

	/**
	 * `intervalMs`: from the start of one round to the start of the next. `work` ends by its own
	 * deadline.
	 */
	constructor(
		intervalMs: number,
		{ work, clock, log }: { readonly work: () => Promise<void>; readonly clock: Clock; readonly log: Logger },
	) {
		this.#intervalMs = intervalMs;
		this.#work = work;
		this.#clock = clock;
		this.#log = log;
	}

	/** Ms until the next round starts; null if none is due and none runs. */
	get nextMs(): number | null {
		const at = this.#dueAt ?? (this.#running === undefined ? null : this.#startedAt + this.#intervalMs);
		return at === null ? null : Math.max(0, at - this.#clock.monotonic());
	}

	/**
	 * Starts a round in `delayMs`, or when the running one ends. It replaces the round planned
	 * before; null plans none.
	 */
	plan(delayMs: number | null): void {
		this.#timer?.cancel();
		this.#timer = undefined;
		this.#dueAt = null;
		if (delayMs === null || this.#isStopped) return;
		this.#dueAt = this.#clock.monotonic() + delayMs;
		this.#timer = this.#clock.after(delayMs, () => {
			this.#timer = undefined;
			if (this.#running === undefined) this.#begin();
		});
	}

	/** Plans the next round an interval after the start of the last. */
	planNext(intervalMs = this.#intervalMs): void {
		this.plan(Math.max(0, this.#startedAt + intervalMs - this.#clock.monotonic()));
	}

	/**
	 * Starts a round now unless one is running. If the last has only just started, waits for a short
	 * gap.
	 */
	soon(): void {
		if (this.#running !== undefined) return;
		const gapMs = Math.min(GAP_MS, this.#intervalMs / 2);
		const waitMs = Math.max(0, this.#startedAt + gapMs - this.#clock.monotonic());
		if (this.nextMs === null || this.nextMs > waitMs) this.plan(waitMs);
	}

	/** Plans no more rounds and waits for the running one. */
	async stop(): Promise<void> {
		this.#isStopped = true;
		this.plan(null);
		await this.#running;
	}

	#begin(): void {
		this.#dueAt = null;
		this.#startedAt = this.#clock.monotonic();
		this.#running = this.#run();
	}

	async #run(): Promise<void> {
		try {
			await this.#work();
		} catch (thrown) {
			// Otherwise the loop would end here.
			this.#log.error("probe failed unexpectedly", { fault: safeError(thrown) });
			if (this.#dueAt === null) this.planNext();
		}
		this.#running = undefined;
		if (this.#dueAt !== null && this.#timer === undefined) this.#begin();
	}
}

/** Runs `work` at once and then every `everyMs()`; never two at a time. */
export function repeated(
	name: string,
	everyMs: () => number,
	dependencies: { readonly clock: Clock; readonly log: Logger },
	work: () => Promise<void>,
): Component {
	const rounds: Rounds = new Rounds(everyMs(), {
		...dependencies,
		async work() {
			await work();
			rounds.planNext(everyMs());
		},
	});
	return { name, start: async () => rounds.plan(0), stop: () => rounds.stop() };
}
