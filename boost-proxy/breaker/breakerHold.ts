// For how long an upstream is left alone once its breaker opened: openings and closings come in, ms go out. It sets no
// timer.

export interface HoldOptions {
	/** The first hold in ms; doubles with each relapse. */
	readonly holdMs: number;
	/** Ms, never exceeded. */
	readonly holdMaxMs: number;
	/** Ms until the next probe of one that has never answered: it is only starting, and needs no hold. */
	readonly startMs: number;
	/** What a whole recovery takes at least, in ms: the probe's successes, one interval apart. */
	readonly recoveryMs: number;
}

/** Part by which a hold is shorter or longer than it would be, so that many breakers do not come back at once. */
const JITTER = 0.2;
/** 2 ** 20 times any hold is beyond every maximum. */
const MAX_LEVEL = 20;

/** The holds of one breaker. All times are monotonic ms. */
export class Hold {
	readonly #options: HoldOptions;
	readonly #random: () => number;
	/** Relapses in a row. */
	#level = 0;
	#lastMs = 0;
	#probationUntil = Number.NEGATIVE_INFINITY;
	#isProven = false;

	/** `random`: from 0 up to 1. */
	constructor(options: HoldOptions, random: () => number) {
		this.#options = options;
		this.#random = random;
	}

	/** Whether it has ever answered: until then one good word closes it. */
	get isProven(): boolean {
		return this.#isProven;
	}

	/** It answers. */
	prove(): void {
		this.#isProven = true;
	}

	/** Whether it was closed so lately that an opening is a relapse. */
	isProbation(now: number): boolean {
		return now < this.#probationUntil;
	}

	/** It opens: for how long, in ms. */
	opened(now: number): number {
		const { holdMs, holdMaxMs, startMs } = this.#options;
		if (!this.#isProven) return startMs;
		this.#level = this.isProbation(now) ? Math.min(this.#level + 1, MAX_LEVEL) : 0;
		this.#probationUntil = Number.NEGATIVE_INFINITY;
		const jitter = 1 - JITTER + 2 * JITTER * this.#random();
		this.#lastMs = Math.min(holdMaxMs, Math.min(holdMaxMs, holdMs * 2 ** this.#level) * jitter);
		return this.#lastMs;
	}

	/** It is closed by its probe: the probation begins. */
	closed(now: number): void {
		if (this.#isProven) this.#probationUntil = now + 2 * Math.max(this.#lastMs, this.#options.recoveryMs);
		this.#isProven = true;
	}

	/** As if it had never opened. */
	forget(): void {
		this.#level = 0;
		this.#probationUntil = Number.NEGATIVE_INFINITY;
	}
}
