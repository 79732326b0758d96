// Spreads work that came all at once over turns of the event loop, since two hundred requests may come in
// one. Clients take turns, so that nobody's crowd is in another's way.

import type { Clock } from "../clock.ts";
import { FairScheduler } from "../shares/scheduler.ts";

/** Work of one turn of the event loop, in ms; what is left waits for the next one. */
const TURN_MS = 10;

/** A piece of work that may still wait. */
export interface Piece {
	/** Has it done at once, where it waits. */
	readonly hurry: () => void;
	/** It is of no use any more: it is not done, where it waits. */
	readonly drop: () => void;
}

const NOTHING = (): void => {};
const DONE: Piece = { hurry: NOTHING, drop: NOTHING };

/** Runs pieces of work; those of one client in the order in which they come. */
export class EventLoopTurns {
	readonly #clock: Pick<Clock, "monotonic">;
	readonly #waiting: FairScheduler;
	/** When the first piece of this turn began; null: nothing was run in it. */
	#began: number | null = null;

	constructor(dependencies: { readonly clock: Pick<Clock, "monotonic"> }) {
		this.#clock = dependencies.clock;
		this.#waiting = new FairScheduler({
			concurrency: Number.POSITIVE_INFINITY,
			maxWaiting: Number.POSITIVE_INFINITY,
			mayStart: () => this.#isTimeLeft(),
		});
	}

	/** Runs `work` at once, or in a turn to come where this one has had enough. */
	run(client: string, work: () => void): Piece {
		if (this.#began === null) {
			this.#began = this.#clock.monotonic();
			setImmediate(() => this.#next());
		}
		if (this.#waiting.waiting === 0 && this.#isTimeLeft()) {
			work();
			return DONE;
		}
		const place = this.#waiting.enqueue({ client, cost: 1 }, async () => work());
		if (place === null) return DONE;
		return {
			hurry: () => {
				if (this.#waiting.withdraw(place)) work();
			},
			drop: () => void this.#waiting.withdraw(place),
		};
	}

	#isTimeLeft(): boolean {
		return this.#began !== null && this.#clock.monotonic() - this.#began < TURN_MS;
	}

	#next(): void {
		if (this.#waiting.waiting === 0) {
			this.#began = null;
			return;
		}
		this.#began = this.#clock.monotonic();
		setImmediate(() => this.#next());
		this.#waiting.resume();
	}
}
