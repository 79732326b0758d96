// Work that nobody awaits: what comes in is a name and a function, what goes out is a count of what runs and a
// way to join it at stop. It neither retries nor times out what it runs: each task has its own deadline.

import { type Logger, safeError } from "./log.ts";

/** Runs named tasks in the background; a task that throws is logged and counted, never lost in silence. */
export class Background {
	readonly #running = new Set<Promise<void>>();
	readonly #log: Logger;
	readonly #onFault: (task: string) => void;

	constructor(options: { onFault?: (task: string) => void }, dependencies: { log: Logger }) {
		this.#log = dependencies.log;
		this.#onFault = options.onFault ?? (() => {});
	}

	/** Starts `fn` now; it is joined by {@link join}. */
	run(task: string, fn: () => Promise<void>): void {
		const promise = new Promise<void>((resolve) => resolve(fn()))
			.catch((thrown: unknown) => {
				this.#onFault(task);
				this.#log.error("background task failed", { task, fault: safeError(thrown) });
			})
			.finally(() => this.#running.delete(promise));
		this.#running.add(promise);
	}

	/** How many tasks run now. */
	get size(): number {
		return this.#running.size;
	}

	/** Resolves when all that runs, and what that starts, has ended. */
	async join(): Promise<void> {
		while (this.#running.size > 0) await Promise.all(this.#running);
	}
}
