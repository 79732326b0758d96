// Tests the auctioneer within one block: which bid the builders have, what its rivals are told, and what follows when
// bids arrive, leave, are cancelled or share a nonce. Targets, book and records are real; the builders are fakes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AuctionFixture } from "./auctionFixture.ts";

test("a bid goes out at once, behind its target, with the user's refund", async () => {
	const fixture = new AuctionFixture();
	const recipient = `0x${"77".repeat(20)}`;
	const target = fixture.target("T", { path: "noreverts", refundRecipient: recipient });
	const hash = await fixture.accepted("A", target, 5n);
	assert.deepEqual(fixture.builders.take(), ["send T A for 101 to a,b"]);
	const sent = fixture.builders.sent[0];
	assert.deepEqual(
		sent?.transactions.map(({ mayRevert, mayDrop }) => [mayRevert, mayDrop]),
		[
			[false, false],
			[false, true],
		],
	);
	const backrun = sent?.transactions[1]?.tx.hash ?? "";
	assert.deepEqual(sent?.refund, { percent: 90, recipient, bodyIdx: 0, of: backrun });
	assert.equal(fixture.status(hash, 101), "BEST");
	assert.equal(fixture.detail(hash, 101)?.bid, 5n);
	const [bundled] = fixture.events(target, "bundled");
	assert.deepEqual(bundled, {
		...{ type: "bundled", at: fixture.clock.now(), block: 101, bundle: hash, backrun },
		...{ bid: "5", builders: ["a", "b"] },
	});
	assert.equal(fixture.records.get(target.tx.hash)?.record.backruns, 1);
	assert.deepEqual(fixture.faults, []);
});

test("a better one takes its place under the same name; a worse or equal one waits", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const a = await fixture.accepted("A", target, 5n);
	const b = await fixture.accepted("B", target, 7n);
	const c = await fixture.accepted("C", target, 7n);
	const d = await fixture.accepted("D", target, 1n);
	assert.deepEqual(fixture.builders.take(), ["send T A for 101 to a,b", "send T B for 101 to a,b"]);
	assert.deepEqual(new Set(fixture.builders.sent.map(({ name }) => name)).size, 1);
	assert.deepEqual(
		[a, b, c, d].map((hash) => fixture.status(hash, 101)),
		["OUTBID", "BEST", "OUTBID", "OUTBID"],
	);
	// Who wins and by how much is nobody's business before the block.
	for (const hash of [a, b, c, d]) assert.equal(fixture.detail(hash, 101)?.winner, null);
	assert.equal(fixture.records.get(target.tx.hash)?.record.backruns, 4);
	assert.equal(fixture.events(target, "bundled").length, 2);
});

test("the best one is cancelled: the next best goes out; with none left the builders are told to forget it", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const a = await fixture.accepted("A", target, 5n, { uuid: "a" });
	const b = await fixture.accepted("B", target, 7n, { uuid: "b" });
	fixture.builders.take();
	fixture.table.cancel("me", "b");
	assert.deepEqual(fixture.builders.take(), ["send T A for 101 to a,b"]);
	assert.deepEqual([fixture.status(a, 101), fixture.status(b, 101)], ["BEST", "CANCELLED"]);
	fixture.table.cancel("me", "a");
	assert.deepEqual(fixture.builders.take(), ["cancel backrun T for 101 at a,b"]);
	assert.equal(fixture.status(a, 101), "CANCELLED");
	assert.equal(fixture.bids.size, 0);
});

test("a fallback that is cancelled concerns no builder", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	await fixture.accepted("A", target, 5n, { uuid: "a" });
	await fixture.accepted("B", target, 7n);
	fixture.builders.take();
	fixture.table.cancel("me", "a");
	assert.deepEqual(fixture.builders.take(), []);
});

test("two targets whose best backruns share a nonce: the dearer keeps it, the other takes its next best", async () => {
	const fixture = new AuctionFixture();
	const [one, two] = [fixture.target("T"), fixture.target("U")];
	const shared = { by: 40, nonce: 3 };
	const b = await fixture.accepted("B", two, 8n, shared);
	const c = await fixture.accepted("C", two, 5n);
	fixture.builders.take();
	const a = await fixture.accepted("A", one, 10n, { by: 40, nonce: 3 });
	// The same bytes on two targets.
	fixture.label(a, "A");
	assert.deepEqual(fixture.builders.take().sort(), ["send T A for 101 to a,b", "send U C for 101 to a,b"]);
	assert.deepEqual(
		[a, b, c].map((hash) => fixture.status(hash, 101)),
		["BEST", "OUTBID", "BEST"],
	);
});

test("a nonce that is free again is used at once: the dearer bid's target is cancelled by its user", async () => {
	const fixture = new AuctionFixture();
	const [one, two] = [fixture.target("T"), fixture.target("U")];
	const a = await fixture.accepted("A", one, 10n, { by: 40 });
	const b = await fixture.accepted("B", two, 8n, { by: 40, first: 101 });
	const c = await fixture.accepted("C", two, 5n);
	assert.deepEqual(
		[a, b, c].map((hash) => fixture.status(hash, 101)),
		["BEST", "OUTBID", "BEST"],
	);
	fixture.builders.take();
	fixture.pool.remove(fixture.entry(one));
	fixture.emit(one, { type: "cancelled", at: 2, block: 100, builders: [] });
	assert.deepEqual(fixture.builders.take(), ["cancel backrun T for 101 at a,b", "send U B for 101 to a,b"]);
	assert.deepEqual([fixture.status(a, 101), fixture.status(b, 101)], ["DROPPED targetGone", "BEST"]);
});

