// The breaker's states: how it closes again by its own probe alone, what a relapse is, what stragglers of an older state
// can't do, and how it ends. What opens it is in breakerTrips.test.ts.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProbeResult } from "../../../../boost-proxy/domain/ports.ts";
import { BreakerFixture } from "../../../support/breakerFixture.ts";

/** Faults that count in a row wherever they come from; time-outs have their own tests. */
const CHARGED = ["reset", "httpStatus", "notJsonRpc", "wrongHash"] as const;

/** What it is that brought it to this. */
const now = ({ breaker, trips }: BreakerFixture) =>
	`${breaker.state} ${trips.join()} ${JSON.stringify(breaker.status())}`;

test("once open it is left alone for its hold, then its probe closes it with successes in a row", async (t) => {
	const fixture = new BreakerFixture(t);
	const { breaker, clock, probedAt } = fixture;
	await clock.advance(10_000);
	await fixture.say("refused");
	const since = breaker.status().since;
	assert.equal(since, new Date(clock.now()).toISOString());
	assert.equal(breaker.status().nextProbeAt, new Date(clock.now() + 2_000).toISOString());
	assert.equal(breaker.retryMs, 3_500);
	await clock.advance(1_999);
	assert.deepEqual(probedAt, []);
	await clock.advance(1);
	assert.equal(breaker.state, "half-open");
	assert.equal(breaker.isUnavailable, true);
	assert.equal(await fixture.say("answered"), false, "half-open takes no requests either");
	assert.equal(breaker.retryMs, 1_500);
	// Good ones follow each other twice as fast.
	await clock.advance(500);
	// One bad word, and the count begins again; the next hold is no longer for it.
	fixture.found = "httpStatus";
	await clock.advance(500);
	assert.equal(breaker.state, "open");
	fixture.found = "ok";
	await clock.advance(1_000);
	assert.equal(breaker.state, "half-open");
	await clock.advance(1_000);
	assert.equal(breaker.state, "closed");
	assert.equal(breaker.isUnavailable, false);
	assert.equal(breaker.retryMs, 0);
	assert.deepEqual(
		probedAt.map((at) => at - 10_000),
		[2_000, 2_500, 3_000, 4_000, 4_500, 5_000],
	);
	assert.deepEqual(fixture.changes, ["open", "half-open", "open", "half-open", "closed"]);
	assert.deepEqual(breaker.status(), {
		state: "closed",
		reason: null,
		since: new Date(clock.now()).toISOString(),
		nextProbeAt: new Date(clock.now() + 1_000).toISOString(),
		inFlight: 0,
		oldestInFlightMs: 0,
	});
	assert.equal(await fixture.say("answered"), true);
});

test("during a long outage the recovery stays as quick as at its begin", async (t) => {
	const fixture = new BreakerFixture(t);
	fixture.found = "hang";
	await fixture.say("refused");
	await fixture.clock.advance(3_600_000);
	fixture.found = "ok";
	await fixture.clock.advance(fixture.options.probeSuccesses * fixture.options.probeIntervalMs + 500);
	assert.equal(fixture.breaker.state, "closed", now(fixture));
	assert.equal(fixture.mostProbes, 1);
});

test("after it was closed one fault of any kind opens it again, for twice as long each time", async (t) => {
	const fixture = new BreakerFixture(t, { holdMaxMs: 10_000 });
	const { breaker, clock } = fixture;
	const holds: number[] = [];
	await fixture.openAndClose();
	for (const fault of [...CHARGED, "refused"] as const) {
		await fixture.say("answered");
		await fixture.say(fault);
		assert.equal(fixture.trips.at(-1), fault);
		holds.push(Date.parse(breaker.status().nextProbeAt ?? "") - clock.now());
		while (breaker.isUnavailable) await clock.advance(100);
	}
	assert.deepEqual(holds, [4_000, 8_000, 10_000, 10_000, 10_000]);
	// The probation is over: three again, and the first hold again.
	await clock.advance(20_000);
	for (const _ of [1, 2]) await fixture.say("reset");
	assert.equal(breaker.state, "closed");
	await fixture.say("reset");
	assert.equal(Date.parse(breaker.status().nextProbeAt ?? "") - clock.now(), 2_000);
});

