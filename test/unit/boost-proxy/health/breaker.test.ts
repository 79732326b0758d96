// The faults that open a breaker, the probes that close it, relapses, and forced states. Stalls are
// in breaker.stalls.test.ts.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProbeResult } from "../../../../boost-proxy/domain/ports.ts";
import { FAULTS } from "../../../../boost-proxy/domain/request.ts";
import { BreakerFixture } from "../../../support/breakerFixture.ts";

const KINDS = ["submission", "read"] as const;
/** Faults that count in a row wherever they come from; time-outs have their own tests. */
const CHARGED = ["reset", "httpStatus", "notJsonRpc", "wrongHash"] as const;

/** The breaker's state, the trips so far, and its status. */
const now = ({ breaker, trips }: BreakerFixture) =>
	`${breaker.state} ${trips.join()} ${JSON.stringify(breaker.status())}`;

test("other faults open it when they come in a row", async (t) => {
	for (const kind of KINDS) {
		for (const fault of CHARGED) {
			const fixture = new BreakerFixture(t);
			for (const _ of [1, 2]) await fixture.say(fault, kind);
			await fixture.say("answered", kind);
			for (const _ of [1, 2]) await fixture.say(fault, kind);
			assert.equal(fixture.breaker.isUnavailable, false, `${kind} ${fault}: ${now(fixture)}`);
			await fixture.say(fault, kind);
			assert.deepEqual(fixture.trips, ["faults"], `${kind} ${fault}`);
		}
	}
});

test("a read's answer does not end the row of submissions, nor the other way round", async (t) => {
	for (const [kind, other] of [KINDS, [...KINDS].reverse()] as const) {
		const fixture = new BreakerFixture(t);
		for (const _ of [1, 2, 3]) {
			await fixture.say("answered", other);
			await fixture.say("httpStatus", kind);
		}
		assert.deepEqual(fixture.trips, ["faults"], kind);
	}
});

test("it is probed while it is closed, and opens with the probe's reason", async (t) => {
	const results: readonly Exclude<ProbeResult, "ok">[] = [...FAULTS, "staleHead", "notReady", "node"];
	for (const result of results) {
		const fixture = new BreakerFixture(t);
		fixture.breaker.start();
		await fixture.clock.advance(2_500);
		assert.deepEqual(fixture.probedAt, [0, 1_000, 2_000]);
		fixture.found = result;
		await fixture.clock.advance(500);
		// One of several that drains still serves.
		if (result === "notReady") {
			assert.deepEqual(fixture.trips, []);
			await fixture.clock.advance(1_000);
			assert.deepEqual(fixture.probedAt.slice(3), [3_000, 3_500, 4_000]);
		}
		assert.deepEqual(fixture.trips, [result]);
		assert.equal(fixture.breaker.status().reason, result);
	}
});

test("the latest cause that a probe finds is why it is open, with what to look at", async (t) => {
	const fixture = new BreakerFixture(t);
	fixture.breaker.start();
	await fixture.clock.advance(0);
	fixture.found = "refused";
	await fixture.clock.advance(1_000);
	for (const [found, reason, hint] of [
		["reset", "reset", null],
		["httpStatus", "httpStatus", "where to look"],
		["node", "node", "its own words"],
		["loop", "loop", "where to look"],
		["timeout", "timeout", null],
	] as const) {
		fixture.found = found;
		await fixture.clock.advance(5_000);
		const status = fixture.breaker.status();
		assert.deepEqual([status.state, status.reason, status.hint], ["open", reason, hint]);
	}
	assert.deepEqual(fixture.trips, ["refused"], "it has opened once");
});

test("a probe's time-out opens it where nobody was answered meanwhile; else the next one does", async (t) => {
	const fixture = new BreakerFixture(t);
	fixture.breaker.start();
	await fixture.clock.advance(0);
	fixture.found = "hang";
	await fixture.clock.advance(1_250);
	await fixture.say("answered");
	await fixture.clock.advance(250);
	assert.deepEqual(fixture.trips, []);
	assert.deepEqual(fixture.probedAt, [0, 1_000, 1_500], "it is asked again at once");
	await fixture.clock.advance(250);
	await fixture.say("answered");
	await fixture.clock.advance(250);
	assert.deepEqual(fixture.trips, ["timeout"]);

	const quiet = new BreakerFixture(t);
	await quiet.say("answered");
	quiet.found = "hang";
	quiet.breaker.start();
	await quiet.clock.advance(500);
	assert.deepEqual(quiet.trips, ["timeout"]);
});

