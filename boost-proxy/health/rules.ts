// When an upstream counts as broken, and for how long: every rule of its breaker. Pure, so that each rule is one row of a
// table in its test; figures.ts counts, breaker.ts acts.

import type { Attempted, ProbeOutcome, TripReason } from "../domain/ports.ts";
import type { Fault, UpstreamName } from "../domain/request.ts";

export type AttemptKind = "read" | "submission";

/** All times in ms. */
export interface HealthSettings {
	readonly upstream: UpstreamName;
	/** BREAKER_FAULTS: charged faults in a row, of submissions or of reads, that open it. */
	readonly faults: number;
	/** BREAKER_STORM: senders that get −32603 within {@link STORM_MS} from our relay; from a third party it is no storm. */
	readonly storm: number;
	readonly probeIntervalMs: number;
	/** The probe's own deadline. */
	readonly probeTimeoutMs: number;
	/** In a row, to close it. */
	readonly probeSuccesses: number;
	/** BREAKER_HOLD_MS: how long it is left alone when it opened; doubles with each relapse. */
	readonly holdMs: number;
	readonly holdMaxMs: number;
	/** A submission's share of the time for this upstream. */
	readonly shareMs: number;
}

/** Requests in flight, and how long the upstream has been silent on them. */
export interface Unanswered {
	readonly count: number;
	/** Since the last answer, or since the oldest one was sent if that is later; 0 where none is under way. */
	readonly silentMs: number;
}

/** What was counted of one upstream since its breaker last changed its state. */
export interface HealthFigures {
	/** Charged faults in a row. */
	readonly faults: Readonly<Record<AttemptKind, number>>;
	/** Different senders that got −32603 since the storm began; 0 where there is none. */
	readonly stormSenders: number;
	readonly all: Unanswered;
	readonly submissions: Unanswered;
	/** What an answer to a submission lately took, as a moving average in ms. */
	readonly submissionMs: number;
}

/** All that the rules judge by. */
export interface Health {
	readonly settings: HealthSettings;
	readonly figures: HealthFigures;
	/** It was closed so lately that an opening is a relapse. */
	readonly isProbation: boolean;
	/** Whether another upstream would take what this one does not answer. */
	readonly canYield: boolean;
}

/** An attempt that ended. */
export interface Seen {
	readonly kind: AttemptKind;
	readonly tookMs: number;
	/** No answer at all has come since the oldest of them was sent. */
	readonly isUnheard: boolean;
}

/** The window in which the senders of a storm are counted, in ms. */
export const STORM_MS = 10_000;
/** Right after it came back, faults of this many senders are a storm. */
const RELAPSE_STORM = 2;
/** This many unanswered requests are too many; right after it came back, this many submissions. */
const STALLED_REQUESTS = 16;
const RELAPSED_SUBMISSIONS = 4;
/** Silence after which new requests wait, so that few are sent to an upstream that may be dead. */
const SUSPECT_MS = 50;
/** Silence of all requests after which the probe is asked, which has the last word: reads may take their time. */
const PROBE_SILENCE_MS = 250;
/** Silence of submissions alone after which it opens: an upstream that is well answers one of so many sooner. */
const STALL_MS = 400;
/** An upstream that is only busy gets this many times what its recent answers took. */
const BUSY_FACTOR = 4;
/** Part by which a backoff is shorter or longer, so that many breakers do not come back at once. */
const JITTER = 0.2;
/** While all is well a third party, which counts what it is asked, is probed so many times less often than the relay. */
const FALLBACK_PROBE_PART = 5;
/** 2 ** 20 times any backoff is beyond every maximum. */
const MAX_LEVEL = 20;

/** Whether an attempt's `outcome` is charged to the upstream. */
export function isCharged(
	outcome: Attempted["outcome"],
	{ kind, tookMs }: Pick<Seen, "kind" | "tookMs">,
	{ upstream, shareMs }: HealthSettings,
): outcome is Fault {
	switch (outcome) {
		case "answered":
		case "cut":
		// The rule for storms counts these.
		case "internal":
		// About that request's size, or its answer's.
		case "tooLarge":
			return false;
		case "limited":
			// Our relay says so of a full pool alone, which is about one request.
			return upstream === "fallback";
		case "timeout":
			// A read may take its time. Given less than half of its share, it was our own budget that ran out.
			return kind === "submission" && tookMs >= shareMs / 2;
		default:
			return true;
	}
}

