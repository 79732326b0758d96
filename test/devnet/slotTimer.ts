// Calls the work of each slot at its boundary, never two at once. A slot is skipped when the one before took longer.

import type { Clock, Timer } from "../../shared/clock.ts";

/** Runs `work` once a slot until stopped; `onFault` gets what it throws. */
export class SlotTimer {
	readonly #slotMs: number;
	readonly #work: () => Promise<unknown>;
	readonly #onFault: (thrown: unknown) => void;
	readonly #clock: Clock;
	#timer: Timer | undefined;
	#next = 0;

	constructor(
		options: { readonly slotMs: number },
		dependencies: {
			readonly clock: Clock;
			readonly work: () => Promise<unknown>;
			readonly onFault: (thrown: unknown) => void;
		},
	) {
		this.#slotMs = options.slotMs;
		this.#work = dependencies.work;
		this.#onFault = dependencies.onFault;
		this.#clock = dependencies.clock;
	}

	/** The first slot ends one length from now. */
	start(): void {
		this.#next = this.#clock.monotonic() + this.#slotMs;
		this.#wait();
	}

	/** No slot begins after this; work under way goes on. */
	stop(): void {
		this.#timer?.cancel();
		this.#next = Number.POSITIVE_INFINITY;
	}

	#wait(): void {
		const ms = this.#next - this.#clock.monotonic();
		this.#timer = this.#clock.after(Math.max(0, ms), () => {
			this.#work()
				.catch(this.#onFault)
				.finally(() => this.#again());
		});
	}

	#again(): void {
		if (this.#next === Number.POSITIVE_INFINITY) return;
		const late = this.#clock.monotonic() - this.#next;
		this.#next += this.#slotMs * Math.max(1, Math.ceil(late / this.#slotMs));
		this.#wait();
	}
}
