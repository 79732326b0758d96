// Sees that submissions alone get no answer while all else does: an upstream that is well by its probe and hangs where it
// counts. What comes in is each submission's begin and end, what goes out is whether one more should be sent there now.

import type { Attempted } from "../domain/breakerPorts.ts";
import type { Flight } from "./breakerFlights.ts";

/** A silence that is strict is so many times shorter. */
const STRICTER = 3;

/** The submissions under way at one upstream. All times are monotonic ms. */
export class Choke {
	readonly #limit: number;
	readonly #silenceMs: number;
	// A set keeps the order in which they were sent, so the oldest is the first.
	#present = new Set<Flight>();
	#answeredAt = Number.NEGATIVE_INFINITY;

	/** More than `limit` unanswered for `silenceMs` are too many. */
	constructor(limit: number, silenceMs: number) {
		this.#limit = limit;
		this.#silenceMs = silenceMs;
	}

	/** Whether a further one would only wait behind those that hang. `isStrict`: it has just come back, one is enough. */
	isChoked(now: number, isStrict: boolean): boolean {
		const [oldest] = this.#present;
		if (oldest === undefined || (!isStrict && this.#present.size < this.#limit)) return false;
		const silentMs = now - Math.max(this.#answeredAt, oldest.sentAt);
		return silentMs >= (isStrict ? this.#silenceMs / STRICTER : this.#silenceMs);
	}

	begin(flight: Flight): void {
		if (flight.kind === "submission") this.#present.add(flight);
	}

	/** `outcome` is undefined where it threw. Any word is an answer; a time-out and a cut are none. */
	end(flight: Flight, outcome: Attempted["outcome"] | undefined, now: number): void {
		if (!this.#present.delete(flight)) return;
		if (outcome !== undefined && outcome !== "timeout" && outcome !== "cut") this.#answeredAt = now;
	}

	/** The state has changed: what is under way belongs to the one before. */
	forget(): void {
		this.#present = new Set();
		this.#answeredAt = Number.NEGATIVE_INFINITY;
	}
}
