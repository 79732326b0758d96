// Tracks what builders answer to deliveries: for /readyz whether any does, and for the operator what each said last. A rejection counts as an answer; a timeout or a failed
// connection does not.

import type { Clock } from "../../shared/clock.ts";
import type { SlotLength } from "../../shared/ethereum/slots.ts";
import type { DeliveryAnswer } from "../domain/events.ts";

/** The window in which deliveries count, in slots, and at least so many ms. */
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
	/** By builder; changed in place, since this is for each delivery. */
	readonly #last = new Map<string, LastAnswer>();

	constructor(options: { readonly slot: SlotLength }, dependencies: { clock: Clock }) {
		this.#clock = dependencies.clock;
		this.#slot = options.slot;
	}

	/** Records one delivery, which took `ms`. One that was never sent (`unsent`) says nothing about the builders. */
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

	/** What `builder` answered last, and how many seconds ago; null if it was sent nothing since this relay is the core. */
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
