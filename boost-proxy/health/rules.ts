// All rules of the breaker: when an upstream counts as broken, and for how long. Pure functions: figures.ts counts what they
// judge by, probes.ts finds what only asking can show (not ready, a stale head), breaker.ts acts.

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
	/** BREAKER_HOLD_MS: how long it is not probed after opening, the backoff; doubles with each relapse. */
	readonly firstBackoffMs: number;
	readonly maxBackoffMs: number;
	/** What the first of two upstreams gets of a submission's time. Reads too must not be unanswered for longer. */
	readonly attemptTimeoutMs: number;
}

/** Requests in flight, and how long none of them was answered. */
export interface Unanswered {
	readonly count: number;
	/** Since the last answer or since the oldest of them was sent, whichever was later; 0 if none is in flight. */
	readonly silentMs: number;
}

/** How often something was met. */
export interface Met {
	readonly count: number;
	/** Whether clients of two networks met it, so that no single client can have caused it. */
	readonly isShared: boolean;
}

/** The figures of one upstream since its breaker last changed its state. */
export interface HealthFigures {
	/** Counted faults in a row. */
	readonly faults: Readonly<Record<AttemptKind, Met>>;
	/** Different senders that got −32603 within {@link STORM_MS}; 0 once more good answers have come than they are. */
	readonly storm: Met;
	readonly all: Unanswered;
	readonly submissions: Unanswered;
	/** Whether the submissions in flight are of clients of two networks. */
	readonly submissionsAreShared: boolean;
	/** Moving average of what answers to submissions took, in ms. */
	readonly submissionMs: number;
}

/** The input of the rules. */
export interface RuleInput {
	readonly settings: HealthSettings;
	readonly figures: HealthFigures;
	/** It closed so recently that opening is a relapse. */
	readonly isProbation: boolean;
	/** Whether an available upstream can take the requests that this one does not answer. */
	readonly hasAlternative: boolean;
	/** Whether it has answered before; else it may still be starting, or be set wrong. */
	readonly isProven: boolean;
}

/** What a rule says of an upstream. If it is not shared, boost's own check decides: one client may be the cause. */
export interface Suspicion {
	readonly reason: TripReason;
	/** See {@link Met.isShared}. */
	readonly isShared: boolean;
}

/** An attempt that ended. */
export interface EndedAttempt {
	readonly kind: AttemptKind;
	/** The network of the client whose request it was; null: boost's own. */
	readonly client: string | null;
	readonly tookMs: number;
	/** Whether no attempt at all was answered since this one was sent. */
	readonly noneAnswered: boolean;
}

/** The window in which the senders of a storm are counted, in ms. */
export const STORM_MS = 10_000;
/** Soon after closing, so many senders are a storm if BREAKER_STORM is larger. */
const RELAPSE_STORM_SENDERS = 2;
/** Fewer requests than this in flight may be unanswered by chance. */
const MANY_REQUESTS = 16;
/** Soon after closing, so many submissions are enough. */
const RELAPSE_SUBMISSIONS = 4;
/** Time without answers after which new requests wait, so that few are sent to an upstream that may be dead. */
const SUSPECT_MS = 50;
/** Time without any answer after which the probe decides, since reads alone may be slow. */
const PROBE_SILENCE_MS = 250;
/** Time without an answer to submissions after which it opens: a working upstream answers one of so many sooner. */
const STALL_MS = 400;
/** A busy upstream may be silent for so many times what its recent answers to submissions took. */
const BUSY_FACTOR = 4;
/** Random part of the backoff, so that many breakers do not close at the same time. */
const JITTER = 0.2;
/** In so many ms a balancer leaves out a relay that is not ready (docs/deploy/haproxy.cfg: two checks, 500 ms apart). */
const BALANCER_MS = 1_000;
/** How long our relay may fail its probes where nobody else could take its requests, in ms: a new core takes seconds. */
const ALONE_MS = 5_000;
/** A doubtful relay is probed again after this time, in ms. */
const DOUBTED_AGAIN_MS = 500;
/** A third party may rate-limit boost: while closed it is probed so many times less often than the relay. */
const FALLBACK_PROBE_FACTOR = 5;
/** Avoids overflow: 2 ** 20 times any backoff is beyond every maximum. */
const MAX_DOUBLINGS = 20;

