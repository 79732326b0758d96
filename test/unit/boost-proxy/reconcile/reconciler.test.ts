// Handing over: what no live upstream holds goes to one that may have it, in order, and nothing else goes anywhere.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Delivery } from "../../../../boost-proxy/domain/delivery.ts";
import { rawOf } from "../journal/journalScene.ts";
import { ACKNOWLEDGED, endingOf, hashOf, reconcileScene, senderOf } from "./reconcileScene.ts";

test("what a relay held goes to the fallback when it is out, in the order of the nonces, as it came", async () => {
	const scene = await reconcileScene();
	const { relay, fallback, clock } = scene;
	const second = await scene.opened(2, ["relay"], { search: "refundRecipient=0x1", path: "noreverts" });
	const first = await scene.opened(1);
	const other = await scene.opened(3, ["relay"], { from: senderOf(2) });
	scene.handover.wake();
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
		{ path: own[1]?.tx.path, search: own[1]?.tx.search, asker: own[1]?.options.asker },
		{ path: "noreverts", search: "refundRecipient=0x1", asker: null },
	);
	for (const hash of [first, second, other]) assert.deepEqual(scene.holders(hash), ["relay", "fallback"]);
	await clock.advance(10_000);
	assert.equal(fallback.delivered.length, 3, "once is enough");
	assert.deepEqual(scene.outcomes, Array(3).fill("fallback acknowledged"));
	relay.breaker.set(false);
	await clock.advance(2_000);
	fallback.breaker.set(true);
	await clock.advance(2_000);
	assert.deepEqual(relay.hashes, [], "the relay holds them all");
	await scene.stop();
});

test("what the fallback alone held goes to the relay, on its client's behalf", async () => {
	const scene = await reconcileScene();
	const hash = await scene.opened(1, ["fallback"], { address: "192.0.2.7" });
	scene.fallback.breaker.set(true);
	await scene.clock.advance(100);
	assert.deepEqual(scene.relay.hashes, [hash]);
	const asker = scene.relay.delivered[0]?.options.asker;
	assert.deepEqual([asker?.address, asker?.signer, asker?.signature], ["192.0.2.7", null, null]);
	await scene.stop();
});

test("what may not go there, is under way, was not acknowledged or is past its time stays", async () => {
	const scene = await reconcileScene();
	const { journal, relay, fallback, clock } = scene;
	fallback.refuses = (path) => (path === "noreverts" ? "not protected" : null);
	await scene.opened(1, ["relay"], { path: "noreverts" });
	await scene.opened(2, ["relay"], { acknowledged: false, from: senderOf(2) });
	const busy = await scene.opened(3, ["relay"], { from: senderOf(3) });
	await scene.opened(4, ["relay"], { from: senderOf(4), receivedAt: clock.now() - 400_000 });
	journal.setUnderWay(busy, true);
	relay.breaker.set(true);
	await clock.advance(3_000);
	assert.deepEqual(fallback.hashes, []);
	journal.setUnderWay(busy, false);
	await clock.advance(1_100);
	assert.deepEqual(fallback.hashes, [busy], "nobody wakes for this: the tick does");
	await scene.stop();
});

test("nothing stands before another one there that is on its way, but for one that may never go there", async () => {
	const scene = await reconcileScene();
	const { journal, relay, fallback, clock } = scene;
	const low = await scene.opened(1);
	const never = await scene.opened(2, ["relay"], { path: "noreverts" });
	const high = await scene.opened(3);
	fallback.refuses = (path) => (path === "noreverts" ? "not protected" : null);
	journal.setUnderWay(low, true);
	relay.breaker.set(true);
	await clock.advance(2_000);
	assert.deepEqual(fallback.hashes, []);
	journal.setUnderWay(low, false);
	scene.handover.wake();
	await clock.advance(100);
	assert.deepEqual(fallback.hashes, [low, high], "it takes gaps");
	assert.deepEqual(scene.holders(never), ["relay"]);
	await scene.stop();
});

