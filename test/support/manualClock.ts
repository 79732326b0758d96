// A clock that tests move by hand. It fires timers in order; after each it waits until all work
// that needs no real I/O is done, or until the test says that all of it is.

import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock, Timer } from "../../shared/clock.ts";

interface Pending {
	readonly at: number;
	readonly fn: () => void;
}

/** Starts at `epoch` ms; its monotonic reading starts at 0. */
export class ManualClock implements Clock {
	/** Resolves when all work is done that a timer has begun. */
	settled: () => Promise<unknown> = nextTurn;
	#epoch: number;
	readonly #timers = new Set<Pending>();
	#elapsed = 0;

	constructor(epoch = Date.UTC(2026, 0, 1)) {
		this.#epoch = epoch;
	}

	now(): number {
		return this.#epoch + this.#elapsed;
	}

	monotonic(): number {
		return this.#elapsed;
	}

	after(ms: number, fn: () => void): Timer {
		const pending: Pending = { at: this.#elapsed + ms, fn };
		this.#timers.add(pending);
		return { cancel: () => this.#timers.delete(pending) };
	}

	/**
	 * Moves the wall clock by `ms`, as if the machine's clock was set; the monotonic time and timers
	 * stay.
	 */
	set(ms: number): void {
		this.#epoch += ms;
	}

	/** The number of timers that are set. */
	get timers(): number {
		return this.#timers.size;
	}

	/** Moves on by `ms`, and fires each timer that becomes due at its own time. */
	async advance(ms: number): Promise<void> {
		const end = this.#elapsed + ms;
		await this.settled();
		for (let due = this.#earliest(end); due !== undefined; due = this.#earliest(end)) {
			this.#timers.delete(due);
			this.#elapsed = Math.max(this.#elapsed, due.at);
			due.fn();
			await this.settled();
		}
		this.#elapsed = end;
	}

	/**
	 * The timer that is due first, no later than `end`; among several at the same time the first to
	 * be set.
	 */
	#earliest(end: number): Pending | undefined {
		let first: Pending | undefined;
		for (const pending of this.#timers) {
			if (pending.at <= end && (first === undefined || pending.at < first.at)) first = pending;
		}
		return first;
	}
}
