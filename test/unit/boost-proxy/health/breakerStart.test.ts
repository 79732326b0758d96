// An upstream that has never answered, as at each deployment, and one that hangs at submissions alone.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Attempt, BreakerScene } from "../../../support/breakerScene.ts";

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

/** `count` submissions, 10 ms apart, while reads are answered. */
async function hang(scene: BreakerScene, count: number): Promise<Attempt[]> {
	const hanging: Attempt[] = [];
	for (let i = 0; i < count; i++) {
		hanging.push(scene.send());
		await scene.clock.advance(10);
		await scene.say("answered", "read");
	}
	return hanging;
}

/** Time passes, and reads are answered. */
async function read(scene: BreakerScene, ms: number): Promise<void> {
	for (let passed = 0; passed < ms; passed += 10) {
		await scene.clock.advance(10);
		await scene.say("answered", "read");
	}
}

test("submissions hang while all else is well: sixteen meet it, and when it opens all of them go elsewhere", async (t) => {
	const scene = new BreakerScene(t);
	scene.breaker.start();
	const hanging = await hang(scene, 16);
	const newcomers = await hang(scene, 20);
	assert.equal(
		newcomers.some(({ isBegun }) => isBegun),
		false,
		"one more went into the hole",
	);
	assert.equal(await scene.say("answered", "read"), true, "reads go on");
	assert.equal(scene.breaker.isOut, false);
	await read(scene, 200);
	assert.deepEqual(scene.trips, ["silence"]);
	assert.ok(hanging.every(({ abort }) => abort?.isAborted));
	assert.ok(newcomers.every(({ result }) => result === null));
	assert.deepEqual(scene.changes, ["open"], "whoever listens hears of it");
});

test("one answer to a submission lets those that wait go on", async (t) => {
	const scene = new BreakerScene(t);
	const [first] = await hang(scene, 16);
	const newcomers = await hang(scene, 5);
	first?.end("answered");
	await scene.clock.advance(0);
	assert.ok(newcomers.every(({ isBegun }) => isBegun));
	await read(scene, 400);
	assert.deepEqual(scene.trips, []);
	await read(scene, 200);
	assert.deepEqual(scene.trips, ["silence"], "but a new silence is one");
});

test("without another upstream none waits and none is aborted until its time is up", async (t) => {
	const scene = new BreakerScene(t);
	scene.canYield = false;
	const hanging = await hang(scene, 40);
	assert.ok(hanging.every(({ isBegun }) => isBegun));
	await read(scene, 3_000);
	assert.deepEqual(scene.trips, []);
});

test("where the other upstream fails meanwhile those that wait go on", async (t) => {
	const scene = new BreakerScene(t);
	await hang(scene, 16);
	const [newcomer] = await hang(scene, 1);
	scene.canYield = false;
	await scene.clock.advance(50);
	assert.equal(newcomer?.isBegun, true);
});

test("one that is well but busy is no stall: a batch in order, a crowd that is served one by one, slow commits", async (t) => {
	const inOrder = new BreakerScene(t);
	for (let i = 0; i < 100; i++)
		assert.equal(await inOrder.say("answered", "submission", undefined, 1_500), true);
	assert.deepEqual(inOrder.trips, []);

	const crowd = new BreakerScene(t);
	const waiting = Array.from({ length: 100 }, () => crowd.send());
	for (const one of waiting) {
		await crowd.clock.advance(200);
		one.end("answered");
	}
	await crowd.clock.advance(0);
	assert.deepEqual(crowd.trips, []);

	// A database that writes all of a crowd at once, and takes its time for that.
	const commits = new BreakerScene(t);
	for (const ms of [200, 300, 400, 500, 600, 700, 800, 900]) {
		for (let again = 0; again < 3; again++) {
			const together = Array.from({ length: 30 }, () => commits.send());
			await commits.clock.advance(ms);
			for (const one of together) one.end("answered");
			await commits.clock.advance(0);
		}
	}
	assert.deepEqual(commits.trips, []);
});

test("where our own event loop stood still it was nobody's silence", async (t) => {
	const scene = new BreakerScene(t);
	const { clock } = scene;
	const monotonic = clock.monotonic.bind(clock);
	let stoodMs = 0;
	clock.monotonic = () => monotonic() + stoodMs;
	await hang(scene, 16);
	stoodMs += 2_000;
	await read(scene, 200);
	assert.deepEqual(scene.trips, []);
	await read(scene, 300);
	assert.deepEqual(scene.trips, ["silence"]);
});

test("time-outs of those that hang open it", async (t) => {
	const scene = new BreakerScene(t);
	const hanging = Array.from({ length: 15 }, () => scene.send());
	await scene.clock.advance(100);
	await scene.say("answered", "read");
	await scene.clock.advance(3_900);
	for (const one of hanging) one.end("timeout");
	await scene.clock.advance(0);
	assert.equal(scene.breaker.isOut, true);
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

test("right after it came back four submissions that hang are enough", async (t) => {
	const scene = new BreakerScene(t);
	scene.breaker.start();
	await scene.openAndClose();
	await hang(scene, 4);
	const newcomers = await hang(scene, 10);
	await read(scene, 400);
	assert.equal(scene.breaker.isOut, true);
	assert.ok(newcomers.filter(({ isBegun }) => isBegun).length <= 2, "those of the first moment");
});

test("where a single submission gets no answer the probe asks as one would, and opens it long before its share is over", async (t) => {
	const scene = new BreakerScene(t);
	scene.breaker.start();
	await scene.clock.advance(100);
	const hanging = scene.send();
	await read(scene, 800);
	scene.instead = async () => {
		if (scene.thorough.at(-1) === true) await new Promise<void>((resolve) => scene.clock.after(500, resolve));
		return scene.thorough.at(-1) === true ? "timeout" : "ok";
	};
	await read(scene, 1_200);
	assert.deepEqual(scene.trips, ["timeout"]);
	assert.equal(hanging.abort?.isAborted, true);
	assert.deepEqual(scene.thorough, [false, true, true], "one doubt, since reads were answered");
});

test("while it is out the probe asks as a submission would", async (t) => {
	const scene = new BreakerScene(t);
	scene.breaker.start();
	await scene.clock.advance(1_500);
	await scene.openAndClose();
	await scene.clock.advance(1_000);
	assert.deepEqual(scene.thorough, [false, false, true, true, true, false]);
});
