// One deadline for many tasks of the same length: what comes in is what to do when a task's time is up, what goes
// out is a handle to call it off with. One timer serves all, since tasks run out in the order in which they began.

import type { Clock, Timer } from "../clock.ts";

/** A task that is timed, as {@link DeadlineQueue.add} gave it out. */
export interface Deadline {
	/** When its time is up, in ms of the clock's monotonic reading. */
	readonly at: number;
	readonly onExpiry: () => void;
}

/** Tasks that may each take `ms`; thousands under way cost one timer. */
export class DeadlineQueue {
	readonly #ms: number;
	readonly #clock: Clock;
	/** In the order of their deadlines, because all take equally long and sets keep their order. */
	readonly #entries = new Set<Deadline>();
	#timer: Timer | undefined;

	constructor(options: { ms: number }, dependencies: { clock: Clock }) {
		this.#ms = options.ms;
		this.#clock = dependencies.clock;
	}

	/** Calls `onExpiry` in `ms` from now, unless it is called off before. */
	add(onExpiry: () => void): Deadline {
		const entry: Deadline = { at: this.#clock.monotonic() + this.#ms, onExpiry };
		this.#entries.add(entry);
		this.#timer ??= this.#clock.after(this.#ms, () => this.#expire());
		return entry;
	}

	/** Calls it off; may be called any number of times. */
	cancel(deadline: Deadline): void {
		this.#entries.delete(deadline);
	}

	/** How many are under way. */
	get size(): number {
		return this.#entries.size;
	}

	#expire(): void {
		this.#timer = undefined;
		const now = this.#clock.monotonic();
		for (const entry of this.#entries) {
			if (entry.at > now) {
				this.#timer = this.#clock.after(entry.at - now, () => this.#expire());
				return;
			}
			this.#entries.delete(entry);
			entry.onExpiry();
		}
	}
}
