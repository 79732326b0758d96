// All rules of the breaker: when an upstream counts as broken, and for how long. Pure functions: figures.ts counts, breaker.ts
// acts.

import type { Attempted, ProbeOutcome, TripReason } from "../domain/ports.ts";
import type { Fault, UpstreamName } from "../domain/request.ts";

export type AttemptKind = "read" | "submission";

/** All times in ms. */
export interface HealthSettings {
	readonly upstream: UpstreamName;
	/** BREAKER_FAULTS: counted faults in a row, of submissions or of reads, that open it. */
	readonly faults: number;
	/** BREAKER_STORM: senders that get −32603 from our relay within {@link STORM_MS}. There is no such rule for third parties. */
	readonly storm: number;
	readonly probeIntervalMs: number;
	/** The probe's own deadline. */
	readonly probeTimeoutMs: number;
	/** Successful probes in a row that close it. */
	readonly probeSuccesses: number;
	/** BREAKER_HOLD_MS: how long it is not probed after opening; doubles with each relapse. */
	readonly holdMs: number;
	readonly holdMaxMs: number;
	/** A submission's share of the time for this upstream. */
	readonly shareMs: number;
}

/** Requests in flight, and how long none of them was answered. */
export interface Unanswered {
	readonly count: number;
	/** Since the last answer, or since the oldest one was sent if that is later; 0 if none is in flight. */
	readonly silentMs: number;
}

/** The figures of one upstream since its breaker last changed its state. */
export interface HealthFigures {
	/** Counted faults in a row. */
	readonly faults: Readonly<Record<AttemptKind, number>>;
	/** Different senders that got −32603 since the storm began; 0 if there is none. */
	readonly stormSenders: number;
	readonly all: Unanswered;
	readonly submissions: Unanswered;
	/** Moving average of what answers to submissions took, in ms. */
	readonly submissionMs: number;
}

/** The input of the rules. */
export interface Health {
	readonly settings: HealthSettings;
	readonly figures: HealthFigures;
	/** It closed so recently that opening is a relapse. */
	readonly isProbation: boolean;
	/** Whether another upstream can take the requests that this one does not answer. */
	readonly canYield: boolean;
}

/** An attempt that ended. */
export interface EndedAttempt {
	readonly kind: AttemptKind;
	readonly tookMs: number;
	/** No answer to any attempt has come since this one was sent. */
	readonly isUnanswered: boolean;
}

/** The window in which the senders of a storm are counted, in ms. */
export const STORM_MS = 10_000;
/** The same soon after closing: so many senders are a storm. */
const RELAPSE_STORM = 2;
/** So many unanswered requests can be a stall; soon after closing, so many submissions. */
const STALLED_REQUESTS = 16;
const RELAPSED_SUBMISSIONS = 4;
/** Time without answers after which new requests wait, so that few are sent to an upstream that may be dead. */
const SUSPECT_MS = 50;
/** Time without any answer after which the probe decides, since reads alone may be slow. */
const PROBE_SILENCE_MS = 250;
/** Time without an answer to submissions after which it opens: a working upstream answers one of so many sooner. */
const STALL_MS = 400;
/** A busy upstream gets this many times what its recent answers took. */
const BUSY_FACTOR = 4;
/** Random part of the backoff, so that many breakers do not close at the same time. */
const JITTER = 0.2;
/** A third party may rate-limit boost: while closed it is probed so many times less often than the relay. */
const FALLBACK_PROBE_PART = 5;
/** Avoids overflow: 2 ** 20 times any backoff is beyond every maximum. */
const MAX_LEVEL = 20;

/** Whether an attempt's `outcome` counts as a fault of the upstream. */
export function isCharged(
	outcome: Attempted["outcome"],
	{ kind, tookMs }: Pick<EndedAttempt, "kind" | "tookMs">,
	{ upstream, shareMs }: HealthSettings,
): outcome is Fault {
	switch (outcome) {
		case "answered":
		case "cut":
		// Counted by the rule for storms.
		case "internal":
		// Concerns only the size of that request or its answer.
		case "tooLarge":
			return false;
		case "limited":
			// From our relay it means a full pool, which concerns one request.
			return upstream === "fallback";
		case "timeout":
			// Reads may be slow. After less than half of a share, it was our own budget that ran out.
			return kind === "submission" && tookMs >= shareMs / 2;
		default:
			return true;
	}
}

/** Why an attempt's `outcome`, already counted in the figures, opens the breaker; null if it does not. */
export function reasonOfAttempt(
	outcome: Attempted["outcome"],
	seen: EndedAttempt,
	health: Health,
): TripReason | null {
	const { figures, settings, isProbation } = health;
	if (outcome === "internal") return isStorm(health) ? "storm" : null;
	if (!isCharged(outcome, seen, settings)) return null;
	if (outcome === "refused") return outcome;
	if (outcome === "timeout" && seen.isUnanswered) return "silence";
	if (isProbation) return outcome;
	return figures.faults[seen.kind] >= settings.faults ? "faults" : null;
}

