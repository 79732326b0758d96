// Tracks for /readyz whether any builder answers deliveries. A rejection counts as an answer; a timeout or a failed
// connection does not.

import type { Clock } from "../../shared/clock.ts";
import type { DeliveryAnswer } from "../domain/events.ts";

export class DeliveryHealth {
	readonly #clock: Clock;
	readonly #windowMs: number;
	#lastTried = Number.NEGATIVE_INFINITY;
	#lastAnswered = Number.NEGATIVE_INFINITY;

	/** `windowMs`: two slots. */
	constructor(options: { windowMs: number }, dependencies: { clock: Clock }) {
		this.#clock = dependencies.clock;
		this.#windowMs = options.windowMs;
	}

	/** Records one delivery. One that was never sent (`unsent`) says nothing about the builders. */
	note(answer: DeliveryAnswer): void {
		if (answer === "unsent") return;
		this.#lastTried = this.#clock.monotonic();
		if (answer === "accepted" || answer === "rejected") this.#lastAnswered = this.#lastTried;
	}

	/** False when deliveries were tried in the last two slots and no builder answered any. */
	get healthy(): boolean {
		const since = this.#clock.monotonic() - this.#windowMs;
		return this.#lastTried < since || this.#lastAnswered >= since;
	}
}
