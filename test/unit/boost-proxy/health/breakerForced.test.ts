// States that an operator has forced: they last until `auto`, whatever requests and probes say, and leave nothing behind.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BreakerScene } from "../../../support/breakerScene.ts";

test("forced open it takes nothing and asks nothing until auto, and then begins anew", async (t) => {
	const scene = new BreakerScene(t);
	const { breaker, clock } = scene;
	breaker.start();
	const hanging = scene.send();
	await clock.advance(500);
	breaker.force("open");
	assert.equal(hanging.abort?.isAborted, true);
	assert.equal(await scene.say("answered"), false);
	await clock.advance(600_000);
	assert.deepEqual(scene.probedAt, [0]);
	assert.equal(breaker.state, "open");
	assert.equal(breaker.status().reason, "forced");
	assert.equal(breaker.status().nextProbeAt, null);
	assert.ok(breaker.retryMs >= 1, `${breaker.retryMs}`);
	breaker.force(null);
	assert.equal(breaker.isOut, false);
	assert.equal(breaker.status().reason, null);
	assert.deepEqual(scene.probedAt, [0, 600_500], "a probe at once");
	await clock.advance(1_000);
	assert.deepEqual(scene.probedAt, [0, 600_500, 601_500]);
	assert.deepEqual(scene.changes, ["open", "closed"]);
	assert.deepEqual(scene.trips, ["forced"]);
});

test("forced closed it takes requests whatever happens", async (t) => {
	const scene = new BreakerScene(t);
	scene.found = "refused";
	await scene.say("refused");
	scene.breaker.force("closed");
	assert.equal(scene.breaker.isOut, false);
	assert.equal(scene.breaker.state, "closed");
	for (let i = 0; i < 20; i++) {
		assert.equal(await scene.say("refused"), true);
		assert.equal(await scene.say("internal", "submission", `0x${i}`), true);
		scene.breaker.note({ outcome: "refused" });
	}
	await scene.clock.advance(100_000);
	assert.deepEqual(scene.probedAt, []);
	assert.deepEqual(scene.trips, ["refused"]);
	scene.breaker.force(null);
	await scene.clock.advance(0);
	assert.equal(scene.breaker.state, "open", "its probe finds it out at once");
});

test("a probe that was under way when a state was forced changes nothing, and auto waits for its end", async (t) => {
	const scene = new BreakerScene(t);
	const { breaker, clock } = scene;
	scene.found = "hang";
	breaker.start();
	await clock.advance(100);
	breaker.force("closed");
	await clock.advance(100);
	breaker.force(null);
	scene.found = "ok";
	await clock.advance(299);
	assert.deepEqual(scene.probedAt, [0]);
	await clock.advance(1);
	assert.deepEqual(scene.probedAt, [0, 500]);
	assert.equal(breaker.state, "closed");
	assert.deepEqual(scene.trips, []);
	assert.equal(scene.mostProbes, 1);
});

test("auto without a forced state changes nothing: only the probe closes", async (t) => {
	const scene = new BreakerScene(t);
	await scene.say("refused");
	scene.breaker.force(null);
	assert.equal(scene.breaker.state, "open");
	scene.breaker.force("open");
	scene.breaker.force("open");
	assert.deepEqual(scene.changes, ["open", "open"]);
});

test("after auto the first fault is no relapse", async (t) => {
	const scene = new BreakerScene(t);
	await scene.openAndClose();
	scene.breaker.force("closed");
	scene.breaker.force(null);
	await scene.say("httpStatus");
	assert.equal(scene.breaker.state, "closed");
});
