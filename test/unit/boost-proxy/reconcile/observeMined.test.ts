// Following what was mined a moment ago: a block that is taken back opens it again.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	endingOf,
	INTERVAL_MS,
	type ReconcileScene,
	reconcileScene,
	SLOT_MS,
	senderOf,
} from "./reconcileScene.ts";

async function followed(): Promise<ReconcileScene> {
	const scene = await reconcileScene();
	await scene.observer.start();
	return scene;
}

test("where the relay has no record of what is mined, the chain says whether it is taken back", async () => {
	const scene = await followed();
	const { relay, chain, clock } = scene;
	const hash = await scene.opened(1);
	relay.stages.set(hash, "INCLUDED");
	await clock.advance(INTERVAL_MS);
	relay.stages.delete(hash);
	chain.receipts.add(hash);
	await clock.advance(2 * SLOT_MS);
	assert.equal(endingOf(scene, hash), "mined");
	chain.receipts.delete(hash);
	await clock.advance(2 * SLOT_MS);
	assert.deepEqual(scene.holders(hash), ["relay"]);
	await scene.stop();
});

test("mined by the relay's word is taken back by it", async () => {
	const scene = await followed();
	const { relay, clock } = scene;
	const hash = await scene.opened(1);
	relay.stages.set(hash, "INCLUDED");
	await clock.advance(INTERVAL_MS);
	assert.equal(endingOf(scene, hash), "mined");
	relay.stages.set(hash, "BROADCAST");
	await clock.advance(SLOT_MS);
	assert.deepEqual(scene.holders(hash), ["relay"]);
	relay.stages.set(hash, "INCLUDED");
	await clock.advance(INTERVAL_MS);
	await clock.advance(12 * SLOT_MS);
	const before = relay.called.length;
	await clock.advance(SLOT_MS);
	assert.equal(relay.called.length, before, "after twelve slots nobody asks");
	await scene.stop();
});

test("a receipt that is gone in two looks running opens it again, within twelve slots", async () => {
	for (const holder of ["relay", "fallback"] as const) {
		const scene = await followed();
		const { chain, clock } = scene;
		if (holder === "relay") scene.relay.breaker.set(true);
		const hash = await scene.opened(1, [holder]);
		chain.nonces.set(senderOf(1), 2n);
		chain.receipts.add(hash);
		await clock.advance(SLOT_MS / 2);
		assert.equal(endingOf(scene, hash), "mined");
		chain.receipts.delete(hash);
		await clock.advance(SLOT_MS * 0.4);
		assert.equal(endingOf(scene, hash), "mined", "once");
		chain.receipts.add(hash);
		await clock.advance(SLOT_MS * 0.5);
		chain.receipts.delete(hash);
		chain.nonces.set(senderOf(1), 1n);
		await clock.advance(SLOT_MS * 0.4);
		assert.equal(endingOf(scene, hash), "mined", "once more, but not in a row");
		await clock.advance(SLOT_MS * 0.6);
		assert.equal(scene.holders(hash)?.[0], holder, "twice");
		await scene.stop();
	}
});

test("what was mined before the start is watched for the rest of its time", async () => {
	for (const holder of ["relay", "fallback"] as const) {
		const scene = await reconcileScene();
		const { relay, chain, clock, journal } = scene;
		const [early, late] = [
			await scene.opened(1, [holder]),
			await scene.opened(2, [holder], { from: senderOf(2) }),
		];
		for (const hash of [early, late]) {
			relay.stages.set(hash, "INCLUDED");
			chain.receipts.add(hash);
		}
		await journal.end(early, "mined");
		await clock.advance(9 * SLOT_MS);
		await journal.end(late, "mined");
		await scene.observer.start();
		await clock.advance(4 * SLOT_MS);
		relay.called.length = 0;
		for (const hash of [early, late]) {
			relay.stages.set(hash, "BROADCAST");
			chain.receipts.delete(hash);
		}
		await clock.advance(2 * SLOT_MS);
		assert.deepEqual(
			[scene.holders(early), scene.holders(late)],
			[null, [holder]],
			"a reorganisation is seen",
		);
		assert.equal(
			relay.called.some(({ call }) => JSON.stringify(call.params).includes(early)),
			false,
			"twelve slots from its end, not from the start",
		);
		await scene.stop();
	}
});
