// Following what the relay can't speak for: by the chain's nonces and receipts, and by a fallback's status pages.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	endingOf,
	hashOf,
	type ReconcileFixture,
	reconcileFixture,
	SLOT_MS,
	senderOf,
} from "./reconcileFixture.ts";

/** A observer whose relay is out. */
async function outage(options: Parameters<typeof reconcileFixture>[0] = {}): Promise<ReconcileFixture> {
	const fixture = await reconcileFixture(options);
	fixture.relay.breaker.set(true);
	await fixture.observer.start();
	return fixture;
}

function calls({ chain }: ReconcileFixture, method: string): readonly unknown[] {
	return chain.batches.flat().flatMap((call) => (call.method === method ? [call.params[0]] : []));
}

test("a receipt is asked for where the nonce is used; with it the entry is mined", async () => {
	const fixture = await outage();
	const { chain, clock } = fixture;
	const [mined, waiting] = [await fixture.opened(1), await fixture.opened(2)];
	const busy = await fixture.opened(3, ["relay"], { from: senderOf(2) });
	fixture.journal.setUnderWay(busy, true);
	await clock.advance(100);
	assert.deepEqual(calls(fixture, "eth_getTransactionReceipt"), []);
	chain.nonces.set(senderOf(1), 2n);
	chain.receipts.add(mined);
	await clock.advance(SLOT_MS);
	assert.equal(endingOf(fixture, mined), "mined");
	assert.notEqual(fixture.holders(waiting), null);
	assert.deepEqual(new Set(calls(fixture, "eth_getTransactionReceipt")), new Set([mined]));
	assert.deepEqual(new Set(calls(fixture, "eth_getTransactionCount")), new Set([senderOf(1)]));
	await fixture.stop();
});

test("a used nonce without a receipt must be seen twice; what used it says what it was", async () => {
	const fixture = await outage();
	const { chain, clock, journal } = fixture;
	const dropped = await fixture.opened(1, ["fallback"]);
	const replaced = await fixture.opened(2, ["fallback"], { from: senderOf(2), nonce: 0n });
	const winner = await fixture.opened(3, ["fallback"], {
		from: senderOf(2),
		nonce: 0n,
		receivedAt: clock.now() + 1,
	});
	chain.nonces.set(senderOf(1), 2n);
	chain.nonces.set(senderOf(2), 1n);
	chain.receipts.add(winner);
	await clock.advance(SLOT_MS / 2);
	assert.equal(endingOf(fixture, winner), "mined");
	assert.equal(endingOf(fixture, dropped), null, "a node may be behind another");
	await clock.advance(SLOT_MS);
	assert.deepEqual([endingOf(fixture, dropped), endingOf(fixture, replaced)], ["dropped", "replaced"]);
	assert.deepEqual([...journal.untold()], [], "who holds it has nothing to do");
	await fixture.stop();
});

test("a nonce that is not used after all begins the count anew", async () => {
	const fixture = await outage();
	const { chain, clock } = fixture;
	const hash = await fixture.opened(1, ["fallback"]);
	for (const nonce of [2n, 1n, 2n]) {
		chain.nonces.set(senderOf(1), nonce);
		await clock.advance(SLOT_MS / 2 + 900);
	}
	assert.equal(endingOf(fixture, hash), null);
	await fixture.stop();
});

test("each account is asked for once in half a slot, a hundred at a time, who waits the longest first", async () => {
	const fixture = await outage();
	const { chain, clock } = fixture;
	for (let n = 1; n <= 250; n += 1) await fixture.opened(n, ["fallback"], { from: senderOf(n) });
	for (let n = 251; n <= 260; n += 1) await fixture.opened(n, ["fallback"], { from: senderOf(1) });
	await clock.advance(SLOT_MS / 2);
	assert.deepEqual(
		chain.batches.map(({ length }) => length),
		[100, 100, 50],
	);
	assert.equal(new Set(calls(fixture, "eth_getTransactionCount")).size, 250);
	await clock.advance(SLOT_MS / 2);
	assert.equal(chain.batches.flat().length, 500);
	for (let n = 261; n <= 700; n += 1) await fixture.opened(n, ["fallback"], { from: senderOf(n) });
	await clock.advance(SLOT_MS);
	assert.equal(new Set(calls(fixture, "eth_getTransactionCount")).size, 690, "nobody starves");
	await fixture.stop();
});

