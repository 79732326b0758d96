// The breaker of one upstream. opossum holds whether it is open; the rules decide, the probe closes, and what is in flight
// when it opens is aborted, so that it goes elsewhere at once.

import CircuitBreaker from "opossum";
import { type Clock, DeadlineError, type Timer, withDeadline } from "../../shared/clock.ts";
import { LinkedList } from "../../shared/linkedList.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import type {
	Abort,
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
import { Prober } from "./prober.ts";
import {
	type AttemptKind,
	asksAsSubmission,
	awaits,
	backoffMs,
	calmIntervalMs,
	type Health,
	type HealthSettings,
	isStalled,
	probationMs,
	reasonOfAttempt,
	reasonOfProbe,
	wantsProbe,
} from "./rules.ts";

export interface BreakerDependencies {
	readonly probe: Probe;
	readonly clock: Clock;
	readonly log: Logger;
	/** Who has what hangs here, where it is well: see {@link Health.canYield}. Null: nobody. */
	readonly yieldsTo: { readonly isUnavailable: boolean } | null;
	/** From 0 up to 1; for the jitter of the backoff. */
	readonly random?: () => number;
	/** Each opening. */
	onTrip(reason: TripReason): void;
	/** Each probe's outcome. */
	onProbe(outcome: ProbeOutcome): void;
}

/** How often the silence is looked at while anything is in flight, in ms. */
const TICK_MS = 50;
/**
 * Longer than any attempt's own deadline, in ms: one that reaches it has none, which is a fault of ours. Without it
 * (`timeout: false`) such a one would be in flight for ever.
 */
const ATTEMPT_MAX_MS = 600_000;
/** A probe that has not ended after so many times its own deadline never will: it counts as timed out. */
const OVERDUE = 1.2;
/** The longest delay a timer takes, in ms: opossum knows no "never". */
const NEVER_MS = 2 ** 31 - 1;

