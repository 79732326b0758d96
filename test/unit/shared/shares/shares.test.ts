// Jobs that clients share, and what each client may use.

import assert from "node:assert/strict";
import { test } from "node:test";
import { FairScheduler } from "../../../../shared/shares/scheduler.ts";
import { AbandonedError, fullest, SharedJobs, Shares } from "../../../../shared/shares/shares.ts";

/** One slot, which is used until `free` is called; jobs return how many have started. */
function sharedFixture() {
	const scheduler = new FairScheduler({ concurrency: 1, maxWaiting: 100 });
	let free = (): void => {};
	void scheduler.run({ client: "first", cost: 1 }, () => new Promise<void>((resolve) => (free = resolve)));
	const turns = new SharedJobs<number>(scheduler);
	let begun = 0;
	const join = (name: string, client: string) =>
		turns.join(name, { client, cost: 1 }, async () => {
			begun += 1;
			return begun;
		});
	return { scheduler, join, free: () => free(), begun: () => begun };
}

test("equal jobs of one client are shared, not those of another client nor one that has started", async () => {
	const { scheduler, join, free } = sharedFixture();
	const turns = [join("x", "a"), join("x", "a"), join("y", "a"), join("x", "b")];
	assert.equal(scheduler.waiting, 3);
	free();
	const answers = await Promise.all(turns.map(({ answer }) => answer));
	assert.equal(answers[0], answers[1]);
	assert.equal(new Set(answers).size, 3);
	assert.equal(await join("x", "a").answer, 4);
});

test("a shared job is dropped when its last caller leaves, and may be queued again", async () => {
	const { scheduler, join, free, begun } = sharedFixture();
	const [one, two] = [join("x", "a"), join("x", "a")];
	one.leave();
	one.leave();
	assert.equal(scheduler.waiting, 1);
	two.leave();
	assert.equal(scheduler.waiting, 0);
	const again = join("x", "a");
	await assert.rejects(two.answer, AbandonedError);
	free();
	assert.equal(await again.answer, 1);
	again.leave();
	assert.equal(begun(), 1);
});

test("usage is limited per client and in total", () => {
	const shares = new Shares({ total: 10, perClient: 6 });
	assert.deepEqual(shares.fullness, { all: 0, client: 0 });
	assert.deepEqual(
		[shares.take("a", 6), shares.take("a", 1), shares.take("b", 5)],
		[null, "client", "total"],
	);
	assert.equal(shares.take("b", 3), null);
	assert.deepEqual([shares.of("a"), shares.of("b"), shares.taken, shares.largest()], [6, 3, 9, "a"]);
	assert.deepEqual(fullest([shares.fullness, { all: 0.5, client: 2 }]), { all: 0.9, client: 2 });
	shares.release("a", 5);
	assert.deepEqual([shares.largest(), shares.fullness], ["b", { all: 0.4, client: 0.5 }]);
	// `force` ignores the limits.
	shares.takeAnyway("a", 20);
	assert.equal(shares.take("c", 1), "total");
	shares.release("a", 21);
	assert.deepEqual([shares.of("a"), shares.take("c", 1)], [0, null]);
});
