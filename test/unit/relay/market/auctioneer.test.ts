// Tests the auctioneer within one block: which bid the builders have, what its rivals are told, and what follows when
// bids arrive, leave, are cancelled or share a nonce. Targets, book and records are real; the builders are fakes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AuctionScene } from "./auctionScene.ts";

test("a bid goes out at once, behind its target, with the user's refund", async () => {
	const scene = new AuctionScene();
	const recipient = `0x${"77".repeat(20)}`;
	const target = scene.target("T", { path: "noreverts", refundRecipient: recipient });
	const hash = await scene.accepted("A", target, 5n);
	assert.deepEqual(scene.builders.take(), ["send T A for 101 to a,b"]);
	const sent = scene.builders.sent[0];
	assert.deepEqual(
		sent?.transactions.map(({ mayRevert, mayDrop }) => [mayRevert, mayDrop]),
		[
			[false, false],
			[false, true],
		],
	);
	const backrun = sent?.transactions[1]?.tx.hash ?? "";
	assert.deepEqual(sent?.refund, { percent: 90, recipient, bodyIdx: 0, of: backrun });
	assert.equal(scene.status(hash, 101), "BEST");
	assert.equal(scene.detail(hash, 101)?.bid, 5n);
	const [bundled] = scene.events(target, "bundled");
	assert.deepEqual(bundled, {
		...{ type: "bundled", at: scene.clock.now(), block: 101, bundle: hash, backrun },
		...{ bid: "5", builders: ["a", "b"] },
	});
	assert.equal(scene.ledger.get(target.tx.hash)?.record.backruns, 1);
	assert.deepEqual(scene.faults, []);
});

test("a better one takes its place under the same name; a worse or equal one waits", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const a = await scene.accepted("A", target, 5n);
	const b = await scene.accepted("B", target, 7n);
	const c = await scene.accepted("C", target, 7n);
	const d = await scene.accepted("D", target, 1n);
	assert.deepEqual(scene.builders.take(), ["send T A for 101 to a,b", "send T B for 101 to a,b"]);
	assert.deepEqual(new Set(scene.builders.sent.map(({ name }) => name)).size, 1);
	assert.deepEqual(
		[a, b, c, d].map((hash) => scene.status(hash, 101)),
		["OUTBID", "BEST", "OUTBID", "OUTBID"],
	);
	// Who wins and by how much is nobody's business before the block.
	for (const hash of [a, b, c, d]) assert.equal(scene.detail(hash, 101)?.winner, null);
	assert.equal(scene.ledger.get(target.tx.hash)?.record.backruns, 4);
	assert.equal(scene.events(target, "bundled").length, 2);
});

test("the best one is cancelled: the next best goes out; with none left the builders are told to forget it", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const a = await scene.accepted("A", target, 5n, { uuid: "a" });
	const b = await scene.accepted("B", target, 7n, { uuid: "b" });
	scene.builders.take();
	scene.table.cancel("me", "b");
	assert.deepEqual(scene.builders.take(), ["send T A for 101 to a,b"]);
	assert.deepEqual([scene.status(a, 101), scene.status(b, 101)], ["BEST", "CANCELLED"]);
	scene.table.cancel("me", "a");
	assert.deepEqual(scene.builders.take(), ["cancel backrun T for 101 at a,b"]);
	assert.equal(scene.status(a, 101), "CANCELLED");
	assert.equal(scene.bids.size, 0);
});

test("a fallback that is cancelled concerns no builder", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	await scene.accepted("A", target, 5n, { uuid: "a" });
	await scene.accepted("B", target, 7n);
	scene.builders.take();
	scene.table.cancel("me", "a");
	assert.deepEqual(scene.builders.take(), []);
});

test("two targets whose best backruns share a nonce: the dearer keeps it, the other takes its next best", async () => {
	const scene = new AuctionScene();
	const [one, two] = [scene.target("T"), scene.target("U")];
	const shared = { by: 40, nonce: 3 };
	const b = await scene.accepted("B", two, 8n, shared);
	const c = await scene.accepted("C", two, 5n);
	scene.builders.take();
	const a = await scene.accepted("A", one, 10n, { by: 40, nonce: 3 });
	// The same bytes on two targets.
	scene.label(a, "A");
	assert.deepEqual(scene.builders.take().sort(), ["send T A for 101 to a,b", "send U C for 101 to a,b"]);
	assert.deepEqual(
		[a, b, c].map((hash) => scene.status(hash, 101)),
		["BEST", "OUTBID", "BEST"],
	);
});

test("a nonce that is free again is used at once: the dearer bid's target is cancelled by its user", async () => {
	const scene = new AuctionScene();
	const [one, two] = [scene.target("T"), scene.target("U")];
	const a = await scene.accepted("A", one, 10n, { by: 40 });
	const b = await scene.accepted("B", two, 8n, { by: 40, first: 101 });
	const c = await scene.accepted("C", two, 5n);
	assert.deepEqual(
		[a, b, c].map((hash) => scene.status(hash, 101)),
		["BEST", "OUTBID", "BEST"],
	);
	scene.builders.take();
	scene.pool.remove(scene.entry(one));
	scene.emit(one, { type: "cancelled", at: 2, block: 100, builders: [] });
	assert.deepEqual(scene.builders.take(), ["cancel backrun T for 101 at a,b", "send U B for 101 to a,b"]);
	assert.deepEqual([scene.status(a, 101), scene.status(b, 101)], ["DROPPED targetGone", "BEST"]);
});

