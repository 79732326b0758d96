// Jobs that are asked for more than once while they wait: all calls of one client share a turn, which is given up when
// the last of them leaves. Clients do not share turns, so that none waits for a slower one.

import type { FairScheduler, JobOptions } from "./scheduler.ts";

/** One call for a job. */
interface Turn<T> {
	/** What the job answers; rejects as {@link FairScheduler.run} does, and with {@link GivenUpError}. */
	readonly answer: Promise<T>;
	/** Leaves. May be called at any time, and again; a job that runs goes on. */
	readonly leave: () => void;
}

/** Rejects a job that all its callers have left before its turn. */
export class GivenUpError extends Error {
	readonly code = "GIVEN_UP";
	constructor() {
		super("given up before its turn");
		this.name = "GivenUpError";
	}
}

interface Waiting<T> {
	readonly answer: Promise<T>;
	/** Those who have not left. */
	callers: number;
	readonly abandon: () => void;
}

/** Turns at what `scheduler` runs. */
export class SharedTurns<T> {
	readonly #scheduler: FairScheduler;
	readonly #waiting = new Map<string, Waiting<T>>();

	constructor(scheduler: FairScheduler) {
		this.#scheduler = scheduler;
	}

	/** Asks for the job of this name, which is `work` unless the client waits for it already. */
	join(name: string, options: Omit<JobOptions, "signal">, work: () => Promise<T>): Turn<T> {
		const key = `${options.client} ${options.urgent === true} ${name}`;
		const waiting = this.#waiting.get(key) ?? this.#wait(key, options, work);
		waiting.callers += 1;
		let left = false;
		return {
			answer: waiting.answer,
			leave() {
				if (left) return;
				left = true;
				waiting.callers -= 1;
				if (waiting.callers === 0) waiting.abandon();
			},
		};
	}

	#wait(key: string, options: Omit<JobOptions, "signal">, work: () => Promise<T>): Waiting<T> {
		const abort = new AbortController();
		let waits = true;
		const ends = (): void => {
			if (waits) this.#waiting.delete(key);
			waits = false;
		};
		const answer = this.#scheduler.run({ signal: abort.signal, ...options }, () => {
			ends();
			return work();
		});
		const abandon = (): void => {
			ends();
			abort.abort(new GivenUpError());
		};
		const waiting = { answer, callers: 0, abandon };
		if (waits) {
			this.#waiting.set(key, waiting);
			answer.catch(ends);
		}
		return waiting;
	}
}