/** It takes requests from the first moment on, and probes from its start on. */
export class UpstreamBreaker implements Breaker {
	readonly upstream: UpstreamName;
	readonly #settings: HealthSettings;
	readonly #dependencies: BreakerDependencies;
	readonly #clock: Clock;
	readonly #opossum: CircuitBreaker<[() => Promise<Attempted>], Attempted>;
	readonly #figures: Figures;
	readonly #prober: Prober;
	readonly #listeners: (() => void)[] = [];
	/** Newcomers that wait for a change. */
	#waiting: (() => void)[] = [];
	#ticking: Timer | undefined;
	#abort = new AbortSwitch();
	#state: BreakerState = "closed";
	#reason: TripReason | null = null;
	#since: number;
	#forced: "open" | "closed" | null = null;
	#isStopped = false;
	/** Good probes in a row while it is out. */
	#successes = 0;
	/** Whether the last probe of a closed one was in doubt. */
	#isDoubted = false;
	/** Whether it has ever answered: until then one good probe closes it. */
	#isProven = false;
	/** In a row. */
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
		this.#prober = new Prober(settings.probeIntervalMs, { work: () => this.#probe(), clock, log });
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
		return Math.max(1, Math.ceil((this.#prober.nextMs ?? 0) + recoveryMs));
	}

	/** Begins to probe. */
	start(): void {
		if (this.#isJudging) this.#prober.plan(0);
	}

	/** Ends all timers, joins the probe and takes no more. */
	async stop(): Promise<void> {
		this.#isStopped = true;
		this.#ticking?.cancel();
		this.#wake();
		await this.#prober.stop();
		this.#opossum.shutdown();
	}

	async run<T extends Attempted>(
		kind: AttemptKind,
		attempt: (abort: Abort) => Promise<T>,
	): Promise<T | null> {
		while (!this.isUnavailable && this.#mustWait(kind)) {
			await new Promise<void>((wake) => this.#waiting.push(wake));
		}
		if (this.isUnavailable) return null;
		const inFlight = this.#figures.begin(kind);
		this.#tick();
		const abort = this.#abort;
		let attempted: T | undefined;
		try {
			await this.#opossum.fire(async () => {
				attempted = await attempt(abort);
				return attempted;
			});
			return attempted ?? null;
		} finally {
			inFlight.leave();
			if (attempted !== undefined) this.#judge(attempted, inFlight);
		}
	}

	note(attempted: Attempted): void {
		if (!this.isUnavailable) this.#judge(attempted, this.#figures.seen("read"));
	}

	onChange(listener: () => void): void {
		this.#listeners.push(listener);
	}

	status(): BreakerStatus {
		const nextMs = this.#isJudging ? this.#prober.nextMs : null;
		const { all, oldestMs } = this.#figures;
		return {
			state: this.#state,
			reason: this.#reason,
			since: new Date(this.#since).toISOString(),
			nextProbeAt: nextMs === null ? null : new Date(this.#clock.now() + nextMs).toISOString(),
			inFlight: all.count,
			oldestInFlightMs: Math.round(oldestMs),
		};
	}

	force(state: "open" | "closed" | null): void {
		if (state === this.#forced || this.#isStopped) return;
		this.#forced = state;
		this.#relapses = 0;
		this.#probationUntil = Number.NEGATIVE_INFINITY;
		this.#prober.plan(state === null ? 0 : null);
		this.#enter(state ?? "closed", state === null ? null : "forced");
		if (state === "open") this.#dependencies.onTrip("forced");
	}

	/** Whether what attempts and probes say changes anything. */
	get #isJudging(): boolean {
		return this.#forced === null && !this.#isStopped;
	}

	get #health(): Health {
		const isProbation = this.#clock.monotonic() < this.#probationUntil;
		const { yieldsTo } = this.#dependencies;
		const canYield = yieldsTo !== null && !yieldsTo.isUnavailable;
		return { settings: this.#settings, figures: this.#figures, isProbation, canYield };
	}

	#mustWait(kind: AttemptKind): boolean {
		const awaited = this.#isJudging ? awaits(kind, this.#health) : null;
		if (awaited === "probe") this.#prober.soon();
		return awaited !== null;
	}

	/** Takes what an attempt of this epoch came to, while it is closed. */
	#judge(attempted: Attempted, { kind, sentAt, answersBefore, epoch }: InFlight): void {
		const figures = this.#figures;
		const { outcome } = attempted;
		if (epoch !== figures.epoch || !this.#isJudging || outcome === "cut") return;
		const isUnheard = answersBefore === figures.answers;
		const seen = { kind, tookMs: this.#clock.monotonic() - sentAt, isUnheard };
		const isAnswer = figures.count(attempted, seen, this.#settings);
		const reason = reasonOfAttempt(outcome, seen, this.#health);
		if (isAnswer) this.#alive();
		if (reason !== null) this.#trip(reason);
		else if (outcome !== "answered") this.#prober.soon();
	}

	#alive(): void {
		this.#isProven = true;
		this.#wake();
	}

	/** Looks at the silence, now and then again while anything is in flight. */
	#tick(): void {
		if (this.#ticking !== undefined || this.#isStopped) return;
		const dueAt = this.#clock.monotonic() + TICK_MS;
		this.#ticking = this.#clock.after(TICK_MS, () => {
			this.#ticking = undefined;
			this.#figures.excuse(Math.max(0, this.#clock.monotonic() - dueAt));
			if (this.#isJudging && !this.isUnavailable) {
				if (isStalled(this.#health)) this.#trip("silence");
				else if (wantsProbe(this.#health)) this.#prober.soon();
			}
			// Where newcomers need not wait any more, as when the other upstream is out, nobody else tells them.
			this.#wake();
			if (this.#figures.all.count > 0) this.#tick();
		});
	}

	async #probe(): Promise<void> {
		const before = this.#figures.seen("read");
		const outcome = await this.#askProbe();
		this.#dependencies.onProbe(outcome);
		// One that began before the last change of state tells nothing of this one, and a next one is due already.
		if (before.epoch !== this.#figures.epoch || !this.#isJudging) return;
		if (this.#state === "closed") this.#probedClosed(outcome, before);
		else this.#probedOut(outcome);
	}

	async #askProbe(): Promise<ProbeOutcome> {
		const { probe, log } = this.#dependencies;
		const isThorough = asksAsSubmission(this.#figures, this.isUnavailable);
		const overdueMs = this.#settings.probeTimeoutMs * OVERDUE;
		try {
			return await withDeadline(this.#clock, "probe", overdueMs, () => probe(isThorough));
		} catch (thrown) {
			if (thrown instanceof DeadlineError) return "timeout";
			log.error("a probe failed by itself", { fault: safeError(thrown) });
			return "probe";
		}
	}

	/** `before`: what was so when the probe began. */
	#probedClosed(outcome: ProbeOutcome, { answersBefore, sentAt }: InFlight): void {
		const tookMs = this.#clock.monotonic() - sentAt;
		const wasContradicted = answersBefore !== this.#figures.answers;
		const isSilent = this.#waiting.length > 0 || wantsProbe(this.#health);
		const probe = { tookMs, wasContradicted, isSecond: this.#isDoubted, isSilent };
		const reason = reasonOfProbe(outcome, probe, this.#settings);
		this.#isDoubted = reason === "doubt";
		if (reason === "doubt") this.#prober.plan(0);
		else if (reason !== null) this.#trip(reason);
		else {
			this.#figures.alive();
			this.#prober.planNext(calmIntervalMs(this.#settings));
			this.#alive();
		}
	}

	#probedOut(outcome: ProbeOutcome): void {
		const { probeIntervalMs, probeSuccesses } = this.#settings;
		this.#successes = outcome === "ok" ? this.#successes + 1 : 0;
		const isProof = this.#successes >= (this.#isProven ? probeSuccesses : 1);
		// Who is well again shall not wait for the rest of the proof: it is asked twice as often.
		this.#prober.planNext(this.#successes > 0 && !isProof ? probeIntervalMs / 2 : probeIntervalMs);
		if (isProof) this.#close();
		else this.#enter(this.#successes === 0 ? "open" : "half-open", this.#reason);
	}

	#trip(reason: TripReason): void {
		const { random = Math.random, log } = this.#dependencies;
		this.#relapses = this.#health.isProbation ? this.#relapses + 1 : 0;
		this.#probationUntil = Number.NEGATIVE_INFINITY;
		this.#backoffMs = backoffMs(this.#isProven ? this.#relapses : null, this.#settings, random());
		this.#prober.plan(this.#backoffMs);
		log.warn("breaker opened", { upstream: this.upstream, reason, ms: Math.round(this.#backoffMs) });
		this.#enter("open", reason);
		this.#dependencies.onTrip(reason);
	}

	#close(): void {
		if (this.#isProven)
			this.#probationUntil = this.#clock.monotonic() + probationMs(this.#backoffMs, this.#settings);
		this.#isProven = true;
		this.#dependencies.log.info("breaker closed", { upstream: this.upstream });
		this.#enter("closed", null);
	}

	/** The one place where the state changes. */
	#enter(state: BreakerState, reason: TripReason | null): void {
		if (state === this.#state && reason === this.#reason) return;
		if (state !== this.#state) this.#since = this.#clock.now();
		this.#state = state;
		this.#reason = reason;
		this.#figures.nextEpoch();
		this.#isDoubted = false;
		if (state !== "half-open") this.#successes = 0;
		if (state === "closed") this.#opossum.close();
		else this.#opossum.open();
		this.#wake();
		if (state !== "closed") {
			const abort = this.#abort;
			// What begins when it is closed again has one of its own.
			this.#abort = new AbortSwitch();
			abort.abort();
		}
		for (const listener of this.#listeners) listener();
	}

	/** Whoever waits looks again. */
	#wake(): void {
		const waiting = this.#waiting;
		this.#waiting = [];
		for (const wake of waiting) wake();
	}
}

/** An opossum that holds open or closed and never changes by itself: its figures know no silence, senders or epochs. */
function createOpossum(name: string): CircuitBreaker<[() => Promise<Attempted>], Attempted> {
	const opossum = new CircuitBreaker((work: () => Promise<Attempted>) => work(), {
		name,
		timeout: ATTEMPT_MAX_MS,
		errorThresholdPercentage: 100,
		volumeThreshold: Number.MAX_SAFE_INTEGER,
		rollingPercentilesEnabled: false,
		enableSnapshots: false,
		rollingCountTimeout: 1_000,
		rollingCountBuckets: 1,
		resetTimeout: NEVER_MS,
	});
	// Half-open, the next success of anybody's would close it. After 25 days even "never" is over.
	opossum.on("halfOpen", () => opossum.open());
	return opossum;
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

	/** Calls every listener once. */
	abort(): void {
		this.#isAborted = true;
		for (let listener = this.#listeners.shift(); listener !== undefined; listener = this.#listeners.shift()) {
			listener();
		}
	}
}