/** Why an attempt's `outcome`, already counted in the figures, opens the breaker; null where it does not. */
export function reasonOfAttempt(
	outcome: Attempted["outcome"],
	seen: Seen,
	health: Health,
): TripReason | null {
	const { figures, settings, isProbation } = health;
	if (outcome === "internal") return isStorm(health) ? "storm" : null;
	if (!isCharged(outcome, seen, settings)) return null;
	if (outcome === "refused") return outcome;
	if (outcome === "timeout" && seen.isUnheard) return "silence";
	if (isProbation) return outcome;
	return figures.faults[seen.kind] >= settings.faults ? "faults" : null;
}

function isStorm({ figures, settings: { upstream, storm }, isProbation }: Health): boolean {
	if (upstream === "fallback") return false;
	return figures.stormSenders >= (isProbation ? Math.min(storm, RELAPSE_STORM) : storm);
}

/**
 * What one more request waits for before it is sent, since it would only hang behind the others: the probe's word, or the
 * answer to a submission; null where it may go at once.
 */
export function awaits(kind: AttemptKind, health: Health): "probe" | "answer" | null {
	const { all, submissions } = health.figures;
	if (all.silentMs >= (areMany(health) ? SUSPECT_MS : health.settings.shareMs)) return "probe";
	const isStuck = kind === "submission" && areTooMany(health) && submissions.silentMs >= SUSPECT_MS;
	return isStuck ? "answer" : null;
}

/** Whether the silence of all that is in flight wants a probe's word. */
export function wantsProbe(health: Health): boolean {
	const { count, silentMs } = health.figures.all;
	const { shareMs } = health.settings;
	return count > 0 && silentMs >= (areMany(health) ? Math.min(PROBE_SILENCE_MS, shareMs) : shareMs);
}

/**
 * Whether submissions hang, whatever the probe says: it opens at once and what hangs goes to the other upstream. Many that
 * are each answered slowly are no stall, for any answer ends the silence; nor is one that lately needed about as long.
 */
export function isStalled(health: Health): boolean {
	const { submissions, submissionMs } = health.figures;
	const limitMs = Math.min(health.settings.shareMs, Math.max(STALL_MS, BUSY_FACTOR * submissionMs));
	return areTooMany(health) && submissions.silentMs >= limitMs;
}

/**
 * Whether the probe also asks what a submission would find: when the breaker is open, since it closes by its probe alone, and
 * while a submission in flight gets no answer. Few may hang for their whole share otherwise, where all else is well.
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

/** What the probe of a closed breaker comes to: why to open it, `doubt` where it is to be asked again, or null. */
export function reasonOfProbe(
	outcome: ProbeOutcome,
	probe: {
		readonly tookMs: number;
		/** Whether a request was answered while it ran. */
		readonly wasContradicted: boolean;
		/** Whether the last one was in doubt already. */
		readonly isSecond: boolean;
		/** Whether requests get no answer, either. */
		readonly isSilent: boolean;
	},
	{ upstream, probeTimeoutMs }: HealthSettings,
): TripReason | "doubt" | null {
	if (outcome === "ok") return null;
	if (outcome !== "timeout") return outcome;
	// A third party is far away; and if our own event loop was blocked, the time-out proves nothing.
	const isDoubtful = upstream === "fallback" || probe.wasContradicted || probe.tookMs > 1.5 * probeTimeoutMs;
	if (isDoubtful && !probe.isSecond) return "doubt";
	return probe.isSilent ? "silence" : "timeout";
}

/** From the begin of one good probe of a closed breaker to that of the next, in ms. */
export function calmIntervalMs({ upstream, probeIntervalMs }: HealthSettings): number {
	return upstream === "fallback" ? probeIntervalMs * FALLBACK_PROBE_PART : probeIntervalMs;
}

/**
 * How long it is left alone, in ms, after `relapses` in a row; null: it has never answered, and as it is only starting
 * needs no more than the next probe. `random`: from 0 up to 1.
 */
export function backoffMs(relapses: number | null, settings: HealthSettings, random: number): number {
	const { holdMs, holdMaxMs, probeIntervalMs } = settings;
	if (relapses === null) return probeIntervalMs;
	const jitter = 1 - JITTER + 2 * JITTER * random;
	return Math.min(holdMaxMs, Math.min(holdMaxMs, holdMs * 2 ** Math.min(relapses, MAX_LEVEL)) * jitter);
}

/** How long after its closing an opening is a relapse, in ms: twice the last backoff, or twice a whole recovery. */
export function probationMs(lastBackoffMs: number, settings: HealthSettings): number {
	return 2 * Math.max(lastBackoffMs, settings.probeSuccesses * settings.probeIntervalMs);
}
