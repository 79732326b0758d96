// Remembers the highest block number that clients received. They then never receive a lower one
// just because another node answers that is some blocks behind. If the chain really went back, the
// lower number is reported after a while.

import type { Clock } from "./clock.ts";

export interface ReportedHeadOptions {
	/**
	 * How long the source of the highest number must report a lower one until we accept that, in
	 * ms.
	 */
	readonly ownMs: number;
	/** The same for any other source, which may only be behind, in ms. */
	readonly otherMs: number;
}

export class ReportedHead {
	readonly #options: ReportedHeadOptions;
	readonly #clock: Clock;
	#number: number | null = null;
	/** The source that reported it last. */
	#by = "";
	/** A lower number, reported without a break since `since` (monotonic ms). */
	#less: { readonly number: number; readonly by: string; readonly since: number } | null = null;

	constructor(options: ReportedHeadOptions, dependencies: { readonly clock: Clock }) {
		this.#options = options;
		this.#clock = dependencies.clock;
	}

	/** The highest number that clients received. Null if there is none. */
	get number(): number | null {
		this.#believe();
		return this.#number;
	}

	/** The source that reported it; "" if there is none. */
	get by(): string {
		return this.#by;
	}

	/**
	 * `by` reports `number` as its head. Returns the number to report to clients: that one, or a
	 * higher one that they know already.
	 */
	tell(number: number, by = ""): number {
		this.#believe();
		if (this.#number === null || number >= this.#number) {
			this.restart(number, by);
			return number;
		}
		const since = this.#less?.by === by ? this.#less.since : this.#clock.monotonic();
		this.#less = { number, by, since };
		return this.#number;
	}

	/** The chain has switched to another branch, whose head may be lower. */
	restart(number: number, by = ""): void {
		this.#number = number;
		this.#by = by;
		this.#less = null;
	}

	#believe(): void {
		if (this.#less === null) return;
		const { number, by, since } = this.#less;
		const { ownMs, otherMs } = this.#options;
		if (this.#clock.monotonic() - since >= (by === this.#by ? ownMs : otherMs)) this.restart(number, by);
	}
}
