// The guard of one upstream: what comes in are attempts and a probe, what goes out is whether it takes requests now. It
// opens on what tripRules.ts, the silence and the probe say, and closes by its own probe alone; it sends nothing itself.

import type { Clock } from "../../shared/clock.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import type { Attempted, BreakerState, BreakerStatus, Cut, TripReason } from "../domain/breakerPorts.ts";
import type { UpstreamName } from "../domain/delivery.ts";
import { Choke } from "./breakerChoke.ts";
import { ChargedFault, Circuit } from "./breakerCircuit.ts";
import { CutSwitch } from "./breakerCut.ts";
import { type Flight, Flights } from "./breakerFlights.ts";
import { Hold } from "./breakerHold.ts";
import type { BreakerDependencies, BreakerOptions, StartedBreaker } from "./breakerOptions.ts";
import { Silence } from "./breakerSilence.ts";
import { type HeardWord, ProbeLoop } from "./probe.ts";
import { type Judged, TripRules } from "./tripRules.ts";

export type { BreakerDependencies, BreakerOptions, StartedBreaker } from "./breakerOptions.ts";

/** See {@link BreakerOptions}. It takes requests from the first moment on. */
export function createBreaker(options: BreakerOptions, dependencies: BreakerDependencies): StartedBreaker {
	return new UpstreamBreaker(options, dependencies);
}

/**
 * Part of the silence after which submissions that alone get no answer go elsewhere; it opens nothing, and at a hundred
 * requests a second the whole silence would let 25 into the hole.
 */
const CHOKE_PART = 0.6;

/** What was so when a probe began. */
interface ProbeContext {
	readonly generation: number;
	readonly answers: number;
}

class UpstreamBreaker implements StartedBreaker {
	readonly upstream: UpstreamName;
	readonly #options: BreakerOptions;
	readonly #dependencies: BreakerDependencies;
	readonly #clock: Clock;
	readonly #log: Logger;
	readonly #circuit: Circuit;
	readonly #rules: TripRules;
	readonly #hold: Hold;
	readonly #flights: Flights;
	readonly #silence: Silence;
	readonly #loop: ProbeLoop<ProbeContext>;
	readonly #listeners: (() => void)[] = [];
	#cut = new CutSwitch();
	#state: BreakerState = "closed";
	#reason: TripReason | null = null;
	#since: number;
	#forced: "open" | "closed" | null = null;
	#isStopped = false;
	/** One more with each change of state; what began in an older one counts in none. */
	#generation = 0;
	/** The probe's successes in a row while it is open. */
	#successes = 0;
	/** Whether the last probe of a closed one timed out although answers came meanwhile. */
	#isDoubted = false;

