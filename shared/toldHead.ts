// The highest block number that clients were told, so that they are never told less because another node, some blocks behind, is
// asked. A chain that really went back comes through after a while.

import type { Clock } from "./clock.ts";

export interface ToldHeadOptions {
	/** How long the source that told the number must say less until that is believed, in ms. */
	readonly ownMs: number;
	/** The same for any other source, which may only be behind, in ms. */
	readonly otherMs: number;
}

export class ToldHead {
	readonly #options: ToldHeadOptions;
	readonly #clock: Clock;
	#number: number | null = null;
	/** The source that told it last. */
	#by = "";
	/** Less, said since then without a break, in monotonic ms. */
	#less: { readonly number: number; readonly by: string; readonly since: number } | null = null;

	constructor(options: ToldHeadOptions, dependencies: { readonly clock: Clock }) {
		this.#options = options;
		this.#clock = dependencies.clock;
	}

	/** The highest number that was told; null if none was. */
	get number(): number | null {
		this.#believe();
		return this.#number;
	}

	/** The source that told it; "" if none did. */
	get by(): string {
		return this.#by;
	}

	/** `by` says that `number` is its head. Returns what clients are told: that, or a higher number that they know already. */
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

	/** The chain has another branch now, whose head may be lower. */
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
