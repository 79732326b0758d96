// Time as a dependency: nothing else in the project reads the time or sets a timer, so that tests can move
// both by hand.

import { LinkedList, type Listed } from "./linkedList.ts";

/** A timer that was set. `cancel` may be called any number of times, also after it fired. */
export interface Timer {
	cancel(): void;
}

/** The time and its timers. */
export interface Clock {
	/** Milliseconds since the Unix epoch. */
	now(): number;
	/** A monotonic reading in milliseconds, for measuring how long something took. */
	monotonic(): number;
	/** Calls `fn` once after `ms` milliseconds. A pending timer does not keep the process alive. */
	after(ms: number, fn: () => void): Timer;
}

/** The real time. */
export const systemClock: Clock = {
	now: () => Date.now(),
	monotonic: () => performance.now(),
	after(ms, fn) {
		let immediate: NodeJS.Immediate | undefined;
		// Where the event loop stood still an answer may lie there unread: it comes before the deadline that it met.
		const handle = setTimeout(() => {
			immediate = setImmediate(fn);
		}, ms);
		handle.unref();
		return {
			cancel() {
				clearTimeout(handle);
				clearImmediate(immediate);
			},
		};
	},
};

/** Thrown when a deadline passed; `code` is what decisions are made by. */
export class DeadlineError extends Error {
	readonly code = "DEADLINE";
	constructor(what: string, ms: number) {
		super(`${what}: no answer within ${ms} ms`);
		this.name = "DeadlineError";
	}
}

/**
 * Runs `work` under a deadline. The signal that `work` gets is aborted when the time is up, and the promise
 * rejects with {@link DeadlineError} even if `work` ignores it.
 */
export function withDeadline<T>(
	clock: Clock,
	what: string,
	ms: number,
	work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
	const controller = new AbortController();
	return new Promise<T>((resolve, reject) => {
		const timer = clock.after(ms, () => {
			const error = new DeadlineError(what, ms);
			controller.abort(error);
			reject(error);
		});
		new Promise<T>((settle) => settle(work(controller.signal)))
			.then(resolve, reject)
			.finally(() => timer.cancel());
	});
}

/** Resolves after `ms` milliseconds, or as soon as `signal` is aborted: it never rejects. */
export function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
	return new Promise((resolve) => {
		if (signal?.aborted) {
			resolve();
			return;
		}
		const done = () => {
			timer.cancel();
			signal?.removeEventListener("abort", done);
			resolve();
		};
		const timer = clock.after(ms, done);
		signal?.addEventListener("abort", done);
	});
}

/** Resolves in the next turn of the event loop: what else is ready is worked on before. */
export function nextTurn(): Promise<void> {
	return new Promise((resolve) => setImmediate(resolve));
}

/** A task that is timed, as {@link DeadlineQueue.add} gave it out. */
interface Deadline {
	/** When its time is up, in ms of the clock's monotonic reading. */
	readonly at: number;
	readonly onExpiry: () => void;
}

/** Tasks that may each take `ms`; thousands under way cost one timer. */
export class DeadlineQueue {
	readonly #ms: number;
	readonly #clock: Clock;
	/** In the order of their deadlines, because all take equally long. */
	readonly #entries = new LinkedList<Deadline>();
	#timer: Timer | undefined;

	constructor(options: { ms: number }, dependencies: { clock: Clock }) {
		this.#ms = options.ms;
		this.#clock = dependencies.clock;
	}

	/** Calls `onExpiry` in `ms` from now, unless it is called off before. */
	add(onExpiry: () => void): Listed<Deadline> {
		this.#timer ??= this.#clock.after(this.#ms, () => this.#expire());
		return this.#entries.add({ at: this.#clock.monotonic() + this.#ms, onExpiry });
	}

	/** Calls it off; may be called any number of times. */
	cancel(deadline: Listed<Deadline>): void {
		this.#entries.remove(deadline);
	}

	#expire(): void {
		this.#timer = undefined;
		const now = this.#clock.monotonic();
		for (let entry = this.#entries.first; entry !== undefined; entry = this.#entries.first) {
			if (entry.at > now) {
				this.#timer = this.#clock.after(entry.at - now, () => this.#expire());
				return;
			}
			this.#entries.shift();
			entry.onExpiry();
		}
	}
}
