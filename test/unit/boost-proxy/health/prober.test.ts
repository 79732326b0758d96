// The loop of probes: when the next one begins, never two at a time, and what becomes of those that fail by themselves.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { ProbeResult } from "../../../../boost-proxy/domain/ports.ts";
import { Prober } from "../../../../boost-proxy/health/prober.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";

/** A loop whose probes take `tookMs`, and what was heard. */
function fixture(t: TestContext, tookMs: number) {
	const clock = new ManualClock();
	const begun: number[] = [];
	const heard: { word: string; context: number; tookMs: number }[] = [];
	const set = { onWord: () => loop.planNext(), word: "ok" as ProbeResult };
	const logged: string[] = [];
	const loop: Prober = new Prober(
		{ intervalMs: 100, timeoutMs: 50 },
		{
			clock,
			log: { ...silentLogger, error: (message) => logged.push(message) },
			begin: () => {
				const context = begun.push(clock.monotonic());
				return {
					async ask() {
						await new Promise<void>((resolve) => clock.after(tookMs, resolve));
						return set.word;
					},
					ended(word, took) {
						heard.push({ word, context, tookMs: took });
						set.onWord();
					},
				};
			},
		},
	);
	t.after(async () => {
		const stopping = loop.stop();
		await clock.advance(100);
		await stopping;
	});
	return { clock, loop, begun, heard, set, logged };
}

test("one begins an interval after the begin of the last, and tells what it heard and when it began", async (t) => {
	const { clock, loop, begun, heard } = fixture(t, 30);
	assert.equal(loop.nextMs, null);
	loop.atOnce();
	assert.equal(loop.nextMs, 100, "while one runs, the next is an interval away");
	await clock.advance(250);
	assert.deepEqual(begun, [0, 100, 200]);
	assert.deepEqual(heard[1], { word: "ok", context: 2, tookMs: 30 });
	assert.equal(loop.nextMs, 50);
});

test("never two at a time: what is wanted while one runs gives way to what its word plans", async (t) => {
	const { clock, loop, begun } = fixture(t, 40);
	loop.atOnce();
	await clock.advance(10);
	loop.atOnce();
	loop.atOnce();
	await clock.advance(20);
	loop.soon();
	assert.deepEqual(begun, [0]);
	await clock.advance(200);

	assert.deepEqual(begun, [0, 100, 200]);
});

test("a plan replaces the one before, also where it falls due while one runs", async (t) => {
	const { clock, loop, begun, set } = fixture(t, 40);
	set.onWord = () => {};
	loop.plan(500);
	loop.plan(20);
	await clock.advance(30);
	assert.deepEqual(begun, [20]);
	loop.plan(5);
	await clock.advance(29);
	assert.deepEqual(begun, [20]);
	await clock.advance(1);
	assert.deepEqual(begun, [20, 60]);
	loop.rest();
	await clock.advance(1_000);
	assert.deepEqual(begun, [20, 60]);
	assert.equal(loop.nextMs, null);
});

test("soon is now, or a moment after the last began, but never later than what is due already", async (t) => {
	const { clock, loop, begun, set } = fixture(t, 1);
	set.onWord = () => {};
	loop.soon();
	await clock.advance(4);
	loop.soon();
	loop.soon();
	await clock.advance(45);
	assert.deepEqual(begun, [0]);
	await clock.advance(1);
	assert.deepEqual(begun, [0, 50]);
	await clock.advance(2);
	loop.plan(3);
	loop.soon();
	await clock.advance(3);
	assert.deepEqual(begun, [0, 50, 55]);
});

test("a probe that never ends has timed out a little after its own deadline", async (t) => {
	const { clock, loop, heard } = fixture(t, 1_000_000);
	loop.atOnce();
	await clock.advance(59);
	assert.deepEqual(heard, []);
	await clock.advance(1);
	assert.deepEqual(heard, [{ word: "timeout", context: 1, tookMs: 60 }]);
});

test("where nobody can take its word the next one is due all the same", async (t) => {
	const { clock, loop, begun, set, logged } = fixture(t, 1);
	set.onWord = () => {
		throw new Error("a bug");
	};
	loop.atOnce();
	await clock.advance(250);
	assert.deepEqual(begun, [0, 100, 200]);
	assert.equal(logged.length, 3);
});

test("after its stop nothing begins, and the word of the one under way is not told", async (t) => {
	const { clock, loop, begun, heard } = fixture(t, 30);
	loop.atOnce();
	await clock.advance(10);
	const stopping = loop.stop();
	loop.atOnce();
	loop.plan(5);
	await clock.advance(500);
	await stopping;
	assert.deepEqual(begun, [0]);
	assert.deepEqual(heard, []);
	assert.equal(clock.timers, 0);
});
