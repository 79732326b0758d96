// An upstream that does not answer: how few requests it gets, which wait for the probe, and that
// bursts and slow reads are no stall.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Attempt, BREAKER_OPTIONS, BreakerFixture } from "../../../support/breakerFixture.ts";

const many = (fixture: BreakerFixture, count: number): Attempt[] =>
	Array.from({ length: count }, (_, i) => fixture.send(i % 2 === 0 ? "submission" : "read"));
const begun = (attempts: readonly Attempt[]) => attempts.filter(({ isBegun }) => isBegun).length;

test("new requests wait for the probe; if it fails they are not sent, and those in flight are aborted", async (t) => {
	const fixture = new BreakerFixture(t);
	const hanging = many(fixture, 16);
	await fixture.clock.advance(240);
	fixture.found = "hang";
	await fixture.clock.advance(10);
	const newcomers = many(fixture, 40);
	await fixture.clock.advance(499);
	assert.equal(begun(newcomers), 0);
	await fixture.clock.advance(1);
	assert.deepEqual(fixture.trips, ["silence"]);
	assert.ok(
		newcomers.every(({ result }) => result === null),
		"they report that nothing was sent",
	);
	assert.ok(
		hanging.every(({ abort }) => abort?.isAborted),
		"what hangs is aborted",
	);
});

test("an answer before the probe's result lets new requests go on", async (t) => {
	for (const outcome of ["answered", "internal"] as const) {
		const fixture = new BreakerFixture(t);
		fixture.found = "hang";
		const [first] = many(fixture, 16);
		await fixture.clock.advance(250);
		const newcomer = fixture.send();
		await fixture.clock.advance(50);
		assert.equal(newcomer.isBegun, false);
		first?.end(outcome);
		await fixture.clock.advance(0);
		assert.equal(newcomer.isBegun, true, outcome);
	}
});

test("at a hundred requests a second at most sixteen hang, and it opens within a share", async (t) => {
	const found: string[] = [];
	for (const offset of [0, 130, 370, 510, 740, 990]) {
		for (const latency of [2, 40, 110]) {
			const fixture = new BreakerFixture(t);
			const { clock, breaker } = fixture;
			breaker.start();
			const open: { attempt: Attempt; at: number }[] = [];
			const step = async (hangs: boolean) => {
				if (clock.monotonic() % 10 === 0) open.push({ attempt: fixture.send(), at: clock.monotonic() });
				await clock.advance(1);
				if (hangs) return;
				while (open[0] !== undefined && clock.monotonic() - open[0].at >= latency) {
					open.shift()?.attempt.end("answered");
				}
			};
			for (let ms = 0; ms < 1_000 + offset; ms++) await step(false);
			fixture.found = "hang";
			const hungAt = clock.monotonic();
			while (!breaker.isUnavailable && clock.monotonic() - hungAt < 10_000) await step(true);
			const inHole = begun(open.map(({ attempt }) => attempt));
			found.push(
				`${inHole} in the hole, opened after ${clock.monotonic() - hungAt} ms (answers took ${latency} ms)`,
			);
			assert.ok(inHole <= 16, found.at(-1));
			assert.ok(clock.monotonic() - hungAt <= BREAKER_OPTIONS.attemptTimeoutMs / 2, found.at(-1));
		}
	}
	assert.equal(found.length, 18);
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

test("if only submissions hang, sixteen are sent, and when it opens all of them fail over", async (t) => {
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
	assert.deepEqual(fixture.changes, ["open"], "listeners are notified");
});

for (const isFound of [true, false]) {
	test(`if one client's submissions hang, others wait for a check, which ${isFound ? "hangs" : "passes"}, too`, async (t) => {
		const fixture = new BreakerFixture(t);
		fixture.client = "198.51.100.7";
		fixture.breaker.start();
		const hanging = await hang(fixture, 16);
		fixture.client = "198.51.100.8";
		if (isFound) fixture.found = "hang";
		const other = fixture.send();
		await read(fixture, 200);
		if (!isFound) {
			assert.deepEqual([other.isBegun, fixture.thorough.at(-1)], [true, true]);
			other.end("answered");
			await read(fixture, 5_000);
			assert.deepEqual(fixture.trips, [], "they hang, and boost's own is answered");
			return;
		}
		assert.equal(other.isBegun, false);
		await read(fixture, 1_000);
		assert.deepEqual(fixture.trips, ["silence"], "after one doubt, since reads were answered");
		assert.ok(hanging.every(({ abort }) => abort?.isAborted));
		assert.equal(other.result, null, "nothing was sent");
	});
}

test("without another upstream none waits and none is aborted before its deadline", async (t) => {
	const fixture = new BreakerFixture(t);
	fixture.other.isUnavailable = true;
	const hanging = await hang(fixture, 40);
	assert.ok(hanging.every(({ isBegun }) => isBegun));
	await read(fixture, 3_000);
	assert.deepEqual(fixture.trips, []);
});

test("a busy upstream is no stall: a batch in order, a crowd that is served one by one, slow commits", async (t) => {
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

test("time in which our own event loop was blocked does not count", async (t) => {
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
