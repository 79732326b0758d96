// Following what was mined a moment ago: a block that is taken back opens it again.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	endingOf,
	INTERVAL_MS,
	type ReconcileFixture,
	reconcileFixture,
	SLOT_MS,
	senderOf,
} from "./reconcileFixture.ts";

async function followed(): Promise<ReconcileFixture> {
	const fixture = await reconcileFixture();
	await fixture.observer.start();
	return fixture;
}

test("where the relay has no record of what is mined, the chain says whether it is taken back", async () => {
	const fixture = await followed();
	const { relay, chain, clock } = fixture;
	const hash = await fixture.opened(1);
	relay.stages.set(hash, "INCLUDED");
	await clock.advance(INTERVAL_MS);
	relay.stages.delete(hash);
	chain.receipts.add(hash);
	await clock.advance(2 * SLOT_MS);
	assert.equal(endingOf(fixture, hash), "mined");
	chain.receipts.delete(hash);
	await clock.advance(2 * SLOT_MS);
	assert.deepEqual(fixture.holders(hash), ["relay"]);
	await fixture.stop();
});

test("mined by the relay's word is taken back by it", async () => {
	const fixture = await followed();
	const { relay, clock } = fixture;
	const hash = await fixture.opened(1);
	relay.stages.set(hash, "INCLUDED");
	await clock.advance(INTERVAL_MS);
	assert.equal(endingOf(fixture, hash), "mined");
	relay.stages.set(hash, "BROADCAST");
	await clock.advance(SLOT_MS);
	assert.deepEqual(fixture.holders(hash), ["relay"]);
	relay.stages.set(hash, "INCLUDED");
	await clock.advance(INTERVAL_MS);
	await clock.advance(12 * SLOT_MS);
	const before = relay.called.length;
	await clock.advance(SLOT_MS);
	assert.equal(relay.called.length, before, "after twelve slots nobody asks");
	await fixture.stop();
});

test("a receipt that is gone in two looks running opens it again, within twelve slots", async () => {
	for (const holder of ["relay", "fallback"] as const) {
		const fixture = await followed();
		const { chain, clock } = fixture;
		if (holder === "relay") fixture.relay.breaker.set(true);
		const hash = await fixture.opened(1, [holder]);
		chain.nonces.set(senderOf(1), 2n);
		chain.receipts.add(hash);
		await clock.advance(SLOT_MS / 2);
		assert.equal(endingOf(fixture, hash), "mined");
		chain.receipts.delete(hash);
		await clock.advance(SLOT_MS * 0.4);
		assert.equal(endingOf(fixture, hash), "mined", "once");
		chain.receipts.add(hash);
		await clock.advance(SLOT_MS * 0.5);
		chain.receipts.delete(hash);
		chain.nonces.set(senderOf(1), 1n);
		await clock.advance(SLOT_MS * 0.4);
		assert.equal(endingOf(fixture, hash), "mined", "once more, but not in a row");
		await clock.advance(SLOT_MS * 0.6);
		assert.equal(fixture.holders(hash)?.[0], holder, "twice");
		await fixture.stop();
	}
});

test("what was mined before the start is watched for the rest of its time", async () => {
	for (const holder of ["relay", "fallback"] as const) {
		const fixture = await reconcileFixture();
		const { relay, chain, clock, journal } = fixture;
		const [early, late] = [
			await fixture.opened(1, [holder]),
			await fixture.opened(2, [holder], { from: senderOf(2) }),
		];
		for (const hash of [early, late]) {
			relay.stages.set(hash, "INCLUDED");
			chain.receipts.add(hash);
		}
		await journal.end(early, "mined");
		await clock.advance(9 * SLOT_MS);
		await journal.end(late, "mined");
		await fixture.observer.start();
		await clock.advance(4 * SLOT_MS);
		relay.called.length = 0;
		for (const hash of [early, late]) {
			relay.stages.set(hash, "BROADCAST");
			chain.receipts.delete(hash);
		}
		await clock.advance(2 * SLOT_MS);
		assert.deepEqual(
			[fixture.holders(early), fixture.holders(late)],
			[null, [holder]],
			"a reorganisation is seen",
		);
		assert.equal(
			relay.called.some(({ call }) => JSON.stringify(call.params).includes(early)),
			false,
			"twelve slots from its end, not from the start",
		);
		await fixture.stop();
	}
});
