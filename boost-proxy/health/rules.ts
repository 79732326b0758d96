// All rules of the breaker: when an upstream counts as broken, and for how long. Pure functions.
// figures.ts counts their input, probes.ts detects states that only a probe can show (not ready, a
// stale head), and breaker.ts acts.

import type { Attempted, ProbeOutcome, TripReason } from "../domain/ports.ts";
import type { Fault, UpstreamName } from "../domain/request.ts";

export type AttemptKind = "read" | "submission";

/** All times in ms. */
export interface HealthSettings {
	readonly upstream: UpstreamName;
	/**
	 * BREAKER_FAULTS: the number of counted faults in a row, of submissions or of reads, that opens
	 * it.
	 */
	readonly faults: number;
	/**
	 * BREAKER_STORM: the number of senders that get −32603 from our relay within {@link STORM_MS}.
	 * There is no such rule for third parties.
	 */
	readonly storm: number;
	readonly probeIntervalMs: number;
	/** The probe's own deadline. */
	readonly probeTimeoutMs: number;
	/** The number of successful probes in a row that closes it. */
	readonly probeSuccesses: number;
	/**
	 * BREAKER_HOLD_MS, the backoff: how long it is not probed after opening. It doubles with each
	 * relapse.
	 */
	readonly firstBackoffMs: number;
	readonly maxBackoffMs: number;
	/**
	 * The first of two upstreams gets this part of a submission's time. Reads may not stay unanswered
	 * for longer either.
	 */
	readonly attemptTimeoutMs: number;
}

/** The number of requests in flight, and how long none of them was answered. */
export interface Unanswered {
	readonly count: number;
	/**
	 * Since the last answer or since the oldest of them was sent, whichever was later; 0 if none is
	 * in flight.
	 */
	readonly silentMs: number;
}

/** How often an event occurred. */
export interface Met {
	readonly count: number;
	/** Whether it affected clients of two networks, so that no single client can have caused it. */
	readonly isShared: boolean;
}

/** The figures of one upstream since its breaker last changed its state. */
export interface HealthFigures {
	/** Counted faults in a row. */
	readonly faults: Readonly<Record<AttemptKind, Met>>;
	/**
	 * Different senders that got −32603 within {@link STORM_MS}; 0 once there were more good answers
	 * than senders.
	 */
	readonly storm: Met;
	readonly all: Unanswered;
	readonly submissions: Unanswered;
	/** Whether the submissions in flight belong to clients of two networks. */
	readonly submissionsAreShared: boolean;
	/** Moving average of the time until a submission was answered, in ms. */
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
	/** Whether it has answered before. If not, it may still be starting, or its URL may be wrong. */
	readonly isProven: boolean;
}

/**
 * A suspicion that a rule raises about an upstream. If only one client met it, boost's own check
 * decides, since that client may be the cause.
 */
export interface Suspicion {
	readonly reason: TripReason;
	/** See {@link Met.isShared}. */
	readonly isShared: boolean;
}

/** An attempt that ended. */
export interface EndedAttempt {
	readonly kind: AttemptKind;
	/** The network of the client that made the request; null: boost itself. */
	readonly client: string | null;
	readonly tookMs: number;
	/** Whether no attempt at all was answered since this one was sent. */
	readonly noneAnswered: boolean;
}

/** The window in which the senders of a storm are counted, in ms. */
export const STORM_MS = 10_000;
/** Soon after closing, this many senders are a storm if BREAKER_STORM is larger. */
const RELAPSE_STORM_SENDERS = 2;
/** Fewer requests than this in flight may be unanswered by chance. */
const MANY_REQUESTS = 16;
/** Soon after closing, this many submissions are enough. */
const RELAPSE_SUBMISSIONS = 4;
/**
 * Time without answers after which new requests wait, so that few are sent to an upstream that may
 * be dead.
 */
