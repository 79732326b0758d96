// A loop that runs one piece of work again and again, never twice at a time. The work says when it is next due.

import type { Clock, Timer } from "../../shared/clock.ts";
import { type Logger, safeError } from "../../shared/log.ts";

/** Between the begins of two rounds that faults ask for, in ms: these come in swarms. */
const GAP_MS = 50;

/** At most one round is due, and at most one runs. */
export class Prober {
	readonly #intervalMs: number;
	readonly #work: () => Promise<void>;
	readonly #clock: Clock;
	readonly #log: Logger;
	#timer: Timer | undefined;
	/** Monotonic ms; without a timer it fell due while a round ran, whose end begins it. */
	#dueAt: number | null = null;
	#startedAt = Number.NEGATIVE_INFINITY;
	#running: Promise<void> | undefined;
	#isStopped = false;

	/** `intervalMs`: from the begin of one round to that of the next. `work` ends by its own deadline. */
	constructor(
		intervalMs: number,
		{ work, clock, log }: { readonly work: () => Promise<void>; readonly clock: Clock; readonly log: Logger },
	) {
		this.#intervalMs = intervalMs;
		this.#work = work;
		this.#clock = clock;
		this.#log = log;
	}

	/** When the next round begins, in ms from now; null where none is due and none runs. */
	get nextMs(): number | null {
		const at = this.#dueAt ?? (this.#running === undefined ? null : this.#startedAt + this.#intervalMs);
		return at === null ? null : Math.max(0, at - this.#clock.monotonic());
	}

	/** A round begins in `delayMs`, or when the one under way ends; null: none is due any more. Replaces what was due. */
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

	/** The next round begins an interval after the begin of the last. */
	planNext(intervalMs = this.#intervalMs): void {
		this.plan(Math.max(0, this.#startedAt + intervalMs - this.#clock.monotonic()));
	}

	/** A round begins now unless one runs; a moment later where the last has only just begun. */
	soon(): void {
		if (this.#running !== undefined) return;
		const gapMs = Math.min(GAP_MS, this.#intervalMs / 2);
		const waitMs = Math.max(0, this.#startedAt + gapMs - this.#clock.monotonic());
		if (this.nextMs === null || this.nextMs > waitMs) this.plan(waitMs);
	}

	/** Plans no more, and waits for the round under way. */
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
			// With nothing due the loop would end here.
			this.#log.error("a probe failed by itself", { fault: safeError(thrown) });
			if (this.#dueAt === null) this.planNext();
		}
		this.#running = undefined;
		if (this.#dueAt !== null && this.#timer === undefined) this.#begin();
	}
}
