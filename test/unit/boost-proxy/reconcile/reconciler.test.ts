// Handing over: what no live upstream holds goes to one that may have it, in order, and nothing else goes anywhere.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Delivery } from "../../../../boost-proxy/domain/request.ts";
import { rawOf } from "../journal/journalFixture.ts";
import { ACKNOWLEDGED, endingOf, hashOf, reconcileFixture, senderOf } from "./reconcileFixture.ts";

test("what a relay held goes to the fallback when it is out, in the order of the nonces, as it came", async () => {
	const fixture = await reconcileFixture();
	const { relay, fallback, clock } = fixture;
	const second = await fixture.opened(2, ["relay"], { search: "refundRecipient=0x1", path: "noreverts" });
	const first = await fixture.opened(1);
	const other = await fixture.opened(3, ["relay"], { from: senderOf(2) });
	fixture.handover.wake();
	await clock.advance(2_000);
	assert.deepEqual(fallback.hashes, [], "while the relay is well nothing is handed over");
	relay.breaker.set(true);
	await clock.advance(100);
	assert.deepEqual(new Set(fallback.hashes), new Set([first, second, other]));
	const own = fallback.delivered.filter(({ tx }) => tx.from === senderOf(1));
	assert.deepEqual(
		own.map(({ tx }) => tx.hash),
		[first, second],
	);
	assert.deepEqual(
		{ path: own[1]?.tx.path, search: own[1]?.tx.search, caller: own[1]?.options.caller },
		{ path: "noreverts", search: "refundRecipient=0x1", caller: null },
	);
	for (const hash of [first, second, other]) assert.deepEqual(fixture.holders(hash), ["relay", "fallback"]);
	await clock.advance(10_000);
	assert.equal(fallback.delivered.length, 3, "once is enough");
	assert.deepEqual(fixture.outcomes, Array(3).fill("fallback acknowledged"));
	relay.breaker.set(false);
	await clock.advance(2_000);
	fallback.breaker.set(true);
	await clock.advance(2_000);
	assert.deepEqual(relay.hashes, [], "the relay holds them all");
	await fixture.stop();
});

test("what the fallback alone held goes to the relay, on its client's behalf", async () => {
	const fixture = await reconcileFixture();
	const hash = await fixture.opened(1, ["fallback"], { address: "192.0.2.7" });
	fixture.fallback.breaker.set(true);
	await fixture.clock.advance(100);
	assert.deepEqual(fixture.relay.hashes, [hash]);
	const caller = fixture.relay.delivered[0]?.options.caller;
	assert.deepEqual([caller?.address, caller?.signer, caller?.signature], ["192.0.2.7", null, null]);
	await fixture.stop();
});

test("what may not go there, is under way, was not acknowledged or is past its time stays", async () => {
	const fixture = await reconcileFixture();
	const { journal, relay, fallback, clock } = fixture;
	fallback.refuses = (path) => (path === "noreverts" ? "not protected" : null);
	await fixture.opened(1, ["relay"], { path: "noreverts" });
	await fixture.opened(2, ["relay"], { acknowledged: false, from: senderOf(2) });
	const busy = await fixture.opened(3, ["relay"], { from: senderOf(3) });
	await fixture.opened(4, ["relay"], { from: senderOf(4), receivedAt: clock.now() - 400_000 });
	journal.setUnderWay(busy, true);
	relay.breaker.set(true);
	await clock.advance(3_000);
	assert.deepEqual(fallback.hashes, []);
	journal.setUnderWay(busy, false);
	await clock.advance(1_100);
	assert.deepEqual(fallback.hashes, [busy], "nobody wakes for this: the tick does");
	await fixture.stop();
});

test("nothing stands before another one there that is on its way, but for one that may never go there", async () => {
	const fixture = await reconcileFixture();
	const { journal, relay, fallback, clock } = fixture;
	const low = await fixture.opened(1);
	const never = await fixture.opened(2, ["relay"], { path: "noreverts" });
	const high = await fixture.opened(3);
	fallback.refuses = (path) => (path === "noreverts" ? "not protected" : null);
	journal.setUnderWay(low, true);
	relay.breaker.set(true);
	await clock.advance(2_000);
	assert.deepEqual(fallback.hashes, []);
	journal.setUnderWay(low, false);
	fixture.handover.wake();
	await clock.advance(100);
	assert.deepEqual(fallback.hashes, [low, high], "it takes gaps");
	assert.deepEqual(fixture.holders(never), ["relay"]);
	await fixture.stop();
});

test("a fallback that takes no gaps gets only what follows the chain's nonce or what it has", async () => {
	const fixture = await reconcileFixture({ dialect: "flashbots" });
	const { relay, fallback, chain, clock } = fixture;
	const hashes: string[] = [];
	for (const nonce of [4, 5, 6, 8]) hashes.push(await fixture.opened(nonce));
	await fixture.opened(20, ["relay"], { from: senderOf(2), nonce: 1n });
	chain.isDown = true;
	relay.breaker.set(true);
	await clock.advance(500);
	assert.deepEqual(fallback.hashes, [], "an unknown nonce is no nonce");
	chain.isDown = false;
	chain.nonces.set(senderOf(1), 5n);
	await clock.advance(3_000);
	assert.deepEqual(fallback.hashes, [hashes[1], hashes[2]], "4 is used, 7 is missing");
	chain.nonces.set(senderOf(2), 1n);
	await clock.advance(31_000);
	assert.deepEqual(fallback.hashes.slice(2), [hashOf(20)]);
	await fixture.stop();
});

