// An upstream that has never answered, as at each deployment, and one that hangs at submissions alone.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BreakerScene } from "../../../support/breakerScene.ts";

test("one that is only starting is closed by the first good word, an interval after it was refused", async (t) => {
	const scene = new BreakerScene(t, { isNew: true });
	scene.found = "refused";
	scene.breaker.start();
	await scene.clock.advance(0);
	assert.equal(scene.breaker.isOut, true);
	await scene.clock.advance(2_500);
	assert.equal(scene.breaker.isOut, true, "it is still refused");
	scene.found = "ok";
	await scene.clock.advance(1_000);
	assert.equal(scene.breaker.isOut, false);
	await scene.say("refused");
	scene.found = "ok";
	await scene.clock.advance(2_500);
	assert.equal(scene.breaker.isOut, true, "from then on it has to hold, and to prove itself");
	await scene.clock.advance(4_000);
	assert.equal(scene.breaker.isOut, false);
});

test("submissions that hang while all else is well: sixteen wait, the others are not sent, until one is answered", async (t) => {
	const scene = new BreakerScene(t);
	scene.breaker.start();
	const hanging = [];
	for (let i = 0; i < 16; i++) {
		hanging.push(scene.send());
		await scene.clock.advance(10);
		await scene.say("answered", "read");
	}
	await scene.clock.advance(150);
	await scene.say("answered", "read");
	assert.equal(scene.breaker.isChoked, true, "one more went into the hole");
	assert.equal(scene.breaker.isOut, false);
	assert.equal(await scene.say("answered", "read"), true);
	hanging[0]?.end("answered");
	await scene.clock.advance(0);
	assert.equal(scene.breaker.isChoked, false, "it answers again");
});

test("time-outs of those that hang open it; without another upstream all are sent there", async (t) => {
	const scene = new BreakerScene(t);
	const hanging = Array.from({ length: 16 }, () => scene.send());
	await scene.clock.advance(100);
	await scene.say("answered", "read");
	await scene.clock.advance(3_900);
	for (const one of hanging) one.end("timeout");
	await scene.clock.advance(0);
	assert.equal(scene.breaker.isOut, true);
	const alone = new BreakerScene(t);
	for (let i = 0; i < 16; i++) alone.send();
	await alone.clock.advance(100);
	await alone.say("answered", "read");
	await alone.clock.advance(300);
	await alone.say("answered", "read");
	assert.equal(await alone.say("answered"), true, "what nobody else can take goes there all the same");
});

test("one that hangs right after it came back costs a handful, not as many as the first time", async (t) => {
	const scene = new BreakerScene(t);
	scene.breaker.start();
	await scene.openAndClose();
	assert.equal(scene.breaker.isOut, false);
	scene.found = "hang";
	let sent = 0;
	for (let i = 0; i < 200 && !scene.breaker.isOut; i++) {
		if (scene.send().isBegun) sent += 1;
		await scene.clock.advance(10);
	}
	assert.equal(scene.breaker.isOut, true);
	assert.ok(sent <= 6, `${sent} requests fell into the hole at a relapse`);
});

test("right after it came back one submission that hangs is enough for the others to go elsewhere", async (t) => {
	const scene = new BreakerScene(t);
	scene.breaker.start();
	await scene.openAndClose();
	const hanging = scene.send();
	await scene.clock.advance(40);
	await scene.say("answered", "read");
	assert.equal(scene.breaker.isChoked, false);
	await scene.clock.advance(10);
	await scene.say("answered", "read");
	assert.equal(scene.breaker.isChoked, true);
	hanging.end("answered");
	await scene.clock.advance(0);
	assert.equal(scene.breaker.isChoked, false);
});