	constructor(options: BreakerOptions, dependencies: BreakerDependencies) {
		const { clock, probe } = dependencies;
		const { holdMs, holdMaxMs, probeIntervalMs, probeTimeoutMs, probeSuccesses, shareMs } = options;
		const { silentRequests = 16, silenceMs = 250 } = options;
		this.upstream = options.upstream;
		this.#options = options;
		this.#dependencies = dependencies;
		this.#clock = clock;
		this.#log = dependencies.log;
		this.#since = clock.now();
		this.#circuit = new Circuit(options.upstream);
		this.#rules = new TripRules(options);
		this.#hold = new Hold(
			{ holdMs, holdMaxMs, startMs: probeIntervalMs, recoveryMs: probeSuccesses * probeIntervalMs },
			dependencies.random ?? Math.random,
		);
		this.#loop = new ProbeLoop(
			{ intervalMs: probeIntervalMs, timeoutMs: probeTimeoutMs, gapMs: Math.min(50, probeIntervalMs / 2) },
			{
				probe,
				clock,
				log: this.#log,
				begun: () => ({ generation: this.#generation, answers: this.#rules.answers }),
				heard: (word, context, tookMs) => this.#heard(word, context, tookMs),
			},
		);
		this.#flights = new Flights(new Choke(silentRequests, silenceMs * CHOKE_PART));
		this.#silence = new Silence(
			{ silentRequests, silenceMs, shareMs },
			{
				clock,
				flights: this.#flights,
				isStrict: () => this.#hold.isProbation(clock.monotonic()),
				isWatched: () => this.#isJudging,
				wantProbe: () => this.#loop.ensure(),
			},
		);
	}

	get state(): BreakerState {
		return this.#state;
	}

	get isOut(): boolean {
		return this.#circuit.isOpen;
	}

	get isChoked(): boolean {
		const now = this.#clock.monotonic();
		return this.#isJudging && this.#flights.isChoked(now, this.#hold.isProbation(now));
	}

	get retryMs(): number {
		if (!this.isOut) return 0;
		const { probeIntervalMs, probeSuccesses } = this.#options;
		return Math.max(
			1,
			Math.ceil((this.#loop.nextMs ?? 0) + (probeSuccesses - this.#successes) * probeIntervalMs),
		);
	}

	start(): void {
		if (this.#isJudging) this.#loop.atOnce();
	}

	async stop(): Promise<void> {
		this.#isStopped = true;
		this.#silence.stop();
		await this.#loop.stop();
		this.#circuit.shutdown();
	}

	async run<T extends Attempted>(kind: Judged["kind"], attempt: (cut: Cut) => Promise<T>): Promise<T | null> {
		if (this.#circuit.isOpen) return null;
		let sentAt = this.#clock.monotonic();
		const word = this.#silence.wait(sentAt);
		if (word !== null) {
			sentAt = await word.then(() => this.#clock.monotonic());
			if (this.#circuit.isOpen) return null;
		}
		const { answers: answersBefore } = this.#rules;
		const flight: Flight = { kind, sentAt, answersBefore, generation: this.#generation };
		this.#flights.begin(flight);
		this.#silence.watch();
		const cut = this.#cut;
		let outcome: Attempted["outcome"] | undefined;
		try {
			return await this.#circuit.fire(async () => {
				const attempted = await attempt(cut);
				outcome = attempted.outcome;
				const now = this.#clock.monotonic();
				if (flight.generation === this.#generation) this.#judge(attempted, flight, now);
				// Thrown for opossum's sake; the circuit gives it back.
				if (this.#rules.isCharged(attempted.outcome, flight, now)) throw new ChargedFault(attempted);
				return attempted;
			});
		} finally {
			this.#flights.end(flight, outcome, this.#clock.monotonic());
		}
	}

	note(attempted: Attempted): void {
		if (this.isOut) return;
		const now = this.#clock.monotonic();
		this.#judge(attempted, { kind: "read", sentAt: now, answersBefore: this.#rules.answers }, now);
	}

	onChange(listener: () => void): void {
		this.#listeners.push(listener);
	}

	status(): BreakerStatus {
		const nextMs = this.#isJudging ? this.#loop.nextMs : null;
		const oldestAt = this.#flights.oldestAt;
		return {
			state: this.#state,
			reason: this.#reason,
			since: new Date(this.#since).toISOString(),
			nextProbeAt: nextMs === null ? null : new Date(this.#clock.now() + nextMs).toISOString(),
			inFlight: this.#flights.all,
			oldestInFlightMs: oldestAt === null ? 0 : Math.round(this.#clock.monotonic() - oldestAt),
		};
	}

	force(state: "open" | "closed" | null): void {
		if (state === this.#forced || this.#isStopped) return;
		this.#forced = state;
		this.#hold.forget();
		this.#loop.rest();
		this.#enter(state ?? "closed", state === null ? null : "forced");
		if (state === null) this.#loop.atOnce();
		if (state === "open") this.#tell(() => this.#dependencies.onTrip?.("forced"));
	}

	/** Whether what attempts and probes say changes anything. */
	get #isJudging(): boolean {
		return this.#forced === null && !this.#isStopped;
	}

	/** Takes what an attempt of this generation says, while it is closed. */
	#judge(attempted: Attempted, judged: Judged, now: number): void {
		if (!this.#isJudging || attempted.outcome === "cut") return;
		const { answers } = this.#rules;
		const reason = this.#rules.judge(attempted, judged, now, this.#hold.isProbation(now));
		if (this.#rules.answers !== answers) {
			this.#hold.prove();
			this.#silence.heard(now);
		}
		if (reason !== null) this.#trip(reason);
		else if (attempted.outcome !== "answered") this.#loop.soon();
	}

	/** Takes a probe's word. */
	#heard(word: HeardWord, context: ProbeContext, tookMs: number): void {
		this.#tell(() => this.#dependencies.onProbe?.(word));
		// One that began before the last change of state tells nothing of this one, and a next one is due already.
		if (context.generation !== this.#generation || !this.#isJudging) return;
		if (this.#state === "closed") this.#heardWhileClosed(word, context, tookMs);
		else this.#heardWhileOut(word);
	}

	#heardWhileClosed(word: HeardWord, { answers }: ProbeContext, tookMs: number): void {
		if (word === "ok") {
			this.#hold.prove();
			this.#isDoubted = false;
			this.#silence.heard(this.#clock.monotonic());
			this.#loop.planNext(this.#options.calmIntervalMs);
			return;
		}
		// Answers that came meanwhile say the contrary, and of a clock that stood still nobody knows whose fault it was.
		const { probeTimeoutMs, isPatient = false } = this.#options;
		const isDoubtful = isPatient || answers !== this.#rules.answers || tookMs > 1.5 * probeTimeoutMs;
		if (word === "timeout" && isDoubtful && !this.#isDoubted) {
			this.#isDoubted = true;
			this.#loop.atOnce();
			return;
		}
		this.#trip(word === "timeout" && this.#silence.isHolding ? "silence" : word);
	}

	#heardWhileOut(word: HeardWord): void {
		this.#loop.planNext();
		this.#successes = word === "ok" ? this.#successes + 1 : 0;
		const wanted = this.#hold.isProven ? this.#options.probeSuccesses : 1;
		if (this.#successes >= wanted) this.#close();
		else this.#enter(this.#successes === 0 ? "open" : "half-open", this.#reason);
	}

	#trip(reason: TripReason): void {
		const holdMs = this.#hold.opened(this.#clock.monotonic());
		this.#loop.plan(holdMs);
		this.#log.warn("breaker opened", { upstream: this.upstream, reason, ms: Math.round(holdMs) });
		this.#enter("open", reason);
		this.#tell(() => this.#dependencies.onTrip?.(reason));
	}

	#close(): void {
		this.#hold.closed(this.#clock.monotonic());
		this.#log.info("breaker closed", { upstream: this.upstream });
		this.#enter("closed", null);
	}

	/** The one place where the state changes. */
	#enter(state: BreakerState, reason: TripReason | null): void {
		if (state === this.#state && reason === this.#reason) return;
		if (state !== this.#state) this.#since = this.#clock.now();
		this.#state = state;
		this.#reason = reason;
		this.#generation++;
		this.#rules.reset();
		this.#flights.straggle();
		this.#isDoubted = false;
		if (state !== "half-open") this.#successes = 0;
		if (state === "closed") this.#circuit.close();
		else this.#circuit.open();
		this.#silence.release();
		if (state !== "closed" && !this.#cut.isCut) {
			const cut = this.#cut;
			// What begins when it is closed again has one of its own.
			this.#cut = new CutSwitch();
			this.#tell(() => cut.cut());
		}
		for (const listener of this.#listeners) this.#tell(listener);
	}

	/** Whatever others do with what they are told, the breaker goes on. */
	#tell(tell: () => void): void {
		try {
			tell();
		} catch (thrown) {
			this.#log.error("a listener of the breaker failed", {
				upstream: this.upstream,
				fault: safeError(thrown),
			});
		}
	}
}
