// The very same bundle again, from the same searcher: it is one bundle with one record, out once, counted once, whatever
// uuid, range or builders it comes with, and whichever of two is simulated first.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AuctionFixture } from "./auctionFixture.ts";

for (const [name, options] of [
	["without a uuid", {}],
	["under its uuid", { uuid: "u" }],
] as const) {
	test(`the very same bid again, ${name}: the same hash, counted once, told to nobody, not sent again`, async () => {
		const fixture = new AuctionFixture();
		const target = fixture.target("T");
		const a = await fixture.accepted("A", target, 9n, options);
		fixture.builders.take();
		fixture.told.length = 0;
		assert.equal(await fixture.accepted("A", target, 9n, options), a);
		assert.deepEqual([fixture.bids.size, fixture.status(a, 101)], [1, "BEST"]);
		assert.equal(fixture.records.get(target.tx.hash)?.record.backruns, 1);
		assert.deepEqual(fixture.builders.take(), []);
		assert.deepEqual(fixture.told, []);
	});
}

test("the very same bid twice under one uuid, the later one simulated first: it is out, and told so", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	fixture.simulations.holding.add("A");
	const first = fixture.accepted("A", target, 9n, { uuid: "u" });
	const second = fixture.accepted("A", target, 9n, { uuid: "u" });
	await fixture.turn();
	assert.equal(fixture.simulations.waiting, 2);
	fixture.simulations.finishLast("A");
	const hash = await second;
	fixture.simulations.finish("A");
	assert.equal(await first, hash);
	assert.deepEqual([fixture.status(hash, 101), fixture.bids.size], ["BEST", 1]);
});

test("the same bundle for ranges that overlap is told of once in a block: it is the best", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const hash = await fixture.accepted("A", target, 9n, { first: 101, last: 103 });
	await fixture.block();
	await fixture.look(target);
	assert.equal(await fixture.accepted("A", target, 9n, { first: 102, last: 104 }), hash);
	assert.equal(fixture.status(hash, 102), "BEST");
});

test("sent, cancelled and sent again, the last one simulated first: it is out, and told so", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	fixture.simulations.holding.add("A");
	const first = fixture.accepted("A", target, 9n, { uuid: "u" });
	await fixture.turn();
	fixture.table.cancel("me", "u");
	const second = fixture.accepted("A", target, 9n, { uuid: "u" });
	await fixture.turn();
	fixture.simulations.finishLast("A");
	const hash = await second;
	fixture.simulations.finish("A");
	await first;
	assert.deepEqual([fixture.status(hash, 101), fixture.bids.size], ["BEST", 1]);
	assert.deepEqual(fixture.builders.take(), ["send T A for 101 to a,b"]);
});

test("under another uuid: from now on that one names it, the old one nothing", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const hash = await fixture.accepted("A", target, 9n, { uuid: "old" });
	await fixture.accepted("A", target, 9n, { uuid: "new" });
	fixture.builders.take();
	fixture.table.cancel("me", "old");
	assert.deepEqual([fixture.status(hash, 101), fixture.bids.size, fixture.builders.take()], ["BEST", 1, []]);
	fixture.table.cancel("me", "new");
	assert.deepEqual([fixture.status(hash, 101), fixture.bids.size], ["CANCELLED", 0]);
	assert.deepEqual(fixture.builders.take(), ["cancel backrun T for 101 at a,b"]);
});

test("under a uuid that held another bid: that one is replaced, and the bundle stays out", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const a = await fixture.accepted("A", target, 9n);
	const b = await fixture.accepted("B", target, 5n, { uuid: "u" });
	fixture.builders.take();
	await fixture.accepted("A", target, 9n, { uuid: "u" });
	await fixture.turn();
	assert.deepEqual(
		[fixture.status(a, 101), fixture.status(b, 101), fixture.builders.take()],
		["BEST", "REPLACED", []],
	);
});

test("for fewer builders: those have it already, and the others are told to forget it", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const hash = await fixture.accepted("A", target, 9n);
	await fixture.accepted("A", target, 9n, { builders: ["b"] });
	assert.deepEqual(fixture.builders.take(), ["send T A for 101 to a,b", "cancel backrun T for 101 at a"]);
	assert.deepEqual([fixture.status(hash, 101), fixture.bids.size], ["BEST", 1]);
	// And for more again: it goes to the one that has it not.
	await fixture.accepted("A", target, 9n);
	assert.deepEqual(fixture.builders.take(), ["send T A for 101 to a"]);
	assert.equal(fixture.status(hash, 101), "BEST");
});

test("it comes to less than it did: the next best takes its place", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const a = await fixture.accepted("A", target, 9n);
	const b = await fixture.accepted("B", target, 5n);
	fixture.builders.take();
	await fixture.accepted("A", target, 3n);
	assert.deepEqual(fixture.builders.take(), ["send T B for 101 to a,b"]);
	assert.deepEqual([fixture.status(a, 101), fixture.status(b, 101)], ["OUTBID", "BEST"]);
});

test("a loser again: it stays a loser, in its old place among equals", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const best = await fixture.accepted("A", target, 9n, { uuid: "best" });
	const [b, c] = [
		await fixture.accepted("B", target, 5n, { uuid: "b" }),
		await fixture.accepted("C", target, 5n),
	];
	fixture.builders.take();
	await fixture.accepted("B", target, 5n, { uuid: "b" });
	assert.deepEqual(
		[best, b, c].map((hash) => fixture.status(hash, 101)),
		["BEST", "OUTBID", "OUTBID"],
	);
	assert.deepEqual(fixture.builders.take(), []);
	fixture.table.cancel("me", "best");
	await fixture.turn();
	assert.deepEqual([fixture.status(b, 101), fixture.status(c, 101)], ["BEST", "OUTBID"]);
});

test("ranges that do not meet are two bids of one record, each for its own blocks", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const hash = await fixture.accepted("A", target, 9n, { first: 101 });
	await fixture.accepted("A", target, 9n, { first: 103 });
	assert.equal(fixture.bids.size, 2);
	await fixture.block();
	assert.deepEqual(
		[fixture.status(hash, 101), fixture.status(hash, 103)],
		["NOT_INCLUDED targetNotIncluded", "ACCEPTED"],
	);
	assert.equal(fixture.bids.size, 1);
});

test("another searcher's same backrun is another bundle: neither sees or ends the other's", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const hash = await fixture.accepted("A", target, 9n, { owner: "me", uuid: "u" });
	assert.equal(await fixture.accepted("A", target, 9n, { owner: "you", uuid: "u" }), hash);
	assert.deepEqual([fixture.status(hash, 101, "me"), fixture.status(hash, 101, "you")], ["BEST", "OUTBID"]);
	fixture.table.cancel("you", "u");
	assert.deepEqual(
		[fixture.status(hash, 101, "me"), fixture.status(hash, 101, "you")],
		["BEST", "CANCELLED"],
	);
});
