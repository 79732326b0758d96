// Tracks builders' answers to deliveries. Used by /readyz, which checks whether any builder
// answers, and to show operators each builder's last answer. A rejection counts as an answer; a
// timeout or a failed connection does not.

import type { Clock } from "../../shared/clock.ts";
import type { SlotLength } from "../../shared/ethereum/slots.ts";
import type { DeliveryAnswer } from "../domain/events.ts";

/** The window in which deliveries count: in slots, and its minimum in ms. */
const WINDOW_SLOTS = 2;
const LEAST_WINDOW_MS = 2_000;

interface LastAnswer {
	answer: DeliveryAnswer;
	/** Monotonic ms. */
	at: number;
	ms: number;
}

export class DeliveryHealth {
	readonly #clock: Clock;
	readonly #slot: SlotLength;
	#lastTried = Number.NEGATIVE_INFINITY;
	#lastAnswered = Number.NEGATIVE_INFINITY;
	/** By builder. Entries are changed in place, since each delivery updates one. */
	readonly #last = new Map<string, LastAnswer>();

	constructor(options: { readonly slot: SlotLength }, dependencies: { clock: Clock }) {
		this.#clock = dependencies.clock;
		this.#slot = options.slot;
	}

	/**
	 * Records one delivery, which took `ms`. One that was never sent (`unsent`) says nothing about
	 * the builders.
	 */
	note(builder: string, answer: DeliveryAnswer, ms: number): void {
		if (answer === "unsent") return;
		this.#lastTried = this.#clock.monotonic();
		const last = this.#last.get(builder);
		if (last === undefined) this.#last.set(builder, { answer, at: this.#lastTried, ms });
		else {
			last.answer = answer;
			last.at = this.#lastTried;
			last.ms = ms;
		}
		if (answer === "accepted" || answer === "rejected") this.#lastAnswered = this.#lastTried;
	}

	/**
	 * The last answer of `builder`, and how many seconds ago it came. Null if nothing was sent to
	 * it since this relay became the core.
	 */
	lastOf(
		builder: string,
	): { readonly answer: DeliveryAnswer; readonly secondsAgo: number; readonly ms: number } | null {
		const last = this.#last.get(builder);
		if (last === undefined) return null;
		const { answer, at, ms } = last;
		return { answer, secondsAgo: (this.#clock.monotonic() - at) / 1_000, ms };
	}

	/** False when deliveries were tried in the last two slots and no builder answered any. */
	get healthy(): boolean {
		const since = this.#clock.monotonic() - Math.max(WINDOW_SLOTS * this.#slot.ms, LEAST_WINDOW_MS);
		return this.#lastTried < since || this.#lastAnswered >= since;
	}
}
