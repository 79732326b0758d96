// A lane for reads of one kind: work comes in, and is begun as soon as fewer than so many are under way. Without it a
// few slow reads of one client would take every connection to the node, and submissions would wait behind them.

import type { Clock } from "../../shared/clock.ts";
import { UpstreamError } from "../../shared/jsonrpc/client.ts";

/** Somebody who waits. */
interface Waiter {
	readonly begin: () => void;
}

/** Lets `atOnce` run; who comes later waits in turn. How many may wait is up to the caller. */
export class ReadLane {
	readonly #atOnce: number;
	readonly #clock: Clock;
	#running = 0;
	/** In the order in which they came. */
	readonly #waiting = new Set<Waiter>();

	constructor(options: { readonly atOnce: number }, dependencies: { readonly clock: Clock }) {
		this.#atOnce = options.atOnce;
		this.#clock = dependencies.clock;
	}

	/**
	 * Runs `work` in its turn, with what is left of `timeoutMs` then. Throws UpstreamError `timeout` when the turn did
	 * not come in time, and whatever `work` throws.
	 */
	async run<T>(timeoutMs: number, work: (leftMs: number) => Promise<T>): Promise<T> {
		const until = this.#clock.monotonic() + timeoutMs;
		if (this.#running < this.#atOnce) this.#running += 1;
		else await this.#turn(timeoutMs);
		try {
			return await work(Math.max(1, until - this.#clock.monotonic()));
		} finally {
			this.#leave();
		}
	}

	/** Resolves when one who ran has left its place to this one. */
	#turn(timeoutMs: number): Promise<void> {
		return new Promise((resolve, reject) => {
			const waiter: Waiter = {
				begin() {
					timer.cancel();
					resolve();
				},
			};
			const timer = this.#clock.after(timeoutMs, () => {
				if (this.#waiting.delete(waiter)) reject(new UpstreamError("timeout"));
			});
			this.#waiting.add(waiter);
		});
	}

	#leave(): void {
		const [next] = this.#waiting;
		if (next === undefined) {
			this.#running -= 1;
			return;
		}
		this.#waiting.delete(next);
		next.begin();
	}
}
