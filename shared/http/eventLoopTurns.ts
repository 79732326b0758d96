// Spreads work that came all at once over turns of the event loop, so that whatever else is ready gets its turn between.
// Two hundred requests of a crowd may come in one turn, and keep everybody waiting until the last of them is worked on.

import type { Clock } from "../clock.ts";

/** Work of one turn of the event loop, in ms; what is left is done piece by piece, one in each turn. */
const TURN_MS = 10;

/** Runs pieces of work in the order in which they come. */
export class EventLoopTurns {
	readonly #clock: Pick<Clock, "monotonic">;
	readonly #waiting: (() => void)[] = [];
	/** When the first piece of this turn began; null: nothing was run in it. */
	#began: number | null = null;

	constructor(dependencies: { readonly clock: Pick<Clock, "monotonic"> }) {
		this.#clock = dependencies.clock;
	}

	/** Runs `work` at once, or in a turn to come where this one has had enough; `large`: in a turn of its own. */
	run(work: () => void, large: boolean): void {
		const now = this.#clock.monotonic();
		if (this.#began === null) {
			this.#began = now;
			setImmediate(() => this.#next());
		}
		if (large || this.#waiting.length > 0 || now - this.#began >= TURN_MS) this.#waiting.push(work);
		else work();
	}

	#next(): void {
		const work = this.#waiting.shift();
		if (work === undefined) {
			this.#began = null;
			return;
		}
		setImmediate(() => this.#next());
		work();
	}
}
