// Work that nobody awaits: it is counted, its faults are logged, and a stop joins it. Each task has its own
// deadline.

import { type Logger, safeError } from "./log.ts";

/** Runs named tasks in the background; a task that throws is logged and counted, never lost in silence. */
export class Background {
	#running = 0;
	#idle: (() => void)[] = [];
	readonly #log: Logger;
	readonly #onFault: (task: string) => void;

	constructor(options: { onFault?: (task: string) => void }, dependencies: { log: Logger }) {
		this.#log = dependencies.log;
		this.#onFault = options.onFault ?? (() => {});
	}

	/** Starts `fn` now; it is joined by {@link join}. */
	run(task: string, fn: () => Promise<void>): void {
		this.#running += 1;
		new Promise<void>((resolve) => resolve(fn()))
			.catch((thrown: unknown) => {
				this.#onFault(task);
				this.#log.error("background task failed", { task, fault: safeError(thrown) });
			})
			.finally(() => {
				this.#running -= 1;
				if (this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve();
			});
	}

	/** How many tasks run now. */
	get size(): number {
		return this.#running;
	}

	/** Resolves when all that runs, and what that starts, has ended. */
	async join(): Promise<void> {
		while (this.#running > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
	}
}