test("once open it is not probed during its hold, then successes in a row close it", async (t) => {
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
	// Twice as often as while it is closed.
	await clock.advance(500);
	// A failed probe restarts the count; the next hold does not grow.
	fixture.found = "httpStatus";
	await clock.advance(500);
	assert.equal(breaker.state, "open");
	fixture.found = "ok";
	await clock.advance(500);
	assert.equal(breaker.state, "half-open");
	await clock.advance(1_000);
	assert.equal(breaker.state, "closed");
	assert.equal(breaker.isUnavailable, false);
	assert.equal(breaker.retryMs, 0);
	assert.deepEqual(
		probedAt.map((at) => at - 10_000),
		[2_000, 2_500, 3_000, 3_500, 4_000, 4_500],
	);
	assert.deepEqual(fixture.changes, ["open", "half-open", "open", "half-open", "closed"]);
	assert.deepEqual(breaker.status(), {
		state: "closed",
		reason: null,
		hint: null,
		since: new Date(clock.now()).toISOString(),
		nextProbeAt: new Date(clock.now() + 1_000).toISOString(),
		inFlight: 0,
		oldestInFlightMs: 0,
	});
	assert.equal(await fixture.say("answered"), true);
});

test("after it was closed one fault that two clients meet opens it again, for twice as long each time", async (t) => {
	const fixture = new BreakerFixture(t, { maxBackoffMs: 10_000 });
	const { breaker, clock } = fixture;
	const holds: number[] = [];
	await fixture.openAndClose();
	for (const fault of [...CHARGED, "refused"] as const) {
		await fixture.say("answered");
		for (const one of [fixture.send(), fixture.send()]) one.end(fault);
		await clock.advance(0);
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

test("opening aborts all in flight, which is not counted", async (t) => {
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
	for (const attempt of hanging) attempt.end("aborted");
	await fixture.clock.advance(0);
	assert.equal(fixture.breaker.status().inFlight, 0);
	assert.deepEqual(fixture.trips, ["refused"]);
});

test("an upstream that never answered is closed by the first good probe", async (t) => {
	const fixture = new BreakerFixture(t, { isNew: true });
	fixture.found = "refused";
	fixture.breaker.start();
	await fixture.clock.advance(0);
	assert.equal(fixture.breaker.isUnavailable, true);
	await fixture.clock.advance(2_500);
	assert.equal(fixture.breaker.isUnavailable, true, "it is still refused");
	fixture.found = "ok";
	await fixture.clock.advance(1_000);
	assert.equal(fixture.breaker.isUnavailable, false);
	await fixture.say("refused");
	fixture.found = "ok";
	await fixture.clock.advance(2_500);
	assert.equal(fixture.breaker.isUnavailable, true, "from then on it has to hold, and to prove itself");
	await fixture.clock.advance(4_000);
	assert.equal(fixture.breaker.isUnavailable, false);
});

test("forced open it takes nothing and is not probed until auto", async (t) => {
	const fixture = new BreakerFixture(t);
	const { breaker, clock } = fixture;
	breaker.start();
	const hanging = fixture.send();
	await clock.advance(500);
	breaker.force("open");
	assert.equal(hanging.abort?.isAborted, true);
	assert.equal(await fixture.say("answered"), false);
	await clock.advance(600_000);
	assert.deepEqual(fixture.probedAt, [0]);
	assert.equal(breaker.state, "open");
	assert.equal(breaker.status().reason, "forced");
	assert.equal(breaker.status().nextProbeAt, null);
	assert.ok(breaker.retryMs >= 1, `${breaker.retryMs}`);
	breaker.force(null);
	assert.equal(breaker.isUnavailable, false);
	assert.equal(breaker.status().reason, null);
	await fixture.clock.advance(0);
	assert.deepEqual(fixture.probedAt, [0, 600_500], "a probe at once");
	await clock.advance(1_000);
	assert.deepEqual(fixture.probedAt, [0, 600_500, 601_500]);
	assert.deepEqual(fixture.changes, ["open", "closed"]);
	assert.deepEqual(fixture.trips, ["forced"]);
});

test("forced closed it takes requests whatever happens", async (t) => {
	const fixture = new BreakerFixture(t);
	fixture.found = "refused";
	await fixture.say("refused");
	fixture.breaker.force("closed");
	assert.equal(fixture.breaker.isUnavailable, false);
	assert.equal(fixture.breaker.state, "closed");
	for (let i = 0; i < 20; i++) {
		assert.equal(await fixture.say("refused"), true);
		assert.equal(await fixture.say("internal", "submission", `0x${i}`), true);
		fixture.breaker.note({ outcome: "refused" });
	}
	await fixture.clock.advance(100_000);
	assert.deepEqual(fixture.probedAt, []);
	assert.deepEqual(fixture.trips, ["refused"]);
	fixture.breaker.force(null);
	await fixture.clock.advance(0);
	assert.equal(fixture.breaker.state, "open", "its probe finds it out at once");
});

for (const isFound of [true, false]) {
	test(`one client's faults alone do not open it: boost's own check does, if it ${isFound ? "fails" : "passes"}, too`, async (t) => {
		for (const fault of [...CHARGED, "loop", "internal"] as const) {
			for (const kind of KINDS) {
				const fixture = new BreakerFixture(t);
				fixture.client = "198.51.100.7";
				fixture.breaker.start();
				await fixture.clock.advance(100);
				const before = fixture.thorough.length;
				fixture.found = isFound ? "httpStatus" : "ok";
				for (let i = 0; i < 10 && fixture.trips.length === 0; i++) {
					await fixture.say(fault, kind, `0x${i}`);
					assert.equal(fixture.thorough.at(before), true, "it is asked at once, as a submission would");
					await fixture.clock.advance(100);
				}
				assert.deepEqual(fixture.trips, isFound ? ["httpStatus"] : [], `${kind} ${fault}`);
				if (isFound) continue;
				// Another client meets the same.
				fixture.client = "198.51.100.8";
				await fixture.say(fault, kind, "0xb");
				const isAnswer = fault === "internal";
				const reason = isAnswer
					? kind === "submission"
						? ["storm"]
						: []
					: fault === "loop"
						? [fault]
						: ["faults"];
				assert.deepEqual(fixture.trips, reason, `${kind} ${fault}`);
			}
		}
	});
}

test("one network's addresses are one client", async (t) => {
	const fixture = new BreakerFixture(t);
	for (const client of ["2001:db8:1:1::1", "2001:db8:1:2::2", "2001:db8:1:3::3", "2001:db8:1:4::4"]) {
		fixture.client = client;
		await fixture.say("reset", "submission", undefined, 100);
	}
	assert.deepEqual(fixture.trips, []);
	fixture.client = "2001:db8:2:1::1";
	await fixture.say("reset", "submission", undefined, 100);
	assert.deepEqual(fixture.trips, ["faults"]);
});

test("submissions wait for one check of what would have opened it, however often one client meets it", async (t) => {
	const fixture = new BreakerFixture(t);
	fixture.probeMs = 100;
	fixture.breaker.start();
	await fixture.clock.advance(150);
	fixture.client = "198.51.100.7";
	for (const _ of [1, 2, 3]) fixture.send().end("reset");
	await fixture.clock.advance(0);
	const [other, read] = [fixture.send(), fixture.send("read")];
	assert.deepEqual([other.isBegun, read.isBegun], [false, true]);
	for (let ms = 0; ms < 200; ms += 10) {
		fixture.send("read").end("answered");
		await fixture.clock.advance(10);
		assert.equal(other.isBegun, ms >= 90, `after ${ms} ms`);
		fixture.send("read").end("reset");
	}
	fixture.other.isUnavailable = true;
	for (const _ of [1, 2, 3]) fixture.send("read").end("reset");
	await fixture.clock.advance(0);
	assert.equal(fixture.send().isBegun, true, "nobody else takes it");
});

test("a check that began before a fault does not speak for the time after it", async (t) => {
	const fixture = new BreakerFixture(t);
	fixture.client = "198.51.100.7";
	fixture.probeMs = 200;
	fixture.breaker.start();
	await fixture.clock.advance(100);
	await fixture.say("reset");
	await fixture.clock.advance(100);
	assert.deepEqual(fixture.probedAt, [0, 200], "the next one begins when that one ends");
	assert.deepEqual(fixture.thorough, [false, true]);
	await fixture.clock.advance(250);
	assert.deepEqual(fixture.probedAt, [0, 200], "one is enough");
});

test("a relay without an alternative is left only after five seconds of failed checks, and one good check is enough", async (t) => {
	const fixture = new BreakerFixture(t);
	const { breaker, clock, other } = fixture;
	other.isUnavailable = true;
	breaker.start();
	for (const found of ["notReady", "timeout", "node", "refused"] as const) {
		fixture.found = found;
		await clock.advance(4_000);
		for (const outcome of ["refused", "internal", "reset"] as const)
			assert.ok(await fixture.say(outcome), `${found}: it is asked all the same`);
		assert.equal(breaker.state, "closed", found);
		fixture.found = "ok";
		await clock.advance(2_000);
	}
	fixture.found = "refused";
	await clock.advance(7_000);
	assert.deepEqual(fixture.trips, ["refused"]);
	assert.equal(await fixture.say("answered"), false);
	fixture.found = "ok";
	await clock.advance(2_100);
	assert.equal(breaker.state, "closed");
	other.isUnavailable = false;
	await fixture.say("refused");
	assert.equal(breaker.state, "open", "with an alternative a refused connection is enough");
});

test("a relay that has never answered is not waited for, though nobody else can take its requests", async (t) => {
	const fixture = new BreakerFixture(t, { isNew: true });
	fixture.other.isUnavailable = true;
	fixture.found = "refused";
	fixture.breaker.start();
	await fixture.clock.advance(100);
	assert.deepEqual(fixture.trips, ["refused"]);
});

test("of three relays behind a balancer one drains, and is asked by every third probe: nobody is refused", async (t) => {
	const fixture = new BreakerFixture(t);
	fixture.breaker.start();
	let asked = 0;
	const drainsUntil = 1_900;
	fixture.instead = async () => {
		asked += 1;
		return asked % 3 === 1 && fixture.clock.monotonic() < drainsUntil ? "notReady" : "ok";
	};
	await fixture.clock.advance(10_000);
	assert.deepEqual(fixture.trips, []);
	// The only relay says so for longer.
	fixture.instead = async () => "notReady";
	await fixture.clock.advance(2_100);
	assert.deepEqual(fixture.trips, ["notReady"]);
	fixture.instead = async () => "ok";
	await fixture.clock.advance(2_100);
	assert.equal(fixture.breaker.state, "closed", "it says itself when it is ready again");
});
