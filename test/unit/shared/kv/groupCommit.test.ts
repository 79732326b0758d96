// Commits of many writes: the callers that are notified, the time, and the order.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Clock, nextTurn, systemClock } from "../../../../shared/clock.ts";
import { GroupCommit } from "../../../../shared/kv/groupCommit.ts";

test("the callers of a commit of many writes go on in their order, some in each turn of the event loop", async () => {
	for (const outcome of ["written", "failed"] as const) {
		let worked = 0;
		const clock: Clock = { ...systemClock, monotonic: () => worked };
		const group = new GroupCommit(async () => {
			if (outcome === "failed") throw new Error("the disk is full");
		}, clock);
		const told: number[] = [];
		// Each of them works for half a millisecond, some promises later.
		const goOn = async (i: number, how: string): Promise<void> => {
			for (let step = 0; step < 20; step++) await null;
			worked += 0.5;
			if (how === outcome) told.push(i);
		};
		const all = Array.from({ length: 300 }, (_, i) =>
			group.write({ changes: [{ key: `key ${i}`, value: Buffer.alloc(1) }] }).then(
				() => goOn(i, "written"),
				() => goOn(i, "failed"),
			),
		);
		let most = 0;
		for (let before = 0; told.length < all.length; before = told.length) {
			await nextTurn();
			most = Math.max(most, told.length - before);
		}
		assert.ok(most <= 20, `${most} in one turn`);
		assert.deepEqual(told, [...all.keys()]);
	}
});

test("a store is idle once every caller was notified", async () => {
	const group = new GroupCommit(async () => undefined);
	let told = 0;
	for (let i = 0; i < 300; i++)
		void group.write({ changes: [{ key: "key", value: null }] }).then(() => told++);
	await group.idle();
	assert.equal(told, 300);
});

test("a commit knows when its first write was given", async () => {
	let now = 0;
	const seen: number[] = [];
	let end = (): void => {};
	const group = new GroupCommit(
		(_changes, since) => {
			seen.push(since);
			return new Promise((resolve) => {
				end = () => resolve(undefined);
			});
		},
		{ ...systemClock, monotonic: () => now },
	);
	const write = () => group.write({ changes: [{ key: "key", value: null }] });
	const first = write();
	await nextTurn();
	const later = [1, 2, 3].map((at) => {
		now = at;
		return write();
	});
	now = 9;
	end();
	await first;
	while (seen.length < 2) await nextTurn();
	end();
	await Promise.all(later);
	assert.deepEqual(seen, [0, 1]);
});
