// How many cells run side by side: who wants to run comes in, and goes on when the machine has room. On a busy one all
// verdicts would be about the machine: probes that are answered late, clients that time out.

import { monitorEventLoopDelay } from "node:perf_hooks";
import { until } from "../support/until.ts";

/** This process is busy when a timer comes so late, in ms, at the median. */
const BUSY_MS = 45;
const NS_PER_MS = 1_000_000;
const RESOLUTION_MS = 10;
/** A cell that has begun shows what it costs after so long. */
const BEGIN_MS = 300;
const PATIENCE_MS = 600_000;

/** Lets cells in. */
export class CellGate {
	readonly #most: number;
	readonly #delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
	#running = 0;
	#lastAt = 0;

	/** `most` at a time; one is always let in. */
	constructor(most: number) {
		this.#most = most;
		this.#delay.enable();
	}

	async run<T>(cell: () => Promise<T>): Promise<T> {
		await until("there is room for a cell", () => this.#enter(), PATIENCE_MS);
		try {
			return await cell();
		} finally {
			this.#running -= 1;
		}
	}

	#enter(): boolean {
		const now = performance.now();
		if (this.#running > 0) {
			if (this.#running >= this.#most || now - this.#lastAt < BEGIN_MS) return false;
			if (this.#delay.percentile(50) / NS_PER_MS > BUSY_MS) {
				this.#delay.reset();
				return false;
			}
		}
		this.#delay.reset();
		this.#lastAt = now;
		this.#running += 1;
		return true;
	}
}
