// Time as a dependency: nothing else in the project reads the time or sets a timer, so that tests
// can control both.

/** `cancel` may be called any number of times, also after the timer fired. */
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

/** A time in ms since the epoch as ISO 8601, UTC, with milliseconds. */
export function isoTime(ms: number): string {
	return new Date(ms).toISOString();
}

export const systemClock: Clock = {
	now: () => Date.now(),
	monotonic: () => performance.now(),
	after(ms, fn) {
		let immediate: NodeJS.Immediate | undefined;
		// If the event loop was blocked, an answer that arrived in time is read before its deadline
		// fires.
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

/** Thrown when a deadline passed. */
export class DeadlineError extends Error {
	readonly code = "DEADLINE";
	constructor(what: string, ms: number) {
		super(`${what}: no answer within ${ms} ms`);
		this.name = "DeadlineError";
	}
}

/**
 * Runs `work` under a deadline. When the time is up, the signal of `work` is aborted. The promise
 * then rejects with {@link DeadlineError} even if `work` ignores the signal.
 */
export function withDeadline<T>(
	clock: Clock,
	what: string,
	ms: number,
	work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
	const controller = new AbortController();
	const running = new Promise<T>((settle) => settle(work(controller.signal)));
	return within(clock, what, ms, running, (error) => controller.abort(error));
}

/**
 * Settles as `running`, or rejects with {@link DeadlineError} when the time is up. `onLate` is
 * called with the error first.
 */
export function within<T>(
	clock: Clock,
	what: string,
	ms: number,
	running: Promise<T>,
	onLate?: (error: DeadlineError) => void,
): Promise<T> {
	return new Promise<T>((resolve, reject) => {
		const timer = clock.after(ms, () => {
			const error = new DeadlineError(what, ms);
			onLate?.(error);
			reject(error);
		});
		running.then(
			(value) => {
				timer.cancel();
				resolve(value);
			},
			(thrown) => {
				timer.cancel();
				reject(thrown);
			},
		);
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

/** Resolves in the next turn of the event loop, after other work that is ready. */
export function nextTurn(): Promise<void> {
	return new Promise((resolve) => setImmediate(resolve));
}

/** Resolves in this turn of the event loop, after everything that follows from settled promises. */
export function settled(): Promise<void> {
	return new Promise((resolve) => process.nextTick(resolve));
}

/** How long loops over many items, and queued work, may block the event loop at a time, in ms. */
export const SLICE_MS = 5;
/** How long each of several loops may work in a turn that others have used up, in ms. */
const LEAST_MS = 1;

/**
 * Items that {@link inSlices} visits between two readings of the clock. One reading takes as long
 * as a small visit.
 */
const ITEMS_A_READING = 8;

/** When the loops of this turn of the event loop began, in monotonic ms. */
const turns = new WeakMap<Clock, number>();

function turnOf(clock: Clock, now: number): number {
	const known = turns.get(clock);
	if (known !== undefined) return known;
	turns.set(clock, now);
	setImmediate(() => turns.delete(clock));
	return now;
}

/**
 * Calls `visit` for each of `items`, including items added meanwhile, and yields to other work in
 * between. Several loops share the time of a turn, also if one follows another. Resolves with its
 * own working time in ms.
 */
export async function inSlices<T>(
	items: Iterable<T>,
	clock: Clock,
	visit: (item: T) => void,
): Promise<number> {
	let begun = clock.monotonic();
	let turn = turnOf(clock, begun);
	let visited = 0;
	let workedMs = 0;
	for (const item of items) {
		visit(item);
		visited += 1;
		if (visited % ITEMS_A_READING !== 0) continue;
		const now = clock.monotonic();
		if (now - turn < SLICE_MS || now - begun < LEAST_MS) continue;
		workedMs += now - begun;
		await nextTurn();
		begun = clock.monotonic();
		turn = turnOf(clock, begun);
	}
	return workedMs + clock.monotonic() - begun;
}
