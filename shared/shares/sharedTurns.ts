// Jobs that are asked for more than once while they wait: of one client they take one turn, and leave the queue when the
// last who asked has given up. Another client's turn is another one: nobody waits for the slower of two.

import type { FairScheduler, JobOptions } from "./scheduler.ts";

/** One who asked. */
export interface Turn<T> {
	/** What the job answers; rejects as {@link FairScheduler.run} does, and with {@link GivenUpError}. */
	readonly answer: Promise<T>;
	/** Gives up. May be called at any time, and again: what runs goes on. */
	readonly leave: () => void;
}

/** Told to who has given up before it was his turn. */
export class GivenUpError extends Error {
	readonly code = "GIVEN_UP";
	constructor() {
		super("given up before its turn");
		this.name = "GivenUpError";
	}
}

interface Waiting<T> {
	readonly answer: Promise<T>;
	/** Those who have not given up. */
	askers: number;
	readonly giveUp: () => void;
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
		waiting.askers += 1;
		let left = false;
		return {
			answer: waiting.answer,
			leave() {
				if (left) return;
				left = true;
				waiting.askers -= 1;
				if (waiting.askers === 0) waiting.giveUp();
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
		const answer = this.#scheduler.run({ ...options, signal: abort.signal }, () => {
			ends();
			return work();
		});
		const giveUp = (): void => {
			ends();
			abort.abort(new GivenUpError());
		};
		const waiting = { answer, askers: 0, giveUp };
		if (waits) {
			this.#waiting.set(key, waiting);
			answer.catch(ends);
		}
		return waiting;
	}
}