test("a fallback that takes no gaps gets only what follows the chain's nonce or what it has", async () => {
	const scene = await reconcileScene({ dialect: "flashbots" });
	const { relay, fallback, chain, clock } = scene;
	const hashes: string[] = [];
	for (const nonce of [4, 5, 6, 8]) hashes.push(await scene.opened(nonce));
	await scene.opened(20, ["relay"], { from: senderOf(2), nonce: 1n });
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
	await scene.stop();
});

test("one that ends or is replaced while it waits for its bytes is not sent", async () => {
	const scene = await reconcileScene();
	const { journal, relay, fallback, clock, disk } = scene;
	const cancelled = await scene.opened(1, ["relay"], { from: senderOf(1) });
	const replaced = await scene.opened(2, ["relay"], { from: senderOf(2) });
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
	assert.equal(endingOf(scene, cancelled), "cancelled");
	assert.deepEqual(scene.holders(replaced), ["relay"]);
	await scene.stop();
});

test("what replaced it meanwhile is sent with its own bytes", async () => {
	const scene = await reconcileScene();
	const { journal, relay, fallback, clock } = scene;
	const earlier = await scene.opened(1, ["relay"], { nonce: 1n });
	const later = hashOf(2);
	const { rows } = journal;
	const read = rows.raw.bind(rows);
	rows.raw = async (hash) => {
		const raw = await read(hash);
		if (hash === earlier && journal.get(later) === null) {
			await scene.opened(2, ["relay"], { nonce: 1n });
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
	await scene.stop();
});

test("one that ends while it is being delivered is taken back there", async () => {
	for (const ending of ["cancelled", "mined"] as const) {
		const scene = await reconcileScene();
		const { journal, relay, fallback, clock } = scene;
		const hash = await scene.opened(1);
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
		await scene.stop();
	}
});

test("after a restart who got it second is given it again before it counts as a holder", async () => {
	const first = await reconcileScene();
	const hash = await first.opened(1, ["relay", "fallback"]);
	await first.stop();
	const scene = await reconcileScene({ disk: first.disk });
	const later = await scene.opened(2, ["relay", "fallback"], { from: senderOf(2) });
	scene.handover.wake();
	await scene.clock.advance(100);
	assert.deepEqual(scene.fallback.hashes, [], "the relay has it");
	scene.relay.breaker.set(true);
	await scene.clock.advance(100);
	assert.deepEqual(scene.fallback.hashes, [hash], `${later} came in this life`);
	await scene.stop();
});

test("the stop waits for the delivery under way and begins no other", async () => {
	const scene = await reconcileScene();
	const { fallback, relay, clock, handover } = scene;
	await scene.opened(1);
	await scene.opened(2);
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
	await scene.stop();
});

test("without a fallback nothing happens, and nothing is forgotten", async () => {
	const scene = await reconcileScene({ alone: true });
	const hash = await scene.opened(1);
	scene.relay.breaker.set(true);
	await scene.clock.advance(5_000);
	scene.relay.breaker.set(false);
	await scene.clock.advance(5_000);
	assert.deepEqual(scene.holders(hash), ["relay"]);
	assert.deepEqual(scene.relay.hashes, []);
	await scene.stop();
});

test("a thousand accounts go side by side, sixteen at a time at most", async () => {
	const scene = await reconcileScene();
	for (let n = 1; n <= 1_000; n += 1) await scene.opened(n, ["relay"], { from: senderOf(n) });
	let running = 0;
	let most = 0;
	scene.fallback.answer = async () => {
		running += 1;
		most = Math.max(most, running);
		await new Promise((resolve) => setImmediate(resolve));
		running -= 1;
		return ACKNOWLEDGED;
	};
	scene.relay.breaker.set(true);
	while (scene.fallback.delivered.length < 1_000 || running > 0) await scene.clock.advance(1);
	assert.equal(most, 16);
	assert.equal(scene.fallback.delivered.length, 1_000);
	await scene.stop();
});
