// The circuit breaker of one upstream. opossum only stores whether it is open or closed. rules.ts
// decides when it opens, and probes close it. Opening aborts attempts in flight, so that they fail
// over at once.

import CircuitBreaker from "opossum";
import { clientOf } from "../../shared/client.ts";
import { type Clock, DeadlineError, isoTime, type Timer, withDeadline } from "../../shared/clock.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import { AbortSwitch } from "../../shared/outgoing/abort.ts";
import type { Abort } from "../../shared/outgoing/httpClient.ts";
import type {
	Attempted,
	Breaker,
	BreakerState,
	BreakerStatus,
	Probe,
	ProbeOutcome,
	TripReason,
} from "../domain/ports.ts";
import type { UpstreamName } from "../domain/request.ts";
import { Figures, type InFlight } from "./figures.ts";
import { Rounds } from "./rounds.ts";
import {
	type AttemptKind,
	backoffMs,
	closedProbeIntervalMs,
	doubtfulProbeMs,
	type HealthSettings,
	isAlone,
	isStalled,
	mustProbeSubmission,
	mustWaitFor,
	probationMs,
	type RuleInput,
	reasonOfProbe,
	type Suspicion,
	suspicionOf,
	wantsProbe,
} from "./rules.ts";

export interface BreakerDependencies {
	readonly probe: Probe;
	readonly clock: Clock;
	readonly log: Logger;
	/**
	 * The upstream that can serve the requests that hang here, see {@link RuleInput.hasAlternative};
	 * null if there is none.
	 */
	readonly alternative: { readonly isUnavailable: boolean } | null;
	/** From 0 up to 1, for the jitter of the backoff. */
	readonly random?: () => number;
	/** Advice for the operator, derived from the last failure; null if nothing is known. */
	readonly hint?: () => string | null;
	/** The problem that it reported to the last probe; null: none. */
	readonly readiness?: () => string | null;
	/** Called each time it opens. */
	onTrip(reason: TripReason): void;
	/** Called after each probe. */
	onProbe(outcome: ProbeOutcome): void;
}

/** How often stalls are checked for while anything is in flight, in ms. */
const TICK_MS = 50;
/** A probe that runs longer than its own deadline by this factor counts as timed out. */
const OVERDUE = 1.2;
/** Reasons for which the hint has more detail from the last failure. */
const SEEN: ReadonlySet<TripReason | null> = new Set([
	"refused",
	"httpStatus",
	"notJsonRpc",
	"limited",
	"faults",
	"loop",
]);
/** Reasons for which the relay itself has reported more. */
const SAID: ReadonlySet<TripReason | null> = new Set(["node", "notReady"]);
/** The longest delay that a timer accepts, in ms: opossum has no "never". */
const NEVER_MS = 2 ** 31 - 1;

/** Closed from its creation on; probes from {@link UpstreamBreaker.start} on. */
export class UpstreamBreaker implements Breaker {
	readonly upstream: UpstreamName;
	readonly #settings: HealthSettings;
	readonly #dependencies: BreakerDependencies;
	readonly #clock: Clock;
	readonly #opossum: CircuitBreaker;
	readonly #figures: Figures;
	readonly #rounds: Rounds;
	readonly #listeners: (() => void)[] = [];
	/** New attempts that wait for an answer or a change of state. */
	#waiting: (() => void)[] = [];
	#ticking: Timer | undefined;
	#abort = new AbortSwitch();
	#state: BreakerState = "closed";
	#reason: TripReason | null = null;
	#since: number;
	/** The causes logged since it opened: reasons with their hints. */
	#logged = new Set<string>();
	#forced: "open" | "closed" | null = null;
	#isStopped = false;
	/** Successful probes in a row while it is open. */
	#successes = 0;
	/** Faults met by one client alone, and how many of them a later probe has dispelled. */
	#suspicions = 0;
	#dispelled = 0;
	/** The last of them that would have opened it if another client had met the same fault. */
	#suspected = 0;
	/**
	 * The start of the first of the latest doubtful probes while closed, in monotonic ms; null if the
	 * last was not doubtful.
	 */
	#doubtedSince: number | null = null;
	/** Whether it has ever answered: until then one successful probe closes it. */
	#isProven = false;
	/** Openings in a row soon after a closing. */
	#relapses = 0;
	#backoffMs = 0;
	/** Monotonic ms. */
	#probationUntil = Number.NEGATIVE_INFINITY;

	constructor(settings: HealthSettings, dependencies: BreakerDependencies) {
		const { clock, log } = dependencies;
		this.upstream = settings.upstream;
		this.#settings = settings;
		this.#dependencies = dependencies;
		this.#clock = clock;
		this.#since = clock.now();
		this.#figures = new Figures(() => clock.monotonic());
		this.#opossum = createOpossum(settings.upstream);
		this.#rounds = new Rounds(settings.probeIntervalMs, { work: () => this.#probe(), clock, log });
	}

