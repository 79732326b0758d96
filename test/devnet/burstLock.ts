// Keeps a burst and work that must not see one apart. It knows nothing of what a burst does.

/** Keeps bursts and those who must not see one apart; of each kind one at a time, in the order they came. */
export class BurstLock {
	#last: Promise<unknown> = Promise.resolve();
	#bursting = false;
	#count = 0;

	/** True while a burst is under way. */
	get burst(): boolean {
		return this.#bursting;
	}

	/** How many bursts have begun. */
	get count(): number {
		return this.#count;
	}

	/** Runs `fn` as a burst. */
	during<T>(fn: () => Promise<T>): Promise<T> {
		return this.outside(async () => {
			this.#bursting = true;
			this.#count += 1;
			try {
				return await fn();
			} finally {
				this.#bursting = false;
			}
		});
	}

	/** Runs `fn` while no burst is under way. */
	outside<T>(fn: () => Promise<T>): Promise<T> {
		const run = this.#last.then(fn);
		this.#last = run.catch(() => {});
		return run;
	}
}