test("one that ends or is replaced while it waits for its bytes is not sent", async () => {
	const fixture = await reconcileFixture();
	const { journal, relay, fallback, clock, disk } = fixture;
	const cancelled = await fixture.opened(1, ["relay"], { from: senderOf(1) });
	const replaced = await fixture.opened(2, ["relay"], { from: senderOf(2) });
	assert.ok(disk.map.size > 0, "they are on disk");
	const { rows } = journal;
	const read = rows.raw.bind(rows);
	rows.raw = async (hash) => {
		if (hash === cancelled) void journal.end(hash, "cancelled");
		else journal.setUnderWay(hash, true);
		return read(hash);
	};
	relay.breaker.set(true);
	await clock.advance(3_000);
	assert.deepEqual(fallback.hashes, []);
	assert.equal(endingOf(fixture, cancelled), "cancelled");
	assert.deepEqual(fixture.holders(replaced), ["relay"]);
	await fixture.stop();
});

test("what replaced it meanwhile is sent with its own bytes", async () => {
	const fixture = await reconcileFixture();
	const { journal, relay, fallback, clock } = fixture;
	const earlier = await fixture.opened(1, ["relay"], { nonce: 1n });
	const later = hashOf(2);
	const { rows } = journal;
	const read = rows.raw.bind(rows);
	rows.raw = async (hash) => {
		const raw = await read(hash);
		if (hash === earlier && journal.get(later) === null) {
			await fixture.opened(2, ["relay"], { nonce: 1n });
			await journal.end(earlier, "replaced");
		}
		return raw;
	};
	relay.breaker.set(true);
	await clock.advance(3_000);
	assert.deepEqual(
		fallback.delivered.map(({ tx }) => [tx.hash, tx.raw.toString()]),
		[[later, rawOf(2).toString()]],
	);
	await fixture.stop();
});

test("one that ends while it is being delivered is taken back there", async () => {
	for (const ending of ["cancelled", "mined"] as const) {
		const fixture = await reconcileFixture();
		const { journal, relay, fallback, clock } = fixture;
		const hash = await fixture.opened(1);
		fallback.answer = async () => {
			await journal.end(hash, ending);
			return ACKNOWLEDGED;
		};
		relay.breaker.set(true);
		await clock.advance(1_000);
		const told = ending === "cancelled" ? [hash] : [];
		assert.deepEqual(fallback.asked("eth_cancelTransaction"), told);
		assert.deepEqual(journal.ended(hash)?.untold, []);
		assert.equal(fallback.stages.get(hash), ending === "cancelled" ? "CANCELLED" : "BROADCAST");
		await fixture.stop();
	}
});

test("after a restart who got it second is given it again before it counts as a holder", async () => {
	const first = await reconcileFixture();
	const hash = await first.opened(1, ["relay", "fallback"]);
	await first.stop();
	const fixture = await reconcileFixture({ disk: first.disk });
	const later = await fixture.opened(2, ["relay", "fallback"], { from: senderOf(2) });
	fixture.handover.wake();
	await fixture.clock.advance(100);
	assert.deepEqual(fixture.fallback.hashes, [], "the relay has it");
	fixture.relay.breaker.set(true);
	await fixture.clock.advance(100);
	assert.deepEqual(fixture.fallback.hashes, [hash], `${later} came in this life`);
	await fixture.stop();
});

test("the stop waits for the delivery under way and begins no other", async () => {
	const fixture = await reconcileFixture();
	const { fallback, relay, clock, handover } = fixture;
	await fixture.opened(1);
	await fixture.opened(2);
	let answer: (delivery: Delivery) => void = () => {};
	fallback.answer = () =>
		new Promise((resolve) => {
			answer = resolve;
		});
	relay.breaker.set(true);
	await clock.advance(10);
	let stopped = false;
	const stopping = handover.stop().then(() => {
		stopped = true;
	});
	await clock.advance(100);
	assert.equal(stopped, false);
	answer(ACKNOWLEDGED);
	await stopping;
	handover.wake();
	await clock.advance(10_000);
	assert.equal(fallback.delivered.length, 1);
	await fixture.stop();
});

test("without a fallback nothing happens, and nothing is forgotten", async () => {
	const fixture = await reconcileFixture({ alone: true });
	const hash = await fixture.opened(1);
	fixture.relay.breaker.set(true);
	await fixture.clock.advance(5_000);
	fixture.relay.breaker.set(false);
	await fixture.clock.advance(5_000);
	assert.deepEqual(fixture.holders(hash), ["relay"]);
	assert.deepEqual(fixture.relay.hashes, []);
	await fixture.stop();
});

test("a thousand accounts go side by side, sixteen at a time at most", async () => {
	const fixture = await reconcileFixture();
	for (let n = 1; n <= 1_000; n += 1) await fixture.opened(n, ["relay"], { from: senderOf(n) });
	let running = 0;
	let most = 0;
	fixture.fallback.answer = async () => {
		running += 1;
		most = Math.max(most, running);
		await new Promise((resolve) => setImmediate(resolve));
		running -= 1;
		return ACKNOWLEDGED;
	};
	fixture.relay.breaker.set(true);
	while (fixture.fallback.delivered.length < 1_000 || running > 0) await fixture.clock.advance(1);
	assert.equal(most, 16);
	assert.equal(fixture.fallback.delivered.length, 1_000);
	await fixture.stop();
});