function isStorm({ figures, settings: { upstream, storm }, isProbation }: Health): boolean {
	if (upstream === "fallback") return false;
	return figures.stormSenders >= (isProbation ? Math.min(storm, RELAPSE_STORM) : storm);
}

/**
 * What a new request must wait for, since it would only hang like the others: a probe, or an answer to a submission. Null if
 * it may be sent at once.
 */
export function awaits(kind: AttemptKind, health: Health): "probe" | "answer" | null {
	const { all, submissions } = health.figures;
	if (all.silentMs >= (areMany(health) ? SUSPECT_MS : health.settings.shareMs)) return "probe";
	const isStuck = kind === "submission" && areTooMany(health) && submissions.silentMs >= SUSPECT_MS;
	return isStuck ? "answer" : null;
}

/** Whether the requests in flight are unanswered for so long that a probe must decide. */
export function wantsProbe(health: Health): boolean {
	const { count, silentMs } = health.figures.all;
	const { shareMs } = health.settings;
	return count > 0 && silentMs >= (areMany(health) ? Math.min(PROBE_SILENCE_MS, shareMs) : shareMs);
}

/**
 * Whether submissions are stalled, whatever the probe says: the breaker opens at once and they go to the other upstream. An
 * upstream that answers each slowly is not stalled, since any answer restarts the time, which grows with its recent answers.
 */
export function isStalled(health: Health): boolean {
	const { submissions, submissionMs } = health.figures;
	const limitMs = Math.min(health.settings.shareMs, Math.max(STALL_MS, BUSY_FACTOR * submissionMs));
	return areTooMany(health) && submissions.silentMs >= limitMs;
}

/**
 * Whether the probe also makes a submission: while the breaker is open, since it closes by probes alone, and while submissions
 * in flight get no answer, since submissions may hang while reads work.
 */
export function asksAsSubmission(
	{ submissions }: Pick<HealthFigures, "submissions">,
	isUnavailable: boolean,
): boolean {
	return isUnavailable || submissions.silentMs >= STALL_MS;
}

function areMany({ figures, isProbation }: Health): boolean {
	return figures.all.count >= (isProbation ? 1 : STALLED_REQUESTS);
}

function areTooMany({ figures, isProbation, canYield }: Health): boolean {
	return canYield && figures.submissions.count >= (isProbation ? RELAPSED_SUBMISSIONS : STALLED_REQUESTS);
}

/** What follows from a probe of a closed breaker: the reason to open it, `doubt` to probe again, or null. */
export function reasonOfProbe(
	outcome: ProbeOutcome,
	probe: {
		readonly tookMs: number;
		/** Whether a request was answered while it ran. */
		readonly wasContradicted: boolean;
		/** Whether the last one was doubtful too. */
		readonly isSecond: boolean;
		/** Whether requests get no answer either. */
		readonly isSilent: boolean;
	},
	{ upstream, probeTimeoutMs }: HealthSettings,
): TripReason | "doubt" | null {
	if (outcome === "ok") return null;
	if (outcome !== "timeout") return outcome;
	// A third party is far away, and if our own event loop was blocked the time-out proves nothing.
	const isDoubtful = upstream === "fallback" || probe.wasContradicted || probe.tookMs > 1.5 * probeTimeoutMs;
	if (isDoubtful && !probe.isSecond) return "doubt";
	return probe.isSilent ? "silence" : "timeout";
}

/** From the start of one successful probe of a closed breaker to that of the next, in ms. */
export function calmIntervalMs({ upstream, probeIntervalMs }: HealthSettings): number {
	return upstream === "fallback" ? probeIntervalMs * FALLBACK_PROBE_PART : probeIntervalMs;
}

/**
 * How long it is not probed, in ms, after `relapses` in a row; null: it has never answered and may still be starting.
 * `random`: from 0 up to 1.
 */
export function backoffMs(relapses: number | null, settings: HealthSettings, random: number): number {
	const { holdMs, holdMaxMs, probeIntervalMs } = settings;
	if (relapses === null) return probeIntervalMs;
	const jitter = 1 - JITTER + 2 * JITTER * random;
	return Math.min(holdMaxMs, Math.min(holdMaxMs, holdMs * 2 ** Math.min(relapses, MAX_LEVEL)) * jitter);
}

/** How long after closing an opening is a relapse, in ms: twice the last backoff, or twice a whole recovery. */
export function probationMs(lastBackoffMs: number, settings: HealthSettings): number {
	return 2 * Math.max(lastBackoffMs, settings.probeSuccesses * settings.probeIntervalMs);
}