test("a read's time-out and -32603 are no relapse", async (t) => {
	const fixture = new BreakerFixture(t);
	await fixture.openAndClose();
	await fixture.say("timeout", "read");
	await fixture.say("internal", "submission", "0xa");
	await fixture.say("cut");
	assert.deepEqual(fixture.trips, ["refused"]);
});

test("the hold is longer or shorter by a fifth at most, and never beyond its maximum", async (t) => {
	const holdOf = async (random: number, holdMaxMs = 60_000) => {
		const fixture = new BreakerFixture(t, { holdMaxMs }, () => random);
		await fixture.say("refused");
		return Math.round(Date.parse(fixture.breaker.status().nextProbeAt ?? "") - fixture.clock.now());
	};
	assert.equal(await holdOf(0), 1_600);
	assert.equal(await holdOf(0.999_999), 2_399);
	assert.equal(await holdOf(0.999_999, 2_000), 2_000);
});

test("opening aborts all that is under way, and charges nobody for it", async (t) => {
	const fixture = new BreakerFixture(t);
	const hanging = [fixture.send(), fixture.send("read"), fixture.send()];
	await fixture.clock.advance(70);
	assert.equal(fixture.breaker.status().inFlight, 3);
	assert.equal(fixture.breaker.status().oldestInFlightMs, 70);
	let aborts = 0;
	for (const { abort } of hanging) abort?.onAbort(() => aborts++);
	await fixture.say("refused");
	assert.equal(aborts, 3);
	assert.ok(
		hanging.every(({ abort }) => abort?.isAborted),
		"each one can see that it was aborted",
	);
	for (const attempt of hanging) attempt.end("cut");
	await fixture.clock.advance(0);
	assert.equal(fixture.breaker.status().inFlight, 0);
	assert.deepEqual(fixture.trips, ["refused"]);
});

test("stragglers of an older state neither close it, nor open it, nor end a row", async (t) => {
	const fixture = new BreakerFixture(t);
	const [late, ...faulty] = [1, 2, 3, 4].map(() => fixture.send());
	await fixture.say("refused");
	late?.end("answered");
	await fixture.clock.advance(0);
	assert.equal(fixture.breaker.state, "open", "a late answer closes nothing");
	while (fixture.breaker.isUnavailable) await fixture.clock.advance(100);
	for (const attempt of faulty) attempt.end("refused");
	await fixture.clock.advance(0);
	assert.deepEqual(fixture.trips, ["refused"], "late faults open nothing, not even in the probation");

	const row = new BreakerFixture(t);
	const [later] = [row.send()];
	row.breaker.force("closed");
	row.breaker.force(null);
	for (const _ of [1, 2]) await row.say("httpStatus");
	later.end("answered");
	await row.say("httpStatus");
	assert.deepEqual(row.trips, ["faults"]);
});

test("what went before an opening counts no more once it is closed again", async (t) => {
	const fixture = new BreakerFixture(t);
	fixture.breaker.start();
	for (const _ of [1, 2]) await fixture.say("reset");
	await fixture.clock.advance(100);
	// A doubt of the probe.
	fixture.found = "hang";
	await fixture.clock.advance(1_000);
	await fixture.say("answered", "read");
	await fixture.clock.advance(450);
	await fixture.openAndClose();
	const next = fixture.send();
	assert.equal(next.abort?.isAborted, false, "the next attempts have a switch of their own");
	next.end("answered");
	fixture.found = "hang";
	await fixture.clock.advance(1_100);
	await fixture.say("answered", "read");
	fixture.found = "ok";
	await fixture.clock.advance(10_000);
	for (const _ of [1, 2]) await fixture.say("reset");
	assert.deepEqual(fixture.trips, ["refused"]);
});