test("one that loses its nonce to another target's bid, with nothing to fall back on, is not told that it is the best", async () => {
	const scene = new AuctionScene();
	const [one, two] = [scene.target("T"), scene.target("U")];
	const b = await scene.accepted("B", two, 8n, { by: 40 });
	assert.equal(scene.status(b, 101), "BEST");
	scene.builders.take();
	await scene.accepted("A", one, 10n, { by: 40 });
	assert.deepEqual(scene.builders.take().sort(), [
		"cancel backrun U for 101 at a,b",
		"send T A for 101 to a,b",
	]);
	assert.notEqual(scene.status(b, 101), "BEST");
});

for (const [type, event] of [
	["cancelled", { type: "cancelled", at: 2, block: 100, builders: [] }],
	["replaced", { type: "replaced", at: 2, block: 100, by: "0xother", builders: [] }],
	["expired", { type: "expired", at: 2, block: 100 }],
	["dropped", { type: "dropped", at: 2, block: 100 }],
] as const) {
	test(`the target is ${type}: the bundle is taken back, all bids have ended, their uuids are free`, async () => {
		const scene = new AuctionScene();
		const target = scene.target("T");
		const a = await scene.accepted("A", target, 5n, { uuid: "u", last: 105 });
		const b = await scene.accepted("B", target, 4n);
		scene.builders.take();
		scene.pool.remove(scene.entry(target));
		scene.emit(target, event);
		assert.deepEqual(scene.builders.take(), ["cancel backrun T for 101 at a,b"]);
		// The target was in it: how builders take that is in its life too.
		scene.builders.last?.({ at: 3, builder: "a", kind: "cancel", answer: "accepted", ms: 1 });
		assert.deepEqual(scene.ledger.get(target.tx.hash)?.record.deliveries.at(-1), {
			...{ at: 3, block: 101, builder: "a", kind: "cancel", answer: "accepted", ms: 1, backrun: true },
		});
		assert.deepEqual(
			[a, b].map((hash) => scene.status(hash, 101)),
			["DROPPED targetGone", "DROPPED targetGone"],
		);
		assert.equal(scene.bids.size, 0);
		const other = scene.target("U");
		await scene.accepted("C", other, 3n, { uuid: "u" });
		assert.equal(scene.status(a, 101), "DROPPED targetGone");
	});
}

test("a target that is held takes its bundle back, and gives it again when it passes in the same slot", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T", { path: "noreverts" });
	const a = await scene.accepted("A", target, 5n);
	scene.builders.take();
	scene.simulations.take();
	scene.entry(target).outFor = null;
	scene.auctioneer.looked(scene.pool.chain(target.tx.from));
	assert.deepEqual(scene.builders.take(), ["cancel backrun T for 101 at a,b"]);
	assert.equal(scene.status(a, 101), "ACCEPTED");
	await scene.look(target);
	assert.deepEqual(scene.builders.take(), ["send T A for 101 to a,b"]);
	assert.equal(scene.status(a, 101), "BEST");
	// Nothing changed behind it: no simulation is spent.
	assert.deepEqual(scene.simulations.take(), []);
});

test("bids on a target that is not out yet wait for it; the best goes out with it, and only that", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T", { path: "maxbackruns", out: false });
	const a = await scene.accepted("A", target, 5n);
	const b = await scene.accepted("B", target, 6n);
	assert.deepEqual(
		[scene.builders.take(), scene.status(a, 101), scene.status(b, 101)],
		[[], "ACCEPTED", "ACCEPTED"],
	);
	await scene.look(target);
	assert.deepEqual(scene.builders.take(), ["send T B for 101 to a,b"]);
	assert.deepEqual([scene.status(a, 101), scene.status(b, 101)], ["OUTBID", "BEST"]);
	await scene.look(target);
	assert.deepEqual(scene.builders.take(), []);
});

test("builders that pay no refunds get no backrun and no cancel of one", async () => {
	const scene = new AuctionScene({ refunding: ["b"] });
	const target = scene.target("T");
	await scene.accepted("A", target, 5n, { uuid: "a" });
	assert.deepEqual(scene.events(target, "bundled")[0]?.builders, ["b"]);
	scene.table.cancel("me", "a");
	assert.deepEqual(scene.builders.take(), ["send T A for 101 to b", "cancel backrun T for 101 at b"]);
});

test("what builders answer is kept with the bundle and its block", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const hash = await scene.accepted("A", target, 5n);
	const delivery = { at: 7, builder: "a", kind: "bundle", answer: "accepted", ms: 3 } as const;
	scene.builders.last?.(delivery);
	assert.deepEqual(scene.detail(hash, 101)?.deliveries, [delivery]);
});
