// When to look: many wakes come in, one look at a time goes out, with a pause between two that keeps their share of the
// processor small, a tick while something is left to do, and a slow one where nothing seems to be. What is looked at is
// not known here.

import type { Background } from "../../shared/background.ts";
import type { Clock, Timer } from "../../shared/clock.ts";

/** What one look came to. */
export interface Look {
	/** Whether to look again at the next tick, even if nobody wakes it. */
	readonly left: boolean;
	/** How long it took to go through everything, waiting left out, in ms. */
	readonly scanMs: number;
}

export interface LooksOptions {
	/** Name of the task in the log. */
	readonly task: string;
	/** Between the end of a look that left something and the next one, in ms; ten times that where it left nothing. */
	readonly tickMs: number;
}

/** Between two looks at least, in ms. */
const PAUSE_MS = 20;
/** Ticks between two looks where nobody wakes them and nothing seems to be left: a wake may have been forgotten. */
const HEARTBEAT_TICKS = 10;
/** Looking through a large journal may take one part in this many of the time. */
const SHARE = 10;

/** Level-triggered: a wake during a look makes one more, as what it saw may be old. */
export class Looks {
	readonly #options: LooksOptions;
	readonly #dependencies: { readonly clock: Clock; readonly background: Background };
	readonly #look: () => Promise<Look>;
	/** The look under way. */
	#looking: Promise<void> | null = null;
	#again = false;
	/** Set until the pause after the last look is over, then until the tick. */
	#timer: { readonly timer: Timer; readonly isTick: boolean } | null = null;
	/** No earlier, in ms of the monotonic reading. */
	#notBefore = 0;
	#stopped = false;

	constructor(
		options: LooksOptions,
		dependencies: { readonly clock: Clock; readonly background: Background },
		look: () => Promise<Look>,
	) {
		this.#options = options;
		this.#dependencies = dependencies;
		this.#look = look;
	}

	/** Look soon. */
	wake(): void {
		if (this.#stopped) return;
		if (this.#looking !== null) {
			this.#again = true;
			return;
		}
		if (this.#timer?.isTick === false) return;
		const { clock } = this.#dependencies;
		const restMs = this.#notBefore - clock.monotonic();
		if (restMs <= 0) this.#begin();
		else this.#after(restMs, false);
	}

	/** No more looks; resolves when the one under way has ended. */
	async stop(): Promise<void> {
		this.#stopped = true;
		this.#timer?.timer.cancel();
		this.#timer = null;
		await this.#looking;
	}

	#after(ms: number, isTick: boolean): void {
		this.#timer?.timer.cancel();
		const timer = this.#dependencies.clock.after(ms, () => {
			this.#timer = null;
			this.#begin();
		});
		this.#timer = { timer, isTick };
	}

	#begin(): void {
		this.#timer?.timer.cancel();
		this.#timer = null;
		const { task } = this.#options;
		this.#looking = new Promise((resolve) => {
			this.#dependencies.background.run(task, () => this.#run().finally(resolve));
		});
	}

	async #run(): Promise<void> {
		// All the wakes of one turn are for this look.
		await Promise.resolve();
		this.#again = false;
		// Where a look fails, the next tick is another try.
		let look: Look = { left: true, scanMs: 0 };
		try {
			if (!this.#stopped) look = await this.#look();
		} finally {
			this.#looking = null;
			this.#notBefore = this.#dependencies.clock.monotonic() + Math.max(PAUSE_MS, SHARE * look.scanMs);
			if (!this.#stopped) {
				if (this.#again) this.wake();
				else this.#after(this.#options.tickMs * (look.left ? 1 : HEARTBEAT_TICKS), true);
			}
		}
	}
}

/** Runs `work` for each of `items`, `concurrency` at a time at most. `work` must not reject. */
export async function inParallel<T>(
	items: Iterable<T>,
	concurrency: number,
	work: (item: T) => Promise<void>,
): Promise<void> {
	const rest = items[Symbol.iterator]();
	const worker = async (): Promise<void> => {
		for (let next = rest.next(); next.done !== true; next = rest.next()) await work(next.value);
	};
	await Promise.all(Array.from({ length: concurrency }, worker));
}
