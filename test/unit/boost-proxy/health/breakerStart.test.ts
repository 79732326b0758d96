// An upstream that has never answered, as at each deployment, and one that hangs at submissions alone.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Attempt, BreakerFixture } from "../../../support/breakerFixture.ts";

test("one that is only starting is closed by the first good word, an interval after it was refused", async (t) => {
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

/** `count` submissions, 10 ms apart, while reads are answered. */
async function hang(fixture: BreakerFixture, count: number): Promise<Attempt[]> {
	const hanging: Attempt[] = [];
	for (let i = 0; i < count; i++) {
		hanging.push(fixture.send());
		await fixture.clock.advance(10);
		await fixture.say("answered", "read");
	}
	return hanging;
}

/** Time passes, and reads are answered. */
async function read(fixture: BreakerFixture, ms: number): Promise<void> {
	for (let passed = 0; passed < ms; passed += 10) {
		await fixture.clock.advance(10);
		await fixture.say("answered", "read");
	}
}

test("submissions hang while all else is well: sixteen meet it, and when it opens all of them go elsewhere", async (t) => {
	const fixture = new BreakerFixture(t);
	fixture.breaker.start();
	const hanging = await hang(fixture, 16);
	const newcomers = await hang(fixture, 20);
	assert.equal(
		newcomers.some(({ isBegun }) => isBegun),
		false,
		"one more went into the hole",
	);
	assert.equal(await fixture.say("answered", "read"), true, "reads go on");
	assert.equal(fixture.breaker.isUnavailable, false);
	await read(fixture, 200);
	assert.deepEqual(fixture.trips, ["silence"]);
	assert.ok(hanging.every(({ abort }) => abort?.isAborted));
	assert.ok(newcomers.every(({ result }) => result === null));
	assert.deepEqual(fixture.changes, ["open"], "whoever listens hears of it");
});

test("one answer to a submission lets those that wait go on", async (t) => {
	const fixture = new BreakerFixture(t);
	const [first] = await hang(fixture, 16);
	const newcomers = await hang(fixture, 5);
	first?.end("answered");
	await fixture.clock.advance(0);
	assert.ok(newcomers.every(({ isBegun }) => isBegun));
	await read(fixture, 400);
	assert.deepEqual(fixture.trips, []);
	await read(fixture, 200);
	assert.deepEqual(fixture.trips, ["silence"], "but a new silence is one");
});

test("without another upstream none waits and none is aborted until its time is up", async (t) => {
	const fixture = new BreakerFixture(t);
	fixture.other.isUnavailable = true;
	const hanging = await hang(fixture, 40);
	assert.ok(hanging.every(({ isBegun }) => isBegun));
	await read(fixture, 3_000);
	assert.deepEqual(fixture.trips, []);
});

test("where the other upstream fails meanwhile those that wait go on", async (t) => {
	const fixture = new BreakerFixture(t);
	await hang(fixture, 16);
	const [newcomer] = await hang(fixture, 1);
	fixture.other.isUnavailable = true;
	await fixture.clock.advance(50);
	assert.equal(newcomer?.isBegun, true);
});

test("one that is well but busy is no stall: a batch in order, a crowd that is served one by one, slow commits", async (t) => {
	const inOrder = new BreakerFixture(t);
	for (let i = 0; i < 100; i++)
		assert.equal(await inOrder.say("answered", "submission", undefined, 1_500), true);
	assert.deepEqual(inOrder.trips, []);

	const crowd = new BreakerFixture(t);
	const waiting = Array.from({ length: 100 }, () => crowd.send());
	for (const one of waiting) {
		await crowd.clock.advance(200);
		one.end("answered");
	}
	await crowd.clock.advance(0);
	assert.deepEqual(crowd.trips, []);

	// A database that writes all of a crowd at once, and takes its time for that.
	const commits = new BreakerFixture(t);
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
	const fixture = new BreakerFixture(t);
	const { clock } = fixture;
	const monotonic = clock.monotonic.bind(clock);
	let stoodMs = 0;
	clock.monotonic = () => monotonic() + stoodMs;
	await hang(fixture, 16);
	stoodMs += 2_000;
	await read(fixture, 200);
	assert.deepEqual(fixture.trips, []);
	await read(fixture, 300);
	assert.deepEqual(fixture.trips, ["silence"]);
});

test("time-outs of those that hang open it", async (t) => {
	const fixture = new BreakerFixture(t);
	const hanging = Array.from({ length: 15 }, () => fixture.send());
	await fixture.clock.advance(100);
	await fixture.say("answered", "read");
	await fixture.clock.advance(3_900);
	for (const one of hanging) one.end("timeout");
	await fixture.clock.advance(0);
	assert.equal(fixture.breaker.isUnavailable, true);
});

test("one that hangs right after it came back costs a handful, not as many as the first time", async (t) => {
	const fixture = new BreakerFixture(t);
	fixture.breaker.start();
	await fixture.openAndClose();
	assert.equal(fixture.breaker.isUnavailable, false);
	fixture.found = "hang";
	let sent = 0;
	for (let i = 0; i < 200 && !fixture.breaker.isUnavailable; i++) {
		if (fixture.send().isBegun) sent += 1;
		await fixture.clock.advance(10);
	}
	assert.equal(fixture.breaker.isUnavailable, true);
	assert.ok(sent <= 6, `${sent} requests fell into the hole at a relapse`);
});

test("right after it came back four submissions that hang are enough", async (t) => {
	const fixture = new BreakerFixture(t);
	fixture.breaker.start();
	await fixture.openAndClose();
	await hang(fixture, 4);
	const newcomers = await hang(fixture, 10);
	await read(fixture, 400);
	assert.equal(fixture.breaker.isUnavailable, true);
	assert.ok(newcomers.filter(({ isBegun }) => isBegun).length <= 2, "those of the first moment");
});

test("where a single submission gets no answer the probe asks as one would, and opens it long before its share is over", async (t) => {
	const fixture = new BreakerFixture(t);
	fixture.breaker.start();
	await fixture.clock.advance(100);
	const hanging = fixture.send();
	await read(fixture, 800);
	fixture.instead = async () => {
		if (fixture.thorough.at(-1) === true)
			await new Promise<void>((resolve) => fixture.clock.after(500, resolve));
		return fixture.thorough.at(-1) === true ? "timeout" : "ok";
	};
	await read(fixture, 1_200);
	assert.deepEqual(fixture.trips, ["timeout"]);
	assert.equal(hanging.abort?.isAborted, true);
	assert.deepEqual(fixture.thorough, [false, true, true], "one doubt, since reads were answered");
});

test("while it is out the probe asks as a submission would", async (t) => {
	const fixture = new BreakerFixture(t);
	fixture.breaker.start();
	await fixture.clock.advance(1_500);
	await fixture.openAndClose();
	await fixture.clock.advance(1_000);
	assert.deepEqual(fixture.thorough, [false, false, true, true, true, false]);
});