	get state(): BreakerState {
		return this.#state;
	}

	get isUnavailable(): boolean {
		return this.#opossum.opened || this.#opossum.isShutdown;
	}

	get retryMs(): number {
		if (!this.isUnavailable) return 0;
		const { probeIntervalMs, probeSuccesses } = this.#settings;
		const recoveryMs = ((probeSuccesses - this.#successes) * probeIntervalMs) / 2;
		return Math.max(1, Math.ceil((this.#rounds.nextMs ?? 0) + recoveryMs));
	}

	/** Starts probing. */
	start(): void {
		if (this.#isJudging) this.#rounds.plan(0);
	}

	/** Cancels all timers, waits for a running probe and accepts no more attempts. */
	async stop(): Promise<void> {
		this.#isStopped = true;
		this.#ticking?.cancel();
		this.#releaseWaiting();
		await this.#rounds.stop();
		this.#opossum.shutdown();
		this.#releaseWaiting();
	}

	async run<T extends Attempted>(
		kind: AttemptKind,
		client: string | null,
		attempt: (abort: Abort) => Promise<T>,
	): Promise<T | null> {
		const met = kind === "submission" ? this.#suspected : 0;
		while (!this.isUnavailable && (this.#isUnchecked(met) || this.#mustWait(kind))) {
			await new Promise<void>((release) => this.#waiting.push(release));
		}
		if (this.isUnavailable) return null;
		const inFlight = this.#figures.begin(kind, client === null ? null : clientOf(client));
		this.#tick();
		const abort = this.#abort;
		let attempted: T | undefined;
		try {
			attempted = await attempt(abort);
			return attempted;
		} finally {
			inFlight.leave();
			if (attempted !== undefined) this.#judge(attempted, inFlight);
		}
	}

	note(attempted: Attempted): void {
		if (!this.isUnavailable) this.#judge(attempted, this.#figures.seen("read", null));
	}

	onChange(listener: () => void): void {
		this.#listeners.push(listener);
	}

	status(): BreakerStatus {
		const nextMs = this.#isJudging ? this.#rounds.nextMs : null;
		const { all, oldestMs } = this.#figures;
		return {
			state: this.#state,
			reason: this.#reason,
			hint: this.#hint,
			since: isoTime(this.#since),
			nextProbeAt: nextMs === null ? null : isoTime(this.#clock.now() + nextMs),
			inFlight: all.count,
			oldestInFlightMs: Math.round(oldestMs),
		};
	}

	force(state: "open" | "closed" | null): void {
		if (state === this.#forced || this.#isStopped) return;
		this.#forced = state;
		this.#relapses = 0;
		this.#probationUntil = Number.NEGATIVE_INFINITY;
		this.#rounds.plan(state === null ? 0 : null);
		this.#enter(state ?? "closed", state === null ? null : "forced");
		if (state === "open") this.#dependencies.onTrip("forced");
	}

	/** Only for reasons that do not show the details. */
	get #hint(): string | null {
		if (SAID.has(this.#reason)) return this.#dependencies.readiness?.() ?? null;
		return SEEN.has(this.#reason) ? (this.#dependencies.hint?.() ?? null) : null;
	}

	/** Whether attempts and probes may change the state. */
	get #isJudging(): boolean {
		return this.#forced === null && !this.#isStopped;
	}

	get #ruleInput(): RuleInput {
		const isProbation = this.#clock.monotonic() < this.#probationUntil;
		const { alternative } = this.#dependencies;
		const hasAlternative = alternative !== null && !alternative.isUnavailable;
		return {
			settings: this.#settings,
			figures: this.#figures,
			isProbation,
			hasAlternative,
			isProven: this.#isProven,
		};
	}

	#mustWait(kind: AttemptKind): boolean {
		const awaited = this.#isJudging ? mustWaitFor(kind, this.#ruleInput) : null;
		if (awaited === "probe") this.#rounds.soon();
		// The submissions that hang may all belong to one client.
		if (awaited === "answer" && !this.#figures.submissionsAreShared) this.#check();
		return awaited !== null;
	}

	/**
	 * Opens the breaker at once if clients of two networks met the fault, unless it {@link isAlone}
	 * and the fault is no loop. Otherwise it opens only if boost's own check fails, too.
	 */
	#follow({ reason, isShared }: Suspicion): void {
		if (isShared && (reason === "loop" || !isAlone(this.#ruleInput))) this.#trip(reason);
		else {
			this.#check();
			this.#suspected = this.#suspicions;
		}
	}

	/**
	 * Whether a submission waits for the check of suspicion number `met`. If the check fails, another
	 * upstream gets the submission.
	 */
	#isUnchecked(met: number): boolean {
		return met > this.#dispelled && this.#isJudging && this.#ruleInput.hasAlternative;
	}

	/**
	 * Checks the upstream by a probe that starts from now on, since a client's request may have been
	 * the cause.
	 */
	#check(): void {
		this.#suspicions++;
		this.#rounds.soon();
	}

	/** Counts an attempt of the current epoch and opens the breaker if a rule says so. */
	#judge(attempted: Attempted, { kind, client, sentAt, answersBefore, epoch }: InFlight): void {
		const figures = this.#figures;
		const { outcome } = attempted;
		if (epoch !== figures.epoch || !this.#isJudging || outcome === "aborted") return;
		const noneAnswered = answersBefore === figures.answers;
		const seen = { kind, client, tookMs: this.#clock.monotonic() - sentAt, noneAnswered };
		const isAnswer = figures.count(attempted, seen, this.#settings);
		const suspicion = suspicionOf(outcome, seen, this.#ruleInput);
		if (isAnswer) this.#noteAnswer();
		if (suspicion !== null) this.#follow(suspicion);
		else if (outcome !== "answered") this.#check();
	}

	#noteAnswer(): void {
		this.#isProven = true;
		this.#releaseWaiting();
	}

	/** Checks for stalls every {@link TICK_MS} while anything is in flight. */
	#tick(): void {
		if (this.#ticking !== undefined || this.#isStopped) return;
		const dueAt = this.#clock.monotonic() + TICK_MS;
		this.#ticking = this.#clock.after(TICK_MS, () => {
			this.#ticking = undefined;
			this.#figures.excuse(Math.max(0, this.#clock.monotonic() - dueAt));
			if (this.#isJudging && !this.isUnavailable) {
				if (isStalled(this.#ruleInput))
					this.#follow({ reason: "silence", isShared: this.#figures.submissionsAreShared });
				else if (wantsProbe(this.#ruleInput)) this.#rounds.soon();
			}
			// Waiting attempts may proceed now, for example because the other upstream has become
			// unavailable.
			this.#releaseWaiting();
			if (this.#figures.all.count > 0) this.#tick();
		});
	}

	async #probe(): Promise<void> {
		const before = this.#figures.seen("read", null);
		const suspicions = this.#suspicions;
		const isThorough = mustProbeSubmission(this.#figures, {
			isUnavailable: this.isUnavailable,
			isSuspected: suspicions !== this.#dispelled,
		});
		const outcome = await this.#askProbe(isThorough);
		this.#dependencies.onProbe(outcome);
		// A probe from before the last change of state is ignored. The next one is already planned.
		if (before.epoch !== this.#figures.epoch || !this.#isJudging) return;
		if (outcome === "ok") this.#dispelled = suspicions;
		if (this.#state === "closed") this.#probedClosed(outcome, before, isThorough);
		else this.#probedOut(outcome);
	}

	async #askProbe(isThorough: boolean): Promise<ProbeOutcome> {
		const { probe, log } = this.#dependencies;
		const overdueMs = this.#settings.probeTimeoutMs * OVERDUE;
		try {
			return await withDeadline(this.#clock, "probe", overdueMs, () => probe(isThorough));
		} catch (thrown) {
			if (thrown instanceof DeadlineError) return "timeout";
			log.error("probe failed unexpectedly", { fault: safeError(thrown) });
			return "probe";
		}
	}

	/** `before`: the figures when the probe began. */
	#probedClosed(outcome: ProbeOutcome, { answersBefore, sentAt }: InFlight, isThorough: boolean): void {
		const now = this.#clock.monotonic();
		const tookMs = now - sentAt;
		const otherRequestWasAnswered = answersBefore !== this.#figures.answers;
		const requestsAreSilent = this.#waiting.length > 0 || wantsProbe(this.#ruleInput);
		const probe = {
			tookMs,
			otherRequestWasAnswered,
			doubtedMs: this.#doubtedSince === null ? null : now - this.#doubtedSince,
			requestsAreSilent,
			requestsFail: this.#suspected > this.#dispelled,
			isAlone: isAlone(this.#ruleInput),
		};
		const reason = reasonOfProbe(outcome, probe, this.#settings);
		this.#doubtedSince = reason === "doubt" ? (this.#doubtedSince ?? sentAt) : null;
		if (reason === "doubt") this.#rounds.plan(doubtfulProbeMs(outcome, this.#ruleInput));
		else if (reason !== null) this.#trip(reason);
		else {
			// The probe submitted as a client would. That proves nothing if submissions of many clients
			// hang.
			const isOneClients = isThorough && !this.#figures.submissionsAreShared;
			this.#figures.noteAnswer(isOneClients ? "submission" : "read");
			this.#rounds.planNext(closedProbeIntervalMs(this.#settings));
			if (this.#suspicions !== this.#dispelled) this.#rounds.plan(0);
			this.#noteAnswer();
		}
	}

	#probedOut(outcome: ProbeOutcome): void {
		const { probeIntervalMs, probeSuccesses } = this.#settings;
		this.#successes = outcome === "ok" ? this.#successes + 1 : 0;
		// The operator needs the latest cause: the first one may be over.
		const reason = outcome === "ok" ? this.#reason : outcome;
		const isCareful = this.#isProven && !isAlone(this.#ruleInput);
		const isProof = this.#successes >= (isCareful ? probeSuccesses : 1);
		// While open it is probed twice as often, so that it closes soon.
		this.#rounds.planNext(isProof ? probeIntervalMs : probeIntervalMs / 2);
		if (isProof) this.#close();
		else this.#enter(this.#successes === 0 ? "open" : "half-open", reason);
		if (outcome !== "ok") this.#logCause(outcome);
	}

	#trip(reason: TripReason): void {
		const { random = Math.random, log } = this.#dependencies;
		this.#relapses = this.#ruleInput.isProbation ? this.#relapses + 1 : 0;
		this.#probationUntil = Number.NEGATIVE_INFINITY;
		const history = {
			...{ isProven: this.#isProven, relapses: this.#relapses, reason },
			isAlone: isAlone(this.#ruleInput),
		};
		this.#backoffMs = backoffMs(history, this.#settings, random());
		this.#rounds.plan(this.#backoffMs);
		this.#enter("open", reason);
		const hint = this.#hint;
		this.#logged = new Set([`${reason} ${hint}`]);
		log.warn("breaker opened", {
			upstream: this.upstream,
			reason,
			...(hint === null ? {} : { hint }),
			ms: Math.round(this.#backoffMs),
		});
		this.#dependencies.onTrip(reason);
	}

	/** The cause may change while it is open: a starting relay first refuses connections. */
	#logCause(reason: ProbeOutcome & TripReason): void {
		const hint = this.#hint;
		const cause = `${reason} ${hint}`;
		if (this.#logged.has(cause)) return;
		this.#logged.add(cause);
		const { log } = this.#dependencies;
		log.warn("still down", { upstream: this.upstream, reason, ...(hint === null ? {} : { hint }) });
	}

	#close(): void {
		if (this.#isProven)
			this.#probationUntil = this.#clock.monotonic() + probationMs(this.#backoffMs, this.#settings);
		this.#isProven = true;
		this.#dependencies.log.info("breaker closed", { upstream: this.upstream });
		this.#enter("closed", null);
	}

	/** The only place that changes the state. */
	#enter(state: BreakerState, reason: TripReason | null): void {
		if (state === this.#state && reason === this.#reason) return;
		if (state !== this.#state) this.#since = this.#clock.now();
		this.#state = state;
		this.#reason = reason;
		this.#figures.nextEpoch();
		this.#doubtedSince = null;
		this.#dispelled = this.#suspicions;
		if (state !== "half-open") this.#successes = 0;
		if (state === "closed") this.#opossum.close();
		else this.#opossum.open();
		this.#releaseWaiting();
		if (state !== "closed") {
			const abort = this.#abort;
			// Attempts after the next closing use a new switch.
			this.#abort = new AbortSwitch();
			abort.abort();
		}
		for (const listener of this.#listeners) listener();
	}

	/** Lets waiting attempts check again whether they may go on. */
	#releaseWaiting(): void {
		const waiting = this.#waiting;
		this.#waiting = [];
		for (const release of waiting) release();
	}
}

/** An opossum breaker that never changes its state by itself. */
function createOpossum(name: string): CircuitBreaker {
	// Attempts do not pass through it. Nothing reads its figures of them, which take a tenth of
	// boost's own time for a read.
	const opossum = new CircuitBreaker(async () => {}, {
		name,
		// Each attempt has a deadline of its own.
		timeout: false,
		errorThresholdPercentage: 100,
		volumeThreshold: Number.MAX_SAFE_INTEGER,
		rollingPercentilesEnabled: false,
		enableSnapshots: false,
		rollingCountTimeout: 1_000,
		rollingCountBuckets: 1,
		resetTimeout: NEVER_MS,
	});
	// While half-open, any success would close it. NEVER_MS ends after 25 days.
	opossum.on("halfOpen", () => opossum.open());
	return opossum;
}
