// Work that nobody awaits: it is counted, its faults are logged, and a stop joins it. Each task has its own deadline. A loop is
// such work again and again: however often it is triggered, one pass runs at a time.

import type { Clock, Timer } from "./clock.ts";
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

/** What one pass came to. */
export interface Pass {
	/** Whether to pass again at the next tick, even if nobody triggers it. */
	readonly left: boolean;
	/** How long it took to go through everything, waiting left out, in ms. */
	readonly scanMs: number;
}

interface LoopOptions {
	/** Name of the task in the log. */
	readonly task: string;
	/** Between the end of a pass that left something and the next one, in ms; ten times that where it left nothing. */
	readonly tickMs: number;
}

interface LoopDependencies {
	readonly clock: Clock;
	readonly background: Background;
}

/** Between two passes at least, in ms. */
const PAUSE_MS = 20;
/** Ticks between two passes where nobody triggers them and nothing seems to be left. */
const HEARTBEAT_TICKS = 10;
/** Looking through a large journal may take one part in this many of the time. */
const SHARE = 10;

/** A trigger during a pass makes one more, as what that saw may be old. */
export class Loop {
	readonly #options: LoopOptions;
	readonly #with: LoopDependencies;
	readonly #pass: () => Promise<Pass>;
	/** The pass under way. */
	#passing: Promise<void> | null = null;
	#again = false;
	/** The next pass, and when it comes, in ms of the monotonic clock. */
	#next: { readonly timer: Timer; readonly at: number } | null = null;
	/** No pass before, in ms of the monotonic clock. */
	#notBefore = 0;
	#stopped = false;

	constructor(options: LoopOptions, dependencies: LoopDependencies, pass: () => Promise<Pass>) {
		this.#options = options;
		this.#with = dependencies;
		this.#pass = pass;
	}

	/** Pass soon. */
	trigger(): void {
		if (this.#passing !== null) this.#again = true;
		else this.#passAt(this.#notBefore);
	}

	/** No more passes; resolves when the one under way has ended. */
	async stop(): Promise<void> {
		this.#stopped = true;
		this.#next?.timer.cancel();
		this.#next = null;
		await this.#passing;
	}

	/** Passes at `at`, or earlier where that is planned already. */
	#passAt(at: number): void {
		const { clock } = this.#with;
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
			this.#with.background.run(this.#options.task, () => this.#run().finally(resolve));
		});
	}

	async #run(): Promise<void> {
		// All the triggers of one turn are for this pass.
		await Promise.resolve();
		this.#again = false;
		// Where a pass fails, the next tick is another try.
		let pass: Pass = { left: true, scanMs: 0 };
		try {
			if (!this.#stopped) pass = await this.#pass();
		} finally {
			this.#passing = null;
			const now = this.#with.clock.monotonic();
			this.#notBefore = now + Math.max(PAUSE_MS, SHARE * pass.scanMs);
			const tickMs = this.#options.tickMs * (pass.left ? 1 : HEARTBEAT_TICKS);
			this.#passAt(this.#again ? this.#notBefore : now + tickMs);
		}
	}
}