const SUSPECT_MS = 50;
/** Time without any answer after which the probe decides, since reads alone may be slow. */
const PROBE_SILENCE_MS = 250;
/**
 * Time without an answer to submissions after which it opens: a working upstream answers one of
 * that many sooner.
 */
const STALL_MS = 400;
/** A busy upstream may stay silent for this multiple of its recent time to answer submissions. */
const BUSY_FACTOR = 4;
/** Random part of the backoff, so that many breakers do not close at the same time. */
const JITTER = 0.2;
/**
 * Time after which a balancer leaves out a relay that is not ready, in ms (docs/deploy/haproxy.cfg:
 * two checks, 500 ms apart).
 */
const BALANCER_MS = 1_000;
/**
 * How long our relay may fail its probes if no other upstream could serve its requests, in ms. A
 * new core takes seconds.
 */
const ALONE_MS = 5_000;
/** A doubtful relay is probed again after this time, in ms. */
const DOUBTED_AGAIN_MS = 500;
/**
 * A third party may rate-limit boost. While closed, it is probed less often than the relay, by this
 * factor.
 */
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
		// Aborted by boost or its client, which proves nothing about the upstream.
		case "aborted":
		// Counted by the rule for storms.
		case "internal":
		// Concerns only the size of that request or its answer.
		case "tooLarge":
			return false;
		case "limited":
			// Our relay's pool is full, but it works.
			return upstream === "fallback";
		case "timeout":
			// Reads may be slow. An attempt that got less than half of its usual time was ended by its
			// request's own budget.
			return kind === "submission" && tookMs >= attemptTimeoutMs / 2;
		default:
			return true;
	}
}

