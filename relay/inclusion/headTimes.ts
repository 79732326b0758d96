// The arrival times of heads, the age of the last one, and the difference between this machine's
// clock and the chain's. Ages count from the arrival on the monotonic clock. So a wrong clock does
// not make a healthy chain look stale.

import type { Clock } from "../../shared/clock.ts";
import type { SlotLength } from "../../shared/ethereum/slots.ts";
import type { Logger } from "../../shared/log.ts";

export interface HeadTimesDependencies {
	readonly clock: Clock;
	readonly log: Logger;
}

interface Arrival {
	/** Monotonic, in ms. */
	readonly at: number;
	/** This machine's time at the arrival minus the head's timestamp, in ms. */
	readonly wallAgeMs: number;
	/** The head's timestamp minus the monotonic time, in ms: it grows while the node catches up. */
	readonly leadMs: number;
}

/** Remembered arrivals: those of this many slots, and at most this many. */
const KEPT_SLOTS = 10;
const KEPT = 64;
/**
 * The node is catching up if its chain time gains more than this many slots and ms on the real
 * time.
 */
const GAIN_SLOTS = 5;
const GAIN_MS = 60_000;
/**
 * Number of arrivals from which the earliest counts for the difference, since a block may be late.
 */
const COMPARED = 5;
/**
 * A block is never ahead of a correct clock. It arrives within this many ms of its time, or within
 * this part of a slot. Under EIP-7732, payloads come up to three quarters of a slot late.
 */
const EARLY_MS = 2_000;
const LATE_MS = 5_000;
const LATE_SLOTS = 0.8;
/**
 * A difference is logged again if it has changed by this part, and by more than {@link LATE_MS}.
 */
const CHANGED = 0.5;

export class HeadTimes {
	readonly #slot: SlotLength;
	readonly #clock: Clock;
	readonly #log: Logger;
	/** Oldest first. */
	#arrivals: readonly Arrival[] = [];
	/** Whether only one head has come since the start; its real arrival at the node is unknown. */
	#isFirst = true;
	#differenceMs = 0;

	constructor(options: { readonly slot: SlotLength }, dependencies: HeadTimesDependencies) {
		this.#slot = options.slot;
		this.#clock = dependencies.clock;
		this.#log = dependencies.log;
	}

	/** A new head arrived; `timestamp` in seconds since the epoch. */
	arrived(timestamp: number): void {
		const at = this.#clock.monotonic();
		const [first] = this.#arrivals;
		const wallAgeMs = this.#clock.now() - timestamp * 1000;
		const recent = this.#arrivals.filter((one) => at - one.at <= KEPT_SLOTS * this.#slot.ms).slice(1 - KEPT);
		this.#isFirst = first === undefined;
		this.#arrivals = [...recent, { at, wallAgeMs, leadMs: timestamp * 1000 - at }];
		this.#compare();
	}

	/**
	 * Age of the last head in ms; Infinity before the first one. It counts from the head's arrival.
	 * The age at the arrival, by the head's timestamp, is added in two cases. One is the first
	 * head, since a node that stopped long ago shows an old head. The other is a node that catches
	 * up.
	 */
	ageMs(): number {
		const last = this.#arrivals.at(-1);
		if (last === undefined) return Infinity;
		const sinceMs = this.#clock.monotonic() - last.at;
		return this.#isFirst || this.#catchesUp(last) ? Math.max(0, last.wallAgeMs) + sinceMs : sinceMs;
	}

	/**
	 * How far this machine's clock is ahead of the chain's, in ms, negative if it is behind; 0 if
	 * they agree within seconds.
	 */
	differenceMs(): number {
		return this.#differenceMs;
	}

	#catchesUp(last: Arrival): boolean {
		const leastMs = Math.min(...this.#arrivals.map(({ leadMs }) => leadMs));
		return last.leadMs - leastMs > Math.max(GAIN_MS, GAIN_SLOTS * this.#slot.ms);
	}

	#compare(): void {
		const last = this.#arrivals.at(-1);
		if (last === undefined) return;
		const ms = last.wallAgeMs < -EARLY_MS ? last.wallAgeMs : this.#aheadMs(last);
		if (ms === null) return;
		const changedMs = Math.abs(ms - this.#differenceMs);
		const isChanged = changedMs > LATE_MS && changedMs > CHANGED * Math.abs(this.#differenceMs);
		const hasEnded = ms === 0 && this.#differenceMs !== 0;
		const hasBegun = ms !== 0 && this.#differenceMs === 0;
		if (!isChanged && !hasEnded && !hasBegun) return;
		this.#differenceMs = ms;
		if (ms === 0) this.#log.info("clock agrees with the chain again");
		else
			this.#log.warn(`this machine's clock is ${ms > 0 ? "ahead of" : "behind"} the chain's`, {
				ms: Math.abs(ms),
			});
	}

	/**
	 * How far the clock is ahead, in ms; 0 if it is not ahead; null if that is not certain yet. One
	 * late block proves nothing, and neither does a node that catches up.
	 */
	#aheadMs(last: Arrival): number | null {
		const leastMs = Math.min(...this.#arrivals.slice(-COMPARED).map(({ wallAgeMs }) => wallAgeMs));
		if (leastMs <= Math.max(LATE_MS, LATE_SLOTS * this.#slot.ms)) return 0;
		return this.#arrivals.length < 3 || this.#catchesUp(last) ? null : leastMs;
	}
}
