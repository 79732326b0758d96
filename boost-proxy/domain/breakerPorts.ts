// The breaker of an upstream as a port, what it is told, and the switch by which it aborts what is in flight.

import { LinkedList } from "../../shared/linkedList.ts";
import type { Fault, UpstreamName } from "./delivery.ts";

export const BREAKER_STATES = ["closed", "open", "half-open"] as const;

export type BreakerState = (typeof BREAKER_STATES)[number];

/** What opened a breaker. */
export type TripReason =
	| Fault
	| "faults"
	| "storm"
	| "silence"
	| "staleHead"
	| "notReady"
	| "probe"
	| "forced";

/** What an attempt says of itself to the breaker. */
export interface Attempted {
	/**
	 * `answered`: any answer that is no fault, verdicts too. A fault with its kind. `cut`: aborted, nobody's. A read's `timeout`
	 * is never charged, it starts a probe.
	 */
	readonly outcome: "answered" | "cut" | Fault;
	/** Of a submission: its sender, for the storm of −32603. */
	readonly sender?: string;
}

/** The guard of one upstream. */
export interface Breaker {
	readonly upstream: UpstreamName;
	readonly state: BreakerState;
	/** False while it takes requests. Forced-closed ones always take them. */
	readonly isOut: boolean;
	/** When it might take requests again, in ms from now; for `Retry-After`. */
	readonly retryMs: number;
	/**
	 * Runs `attempt` unless it is out, and counts what it says. While the upstream answers nothing, newcomers wait here until
	 * it does or the breaker opens, which aborts what is in flight. Null where it takes no requests: nothing was sent.
	 */
	run<T extends Attempted>(
		kind: "read" | "submission",
		attempt: (abort: Abort) => Promise<T>,
	): Promise<T | null>;
	/** Tells of a fault or an answer seen elsewhere (pass-through). */
	note(attempted: Attempted): void;
	/** Each change of state, and of `isOut`. */
	onChange(listener: () => void): void;
	status(): BreakerStatus;
	/** Until `null` (auto) its state is this one. */
	force(state: "open" | "closed" | null): void;
}

/** A row of `/status`. */
export interface BreakerStatus {
	readonly state: BreakerState;
	readonly reason: TripReason | null;
	/** ISO 8601: since when it has been in this state. */
	readonly since: string;
	/** ISO 8601, or null where none is due. */
	readonly nextProbeAt: string | null;
	readonly inFlight: number;
	/** 0 where none is. */
	readonly oldestInFlightMs: number;
}

/** Why a probe failed, or `ok`: it would take a transaction. */
export type ProbeResult = "ok" | Exclude<TripReason, "faults" | "storm" | "silence" | "forced" | "probe">;

/** What a probe came to; `probe`: it threw, which none may. */
export type ProbeOutcome = ProbeResult | "probe";

/**
 * Asks an upstream whether it would take a transaction now. `thorough`: as a submission would find it, too, since a breaker
 * that is out closes by this alone. Never rejects, and ends by its own deadline.
 */
export type Probe = (thorough: boolean) => Promise<ProbeResult>;

/** Tells attempts to end. */
export interface Abort {
	readonly isAborted: boolean;
	/** Calls `listener` once when it is aborted, at once where it already is. Returns an unsubscribe function. */
	onAbort(listener: () => void): () => void;
}

/** An {@link Abort} with the switch. */
export class AbortSwitch implements Abort {
	readonly #listeners = new LinkedList<() => void>();
	#isAborted = false;

	get isAborted(): boolean {
		return this.#isAborted;
	}

	onAbort(listener: () => void): () => void {
		if (this.#isAborted) {
			listener();
			return () => {};
		}
		const place = this.#listeners.add(listener);
		return () => void this.#listeners.remove(place);
	}

	/** Calls every listener once, also where one of them throws: the first fault is thrown when all were called. */
	abort(): void {
		if (this.#isAborted) return;
		this.#isAborted = true;
		const faults: unknown[] = [];
		for (let listener = this.#listeners.shift(); listener !== undefined; listener = this.#listeners.shift()) {
			try {
				listener();
			} catch (thrown) {
				faults.push(thrown);
			}
		}
		if (faults.length > 0) throw faults[0];
	}
}
