// The attempts that are under way at one upstream: what comes in is each one's begin and end, what goes out is how many
// there are and how old the oldest is. It judges none of them.

import type { Attempted } from "../domain/breakerPorts.ts";
import type { Choke } from "./breakerChoke.ts";
import type { Judged } from "./tripRules.ts";

/** One attempt under way. */
export interface Flight extends Judged {
	/** The breaker's generation in which it began: what comes of it counts in that one alone. */
	readonly generation: number;
}

/** Those of the present generation, and stragglers of older ones. */
export class Flights {
	// Sets keep the order in which they were sent, so the oldest is the first.
	#present = new Set<Flight>();
	readonly #stragglers = new Set<Flight>();
	readonly #choke: Choke;

	constructor(choke: Choke) {
		this.#choke = choke;
	}

	/** How many of the present generation are under way. */
	get present(): number {
		return this.#present.size;
	}

	/** How many are under way in all. */
	get all(): number {
		return this.#present.size + this.#stragglers.size;
	}

	/** When the oldest of the present generation was sent, in monotonic ms; null where none is under way. */
	get oldestPresentAt(): number | null {
		return first(this.#present)?.sentAt ?? null;
	}

	/** When the oldest of all was sent, in monotonic ms; null where none is under way. */
	get oldestAt(): number | null {
		return (first(this.#stragglers) ?? first(this.#present))?.sentAt ?? null;
	}

	/** Whether submissions alone get no answer: see {@link Choke}. */
	isChoked(now: number, isStrict: boolean): boolean {
		return this.#choke.isChoked(now, isStrict);
	}

	begin(flight: Flight): void {
		this.#present.add(flight);
		this.#choke.begin(flight);
	}

	/** `outcome`: what came of it, undefined where it threw; `now` in monotonic ms. */
	end(flight: Flight, outcome: Attempted["outcome"] | undefined, now: number): void {
		this.#choke.end(flight, outcome, now);
		if (!this.#present.delete(flight)) this.#stragglers.delete(flight);
	}

	/** A new generation: all that are under way are stragglers now. */
	straggle(): void {
		for (const flight of this.#present) this.#stragglers.add(flight);
		this.#present = new Set();
		this.#choke.forget();
	}
}

function first(flights: ReadonlySet<Flight>): Flight | undefined {
	for (const flight of flights) return flight;
	return undefined;
}
