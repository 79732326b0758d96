// A breaker on a manual clock, with a fake probe and fake attempts. Nothing here waits for real
// time.

import type { TestContext } from "node:test";
import { readBoostConfig } from "../../boost-proxy/config.ts";
import type { Attempted, ProbeResult, TripReason } from "../../boost-proxy/domain/ports.ts";
import { UpstreamBreaker } from "../../boost-proxy/health/breaker.ts";
import type { HealthSettings } from "../../boost-proxy/health/rules.ts";
import { healthSettings } from "../../boost-proxy/upstreams.ts";
import { silentLogger } from "../../shared/log.ts";
import type { Abort } from "../../shared/outgoing/httpClient.ts";
import { ManualClock } from "./manualClock.ts";

export type Outcome = Attempted["outcome"];

/** The settings of a relay's breaker unless others are given. */
export const BREAKER_OPTIONS: HealthSettings = healthSettings(
	"relay",
	readBoostConfig({
		RELAY_URL: "http://127.0.0.1:8080",
		BOOST_SECRET: "shared by both",
		FALLBACK_URL: "none",
	}),
);

/** An attempt that ends when the test says so. */
export class Attempt {
	/** Undefined until it has ended. */
	result: Attempted | null | undefined;
	thrown: unknown;
	/** Undefined before the breaker begins it, and if the breaker refuses it. */
	abort: Abort | undefined;
	readonly #ending: Promise<Attempted>;
	#settle: (attempted: Attempted) => void = () => {};
	#fail: (thrown: unknown) => void = () => {};
	readonly #sender: string | undefined;

	constructor(
		breaker: UpstreamBreaker,
		{
			kind,
			sender,
			client,
		}: {
			readonly kind: "read" | "submission";
			readonly sender?: string | undefined;
			readonly client: string;
		},
	) {
		this.#sender = sender;
		this.#ending = new Promise((resolve, reject) => {
			this.#settle = resolve;
			this.#fail = reject;
		});
		breaker
			.run(kind, client, (abort) => {
				this.abort = abort;
				return this.#ending;
			})
			.then(
				(result) => {
					this.result = result;
				},
				(thrown: unknown) => {
					this.thrown = thrown;
				},
			);
	}

	get isBegun(): boolean {
		return this.abort !== undefined;
	}

	/** Ends it with `outcome`; if it has not begun, as soon as it begins. */
	end(outcome: Outcome): void {
		this.#settle(this.#sender === undefined ? { outcome } : { outcome, sender: this.#sender });
	}

	fail(thrown: unknown): void {
		this.#fail(thrown);
	}
}

/** A breaker with its probe and clock. Ends the attempts that a test leaves in flight. */
export class BreakerFixture {
	readonly clock = new ManualClock();
	readonly options: HealthSettings;
	readonly breaker: UpstreamBreaker;
	readonly trips: TripReason[] = [];
	/** The state after each change that listeners were called for. */
	readonly changes: string[] = [];
	/** Monotonic ms at which each probe began. */
	readonly probedAt: number[] = [];
	/** For each probe, whether it was a thorough one, which tests what submissions need. */
	readonly thorough: boolean[] = [];
	/** The result of the next probes; "hang": none until the deadline. */
	found: ProbeResult | "hang" = "ok";
	/** The other upstream, which gets what this one does not answer. */
	readonly other = { isUnavailable: false };
	/** How long a probe takes, in ms. */
	probeMs = 0;
	/** Replaces the fixture's own probe. */
	instead: (() => Promise<ProbeResult>) | null = null;
	/** The highest number of probes that ran at the same time. */
	mostProbes = 0;
	#probes = 0;
	readonly #attempts: Attempt[] = [];
	/** Whose requests the attempts are; null: each is another's. */
	client: string | null = null;

	/** With `isNew` the upstream has never answered; by default it has once. */
	constructor(
		t: TestContext,
		options: Partial<HealthSettings> & { readonly isNew?: boolean } = {},
		random: () => number = () => 0.5,
	) {
		t.after(() => this.#endAll());
		const { isNew = false, ...given } = options;
		this.options = { ...BREAKER_OPTIONS, ...given };
		this.breaker = new UpstreamBreaker(this.options, {
			...{ clock: this.clock, log: silentLogger, random },
			alternative: this.other,
			probe: (thorough) => this.#probe(thorough),
			onTrip: (reason) => this.trips.push(reason),
			onProbe() {},
			readiness: () => "its own words",
			hint: () => "where to look",
		});
		this.breaker.onChange(() => this.changes.push(this.breaker.state));
		if (!isNew) this.breaker.note({ outcome: "answered" });
	}

	send(kind: "read" | "submission" = "submission", sender?: string): Attempt {
		const client = this.client ?? `198.51.100.${this.#attempts.length}`;
		const attempt = new Attempt(this.breaker, { kind, sender, client });
		this.#attempts.push(attempt);
		return attempt;
	}

	/**
	 * Makes an attempt with `outcome`, at once or `afterMs` later. Returns whether the breaker
	 * admitted it.
	 */
	async say(
		outcome: Outcome,
		kind: "read" | "submission" = "submission",
		sender?: string,
		afterMs = 0,
	): Promise<boolean> {
		const attempt = this.send(kind, sender);
		await this.clock.advance(afterMs);
		attempt.end(outcome);
		await this.clock.advance(0);
		return attempt.isBegun;
	}

	/** Opens the breaker by a refused connection, and lets a probe close it again. */
	async openAndClose(): Promise<void> {
		await this.say("refused");
		this.found = "ok";
		const { maxBackoffMs, probeIntervalMs, probeSuccesses } = this.options;
		for (
			let ms = 0;
			this.breaker.isUnavailable && ms < maxBackoffMs + probeSuccesses * probeIntervalMs;
			ms += 50
		) {
			await this.clock.advance(50);
		}
	}

	/**
	 * Opens the breaker first, so that no attempt still waits to begin: opossum's timers would keep
	 * the process alive.
	 */
	async #endAll(): Promise<void> {
		this.breaker.force("open");
		await this.clock.advance(0);
		for (const attempt of this.#attempts) attempt.end("aborted");
		await this.clock.advance(0);
		const stopping = this.breaker.stop();
		await this.clock.advance(this.options.probeTimeoutMs);
		await stopping;
	}

	#probe(thorough: boolean): Promise<ProbeResult> {
		this.thorough.push(thorough);
		return this.instead === null ? this.#find() : this.instead();
	}

	async #find(): Promise<ProbeResult> {
		this.probedAt.push(this.clock.monotonic());
		this.#probes++;
		this.mostProbes = Math.max(this.mostProbes, this.#probes);
		const found = this.found;
		const ms = found === "hang" ? this.options.probeTimeoutMs : this.probeMs;
		if (ms > 0) await new Promise<void>((resolve) => this.clock.after(ms, resolve));
		this.#probes--;
		return found === "hang" ? "timeout" : found;
	}
}
