// Deadlines of equal length on one timer.

import assert from "node:assert/strict";
import { test } from "node:test";
import { DeadlineQueue } from "../../../../shared/clock.ts";
import { ManualClock } from "../../../support/manualClock.ts";

test("each task runs out in its own time, those called off never, and there is one timer", async () => {
	const clock = new ManualClock();
	const queue = new DeadlineQueue({ ms: 100 }, { clock });
	const expired: string[] = [];
	queue.add(() => expired.push("a"));
	await clock.advance(40);
	const b = queue.add(() => expired.push("b"));
	queue.add(() => expired.push("c"));
	assert.equal(clock.timers, 1);
	queue.cancel(b);
	queue.cancel(b);
	await clock.advance(59);
	assert.deepEqual(expired, []);
	await clock.advance(1);
	assert.deepEqual(expired, ["a"]);
	await clock.advance(39);
	assert.deepEqual(expired, ["a"]);
	await clock.advance(1);
	assert.deepEqual(expired, ["a", "c"]);
	assert.equal(clock.timers, 0);
});

test("a task added while others run out is timed as well", async () => {
	const clock = new ManualClock();
	const queue = new DeadlineQueue({ ms: 10 }, { clock });
	const at: number[] = [];
	queue.add(() => {
		at.push(clock.monotonic());
		queue.add(() => at.push(clock.monotonic()));
	});
	await clock.advance(100);
	assert.deepEqual(at, [10, 20]);
	assert.equal(clock.timers, 0);
});