test("what is past its time expires when the chain has said that it is not mined, or has said nothing for long", async () => {
	const fixture = await outage();
	const { chain, clock, journal } = fixture;
	chain.isDown = true;
	const hash = await fixture.opened(1, ["fallback"]);
	await clock.advance(320_000);
	assert.equal(endingOf(fixture, hash), null, "it may be mined");
	chain.isDown = false;
	await clock.advance(SLOT_MS);
	assert.equal(endingOf(fixture, hash), "expired");
	assert.deepEqual([...journal.untold()], []);
	chain.isDown = true;
	const next = await fixture.opened(2, ["fallback"]);
	await clock.advance(890_000);
	assert.equal(endingOf(fixture, next), null);
	await clock.advance(20_000);
	assert.equal(endingOf(fixture, next), "expired");
	await fixture.stop();
});

test("the chain is not asked while the relay speaks, and is where it has said nothing for two slots or has no record", async () => {
	const fixture = await reconcileFixture();
	const { relay, chain, clock } = fixture;
	await fixture.observer.start();
	await fixture.opened(1);
	await clock.advance(5 * SLOT_MS);
	assert.deepEqual(chain.batches, []);
	relay.answerCall = () => null;
	await clock.advance(SLOT_MS);
	assert.deepEqual(chain.batches, []);
	await clock.advance(2 * SLOT_MS);
	assert.ok(chain.batches.length > 0, "it says nothing");
	relay.answerCall = () => undefined;
	await clock.advance(2_000);
	const before = chain.batches.length;
	const hash = await fixture.opened(2);
	relay.stages.delete(hash);
	chain.nonces.set(senderOf(1), 3n);
	chain.receipts.add(hash);
	await clock.advance(SLOT_MS / 2);
	assert.ok(chain.batches.length > before, "it has no record");
	assert.equal(endingOf(fixture, hash), "mined");
	await fixture.stop();
});

test("the fallback's pages tell who ended it: a few at a time, one after another, each once a slot", async () => {
	const fixture = await outage();
	const { fallback, clock } = fixture;
	for (let n = 1; n <= 14; n += 1) await fixture.opened(n, ["fallback"], { from: senderOf(n) });
	await fixture.opened(15, ["fallback", "relay"], { from: senderOf(15) });
	fallback.pages.set(hashOf(1), { status: "FAILED", stage: "CANCELLED" });
	fallback.pages.set(hashOf(2), { status: "FAILED", stage: "REPLACED" });
	fallback.pages.set(hashOf(3), { status: "FAILED", stage: "SIMULATION_FAILED" });
	fallback.pages.set(hashOf(4), { status: "UNKNOWN", stage: "CANCELLED" });
	fallback.pages.set(hashOf(5), "FAILED");
	await clock.advance(1_000);
	assert.equal(fallback.pagesAsked.length, 10);
	const endings = [1, 2, 3, 4, 5].map((n) => endingOf(fixture, hashOf(n)));
	assert.deepEqual(endings, ["cancelled", "replaced", null, null, null]);
	await clock.advance(SLOT_MS - 2_000);
	assert.equal(fallback.pagesAsked.length, 14, "the others once, and none of what the relay holds too");
	await fixture.stop();

	const other = await outage({ dialect: "flashbots" });
	await other.opened(1, ["fallback"]);
	await other.clock.advance(SLOT_MS);
	assert.deepEqual(other.fallback.pagesAsked, [], "another's words are not ours");
	await other.stop();
});

test("a cancel at the relay that was known before it went out is not handed over", async () => {
	const fixture = await reconcileFixture();
	const { relay, fallback, clock, observer } = fixture;
	await observer.start();
	const [cancelled, kept] = [
		await fixture.opened(1),
		await fixture.opened(2, ["relay"], { from: senderOf(2) }),
	];
	await clock.advance(500);
	relay.stages.set(cancelled, "CANCELLED");
	await clock.advance(1_000);
	relay.breaker.set(true);
	await clock.advance(5_000);
	assert.deepEqual(fallback.hashes, [kept]);
	await fixture.stop();
});
