// Tracks for /readyz whether any builder answers deliveries. A rejection counts as an answer; a timeout or a failed
// connection does not.

import type { Clock } from "../../shared/clock.ts";
import type { SlotLength } from "../../shared/ethereum/slots.ts";
import type { DeliveryAnswer } from "../domain/events.ts";

/** The window in which deliveries count, in slots, and at least so many ms. */
const WINDOW_SLOTS = 2;
const LEAST_WINDOW_MS = 2_000;

export class DeliveryHealth {
	readonly #clock: Clock;
	readonly #slot: SlotLength;
	#lastTried = Number.NEGATIVE_INFINITY;
	#lastAnswered = Number.NEGATIVE_INFINITY;

	constructor(options: { readonly slot: SlotLength }, dependencies: { clock: Clock }) {
		this.#clock = dependencies.clock;
		this.#slot = options.slot;
	}

	/** Records one delivery. One that was never sent (`unsent`) says nothing about the builders. */
	note(answer: DeliveryAnswer): void {
		if (answer === "unsent") return;
		this.#lastTried = this.#clock.monotonic();
		if (answer === "accepted" || answer === "rejected") this.#lastAnswered = this.#lastTried;
	}

	/** False when deliveries were tried in the last two slots and no builder answered any. */
	get healthy(): boolean {
		const since = this.#clock.monotonic() - Math.max(WINDOW_SLOTS * this.#slot.ms, LEAST_WINDOW_MS);
		return this.#lastTried < since || this.#lastAnswered >= since;
	}
}
