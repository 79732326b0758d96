// Properties of the breaker under random events: with a healthy upstream it closes within a bounded
// time, and never runs two probes at a time.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import type { ProbeResult } from "../../../../boost-proxy/domain/ports.ts";
import { FAULTS } from "../../../../boost-proxy/domain/request.ts";
import { type Attempt, BreakerFixture, type Outcome } from "../../../support/breakerFixture.ts";

const TIMES = {
	probeIntervalMs: 100,
	probeTimeoutMs: 50,
	probeSuccesses: 3,
	firstBackoffMs: 200,
	maxBackoffMs: 1_600,
	attemptTimeoutMs: 400,
} as const;
const BOUND_MS =
	TIMES.maxBackoffMs * 1.2 + (TIMES.probeSuccesses + 2) * (TIMES.probeIntervalMs + TIMES.probeTimeoutMs);

type Step =
	| { readonly do: "send"; readonly kind: "read" | "submission"; readonly count: number }
	| { readonly do: "end"; readonly outcome: Outcome; readonly count: number }
	| { readonly do: "say"; readonly kind: "read" | "submission"; readonly outcome: Outcome }
	| { readonly do: "note"; readonly outcome: Outcome }
	| { readonly do: "probe"; readonly found: ProbeResult | "hang"; readonly ms: number }
	| { readonly do: "force"; readonly state: "open" | "closed" | null }
	| { readonly do: "recover" }
	| { readonly do: "wait"; readonly ms: number };

const outcome = fc.constantFrom<Outcome>("answered", "aborted", ...FAULTS);
const kind = fc.constantFrom<"read" | "submission">("read", "submission");
const step: fc.Arbitrary<Step> = fc.oneof(
	{
		weight: 3,
		arbitrary: fc.record({ do: fc.constant("send"), kind, count: fc.integer({ min: 1, max: 20 }) }),
	},
	{
		weight: 3,
		arbitrary: fc.record({ do: fc.constant("end"), outcome, count: fc.integer({ min: 1, max: 10 }) }),
	},
	{ weight: 6, arbitrary: fc.record({ do: fc.constant("say"), kind, outcome }) },
	{ weight: 1, arbitrary: fc.record({ do: fc.constant("note"), outcome }) },
	{
		weight: 3,
		arbitrary: fc.record({
			do: fc.constant("probe"),
			found: fc.constantFrom<ProbeResult | "hang">("ok", "ok", "hang", "refused", "notReady", "staleHead"),
			ms: fc.integer({ min: 0, max: TIMES.probeTimeoutMs }),
		}),
	},
	{ weight: 3, arbitrary: fc.record({ do: fc.constant("recover") }) },
	{
		weight: 1,
		arbitrary: fc.record({ do: fc.constant("force"), state: fc.constantFrom("open", "closed", null, null) }),
	},
	{ weight: 3, arbitrary: fc.record({ do: fc.constant("wait"), ms: fc.integer({ min: 0, max: 700 }) }) },
);

/** Does one step; `open` are the attempts under way. */
async function take(fixture: BreakerFixture, open: Attempt[], one: Step): Promise<void> {
	switch (one.do) {
		case "send":
			for (let i = 0; i < one.count; i++) open.push(fixture.send(one.kind, `0x${i}`));
			break;
		case "end":
			for (const attempt of open.splice(0, one.count)) attempt.end(one.outcome);
			break;
		case "say":
			open.push(fixture.send(one.kind, "0xa"));
			await fixture.clock.advance(1);
			open.pop()?.end(one.outcome);
			break;
		case "note":
			fixture.breaker.note({ outcome: one.outcome });
			break;
		case "probe":
			fixture.found = one.found;
			fixture.probeMs = one.ms;
			break;
		case "recover":
			fixture.found = "ok";
			await fixture.clock.advance(TIMES.probeSuccesses * TIMES.probeIntervalMs);
			break;
		case "force":
			fixture.breaker.force(one.state);
			break;
		case "wait":
			await fixture.clock.advance(one.ms);
			break;
	}
	await fixture.clock.advance(0);
}

