// States that an operator has forced: they last until `auto`, whatever requests and probes say, and leave nothing behind.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BreakerFixture } from "../../../support/breakerFixture.ts";

test("forced open it takes nothing and asks nothing until auto, and then begins anew", async (t) => {
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

test("a probe that was under way when a state was forced changes nothing, and auto waits for its end", async (t) => {
	const fixture = new BreakerFixture(t);
	const { breaker, clock } = fixture;
	fixture.found = "hang";
	breaker.start();
	await clock.advance(100);
	breaker.force("closed");
	await clock.advance(100);
	breaker.force(null);
	fixture.found = "ok";
	await clock.advance(299);
	assert.deepEqual(fixture.probedAt, [0]);
	await clock.advance(1);
	assert.deepEqual(fixture.probedAt, [0, 500]);
	assert.equal(breaker.state, "closed");
	assert.deepEqual(fixture.trips, []);
	assert.equal(fixture.mostProbes, 1);
});

test("auto without a forced state changes nothing: only the probe closes", async (t) => {
	const fixture = new BreakerFixture(t);
	await fixture.say("refused");
	fixture.breaker.force(null);
	assert.equal(fixture.breaker.state, "open");
	fixture.breaker.force("open");
	fixture.breaker.force("open");
	assert.deepEqual(fixture.changes, ["open", "open"]);
});

test("after auto the first fault is no relapse", async (t) => {
	const fixture = new BreakerFixture(t);
	await fixture.openAndClose();
	fixture.breaker.force("closed");
	fixture.breaker.force(null);
	await fixture.say("httpStatus");
	assert.equal(fixture.breaker.state, "closed");
});
