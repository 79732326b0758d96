// Figures of the process itself for the charts: its memory, and the lateness of its timers.

import type { Clock, Timer } from "./clock.ts";
import type { Figure } from "./history.ts";
import type { Component } from "./lifecycle.ts";
import { Metrics } from "./metrics.ts";

/** How often a timer is checked, in ms. An idle process shows it if that is more often. */
const CHECK_MS = 1_000;
const MEBIBYTE = 1_048_576;

/**
 * Measures the event loop's delay as an event finds it that arrives at any time: how late a timer
 * fires. Node's own monitor can be read by one reader only, which is Prometheus.
 */
export class ProcessFigures implements Component {
	readonly name = "process figures";
	readonly #clock: Clock;
	readonly #metrics = new Metrics();
	readonly #delay = this.#metrics.histogram("delay", "Delay of timers", [{}]);
	#timer: Timer | undefined;

	constructor({ clock }: { readonly clock: Clock }) {
		this.#clock = clock;
	}

	/** Memory in MiB, delays in ms. */
	readonly figures: Readonly<Record<string, Figure>> = {
		memory: { kind: "level", read: () => process.memoryUsage.rss() / MEBIBYTE },
		delay: {
			...{ kind: "times", quantiles: [0.5, 0.99], scale: 1_000 },
			read: () => this.#metrics.buckets("delay"),
		},
	};

	async start(): Promise<void> {
		const due = this.#clock.monotonic() + CHECK_MS;
		this.#timer = this.#clock.after(CHECK_MS, () => {
			this.#delay({}, Math.max(0, this.#clock.monotonic() - due) / 1_000);
			void this.start();
		});
	}

	async stop(): Promise<void> {
		this.#timer?.cancel();
	}
}
