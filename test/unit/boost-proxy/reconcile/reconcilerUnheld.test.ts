// Entries that nobody holds, or whose only holder has lost and then refuses them; and what nobody wakes the handover for.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ACKNOWLEDGED, endingOf, reconcileScene, refused, SLOT_MS, senderOf } from "./reconcileScene.ts";

const TICK_MS = 1_000;
const HEARTBEAT_MS = 10 * TICK_MS;

test("an acknowledged one that nobody holds goes to the relay, to the fallback where that is out", async () => {
	for (const isOut of [false, true]) {
		const scene = await reconcileScene();
		const { journal, relay, fallback, clock } = scene;
		const hash = await scene.opened(1);
		relay.breaker.set(isOut);
		await journal.notHeld(hash, "relay");
		scene.handover.wake();
		await clock.advance(100);
		assert.deepEqual([relay.hashes, fallback.hashes], isOut ? [[], [hash]] : [[hash], []]);
		assert.deepEqual(scene.holders(hash), [isOut ? "fallback" : "relay"]);
		await scene.stop();
	}
});

test("what nobody woke it for is seen in time: one untold, one owed, one that nobody holds", async () => {
	const scene = await reconcileScene();
	const { journal, relay, fallback, clock } = scene;
	const ended = await scene.opened(1, ["relay", "fallback"]);
	await journal.end(ended, "cancelled");
	scene.handover.wake();
	await clock.advance(5 * HEARTBEAT_MS);
	assert.deepEqual(fallback.called, [], "nobody is untold");
	await journal.held(ended, "fallback");
	const unheld = await scene.opened(2, ["relay"], { from: senderOf(2) });
	await journal.notHeld(unheld, "relay");
	const owed = await scene.opened(3, ["relay"], { from: senderOf(3), replacesAt: ["fallback"] });
	await clock.advance(HEARTBEAT_MS + 100);
	assert.deepEqual(fallback.asked("eth_cancelTransaction"), [ended]);
	assert.deepEqual(journal.ended(ended)?.untold, []);
	assert.deepEqual([relay.hashes, fallback.hashes], [[unheld], [owed]]);
	await scene.stop();
});

test("what the relay has lost and refuses for now goes to the fallback", async () => {
	const scene = await reconcileScene();
	const { relay, fallback, clock, handover } = scene;
	handover.wake();
	const hash = await scene.opened(1);
	relay.answer = () => refused("txpool is full");
	handover.lost(hash, "relay");
	await clock.advance(100);
	assert.deepEqual([relay.hashes, fallback.hashes], [[hash], [hash]]);
	assert.deepEqual(scene.holders(hash), ["fallback"]);
	await clock.advance(5 * HEARTBEAT_MS);
	assert.deepEqual([relay.hashes, fallback.hashes], [[hash], [hash]], "it is where it should be");
	await scene.stop();
});

test("what everybody refuses is tried again now and then, until somebody takes it", async () => {
	for (const alone of [true, false]) {
		const scene = await reconcileScene({ alone });
		const { relay, fallback, clock, handover } = scene;
		handover.wake();
		const hash = await scene.opened(1);
		const behind = await scene.opened(2);
		relay.answer = (tx) => (tx.hash === hash ? refused("txpool is full") : ACKNOWLEDGED);
		fallback.answer = () => refused();
		handover.lost(hash, "relay");
		handover.lost(behind, "relay");
		await clock.advance(100);
		assert.deepEqual(relay.hashes, [hash, behind], "what stands behind it does not wait");
		await clock.advance(150_000);
		assert.ok(relay.hashes.length <= 12, `${relay.hashes.length} deliveries`);
		assert.deepEqual([scene.holders(hash), endingOf(scene, hash)], [[], null]);
		relay.answer = () => ACKNOWLEDGED;
		await clock.advance(31_000);
		assert.deepEqual(scene.holders(hash), ["relay"]);
		await scene.stop();
	}
});

test("what everybody refuses because its nonce is used ends as the chain says", async () => {
	const scene = await reconcileScene();
	const { relay, fallback, chain, clock, handover } = scene;
	relay.answer = () => refused("nonce too low");
	fallback.answer = () => refused("nonce too low");
	const [dropped, mined] = [await scene.opened(1), await scene.opened(2, ["relay"], { from: senderOf(2) })];
	for (const hash of [dropped, mined]) relay.stages.delete(hash);
	chain.nonces.set(senderOf(1), 2n);
	chain.nonces.set(senderOf(2), 3n);
	chain.receipts.add(mined);
	await scene.observer.start();
	handover.wake();
	await clock.advance(3 * SLOT_MS);
	assert.deepEqual([endingOf(scene, dropped), endingOf(scene, mined)], ["dropped", "mined"]);
	await scene.stop();
});

test("what nobody takes ends when its time is over", async () => {
	const scene = await reconcileScene();
	const { relay, fallback, clock } = scene;
	relay.answer = () => refused();
	fallback.answer = () => refused();
	const hash = await scene.opened(1, ["relay"], { from: senderOf(7) });
	relay.stages.delete(hash);
	await scene.observer.start();
	await clock.advance(299_000);
	assert.equal(endingOf(scene, hash), null);
	await clock.advance(2 * SLOT_MS);
	assert.equal(endingOf(scene, hash), "expired");
	const before = relay.hashes.length + fallback.hashes.length;
	assert.ok(before <= 40, `${before} deliveries`);
	await clock.advance(5 * HEARTBEAT_MS);
	assert.equal(relay.hashes.length + fallback.hashes.length, before);
	await scene.stop();
});
