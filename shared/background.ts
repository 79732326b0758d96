// Background tasks: counted, their errors logged, and awaited at a stop. A loop is a background
// task that repeats. However often it is triggered, it runs one pass at a time. Deadlines are the
// tasks' own responsibility.

import type { Clock, Timer } from "./clock.ts";
import { type Logger, safeError } from "./log.ts";

/** Runs named tasks in the background. */
export class Background {
	#running = 0;
	#idle: (() => void)[] = [];
	readonly #log: Logger;
	readonly #onFault: (task: string) => void;

	constructor(options: { onFault?: (task: string) => void }, dependencies: { log: Logger }) {
		this.#log = dependencies.log;
		this.#onFault = options.onFault ?? (() => {});
	}

	/** Starts `fn` now. */
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

	/** Resolves when all running tasks, and those that they start, have ended. */
	async join(): Promise<void> {
		while (this.#running > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
	}
}

/** The result of one pass. */
export interface Pass {
	/** Whether work is left for the next tick, even without a trigger. */
	readonly left: boolean;
	/** How long the scan itself took, without waiting, in ms. */
	readonly scanMs: number;
}

interface LoopOptions {
	/** Name of the task, for the log. */
	readonly task: string;
	/**
	 * Pause between a pass that left work and the next one, in ms. It is ten times as long if no
	 * work is left.
	 */
	readonly tickMs: number;
}

interface LoopDependencies {
	readonly clock: Clock;
	readonly background: Background;
}

/** Minimum time between two passes. */
const PAUSE_MS = 20;
/** Ticks between two passes if nothing triggers them and no work seems to be left. */
const HEARTBEAT_TICKS = 10;
/** After a scan the loop pauses for at least this many times the scan's duration. */
const SHARE = 10;

/**
 * A loop over `pass`. A trigger during a pass causes one more, since that pass may have read old
 * state.
 */
export class Loop {
	readonly #options: LoopOptions;
	readonly #dependencies: LoopDependencies;
	readonly #pass: () => Promise<Pass>;
	/** The running pass. */
	#passing: Promise<void> | null = null;
	#again = false;
	/** The planned pass; `at` is monotonic time in ms. */
	#next: { readonly timer: Timer; readonly at: number } | null = null;
	/** The earliest time of the next pass: monotonic, in ms. */
	#notBefore = 0;
	#stopped = false;

	constructor(options: LoopOptions, dependencies: LoopDependencies, pass: () => Promise<Pass>) {
		this.#options = options;
		this.#dependencies = dependencies;
		this.#pass = pass;
	}

	/** Runs a pass soon. */
	trigger(): void {
		if (this.#passing !== null) this.#again = true;
		else this.#passAt(this.#notBefore);
	}

	/** Resolves when the running pass has ended; starts no more. */
	async stop(): Promise<void> {
		this.#stopped = true;
		this.#next?.timer.cancel();
		this.#next = null;
		await this.#passing;
	}

	/** Plans a pass at `at`, unless one is planned earlier. */
	#passAt(at: number): void {
		const { clock } = this.#dependencies;
		if (this.#stopped || (this.#next !== null && this.#next.at <= at)) return;
		this.#next?.timer.cancel();
		this.#next = null;
		const leftMs = at - clock.monotonic();
		if (leftMs <= 0) this.#begin();
		else this.#next = { at, timer: clock.after(leftMs, () => this.#begin()) };
	}

	#begin(): void {
		this.#next = null;
		this.#passing = new Promise((resolve) => {
			this.#dependencies.background.run(this.#options.task, () => this.#run().finally(resolve));
		});
	}

	async #run(): Promise<void> {
		// All triggers of this turn of the event loop count for this pass.
		await Promise.resolve();
		this.#again = false;
		// A failed pass is retried at the next tick.
		let pass: Pass = { left: true, scanMs: 0 };
		try {
			if (!this.#stopped) pass = await this.#pass();
		} finally {
			this.#passing = null;
			const now = this.#dependencies.clock.monotonic();
			this.#notBefore = now + Math.max(PAUSE_MS, SHARE * pass.scanMs);
			const tickMs = this.#options.tickMs * (pass.left ? 1 : HEARTBEAT_TICKS);
			this.#passAt(this.#again ? this.#notBefore : Math.max(this.#notBefore, now + tickMs));
		}
	}
}