test("a probe's time-out is asked again where our own clock stood still", async (t) => {
	const fixture = new BreakerFixture(t);
	const { clock, options } = fixture;
	const monotonic = clock.monotonic.bind(clock);
	let stoodMs = 0;
	clock.monotonic = () => monotonic() + stoodMs;
	const words: ProbeResult[] = ["timeout", "ok", "timeout", "timeout"];
	fixture.instead = async () => {
		stoodMs += 1.6 * options.probeTimeoutMs;
		return words.shift() ?? "ok";
	};
	fixture.breaker.start();
	await clock.advance(0);
	assert.deepEqual(fixture.words, ["timeout", "ok"]);
	assert.deepEqual(fixture.trips, []);
	await clock.advance(1_000);
	assert.deepEqual(fixture.trips, ["timeout"], "but not twice in a row");
});

test("a probe that began before it opened does not count when it ends", async (t) => {
	const fixture = new BreakerFixture(t, { holdMs: 100 });
	fixture.probeMs = 400;
	fixture.breaker.start();
	await fixture.clock.advance(50);
	await fixture.say("refused");
	await fixture.clock.advance(349);
	assert.deepEqual(fixture.probedAt, [0], "the next one waits for its end");
	await fixture.clock.advance(1);
	assert.equal(fixture.breaker.state, "open");
	assert.deepEqual(fixture.probedAt, [0, 400]);
	assert.equal(fixture.mostProbes, 1);
});

test("what an attempt throws is thrown on, and is nobody's fault", async (t) => {
	const fixture = new BreakerFixture(t);
	for (let i = 0; i < 5; i++) {
		const attempt = fixture.send();
		const fault = new Error("ours");
		attempt.fail(fault);
		await fixture.clock.advance(0);
		assert.equal(attempt.thrown, fault);
	}
	const sync = new Error("at once");
	await assert.rejects(
		fixture.breaker.run("read", () => {
			throw sync;
		}),
		sync,
	);
	assert.deepEqual(fixture.trips, []);
	assert.equal(fixture.breaker.status().inFlight, 0);
});

test("answers keep all that an attempt says, faults too", async (t) => {
	const { breaker } = new BreakerFixture(t);
	const said = { outcome: "httpStatus", body: Buffer.from("x") } as const;
	assert.equal(await breaker.run("submission", async () => said), said);
});

test("what was noted elsewhere counts as a read", async (t) => {
	const fixture = new BreakerFixture(t);
	for (let i = 0; i < 10; i++) fixture.breaker.note({ outcome: "timeout" });
	for (const _ of [1, 2]) fixture.breaker.note({ outcome: "httpStatus" });
	fixture.breaker.note({ outcome: "answered" });
	for (const _ of [1, 2]) fixture.breaker.note({ outcome: "httpStatus" });
	assert.deepEqual(fixture.trips, []);
	fixture.breaker.note({ outcome: "refused" });
	assert.deepEqual(fixture.trips, ["refused"]);
	fixture.breaker.note({ outcome: "refused" });
	fixture.breaker.note({ outcome: "answered" });
	assert.deepEqual(fixture.trips, ["refused"]);
	assert.equal(fixture.breaker.state, "open");
});

test("a listener that throws holds up nobody", async (t) => {
	const fixture = new BreakerFixture(t);
	fixture.breaker.onChange(() => {
		throw new Error("a listener's");
	});
	const hanging = fixture.send();
	let aborted = false;
	hanging.abort?.onAbort(() => {
		throw new Error("another's");
	});
	hanging.abort?.onAbort(() => {
		aborted = true;
	});
	await fixture.openAndClose();
	assert.equal(aborted, true);
	assert.equal(fixture.breaker.state, "closed");
});

test("stop joins the probe under way and leaves no timer; nothing is let in after it", async (t) => {
	const fixture = new BreakerFixture(t);
	fixture.found = "hang";
	fixture.breaker.start();
	const hanging = fixture.send();
	await fixture.clock.advance(100);
	let stopped = false;
	const stopping = fixture.breaker.stop().then(() => {
		stopped = true;
	});
	await fixture.clock.advance(399);
	assert.equal(stopped, false);
	await fixture.clock.advance(1);
	await stopping;
	assert.equal(fixture.clock.timers, 0);
	assert.equal(hanging.abort?.isAborted, false, "what is under way goes on");
	hanging.end("refused");
	assert.equal(await fixture.say("answered"), false);
	fixture.breaker.force("closed");
	assert.equal(fixture.breaker.isUnavailable, true);
	assert.deepEqual(fixture.trips, []);
});
