// Limits the requests to a builder per second. Users' transactions and cancels are never delayed.
// Searchers' bundles use the rest, so that no bid makes the builder refuse a user's request.

import type { Clock } from "../../shared/clock.ts";

/** The part that is reserved for users' requests, which may come at any time. */
const USERS_PART = 0.25;
const WINDOW_MS = 1_000;

export class RequestBudget {
	/** Searchers' requests per second while users send none. */
	readonly forSearchers: number;
	readonly #clock: Pick<Clock, "monotonic">;
	/** When the last requests began, in monotonic ms: as many as searchers may send in a second. */
	readonly #begun: Float64Array;
	/** The index of the oldest one. */
	#oldest = 0;

	constructor(
		{ perSecond }: { readonly perSecond: number },
		{ clock }: { readonly clock: Pick<Clock, "monotonic"> },
	) {
		this.forSearchers = Math.max(1, Math.floor(perSecond * (1 - USERS_PART)));
		this.#clock = clock;
		this.#begun = new Float64Array(this.forSearchers).fill(Number.NEGATIVE_INFINITY);
	}

	/** Records that a request begins. */
	take(): void {
		this.#begun[this.#oldest] = this.#clock.monotonic();
		this.#oldest = (this.#oldest + 1) % this.forSearchers;
	}

	/** Time in ms until a searcher's request may begin; 0: now. */
	get waitMs(): number {
		const begun = this.#begun[this.#oldest] ?? Number.NEGATIVE_INFINITY;
		const left = begun + WINDOW_MS - this.#clock.monotonic();
		return left <= 0 ? 0 : Math.max(1, left);
	}
}
