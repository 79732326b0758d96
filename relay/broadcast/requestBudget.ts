// Limits the requests to a builder per second. Users' transactions and cancels are never delayed.
// Searchers' bundles use the rest, so that no bid makes the builder refuse a user's request.

import type { Clock } from "../../shared/clock.ts";

/** The part that is reserved for users' requests, which may come at any time. */
const USERS_PART = 0.25;
const WINDOW_MS = 1_000;

export class RequestBudget {
	readonly #perSecond: number;
	readonly #clock: Pick<Clock, "monotonic">;
	/** When the requests of the last second began, in monotonic ms, the oldest first. */
	readonly #begun: number[] = [];

	constructor(
		{ perSecond }: { readonly perSecond: number },
		{ clock }: { readonly clock: Pick<Clock, "monotonic"> },
	) {
		this.#perSecond = perSecond;
		this.#clock = clock;
	}

	/** Searchers' requests per second while users send none. */
	get forSearchers(): number {
		return Math.max(1, Math.floor(this.#perSecond * (1 - USERS_PART)));
	}

	/** Records that a request begins. */
	take(): void {
		this.#begun.push(this.#clock.monotonic());
	}

	/** Time in ms until a searcher's request may begin; 0: now. */
	get waitMs(): number {
		const now = this.#clock.monotonic();
		while ((this.#begun[0] ?? now) <= now - WINDOW_MS) this.#begun.shift();
		const over = this.#begun.length - this.forSearchers;
		return over < 0 ? 0 : Math.max(1, (this.#begun[over] ?? now) + WINDOW_MS - now);
	}
}
