// The machine's clock, which a test can stop some time ahead: what needs more time than that does
// not happen, however busy the machine is.

import { type Clock, systemClock, type Timer } from "../../shared/clock.ts";

export class StoppableClock implements Clock {
	/** The monotonic time at which it stops, in ms. */
	#end = Number.POSITIVE_INFINITY;
	/** Timers that were due behind the end. */
	#late = new Set<() => void>();

	now(): number {
		return systemClock.now() - (systemClock.monotonic() - this.monotonic());
	}

	monotonic(): number {
		return Math.min(systemClock.monotonic(), this.#end);
	}

	after(ms: number, fn: () => void): Timer {
		const due = this.monotonic() + ms;
		const fire = () => {
			if (due <= this.#end) fn();
			else this.#late.add(fire);
		};
		const timer = systemClock.after(ms, fire);
		return {
			cancel: () => {
				timer.cancel();
				this.#late.delete(fire);
			},
		};
	}

	/** Lets it go on for `ms` milliseconds from now on, and not longer. */
	stopAfter(ms: number): void {
		this.#end = systemClock.monotonic() + ms;
	}

	/** Lets it go on. */
	goOn(): void {
		this.#end = Number.POSITIVE_INFINITY;
		const late = [...this.#late];
		this.#late.clear();
		for (const fire of late) fire();
	}
}
