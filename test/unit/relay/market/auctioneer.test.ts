// The auctioneer within one block: what a target is told of its bids, whose bid gives way where the book is full, and
// when a backrun counts as sent. Which bids are out is in `auction.model.test.ts`.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { AuctionFixture, withTarget } from "./auctionFixture.ts";

test("a bid goes out at once, and its target's life tells of it", async () => {
	const { fixture, target } = withTarget();
	const hash = await fixture.accepted("A", target, 5n);
	assert.deepEqual(fixture.builders.take(), ["send T A for 101 to a,b"]);
	assert.equal(fixture.builders.sent[0]?.refund?.percent, 90);
	const backrun = fixture.builders.sent[0]?.transactions[1]?.tx.hash;
	const event = { type: "bundled", at: fixture.clock.now(), block: 101, bundle: hash, backrun };
	assert.deepEqual(fixture.events(target, "bundled"), [{ ...event, bid: "5", builders: ["a", "b"] }]);
	assert.equal(fixture.records.get(target.tx.hash)?.record.backruns, 1);
	assert.deepEqual([fixture.status(hash, 101), fixture.detail(hash, 101)?.bid], ["BEST", 5n]);
});

test("bids on a target that is not out yet wait for it; the best goes out with it, once", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T", { path: "maxbackruns", out: false });
	const a = await fixture.accepted("A", target, 5n);
	const b = await fixture.accepted("B", target, 6n);
	assert.deepEqual([fixture.builders.take(), fixture.statuses(101, a, b)], [[], ["ACCEPTED", "ACCEPTED"]]);
	for (let i = 0; i < 2; i += 1) await fixture.look(target);
	assert.deepEqual(fixture.builders.take(), ["send T B for 101 to a,b"]);
	assert.deepEqual(fixture.statuses(101, a, b), ["OUTBID", "BEST"]);
});

test("the target ends: its bids have ended, their uuids are free, and how builders take the cancel is in its life", async () => {
	const { fixture, target } = withTarget();
	const a = await fixture.accepted("A", target, 5n, { uuid: "u", last: 105 });
	const b = await fixture.accepted("B", target, 4n);
	fixture.builders.take();
	fixture.pool.remove(fixture.entry(target));
	fixture.emit(target, { type: "cancelled", at: 2, block: 100, builders: [] });
	assert.deepEqual(fixture.builders.take(), ["cancel backrun T for 101 at a,b"]);
	const answer = { at: 3, builder: "a", kind: "cancel", answer: "accepted", ms: 1 } as const;
	fixture.builders.last?.(answer);
	const { deliveries } = fixture.records.get(target.tx.hash)?.record ?? {};
	assert.deepEqual(deliveries?.at(-1), { ...answer, block: 101, backrun: true });
	await fixture.accepted("C", fixture.target("U"), 3n, { uuid: "u" });
	assert.deepEqual(fixture.statuses(101, a, b), ["DROPPED targetGone", "DROPPED targetGone"]);
	assert.equal(fixture.bids.size, 1);
});

describe("a full book", () => {
	test("the cheapest of the network with the most bids gives way, is told, and gives its uuid back; nobody is refused", async () => {
		const { fixture, target: one } = withTarget({ bids: { maxTotal: 4 } });
		const two = fixture.target("U");
		const a = await fixture.accepted("A", one, 5n);
		const b = await fixture.accepted("B", one, 4n, { uuid: "u" });
		const c = await fixture.accepted("C", two, 9n);
		const d = await fixture.accepted("D", two, 1n, { owner: "you" });
		fixture.builders.take();
		// Cheaper than all, and another network's: it comes in all the same.
		const e = await fixture.accepted("E", two, 1n, { owner: "her" });
		assert.deepEqual(fixture.statuses(101, a, b, c), ["BEST", "DROPPED outbid", "BEST"]);
		assert.deepEqual([fixture.status(d, 101, "you"), fixture.status(e, 101, "her")], ["OUTBID", "OUTBID"]);
		assert.deepEqual([fixture.bids.size, fixture.builders.take()], [4, []]);
		fixture.table.cancel("me", "u");
		assert.equal(fixture.status(b, 101), "DROPPED outbid");
	});

	test("bytes count too: as many give way as it takes", async () => {
		const probe = withTarget();
		await probe.fixture.accepted("A", probe.target, 1n);
		const size = probe.fixture.bids.of(probe.target.tx.hash)[0]?.backrun.size ?? 0;
		const { fixture, target } = withTarget({ bids: { maxBytes: 2 * size + 20 } });
		const a = await fixture.accepted("A", target, 5n);
		const b = await fixture.accepted("B", target, 4n);
		await fixture.accepted("C", target, 3n, { owner: "you" });
		assert.deepEqual([fixture.statuses(101, a, b), fixture.bids.size], [["BEST", "DROPPED outbid"], 2]);
	});

	test("one that was out gives way to what goes out nowhere now: its builders are told to forget it", async () => {
		const { fixture, target: one } = withTarget({ bids: { maxTotal: 2 } });
		const two = fixture.target("U");
		const a = await fixture.accepted("A", two, 1n);
		await fixture.accepted("B", one, 9n);
		fixture.builders.take();
		// It loses on its own target, and yet has pushed out the best of another one.
		await fixture.accepted("C", one, 5n, { owner: "you" });
		assert.equal(fixture.status(a, 101), "DROPPED outbid");
		assert.deepEqual(fixture.builders.take(), ["cancel backrun U for 101 at a,b"]);
		// The same by one for a later block: what is left takes the place.
		await fixture.accepted("D", two, 1n, { owner: "her", first: 105 });
		assert.deepEqual(fixture.builders.take(), ["send T C for 101 to a,b", "cancel backrun T for 101 at a,b"]);
	});
});

describe("a backrun counts as sent", () => {
	test("when it leaves for the first builder, once", async () => {
		const { fixture, target } = withTarget();
		fixture.builders.holding = true;
		const hash = await fixture.accepted("A", target, 5n);
		const [leaves] = fixture.builders.waiting.splice(0);
		assert.deepEqual([fixture.status(hash, 101), fixture.events(target, "bundled")], ["BEST", []]);
		await fixture.clock.advance(7);
		for (let i = 0; i < 2; i += 1) leaves?.();
		const told = fixture.events(target, "bundled").map(({ bid, block, at }) => [bid, block, at]);
		assert.deepEqual(told, [["5", 101, fixture.clock.now()]]);
	});

	test("where it leaves at all, and before its target's block is there", async () => {
		const { fixture, target } = withTarget();
		fixture.builders.holding = true;
		await fixture.accepted("A", target, 5n);
		await fixture.accepted("B", target, 9n);
		fixture.builders.waiting[1]?.();
		await fixture.block([target]);
		fixture.builders.waiting[0]?.();
		assert.deepEqual(
			fixture.events(target, "bundled").map(({ bid }) => bid),
			["9"],
		);
		assert.deepEqual(fixture.faults, []);
	});
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
