// The guard of an upstream and what it is told, as ports. Types only.

import type { Fault, UpstreamName } from "./delivery.ts";

/** Cuts attempts off; listeners are called once each. An AbortController's work at a fifth of its cost. */
export interface Cut {
	readonly isCut: boolean;
	/** Calls `listener` once when it is cut, at once where it already is. Answers what takes the listener away. */
	onCut(listener: () => void): () => void;
}

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
	 * `answered`: any answer that is no fault, verdicts too. A fault with its kind. `cut`: nobody's. A read's `timeout`
	 * is never charged, it starts a probe.
	 */
	readonly outcome: "answered" | "cut" | Fault;
	/** Of a submission: its sender, for the storm of −32603. */
	readonly sender?: string;
	/** Boost's own question, no client's: it neither makes a storm nor hides one. */
	readonly own?: boolean;
}

/** The guard of one upstream. */
export interface Breaker {
	readonly upstream: UpstreamName;
	readonly state: BreakerState;
	/** False while it takes requests. Forced-closed ones always take them. */
	readonly isOut: boolean;
	/** Whether submissions alone get no answer: a further one would only wait behind those that hang. */
	readonly isChoked: boolean;
	/** When it might take requests again, in ms from now; for `Retry-After`. */
	readonly retryMs: number;
	/**
	 * Runs `attempt` unless it is out, and counts what it says. While the upstream is silent, newcomers wait here for the
	 * probe's word. `cut` is cut when the breaker opens. Answers null where it takes no requests: nothing was sent.
	 */
	run<T extends Attempted>(kind: "read" | "submission", attempt: (cut: Cut) => Promise<T>): Promise<T | null>;
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

/** Why a probe failed, or null: it would take a transaction. */
export type ProbeWord = "ok" | Exclude<TripReason, "faults" | "storm" | "silence" | "forced" | "probe">;

/** Asks an upstream whether it would take a transaction now. Never rejects, and ends by its own deadline. */
export type Probe = () => Promise<ProbeWord>;