test("one that loses its nonce to another target's bid, with nothing to fall back on, is not told that it is the best", async () => {
	const fixture = new AuctionFixture();
	const [one, two] = [fixture.target("T"), fixture.target("U")];
	const b = await fixture.accepted("B", two, 8n, { by: 40 });
	assert.equal(fixture.status(b, 101), "BEST");
	fixture.builders.take();
	await fixture.accepted("A", one, 10n, { by: 40 });
	assert.deepEqual(fixture.builders.take().sort(), [
		"cancel backrun U for 101 at a,b",
		"send T A for 101 to a,b",
	]);
	assert.notEqual(fixture.status(b, 101), "BEST");
});

for (const [type, event] of [
	["cancelled", { type: "cancelled", at: 2, block: 100, builders: [] }],
	["replaced", { type: "replaced", at: 2, block: 100, by: "0xother", builders: [] }],
	["expired", { type: "expired", at: 2, block: 100 }],
	["dropped", { type: "dropped", at: 2, block: 100 }],
] as const) {
	test(`the target is ${type}: the bundle is taken back, all bids have ended, their uuids are free`, async () => {
		const fixture = new AuctionFixture();
		const target = fixture.target("T");
		const a = await fixture.accepted("A", target, 5n, { uuid: "u", last: 105 });
		const b = await fixture.accepted("B", target, 4n);
		fixture.builders.take();
		fixture.pool.remove(fixture.entry(target));
		fixture.emit(target, event);
		assert.deepEqual(fixture.builders.take(), ["cancel backrun T for 101 at a,b"]);
		// The target was in it: how builders take that is in its life too.
		fixture.builders.last?.({ at: 3, builder: "a", kind: "cancel", answer: "accepted", ms: 1 });
		assert.deepEqual(fixture.records.get(target.tx.hash)?.record.deliveries.at(-1), {
			...{ at: 3, block: 101, builder: "a", kind: "cancel", answer: "accepted", ms: 1, backrun: true },
		});
		assert.deepEqual(
			[a, b].map((hash) => fixture.status(hash, 101)),
			["DROPPED targetGone", "DROPPED targetGone"],
		);
		assert.equal(fixture.bids.size, 0);
		const other = fixture.target("U");
		await fixture.accepted("C", other, 3n, { uuid: "u" });
		assert.equal(fixture.status(a, 101), "DROPPED targetGone");
	});
}

test("a target that is held takes its bundle back, and gives it again when it passes in the same slot", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T", { path: "noreverts" });
	const a = await fixture.accepted("A", target, 5n);
	fixture.builders.take();
	fixture.simulations.take();
	fixture.entry(target).outFor = null;
	fixture.auctioneer.chainPlanned(fixture.pool.chain(target.tx.from));
	assert.deepEqual(fixture.builders.take(), ["cancel backrun T for 101 at a,b"]);
	assert.equal(fixture.status(a, 101), "ACCEPTED");
	await fixture.look(target);
	assert.deepEqual(fixture.builders.take(), ["send T A for 101 to a,b"]);
	assert.equal(fixture.status(a, 101), "BEST");
	// Nothing changed behind it: no simulation is spent.
	assert.deepEqual(fixture.simulations.take(), []);
});

test("bids on a target that is not out yet wait for it; the best goes out with it, and only that", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T", { path: "maxbackruns", out: false });
	const a = await fixture.accepted("A", target, 5n);
	const b = await fixture.accepted("B", target, 6n);
	assert.deepEqual(
		[fixture.builders.take(), fixture.status(a, 101), fixture.status(b, 101)],
		[[], "ACCEPTED", "ACCEPTED"],
	);
	await fixture.look(target);
	assert.deepEqual(fixture.builders.take(), ["send T B for 101 to a,b"]);
	assert.deepEqual([fixture.status(a, 101), fixture.status(b, 101)], ["OUTBID", "BEST"]);
	await fixture.look(target);
	assert.deepEqual(fixture.builders.take(), []);
});

test("builders that pay no refunds get no backrun and no cancel of one", async () => {
	const fixture = new AuctionFixture({ refunding: ["b"] });
	const target = fixture.target("T");
	await fixture.accepted("A", target, 5n, { uuid: "a" });
	assert.deepEqual(fixture.events(target, "bundled")[0]?.builders, ["b"]);
	fixture.table.cancel("me", "a");
	assert.deepEqual(fixture.builders.take(), ["send T A for 101 to b", "cancel backrun T for 101 at b"]);
});

test("what builders answer is kept with the bundle and its block", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const hash = await fixture.accepted("A", target, 5n);
	const delivery = { at: 7, builder: "a", kind: "bundle", answer: "accepted", ms: 3 } as const;
	fixture.builders.last?.(delivery);
	assert.deepEqual(fixture.detail(hash, 101)?.deliveries, [delivery]);
});
