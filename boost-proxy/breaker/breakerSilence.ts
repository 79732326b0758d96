// Sees that an upstream says nothing at all: what comes in are signs of life and who is under way, what goes out is the
// wish for a probe, and a place where newcomers wait for its word. It opens nothing itself.

import type { Clock, Timer } from "../../shared/clock.ts";
import type { Flights } from "./breakerFlights.ts";

export interface SilenceOptions {
	/** So many under way make a silence of {@link silenceMs} one that counts. */
	readonly silentRequests: number;
	/** Ms without a sign of life after which a probe is wanted. */
	readonly silenceMs: number;
	/** Ms after which it is wanted for a single one under way. */
	readonly shareMs: number;
}

export interface SilenceDependencies {
	readonly clock: Clock;
	readonly flights: Flights;
	/** Whether one alone is enough: the upstream has just come back. */
	readonly isStrict: () => boolean;
	/** Whether anything is to be done about it now: not while it is forced, or stopped. */
	readonly isWatched: () => boolean;
	/** Called when newcomers begin to wait: a probe's word is wanted now. */
	readonly wantProbe: () => void;
}

/**
 * Newcomers are held back, and the probe begins, after this part of the silence where one more than
 * `silentRequests` comes: at a hundred requests a second 250 ms alone would let 25 into the hole.
 */
const HOLD_BACK_PART = 5;

/** One timer for all that is under way, and none while nothing is. */
export class Silence {
	readonly #options: SilenceOptions;
	readonly #clock: Clock;
	readonly #flights: Flights;
	readonly #isStrict: () => boolean;
	readonly #isWatched: () => boolean;
	readonly #wantProbe: () => void;
	readonly #tickMs: number;
	#timer: Timer | undefined;
	/** The last sign of life in monotonic ms: a real answer, or a probe's good word. */
	#signAt = Number.NEGATIVE_INFINITY;
	#gate: Gate | undefined;
	#isStopped = false;

	constructor(options: SilenceOptions, dependencies: SilenceDependencies) {
		this.#options = options;
		this.#clock = dependencies.clock;
		this.#flights = dependencies.flights;
		this.#isStrict = dependencies.isStrict;
		this.#isWatched = dependencies.isWatched;
		this.#wantProbe = dependencies.wantProbe;
		this.#tickMs = options.silenceMs / HOLD_BACK_PART;
	}

	/** Whether newcomers wait now. */
	get isHolding(): boolean {
		return this.#gate !== undefined;
	}

	/** To be called when an attempt begins. */
	watch(): void {
		if (!this.#isStopped) this.#timer ??= this.#clock.after(this.#tickMs, () => this.#tick());
	}

	/** A sign of life: the silence is over, and who waited goes on. */
	heard(now: number): void {
		this.#signAt = now;
		this.release();
	}

	/** Null where a newcomer may go at once, else what resolves as soon as it may look again. `now`: monotonic ms. */
	wait(now: number): Promise<void> | null {
		if (this.#gate === undefined) {
			if (this.#flights.present < this.#silentRequests) return null;
			if (this.#silentMs(now) < this.#tickMs) return null;
			this.#hold();
		}
		return this.#gate?.opened ?? null;
	}

	/** Whoever waits looks again: the probe's word came, or nobody judges any more. */
	release(): void {
		const gate = this.#gate;
		this.#gate = undefined;
		gate?.open();
	}

	stop(): void {
		this.#isStopped = true;
		this.#timer?.cancel();
		this.#timer = undefined;
		this.release();
	}

	#tick(): void {
		this.#timer = undefined;
		// The next one that begins sets it again.
		if (this.#flights.present === 0) return;
		const { silenceMs, shareMs } = this.#options;
		const silent = this.#silentMs(this.#clock.monotonic());
		const limit = this.#flights.present >= this.#silentRequests ? Math.min(silenceMs, shareMs) : shareMs;
		if (silent >= limit) this.#hold();
		this.watch();
	}

	get #silentRequests(): number {
		return this.#isStrict() ? 1 : this.#options.silentRequests;
	}

	/** For how long those under way have heard nothing, in ms. */
	#silentMs(now: number): number {
		const oldest = this.#flights.oldestPresentAt;
		return oldest === null ? 0 : now - Math.max(this.#signAt, oldest);
	}

	#hold(): void {
		if (this.#gate !== undefined || !this.#isWatched()) return;
		this.#gate = createGate();
		this.#wantProbe();
	}
}

interface Gate {
	readonly opened: Promise<void>;
	readonly open: () => void;
}

function createGate(): Gate {
	let open = () => {};
	const opened = new Promise<void>((resolve) => {
		open = resolve;
	});
	return { opened, open };
}