/** Checks the rules that hold after every step. */
async function check(fixture: BreakerFixture, what: string): Promise<void> {
	const { breaker } = fixture;
	const status = breaker.status();
	assert.ok(fixture.mostProbes <= 1, `${fixture.mostProbes} probes at a time ${what}`);
	assert.equal(breaker.isUnavailable, status.state !== "closed", what);
	assert.equal(breaker.retryMs === 0, !breaker.isUnavailable, what);
	const isForced = status.reason === "forced";
	// A state in which nothing is due would be one for ever.
	if (breaker.isUnavailable && !isForced) assert.notEqual(status.nextProbeAt, null, what);
	if (isForced) assert.equal(status.nextProbeAt, null, what);
	const attempt = breaker.isUnavailable ? fixture.send() : null;
	await fixture.clock.advance(0);
	if (attempt !== null) assert.equal(attempt.result, null, `let in ${what}`);
}

test("after any events, with a healthy upstream it closes within a bounded time", async (t) => {
	let openings = 0;
	let longest = 0;
	const property = fc.asyncProperty(
		fc.array(step, { minLength: 1, maxLength: 60, size: "max" }),
		fc.double({ min: 0, max: 0.999, noNaN: true }),
		async (steps, random) => {
			const fixture = new BreakerFixture(t, TIMES, () => random);
			const open: Attempt[] = [];
			const from = fixture.clock.monotonic();
			fixture.breaker.start();
			for (const one of steps) {
				await take(fixture, open, one);
				await check(fixture, `after ${JSON.stringify(one)}`);
			}
			openings += fixture.trips.length;

			// The upstream is healthy from here on. An operator who has forced a state says auto. Hanging
			// attempts end.
			fixture.found = "ok";
			fixture.probeMs = TIMES.probeTimeoutMs / 5;
			fixture.breaker.force(null);
			for (const attempt of open) attempt.end("answered");
			const healedAt = fixture.clock.monotonic();
			let took = 0;
			// A probe or an attempt of the past may still open it once.
			for (let ms = 0; ms < BOUND_MS; ms += 50) {
				await fixture.clock.advance(50);
				if (fixture.breaker.isUnavailable) took = fixture.clock.monotonic() - healedAt;
			}
			longest = Math.max(longest, took);
			const what = `out until ${took} ms after it was healthy (bound ${BOUND_MS}), ${healedAt - from} ms in`;
			assert.equal(fixture.breaker.isUnavailable, false, what);

			// And it stays so: requests go through, and no straggler of the past opens it again.
			for (let i = 0; i < 12; i++) {
				await fixture.clock.advance(TIMES.probeIntervalMs);
				const attempt = fixture.send();
				await fixture.clock.advance(0);
				assert.equal(attempt.isBegun, true, `not let in ${what}`);
				attempt.end("answered");
			}
			await fixture.clock.advance(0);
			assert.equal(fixture.breaker.isUnavailable, false, what);
			assert.ok(fixture.mostProbes <= 1, what);
			assert.equal(fixture.breaker.status().inFlight, 0, what);
		},
	);
	await fc.assert(property, { numRuns: 60 });
	const went = `openings in all: ${openings}; the longest recovery took ${longest} ms of ${BOUND_MS}`;
	assert.ok(openings > 20 && longest > TIMES.firstBackoffMs, went);
	t.diagnostic(went);
});

test("a probe that never ends or throws counts as failed and does not block later ones", async (t) => {
	await recovers(t, () => new Promise<never>(() => {}), "timeout");
	await recovers(t, () => Promise.reject(new Error("a bug")), "probe");
	await recovers(
		t,
		() => {
			throw new Error("a bug");
		},
		"probe",
	);
});

async function recovers(t: TestContext, broken: () => Promise<ProbeResult>, reason: string): Promise<void> {
	const fixture = new BreakerFixture(t, TIMES);
	fixture.instead = broken;
	fixture.breaker.start();
	await fixture.clock.advance(2 * TIMES.probeTimeoutMs);
	assert.deepEqual(fixture.trips, [reason]);
	await fixture.clock.advance(10_000);
	assert.equal(fixture.breaker.isUnavailable, true);
	fixture.instead = null;
	await fixture.clock.advance(BOUND_MS);
	assert.equal(fixture.breaker.state, "closed");
}
