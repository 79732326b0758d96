// Tests one submission on a disk that is slow or fails: when it is answered, and that nothing is wrongly answered, sent
// or lost.

import assert from "node:assert/strict";
import { privateTransaction } from "../../support/txFactory.ts";
import { accepted, STORE_OUT, scenario } from "./stagesFixture.ts";

/** One nonce, dearer with each step by ten percent and more. */
function bid(step: number) {
	const fee = 10n ** 10n * 2n ** BigInt(step);
	return privateTransaction({ maxFeePerGas: fee, maxPriorityFeePerGas: fee });
}

scenario("it is answered when it is on disk, and nothing is sent before", async (fixture) => {
	const tx = bid(0);
	fixture.disk.hold = true;
	let answer: unknown = null;
	const submitting = fixture.submit(tx).then((outcome) => {
		answer = outcome;
	});
	await fixture.quiet();
	assert.deepEqual([answer, fixture.disk.waiting, fixture.builders.take()], [null, 1, []]);
	assert.equal(fixture.pool.pending(tx.tx.hash), null);
	fixture.disk.finish(true);
	await submitting;
	assert.deepEqual(answer, accepted(tx));
	await fixture.quiet();
	assert.deepEqual(fixture.builders.take(), ["send 0 for 101 to a,b"]);
	assert.equal((await fixture.restart()).stage(tx), "PENDING");
});

/**
 * Steps of one nonce that come at once, the first one held already where `held` says so; which of their writes succeed;
 * where each is then, a dot for one of which nothing is kept.
 */
const WRITES: readonly (readonly [held: boolean, writes: string, stages: string])[] = [
	[false, "-", "."],
	[false, "+-", "BROADCAST ."],
	[false, "-+", ". BROADCAST"],
	[false, "--", ". ."],
	[false, "++", "REPLACED BROADCAST"],
	[true, "-", "BROADCAST ."],
	[true, "+-", "REPLACED BROADCAST ."],
	[true, "-+", "REPLACED . BROADCAST"],
	[true, "--", "BROADCAST . ."],
	[true, "++", "REPLACED REPLACED BROADCAST"],
];

for (const [held, writes, expected] of WRITES) {
	const name = held ? "of what would replace one that is held" : "of what has one nonce";
	scenario(`the writes ${name} end as ${writes}: ${expected}`, async (fixture) => {
		const all = Array.from({ length: writes.length + Number(held) }, (_, step) => bid(step));
		const stages = expected.split(" ");
		if (held) await fixture.take(bid(0));
		fixture.disk.hold = true;
		const answers = Promise.allSettled(all.slice(Number(held)).map((tx) => fixture.submit(tx)));
		for (const write of writes) {
			await fixture.quiet();
			fixture.disk.finish(write === "+");
		}
		fixture.disk.hold = false;
		assert.deepEqual(
			(await answers).map((one) => (one.status === "fulfilled" ? one.value.outcome : one.reason.message)),
			[...writes].map((write) => (write === "+" ? "accepted" : STORE_OUT.message)),
		);
		await fixture.quiet();
		assert.deepEqual(
			fixture.stages(...all).map((stage) => stage ?? "."),
			stages,
		);
		assert.equal(fixture.pool.size, stages.includes("BROADCAST") ? 1 : 0);
		fixture.builders.take();
		// No block came in between: a process that dies now has nothing but these writes.
		const next = await fixture.restart();
		for (const [i, tx] of all.entries()) {
			const kept = (await next.stageOrKept(tx)) ?? ".";
			assert.equal(kept, stages[i] === "BROADCAST" ? "PENDING" : stages[i]);
		}
		await fixture.block();
		assert.equal(fixture.builders.take().join(), stages.includes("BROADCAST") ? "send 0 for 102 to a,b" : "");
		// What was refused for its write may come again.
		const last = all.at(-1);
		if (last !== undefined && stages.at(-1) === ".")
			assert.deepEqual(await fixture.take(last), [accepted(last)]);
	});
}
