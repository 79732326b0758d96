// Limits how many cells run side by side. On a busy machine a verdict that depends on time is about the machine (late
// probe answers, clients that time out), so such a cell is run again.

import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import { until } from "../support/until.ts";
import type { CellResult } from "./cell.ts";

/** This process has no room for another cell when its timers are so late, in ms, at the median. */
const BUSY_MS = 40;
/** And it was too busy for a cell when a hundredth of them was so late, or one of them so much. Alone: 40 and 100. */
const STARVED_MS = { hundredth: 90, most: 350 };
const NS_PER_MS = 1_000_000;
const RESOLUTION_MS = 10;
/** A cell that has begun shows what it costs after so long. */
const BEGIN_MS = 300;
const PATIENCE_MS = 600_000;
const RUNS = 3;

/** Lets cells in. */
export class CellGate {
	readonly #most: number;
	readonly #delay = watchDelay();
	#running = 0;
	#lastAt = 0;

	/** `most` at a time; one is always let in. */
	constructor(most: number) {
		this.#most = most;
	}

	/**
	 * Runs `cell`, three times at most: it is had again where something went wrong that a busy machine explains, and the
	 * machine was busy. What must hold on any machine is in each result's `lost`, and ends it at once. `wasStarved`: the
	 * machine never had the time, so that what is `timely` says nothing.
	 */
	async run(cell: () => Promise<CellResult>): Promise<CellResult & { readonly wasStarved: boolean }> {
		for (let run = 1; ; run++) {
			await until("there is room for a cell", () => this.#enter(), PATIENCE_MS);
			const delay = watchDelay();
			const result = await cell()
				.catch((thrown: Error) => thrown)
				.finally(() => {
					this.#running -= 1;
				});
			delay.disable();
			const wasStarved =
				delay.percentile(99) > STARVED_MS.hundredth * NS_PER_MS || delay.max > STARVED_MS.most * NS_PER_MS;
			const isDoubtful = result instanceof Error || (result.lost.length === 0 && result.timely.length > 0);
			if (run < RUNS && wasStarved && isDoubtful) continue;
			if (result instanceof Error) throw result;
			return { ...result, wasStarved };
		}
	}

	#enter(): boolean {
		const now = performance.now();
		if (this.#running > 0) {
			if (this.#running >= this.#most || now - this.#lastAt < BEGIN_MS) return false;
			const late = this.#delay.percentile(50) / NS_PER_MS;
			this.#delay.reset();
			if (late > BUSY_MS) return false;
		}
		this.#delay.reset();
		this.#lastAt = now;
		this.#running += 1;
		return true;
	}
}

function watchDelay(): IntervalHistogram {
	const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
	delay.enable();
	return delay;
}
