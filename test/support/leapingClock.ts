// The machine's clock, which a test can move ahead: what was set for a time in between happens at
// once, in order.

import { type Clock, systemClock, type Timer } from "../../shared/clock.ts";

interface Pending {
	/** Monotonic, in ms. */
	readonly due: number;
	readonly fire: () => void;
	timer: Timer;
}

export class LeapingClock implements Clock {
	readonly #pending = new Set<Pending>();
	#aheadMs = 0;

	now(): number {
		return systemClock.now() + this.#aheadMs;
	}

	monotonic(): number {
		return systemClock.monotonic() + this.#aheadMs;
	}

	after(ms: number, fn: () => void): Timer {
		const fire = () => {
			if (this.#pending.delete(pending)) fn();
		};
		const pending: Pending = { due: this.monotonic() + ms, fire, timer: systemClock.after(ms, fire) };
		this.#pending.add(pending);
		return {
			cancel: () => {
				this.#pending.delete(pending);
				pending.timer.cancel();
			},
		};
	}

	/** Moves it ahead by `ms`. */
	leap(ms: number): void {
		this.#aheadMs += ms;
		const now = this.monotonic();
		for (const one of [...this.#pending].sort((a, b) => a.due - b.due)) {
			one.timer.cancel();
			if (one.due <= now) one.fire();
			else one.timer = systemClock.after(one.due - now, one.fire);
		}
	}
}
