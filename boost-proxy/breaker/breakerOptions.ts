// What a breaker is made of: its settings and what it depends on. Types only.

import type { Clock } from "../../shared/clock.ts";
import type { Logger } from "../../shared/log.ts";
import type { Breaker, Probe, TripReason } from "../domain/breakerPorts.ts";
import type { UpstreamName } from "../domain/delivery.ts";
import type { HeardWord } from "./probe.ts";

/** All times in ms. */
export interface BreakerOptions {
	readonly upstream: UpstreamName;
	/** BREAKER_FAULTS: charged faults in a row that open it. */
	readonly faults: number;
	/** BREAKER_STORM: senders that get −32603 within 10 s; null: never. */
	readonly storm: number | null;
	readonly probeIntervalMs: number;
	/** While it is closed, where that is less often; a third party counts what it is asked. */
	readonly calmIntervalMs?: number;
	/** Whether a probe's time-out is asked again before it counts: a third party is far away. */
	readonly isPatient?: boolean;
	/** The probe's own deadline. */
	readonly probeTimeoutMs: number;
	/** In a row, to close it. */
	readonly probeSuccesses: number;
	/** How long it is left alone when it opened; doubles with each relapse. */
	readonly holdMs: number;
	readonly holdMaxMs: number;
	/** A submission's share of the time for this upstream. */
	readonly shareMs: number;
	/** So many in flight without an answer for {@link silenceMs} start a probe; 16. */
	readonly silentRequests?: number;
	/** 250. */
	readonly silenceMs?: number;
}

export interface BreakerDependencies {
	readonly probe: Probe;
	readonly clock: Clock;
	readonly log: Logger;
	/** From 0 up to 1; for the jitter of the hold. */
	readonly random?: () => number;
	/** Each opening. */
	onTrip?(reason: TripReason): void;
	/** Each probe's word; `probe` where it threw. */
	onProbe?(word: HeardWord): void;
}

/** {@link Breaker} with its life: `start` begins to probe; `stop` ends all timers, joins the probe and takes no more. */
export interface StartedBreaker extends Breaker {
	start(): void;
	stop(): Promise<void>;
}
