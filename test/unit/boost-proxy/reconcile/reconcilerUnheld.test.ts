// Entries that nobody holds, or whose only holder has lost and then refuses them; and what nobody wakes the handover for.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ACKNOWLEDGED, endingOf, reconcileFixture, refused, SLOT_MS, senderOf } from "./reconcileFixture.ts";

const TICK_MS = 1_000;
const HEARTBEAT_MS = 10 * TICK_MS;

test("an acknowledged one that nobody holds goes to the relay, to the fallback where that is out", async () => {
	for (const isUnavailable of [false, true]) {
		const fixture = await reconcileFixture();
		const { journal, relay, fallback, clock } = fixture;
		const hash = await fixture.opened(1);
		relay.breaker.set(isUnavailable);
		await journal.notHeld(hash, "relay");
		fixture.handover.wake();
		await clock.advance(100);
		assert.deepEqual([relay.hashes, fallback.hashes], isUnavailable ? [[], [hash]] : [[hash], []]);
		assert.deepEqual(fixture.holders(hash), [isUnavailable ? "fallback" : "relay"]);
		await fixture.stop();
	}
});

test("what nobody woke it for is seen in time: one untold, one owed, one that nobody holds", async () => {
	const fixture = await reconcileFixture();
	const { journal, relay, fallback, clock } = fixture;
	const ended = await fixture.opened(1, ["relay", "fallback"]);
	await journal.end(ended, "cancelled");
	fixture.handover.wake();
	await clock.advance(5 * HEARTBEAT_MS);
	assert.deepEqual(fallback.called, [], "nobody is untold");
	await journal.held(ended, "fallback");
	const unheld = await fixture.opened(2, ["relay"], { from: senderOf(2) });
	await journal.notHeld(unheld, "relay");
	const owed = await fixture.opened(3, ["relay"], { from: senderOf(3), replacesAt: ["fallback"] });
	await clock.advance(HEARTBEAT_MS + 100);
	assert.deepEqual(fallback.asked("eth_cancelTransaction"), [ended]);
	assert.deepEqual(journal.ended(ended)?.untold, []);
	assert.deepEqual([relay.hashes, fallback.hashes], [[unheld], [owed]]);
	await fixture.stop();
});

test("what the relay has lost and refuses for now goes to the fallback", async () => {
	const fixture = await reconcileFixture();
	const { relay, fallback, clock, handover } = fixture;
	handover.wake();
	const hash = await fixture.opened(1);
	relay.answer = () => refused("txpool is full");
	handover.lost(hash, "relay");
	await clock.advance(100);
	assert.deepEqual([relay.hashes, fallback.hashes], [[hash], [hash]]);
	assert.deepEqual(fixture.holders(hash), ["fallback"]);
	await clock.advance(5 * HEARTBEAT_MS);
	assert.deepEqual([relay.hashes, fallback.hashes], [[hash], [hash]], "it is where it should be");
	await fixture.stop();
});

test("what everybody refuses is tried again now and then, until somebody takes it", async () => {
	for (const alone of [true, false]) {
		const fixture = await reconcileFixture({ alone });
		const { relay, fallback, clock, handover } = fixture;
		handover.wake();
		const hash = await fixture.opened(1);
		const behind = await fixture.opened(2);
		relay.answer = (tx) => (tx.hash === hash ? refused("txpool is full") : ACKNOWLEDGED);
		fallback.answer = () => refused();
		handover.lost(hash, "relay");
		handover.lost(behind, "relay");
		await clock.advance(100);
		assert.deepEqual(relay.hashes, [hash, behind], "what stands behind it does not wait");
		await clock.advance(150_000);
		assert.ok(relay.hashes.length <= 12, `${relay.hashes.length} deliveries`);
		assert.deepEqual([fixture.holders(hash), endingOf(fixture, hash)], [[], null]);
		relay.answer = () => ACKNOWLEDGED;
		await clock.advance(31_000);
		assert.deepEqual(fixture.holders(hash), ["relay"]);
		await fixture.stop();
	}
});

test("what everybody refuses because its nonce is used ends as the chain says", async () => {
	const fixture = await reconcileFixture();
	const { relay, fallback, chain, clock, handover } = fixture;
	relay.answer = () => refused("nonce too low");
	fallback.answer = () => refused("nonce too low");
	const [dropped, mined] = [
		await fixture.opened(1),
		await fixture.opened(2, ["relay"], { from: senderOf(2) }),
	];
	for (const hash of [dropped, mined]) relay.stages.delete(hash);
	chain.nonces.set(senderOf(1), 2n);
	chain.nonces.set(senderOf(2), 3n);
	chain.receipts.add(mined);
	await fixture.observer.start();
	handover.wake();
	await clock.advance(3 * SLOT_MS);
	assert.deepEqual([endingOf(fixture, dropped), endingOf(fixture, mined)], ["dropped", "mined"]);
	await fixture.stop();
});

test("what nobody takes ends when its time is over", async () => {
	const fixture = await reconcileFixture();
	const { relay, fallback, clock } = fixture;
	relay.answer = () => refused();
	fallback.answer = () => refused();
	const hash = await fixture.opened(1, ["relay"], { from: senderOf(7) });
	relay.stages.delete(hash);
	await fixture.observer.start();
	await clock.advance(299_000);
	assert.equal(endingOf(fixture, hash), null);
	await clock.advance(2 * SLOT_MS);
	assert.equal(endingOf(fixture, hash), "expired");
	const before = relay.hashes.length + fallback.hashes.length;
	assert.ok(before <= 40, `${before} deliveries`);
	await clock.advance(5 * HEARTBEAT_MS);
	assert.equal(relay.hashes.length + fallback.hashes.length, before);
	await fixture.stop();
});
