// What opens a breaker, and what never does: each kind of fault, the row, the storm, and what the probe finds while it is
// closed. Silence has a file of its own.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProbeResult } from "../../../../boost-proxy/domain/ports.ts";
import { FAULTS } from "../../../../boost-proxy/domain/request.ts";
import { BreakerFixture } from "../../../support/breakerFixture.ts";

const KINDS = ["submission", "read"] as const;
/** Faults that count in a row wherever they come from; time-outs have their own tests. */
const CHARGED = ["reset", "httpStatus", "notJsonRpc", "wrongHash"] as const;

/** What it is that brought it to this. */
const now = ({ breaker, trips }: BreakerFixture) =>
	`${breaker.state} ${trips.join()} ${JSON.stringify(breaker.status())}`;

test("one refused request opens it, of whatever kind", async (t) => {
	for (const kind of KINDS) {
		const fixture = new BreakerFixture(t);
		await fixture.say("refused", kind);
		assert.deepEqual(fixture.trips, ["refused"]);
		assert.equal(fixture.breaker.state, "open");
		assert.equal(await fixture.say("answered", kind), false, "nothing is let in while it is open");
	}
});

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

test("a submission's time-out counts in the row where others were answered, and opens it where none was", async (t) => {
	const answering = new BreakerFixture(t);
	for (const _ of [1, 2, 3]) {
		assert.equal(answering.breaker.isUnavailable, false, now(answering));
		const slow = answering.send();
		await answering.say("answered", "read");
		await answering.clock.advance(answering.options.shareMs);
		slow.end("timeout");
		await answering.clock.advance(0);
	}
	assert.deepEqual(answering.trips, ["faults"]);

	const silent = new BreakerFixture(t);
	await silent.say("answered", "read");
	await silent.say("timeout", "submission", undefined, silent.options.shareMs);
	assert.deepEqual(silent.trips, ["silence"]);
});

test("what is nobody's fault never opens it", async (t) => {
	const fixture = new BreakerFixture(t);
	const { shareMs } = fixture.options;
	for (let i = 0; i < 50; i++) {
		await fixture.say("answered");
		await fixture.say("cut");
		await fixture.say("cut", "read");
		await fixture.say("internal", "submission", "0xa");
		// A full pool of our own relay's: about that one request.
		await fixture.say("limited");
		// Our own budget was at its end.
		await fixture.say("timeout", "submission", undefined, shareMs / 4);
		await fixture.say("timeout", "read", undefined, shareMs / 2);
	}
	assert.deepEqual(fixture.trips, []);
});

test("a third party's limits are faults in the row", async (t) => {
	const fixture = new BreakerFixture(t, { upstream: "fallback", storm: null });
	for (const _ of [1, 2, 3]) await fixture.say("limited");
	assert.deepEqual(fixture.trips, ["faults"]);
});

test("a storm of -32603 opens it; without a limit for it nothing of them does", async (t) => {
	for (const storm of [5, null]) {
		const fixture = new BreakerFixture(t, { storm });
		for (const sender of ["0xa", "0xb", "0xc", "0xd", "0xe"]) {
			assert.deepEqual(fixture.trips, []);
			await fixture.say("internal", "submission", sender);
		}
		assert.deepEqual(fixture.trips, storm === null ? [] : ["storm"]);
	}
});

test("a fault starts a probe at once, but one that is no fault does not", async (t) => {
	for (const fault of FAULTS) {
		const fixture = new BreakerFixture(t);
		fixture.breaker.start();
		await fixture.clock.advance(300);
		fixture.found = "notReady";
		await fixture.say("answered");
		await fixture.say("cut");
		assert.deepEqual(fixture.probedAt, [0], fault);
		await fixture.say(fault, "read");
		if (fault === "refused") continue;
		assert.deepEqual(fixture.probedAt, [0, 300], fault);
		assert.deepEqual(fixture.trips, ["notReady"], fault);
	}
});

test("a swarm of faults starts one probe after another, a moment apart", async (t) => {
	const fixture = new BreakerFixture(t);
	fixture.breaker.start();
	await fixture.clock.advance(200);
	for (let i = 0; i < 100; i++) {
		await fixture.say("timeout", "read");
		await fixture.clock.advance(1);
	}
	assert.deepEqual(fixture.probedAt, [0, 200, 250, 300]);
});

test("it is probed while it is closed, and opens with the probe's reason", async (t) => {
	const words: readonly Exclude<ProbeResult, "ok">[] = [...FAULTS, "staleHead", "notReady"];
	for (const word of words) {
		const fixture = new BreakerFixture(t);
		fixture.breaker.start();
		await fixture.clock.advance(2_500);
		assert.deepEqual(fixture.probedAt, [0, 1_000, 2_000]);
		fixture.found = word;
		await fixture.clock.advance(500);
		assert.deepEqual(fixture.trips, [word]);
		assert.equal(fixture.breaker.status().reason, word);
	}
});

test("a probe's time-out opens it where nobody was answered meanwhile; else the next one does", async (t) => {
	const fixture = new BreakerFixture(t);
	fixture.breaker.start();
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

test("a doubt of a probe is over with the next good word", async (t) => {
	const fixture = new BreakerFixture(t);
	fixture.breaker.start();
	for (const _ of [1, 2, 3]) {
		fixture.found = "hang";
		await fixture.clock.advance(1_000);
		await fixture.say("answered");
		fixture.found = "ok";
		await fixture.clock.advance(500);
	}
	assert.deepEqual(fixture.trips, []);
	assert.deepEqual(fixture.words, ["ok", "timeout", "ok", "timeout", "ok", "timeout", "ok"]);
});