/** The suspicion that an attempt's `outcome` raises; null: none. The figures already include it. */
export function suspicionOf(
	outcome: Attempted["outcome"],
	seen: EndedAttempt,
	health: RuleInput,
): Suspicion | null {
	const { figures, settings, isProbation } = health;
	const { storm } = figures;
	if (outcome === "internal") return isStorm(health) ? { reason: "storm", isShared: storm.isShared } : null;
	if (!countsAsFault(outcome, seen, settings)) return null;
	// No byte of the client's request was sent.
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
 * The event that a new request must wait for: a probe, or an answer to a submission. Otherwise it
 * would only hang like the others. Null if it may be sent at once.
 */
export function mustWaitFor(kind: AttemptKind, health: RuleInput): "probe" | "answer" | null {
	const { all, submissions } = health.figures;
	const limitMs = enoughRequestsToSuspect(health) ? SUSPECT_MS : health.settings.attemptTimeoutMs;
	if (all.silentMs >= limitMs) return "probe";
	if (kind !== "submission" || !enoughSubmissionsToDivert(health)) return null;
	return submissions.silentMs >= SUSPECT_MS ? "answer" : null;
}

/** Whether the requests in flight have been unanswered for so long that a probe must decide. */
export function wantsProbe(health: RuleInput): boolean {
	const { count, silentMs } = health.figures.all;
	const { attemptTimeoutMs } = health.settings;
	const suspectMs = Math.min(PROBE_SILENCE_MS, attemptTimeoutMs);
	return count > 0 && silentMs >= (enoughRequestsToSuspect(health) ? suspectMs : attemptTimeoutMs);
}

/**
 * Whether submissions are stalled, regardless of the probe. The breaker then opens at once and
 * submissions go to the other upstream. Slow answers alone are no stall. Each answer ends the
 * silence, and slower answers allow a longer silence.
 */
export function isStalled(health: RuleInput): boolean {
	const { submissions, submissionMs } = health.figures;
	const limitMs = Math.min(health.settings.attemptTimeoutMs, Math.max(STALL_MS, BUSY_FACTOR * submissionMs));
	return enoughSubmissionsToDivert(health) && submissions.silentMs >= limitMs;
}

/**
 * Whether the probe also submits an invalid transaction, to get it rejected. It does so while the
 * breaker is open, since only probes close it. It does so while submissions in flight get no
 * answer, since submissions may hang while reads work. It does so if only one client has met a
 * fault.
 */
export function mustProbeSubmission(
	{ submissions }: Pick<HealthFigures, "submissions">,
	{ isUnavailable, isSuspected }: { readonly isUnavailable: boolean; readonly isSuspected: boolean },
): boolean {
	return isUnavailable || isSuspected || submissions.silentMs >= STALL_MS;
}

/** Whether enough requests are in flight to make a short silence suspicious. */
function enoughRequestsToSuspect({ figures, isProbation }: RuleInput): boolean {
	return figures.all.count >= (isProbation ? 1 : MANY_REQUESTS);
}

/**
 * Whether enough submissions are in flight for a silence to divert new ones to the other upstream.
 */
function enoughSubmissionsToDivert({ figures, isProbation, hasAlternative }: RuleInput): boolean {
	return hasAlternative && figures.submissions.count >= (isProbation ? RELAPSE_SUBMISSIONS : MANY_REQUESTS);
}

/**
 * The result of a probe of a closed breaker: the reason to open it, `doubt` to probe again, or
 * null.
 */
export function reasonOfProbe(
	outcome: ProbeOutcome,
	probe: {
		readonly tookMs: number;
		/** Whether another request was answered while the probe ran. */
		readonly otherRequestWasAnswered: boolean;
		/**
		 * Time since the first of the doubtful probes before it, in ms; null: the previous one was not
		 * doubtful.
		 */
		readonly doubtedMs: number | null;
		/** Whether requests wait for an answer, or have been unanswered for long. */
		readonly requestsAreSilent: boolean;
		/** Whether requests have met a fault that opens the breaker if a probe fails, too. */
		readonly requestsFail: boolean;
		/** See {@link isAlone}. */
		readonly isAlone: boolean;
	},
	{ upstream, probeTimeoutMs }: HealthSettings,
): TripReason | "doubt" | null {
	if (outcome === "ok") return null;
	const unlessOver = (ms: number) => ((probe.doubtedMs ?? 0) >= ms ? outcome : "doubt");
	if (probe.isAlone && outcome !== "loop") return unlessOver(ALONE_MS);
	// It answers that it is not ready. Behind a balancer, it may be a relay that drains and still
	// serves.
	if (outcome === "notReady" && upstream === "relay" && !probe.requestsFail) return unlessOver(BALANCER_MS);
	if (outcome !== "timeout" && outcome !== "node") return outcome;
	// A third party is far away. If our own event loop was blocked, the time-out proves nothing.
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
 * Whether it is our relay, which has worked before, and no other upstream could serve its requests
 * now. Refusing requests that it may accept would help nobody. So only a long failure of boost's
 * own check opens it, and one success closes it.
 */
export function isAlone({ settings: { upstream }, hasAlternative, isProven }: RuleInput): boolean {
	return upstream === "relay" && isProven && !hasAlternative;
}

/** From the start of one successful probe of a closed breaker to that of the next, in ms. */
export function closedProbeIntervalMs({ upstream, probeIntervalMs }: HealthSettings): number {
	return upstream === "fallback" ? probeIntervalMs * FALLBACK_PROBE_FACTOR : probeIntervalMs;
}

/**
 * How long it is not probed, in ms, after `relapses` in a row. `isProven`: it has answered before;
 * otherwise it may still be starting. `random`: from 0 up to 1. An upstream that reports that it is
 * not ready also reports when it is ready again.
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
 * How long after closing an opening is a relapse, in ms. It is twice the last backoff or twice a
 * recovery (the probes that close it), whichever is longer.
 */
export function probationMs(lastBackoffMs: number, settings: HealthSettings): number {
	return 2 * Math.max(lastBackoffMs, settings.probeSuccesses * settings.probeIntervalMs);
}
