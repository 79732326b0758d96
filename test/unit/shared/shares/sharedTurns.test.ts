// Jobs that several ask for: how many turns they take, and when they leave the queue.

import assert from "node:assert/strict";
import { test } from "node:test";
import { FairScheduler, OverloadedError } from "../../../../shared/shares/scheduler.ts";
import { GivenUpError, SharedTurns } from "../../../../shared/shares/shares.ts";

/** One place, which is taken until `free` is called; jobs answer how many have begun. */
function fixture(maxWaiting = 100) {
	const scheduler = new FairScheduler({ concurrency: 1, maxWaiting });
	let free = (): void => {};
	void scheduler.run({ client: "first", cost: 1 }, () => new Promise<void>((resolve) => (free = resolve)));
	const turns = new SharedTurns<number>(scheduler);
	let begun = 0;
	const join = (name: string, client: string) =>
		turns.join(name, { client, cost: 1 }, async () => {
			begun += 1;
			return begun;
		});
	return { scheduler, join, free: () => free(), begun: () => begun };
}

test("one client's equal jobs are one, another client's is another, and what has begun is not joined", async () => {
	const { scheduler, join, free } = fixture();
	const turns = [join("x", "a"), join("x", "a"), join("y", "a"), join("x", "b")];
	assert.equal(scheduler.waiting, 3);
	free();
	const answers = await Promise.all(turns.map(({ answer }) => answer));
	assert.equal(answers[0], answers[1]);
	assert.equal(new Set(answers).size, 3);
	assert.equal(await join("x", "a").answer, 4);
});

test("the job leaves the queue with the last who gives up, and may be asked for at once again", async () => {
	const { scheduler, join, free, begun } = fixture();
	const [one, two] = [join("x", "a"), join("x", "a")];
	one.leave();
	one.leave();
	assert.equal(scheduler.waiting, 1);
	two.leave();
	assert.equal(scheduler.waiting, 0);
	const again = join("x", "a");
	await assert.rejects(two.answer, GivenUpError);
	free();
	assert.equal(await again.answer, 1);
	again.leave();
	assert.equal(begun(), 1);
});

test("who is refused for want of room may ask again", async () => {
	const { join, free } = fixture(1);
	const kept = join("x", "a");
	await assert.rejects(join("y", "a").answer, OverloadedError);
	free();
	assert.deepEqual([await kept.answer, await join("y", "a").answer], [1, 2]);
});
