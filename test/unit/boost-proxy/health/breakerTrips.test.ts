// What opens a breaker, and what never does: each kind of fault, the row, the storm, and what the probe finds while it is
// closed. Silence has a file of its own.

import assert from "node:assert/strict";
import { test } from "node:test";
import { FAULTS } from "../../../../boost-proxy/domain/delivery.ts";
import type { ProbeResult } from "../../../../boost-proxy/domain/ports.ts";
import { BreakerScene } from "../../../support/breakerScene.ts";

const KINDS = ["submission", "read"] as const;
/** Faults that count in a row wherever they come from; time-outs have their own tests. */
const CHARGED = ["reset", "httpStatus", "notJsonRpc", "wrongHash"] as const;

/** What it is that brought it to this. */
const now = ({ breaker, trips }: BreakerScene) =>
	`${breaker.state} ${trips.join()} ${JSON.stringify(breaker.status())}`;

test("one refused request opens it, of whatever kind", async (t) => {
	for (const kind of KINDS) {
		const scene = new BreakerScene(t);
		await scene.say("refused", kind);
		assert.deepEqual(scene.trips, ["refused"]);
		assert.equal(scene.breaker.state, "open");
		assert.equal(await scene.say("answered", kind), false, "nothing is let in while it is open");
	}
});

test("other faults open it when they come in a row", async (t) => {
	for (const kind of KINDS) {
		for (const fault of CHARGED) {
			const scene = new BreakerScene(t);
			for (const _ of [1, 2]) await scene.say(fault, kind);
			await scene.say("answered", kind);
			for (const _ of [1, 2]) await scene.say(fault, kind);
			assert.equal(scene.breaker.isOut, false, `${kind} ${fault}: ${now(scene)}`);
			await scene.say(fault, kind);
			assert.deepEqual(scene.trips, ["faults"], `${kind} ${fault}`);
		}
	}
});

test("a read's answer does not end the row of submissions, nor the other way round", async (t) => {
	for (const [kind, other] of [KINDS, [...KINDS].reverse()] as const) {
		const scene = new BreakerScene(t);
		for (const _ of [1, 2, 3]) {
			await scene.say("answered", other);
			await scene.say("httpStatus", kind);
		}
		assert.deepEqual(scene.trips, ["faults"], kind);
	}
});

test("a submission's time-out counts in the row where others were answered, and opens it where none was", async (t) => {
	const answering = new BreakerScene(t);
	for (const _ of [1, 2, 3]) {
		assert.equal(answering.breaker.isOut, false, now(answering));
		const slow = answering.send();
		await answering.say("answered", "read");
		await answering.clock.advance(answering.options.shareMs);
		slow.end("timeout");
		await answering.clock.advance(0);
	}
	assert.deepEqual(answering.trips, ["faults"]);

	const silent = new BreakerScene(t);
	await silent.say("answered", "read");
	await silent.say("timeout", "submission", undefined, silent.options.shareMs);
	assert.deepEqual(silent.trips, ["silence"]);
});

test("what is nobody's fault never opens it", async (t) => {
	const scene = new BreakerScene(t);
	const { shareMs } = scene.options;
	for (let i = 0; i < 50; i++) {
		await scene.say("answered");
		await scene.say("cut");
		await scene.say("cut", "read");
		await scene.say("internal", "submission", "0xa");
		// A full pool of our own relay's: about that one request.
		await scene.say("limited");
		// Our own budget was at its end.
		await scene.say("timeout", "submission", undefined, shareMs / 4);
		await scene.say("timeout", "read", undefined, shareMs / 2);
	}
	assert.deepEqual(scene.trips, []);
});

test("a third party's limits are faults in the row", async (t) => {
	const scene = new BreakerScene(t, { upstream: "fallback", storm: null });
	for (const _ of [1, 2, 3]) await scene.say("limited");
	assert.deepEqual(scene.trips, ["faults"]);
});

test("a storm of -32603 opens it; without a limit for it nothing of them does", async (t) => {
	for (const storm of [5, null]) {
		const scene = new BreakerScene(t, { storm });
		for (const sender of ["0xa", "0xb", "0xc", "0xd", "0xe"]) {
			assert.deepEqual(scene.trips, []);
			await scene.say("internal", "submission", sender);
		}
		assert.deepEqual(scene.trips, storm === null ? [] : ["storm"]);
	}
});

test("a fault starts a probe at once, but one that is no fault does not", async (t) => {
	for (const fault of FAULTS) {
		const scene = new BreakerScene(t);
		scene.breaker.start();
		await scene.clock.advance(300);
		scene.found = "notReady";
		await scene.say("answered");
		await scene.say("cut");
		assert.deepEqual(scene.probedAt, [0], fault);
		await scene.say(fault, "read");
		if (fault === "refused") continue;
		assert.deepEqual(scene.probedAt, [0, 300], fault);
		assert.deepEqual(scene.trips, ["notReady"], fault);
	}
});

test("a swarm of faults starts one probe after another, a moment apart", async (t) => {
	const scene = new BreakerScene(t);
	scene.breaker.start();
	await scene.clock.advance(200);
	for (let i = 0; i < 100; i++) {
		await scene.say("timeout", "read");
		await scene.clock.advance(1);
	}
	assert.deepEqual(scene.probedAt, [0, 200, 250, 300]);
});

test("it is probed while it is closed, and opens with the probe's reason", async (t) => {
	const words: readonly Exclude<ProbeResult, "ok">[] = [...FAULTS, "staleHead", "notReady"];
	for (const word of words) {
		const scene = new BreakerScene(t);
		scene.breaker.start();
		await scene.clock.advance(2_500);
		assert.deepEqual(scene.probedAt, [0, 1_000, 2_000]);
		scene.found = word;
		await scene.clock.advance(500);
		assert.deepEqual(scene.trips, [word]);
		assert.equal(scene.breaker.status().reason, word);
	}
});

test("a probe's time-out opens it where nobody was answered meanwhile; else the next one does", async (t) => {
	const scene = new BreakerScene(t);
	scene.breaker.start();
	scene.found = "hang";
	await scene.clock.advance(1_250);
	await scene.say("answered");
	await scene.clock.advance(250);
	assert.deepEqual(scene.trips, []);
	assert.deepEqual(scene.probedAt, [0, 1_000, 1_500], "it is asked again at once");
	await scene.clock.advance(250);
	await scene.say("answered");
	await scene.clock.advance(250);
	assert.deepEqual(scene.trips, ["timeout"]);

	const quiet = new BreakerScene(t);
	await quiet.say("answered");
	quiet.found = "hang";
	quiet.breaker.start();
	await quiet.clock.advance(500);
	assert.deepEqual(quiet.trips, ["timeout"]);
});

test("a doubt of a probe is over with the next good word", async (t) => {
	const scene = new BreakerScene(t);
	scene.breaker.start();
	for (const _ of [1, 2, 3]) {
		scene.found = "hang";
		await scene.clock.advance(1_000);
		await scene.say("answered");
		scene.found = "ok";
		await scene.clock.advance(500);
	}
	assert.deepEqual(scene.trips, []);
	assert.deepEqual(scene.words, ["ok", "timeout", "ok", "timeout", "ok", "timeout", "ok"]);
});
