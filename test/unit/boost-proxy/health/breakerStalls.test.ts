// An upstream that says nothing at all: how few requests fall into that hole, who waits for the probe's word, and that
// neither a burst nor slow reads are taken for it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Attempt, BREAKER_OPTIONS, BreakerFixture } from "../../../support/breakerFixture.ts";

const many = (fixture: BreakerFixture, count: number): Attempt[] =>
	Array.from({ length: count }, (_, i) => fixture.send(i % 2 === 0 ? "submission" : "read"));
const begun = (attempts: readonly Attempt[]) => attempts.filter(({ isBegun }) => isBegun).length;

test("sixteen in flight and nothing heard for 250 ms start a probe; fifteen do not", async (t) => {
	for (const [count, probed] of [
		[15, []],
		[16, [250]],
	] as const) {
		const fixture = new BreakerFixture(t);
		many(fixture, count);
		await fixture.clock.advance(249);
		assert.deepEqual(fixture.probedAt, []);
		await fixture.clock.advance(1);
		assert.deepEqual(fixture.probedAt, probed, `${count}`);
	}
});

test("newcomers wait for the probe's word; when it fails they are not sent, and what hangs is aborted", async (t) => {
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
		"they are told that nothing was sent",
	);
	assert.ok(
		hanging.every(({ abort }) => abort?.isAborted),
		"what hangs is aborted",
	);
});

test("when the probe's word is good they go on, and the silence begins anew", async (t) => {
	const fixture = new BreakerFixture(t);
	fixture.probeMs = 20;
	many(fixture, 16);
	await fixture.clock.advance(250);
	const newcomers = many(fixture, 4);
	await fixture.clock.advance(20);
	assert.equal(begun(newcomers), 4);
	const later = fixture.send();
	await fixture.clock.advance(0);
	assert.equal(later.isBegun, true);
	assert.deepEqual(fixture.trips, []);
	fixture.found = "httpStatus";
	await fixture.clock.advance(300);
	assert.deepEqual(fixture.trips, ["httpStatus"], "the next silence has a probe of its own");
});

test("an answer ends the silence before the probe's word, and lets newcomers go on", async (t) => {
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

test("a burst is not held back, however large; a fault without words is no answer", async (t) => {
	const fixture = new BreakerFixture(t);
	const burst = many(fixture, 200);
	assert.equal(begun(burst), 200);
	await fixture.clock.advance(30);
	assert.equal(begun(many(fixture, 50)), 50);
	burst[0]?.end("reset");
	await fixture.clock.advance(230);
	assert.equal(begun(many(fixture, 1)), 0);
});

test("a single read that hangs longer than a submission's share starts a probe, and opens it where that fails", async (t) => {
	for (const found of ["ok", "hang"] as const) {
		const fixture = new BreakerFixture(t);
		await fixture.say("answered");
		const slow = fixture.send("read");
		fixture.found = found;
		await fixture.clock.advance(3_999);
		assert.deepEqual(fixture.probedAt, []);
		await fixture.clock.advance(501);
		assert.deepEqual(fixture.probedAt, [4_000]);
		// A read may take its time.
		assert.equal(slow.abort?.isAborted, found === "hang");
		assert.deepEqual(fixture.trips, found === "hang" ? ["silence"] : []);
	}
});

test("a probe's time-out while newcomers wait is asked again at once where an answer came before, and they wait on", async (t) => {
	const fixture = new BreakerFixture(t);
	fixture.breaker.start();
	fixture.found = "hang";
	await fixture.clock.advance(1_000);
	await fixture.say("answered");
	many(fixture, 16);
	await fixture.clock.advance(300);
	const newcomer = fixture.send();
	await fixture.clock.advance(699);
	assert.equal(newcomer.isBegun, false);
	await fixture.clock.advance(1);
	assert.deepEqual(fixture.probedAt, [0, 1_000, 1_500]);
	assert.deepEqual(fixture.trips, ["silence"]);
	assert.equal(newcomer.result, null);
});

test("nobody waits where a state is forced, and who waited goes on when one is", async (t) => {
	const fixture = new BreakerFixture(t);
	fixture.found = "hang";
	many(fixture, 16);
	await fixture.clock.advance(250);
	const waiting = fixture.send();
	fixture.breaker.force("closed");
	await fixture.clock.advance(0);
	assert.equal(waiting.isBegun, true);
	await fixture.clock.advance(5_000);
	assert.equal(begun(many(fixture, 3)), 3);
	assert.deepEqual(fixture.trips, []);
});

test("at a hundred requests a second no more than sixteen fall into a hole, and it opens within a share", async (t) => {
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
			assert.ok(clock.monotonic() - hungAt <= BREAKER_OPTIONS.shareMs / 2, found.at(-1));
		}
	}
	assert.equal(found.length, 18);
	for (const figures of found) t.diagnostic(figures);
});