/** Whether an attempt's `outcome` counts as a fault of the upstream. */
export function countsAsFault(
	outcome: Attempted["outcome"],
	{ kind, tookMs }: Pick<EndedAttempt, "kind" | "tookMs">,
	{ upstream, attemptTimeoutMs }: HealthSettings,
): outcome is Fault {
	switch (outcome) {
		case "answered":
		// Aborted by boost or its client, which says nothing about the upstream.
		case "aborted":
		// Counted by the rule for storms.
		case "internal":
		// Concerns only the size of that request or its answer.
		case "tooLarge":
			return false;
		case "limited":
			// Our relay's pool is full: it works nevertheless.
			return upstream === "fallback";
		case "timeout":
			// Reads may be slow. What got less than half of its usual time was ended by its request's own budget.
			return kind === "submission" && tookMs >= attemptTimeoutMs / 2;
		default:
			return true;
	}
}

/** What an attempt's `outcome`, already counted in the figures, says of the upstream; null: nothing. */
export function suspicionOf(
	outcome: Attempted["outcome"],
	seen: EndedAttempt,
	health: RuleInput,
): Suspicion | null {
	const { figures, settings, isProbation } = health;
	const { storm } = figures;
	if (outcome === "internal") return isStorm(health) ? { reason: "storm", isShared: storm.isShared } : null;
	if (!countsAsFault(outcome, seen, settings)) return null;
	// Not a byte of the client's was sent.
	if (outcome === "refused") return { reason: outcome, isShared: true };
	const { count, isShared } = figures.faults[seen.kind];
	if (outcome === "timeout" && seen.noneAnswered) return { reason: "silence", isShared };
	if (isProbation || outcome === "loop") return { reason: outcome, isShared };
	return count >= settings.faults ? { reason: "faults", isShared } : null;
}

function isStorm({ figures, settings: { upstream, storm }, isProbation }: RuleInput): boolean {
	if (upstream === "fallback") return false;
	return figures.storm.count >= (isProbation ? Math.min(storm, RELAPSE_STORM_SENDERS) : storm);
}

/**
 * What a new request must wait for, since it would only hang like the others: a probe, or an answer to a submission. Null if
 * it may be sent at once.
 */
export function mustWaitFor(kind: AttemptKind, health: RuleInput): "probe" | "answer" | null {
	const { all, submissions } = health.figures;
	const limitMs = enoughRequestsToSuspect(health) ? SUSPECT_MS : health.settings.attemptTimeoutMs;
	if (all.silentMs >= limitMs) return "probe";
	if (kind !== "submission" || !enoughSubmissionsToDivert(health)) return null;
	return submissions.silentMs >= SUSPECT_MS ? "answer" : null;
}

/** Whether the requests in flight are unanswered for so long that a probe must decide. */
export function wantsProbe(health: RuleInput): boolean {
	const { count, silentMs } = health.figures.all;
	const { attemptTimeoutMs } = health.settings;
	const suspectMs = Math.min(PROBE_SILENCE_MS, attemptTimeoutMs);
	return count > 0 && silentMs >= (enoughRequestsToSuspect(health) ? suspectMs : attemptTimeoutMs);
}

/**
 * Whether submissions are stalled, whatever the probe says: the breaker opens at once and they go to the other upstream. Slow
 * answers alone are no stall: each ends the silence, and the slower they are, the longer a silence is allowed.
 */
export function isStalled(health: RuleInput): boolean {
	const { submissions, submissionMs } = health.figures;
	const limitMs = Math.min(health.settings.attemptTimeoutMs, Math.max(STALL_MS, BUSY_FACTOR * submissionMs));
	return enoughSubmissionsToDivert(health) && submissions.silentMs >= limitMs;
}

/**
 * Whether the probe also submits what is no transaction, to get it rejected: while the breaker is open, since it closes by
 * probes alone, while submissions in flight get no answer, since submissions may hang while reads work, and where only one client
 * has met a fault.
 */
export function mustProbeSubmission(
	{ submissions }: Pick<HealthFigures, "submissions">,
	{ isUnavailable, isSuspected }: { readonly isUnavailable: boolean; readonly isSuspected: boolean },
): boolean {
	return isUnavailable || isSuspected || submissions.silentMs >= STALL_MS;
}

/** Whether so many requests are in flight that a short silence is suspicious. */
function enoughRequestsToSuspect({ figures, isProbation }: RuleInput): boolean {
	return figures.all.count >= (isProbation ? 1 : MANY_REQUESTS);
}

/** Whether so many submissions are in flight that a silence diverts new ones to the other upstream. */
function enoughSubmissionsToDivert({ figures, isProbation, hasAlternative }: RuleInput): boolean {
	return hasAlternative && figures.submissions.count >= (isProbation ? RELAPSE_SUBMISSIONS : MANY_REQUESTS);
}

/** What follows from a probe of a closed breaker: the reason to open it, `doubt` to probe again, or null. */
export function reasonOfProbe(
	outcome: ProbeOutcome,
	probe: {
		readonly tookMs: number;
		/** While it ran. */
		readonly otherRequestWasAnswered: boolean;
		/** Since the first of the doubtful probes before it, in ms; null: the previous one was not doubtful. */
		readonly doubtedMs: number | null;
		/** Whether they wait for an answer, or have got none for long. */
		readonly requestsAreSilent: boolean;
		/** Whether requests have met what opens the breaker if a probe fails, too. */
		readonly requestsFail: boolean;
		/** See {@link isAlone}. */
		readonly isAlone: boolean;
	},
	{ upstream, probeTimeoutMs }: HealthSettings,
): TripReason | "doubt" | null {
	if (outcome === "ok") return null;
	const unlessOver = (ms: number) => ((probe.doubtedMs ?? 0) >= ms ? outcome : "doubt");
	if (probe.isAlone && outcome !== "loop") return unlessOver(ALONE_MS);
	// It answers and says so itself: of several behind a balancer it may be the one that drains, and still serves.
	if (outcome === "notReady" && upstream === "relay" && !probe.requestsFail) return unlessOver(BALANCER_MS);
	if (outcome !== "timeout" && outcome !== "node") return outcome;
	// A third party is far away, and if our own event loop was blocked the time-out proves nothing.
	const isDoubtful =
		upstream === "fallback" || probe.otherRequestWasAnswered || probe.tookMs > 1.5 * probeTimeoutMs;
	if (isDoubtful && probe.doubtedMs === null) return "doubt";
	if (outcome === "node") return outcome;
	return probe.requestsAreSilent ? "silence" : "timeout";
}

/** The time from a doubtful probe to the next one, in ms. */
export function doubtfulProbeMs(outcome: ProbeOutcome, health: RuleInput): number {
	const isPatient = outcome === "notReady" || isAlone(health);
	return isPatient ? Math.min(DOUBTED_AGAIN_MS, health.settings.probeIntervalMs) : 0;
}

/**
 * Whether it is our relay, which has worked, and nobody else could take its requests now. To refuse what it may accept would help
 * nobody: only a long failure of boost's own check opens it then, and one success closes it.
 */
export function isAlone({ settings: { upstream }, hasAlternative, isProven }: RuleInput): boolean {
	return upstream === "relay" && isProven && !hasAlternative;
}

/** From the start of one successful probe of a closed breaker to that of the next, in ms. */
export function closedProbeIntervalMs({ upstream, probeIntervalMs }: HealthSettings): number {
	return upstream === "fallback" ? probeIntervalMs * FALLBACK_PROBE_FACTOR : probeIntervalMs;
}

/**
 * How long it is not probed, in ms, after `relapses` in a row. `isProven`: it has answered before; else it may still be
 * starting. `random`: from 0 up to 1. One that is up and says that it is not ready also says when it is.
 */
export function backoffMs(
	{
		isProven,
		relapses,
		reason,
		isAlone,
	}: {
		readonly isProven: boolean;
		readonly relapses: number;
		readonly reason: TripReason;
		readonly isAlone: boolean;
	},
	{ firstBackoffMs, maxBackoffMs, probeIntervalMs }: HealthSettings,
	random: number,
): number {
	if (!isProven || isAlone || (reason === "notReady" && relapses === 0)) return probeIntervalMs;
	const jitter = 1 - JITTER + 2 * JITTER * random;
	const doubled = Math.min(maxBackoffMs, firstBackoffMs * 2 ** Math.min(relapses, MAX_DOUBLINGS));
	return Math.min(maxBackoffMs, doubled * jitter);
}

/**
 * How long after closing an opening is a relapse, in ms: twice the last backoff or twice a recovery (the probes that close it),
 * whichever is longer.
 */
export function probationMs(lastBackoffMs: number, settings: HealthSettings): number {
	return 2 * Math.max(lastBackoffMs, settings.probeSuccesses * settings.probeIntervalMs);
}
