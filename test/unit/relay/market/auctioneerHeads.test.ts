// Tests the auctioneer over blocks: bids of a range simulated again at each head, late or missing answers of the
// node, what the block says of each bid, and blocks that are taken back.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AuctionFixture } from "./auctionFixture.ts";

const BACKRUN = (fixture: AuctionFixture, index = -1) => {
	const tx = fixture.builders.sent.at(index)?.transactions[1]?.tx;
	if (tx === undefined) throw new Error("nothing was sent");
	return { tx };
};

test("a bid for one block ends with it; one for a range is simulated again and goes out again", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const a = await fixture.accepted("A", target, 9n, { uuid: "a" });
	const b = await fixture.accepted("B", target, 5n, { first: 101, last: 103 });
	fixture.builders.take();
	fixture.simulations.take();
	await fixture.block();
	assert.deepEqual(
		[fixture.status(a, 101), fixture.status(b, 101)],
		["NOT_INCLUDED targetNotIncluded", "NOT_INCLUDED targetNotIncluded"],
	);
	assert.equal(fixture.bids.size, 1);
	assert.deepEqual(fixture.builders.take(), []);
	await fixture.look(target);
	assert.deepEqual(fixture.simulations.take(), ["B 102 101"]);
	assert.deepEqual(fixture.builders.take(), ["send T B for 102 to a,b"]);
	assert.deepEqual([fixture.status(b, 102), fixture.detail(b, 102)?.bid], ["BEST", 5n]);
	assert.equal(fixture.status(a, 102), undefined);
	assert.deepEqual(fixture.faults, []);
});

test("a bid made ahead of time is simulated for its block, plays when that is next, and is not out before", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const a = await fixture.accepted("A", target, 9n, { first: 103 });
	assert.deepEqual(fixture.simulations.take(), ["A 103 100"]);
	assert.equal(fixture.status(a, 103), "ACCEPTED");
	for (const _ of [101, 102]) {
		assert.deepEqual(fixture.builders.take(), []);
		await fixture.block();
		await fixture.look(target);
	}
	assert.deepEqual(fixture.simulations.take(), ["A 103 102"]);
	assert.deepEqual(fixture.builders.take(), ["send T A for 103 to a,b"]);
});

test("one that pays less behind the new head falls behind; one that pays more takes the place", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const a = await fixture.accepted("A", target, 9n, { last: 103, first: 101 });
	const b = await fixture.accepted("B", target, 5n, { last: 103, first: 101 });
	await fixture.block();
	fixture.builders.take();
	fixture.simulations.pays.set("A", 3n);
	for (const label of ["A", "B"]) fixture.simulations.holding.add(label);
	await fixture.look(target);
	assert.deepEqual(fixture.builders.take(), []);
	fixture.simulations.finish("A");
	await fixture.turn();
	assert.deepEqual(fixture.builders.take(), ["send T A for 102 to a,b"]);
	fixture.simulations.finish("B");
	await fixture.turn();
	assert.deepEqual(fixture.builders.take(), ["send T B for 102 to a,b"]);
	assert.deepEqual([fixture.status(a, 102), fixture.detail(a, 102)?.bid], ["OUTBID", 3n]);
	assert.deepEqual([fixture.status(b, 102), fixture.detail(b, 102)?.bid], ["BEST", 5n]);
});

test("an outbid one that pays more behind the new head takes the first place", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const a = await fixture.accepted("A", target, 9n, { first: 101, last: 103 });
	const b = await fixture.accepted("B", target, 5n, { by: 2, owner: "p", first: 101, last: 103 });
	await fixture.block();
	fixture.simulations.pays.set("B", 10n);
	await fixture.look(target);
	assert.deepEqual([fixture.status(a, 102), fixture.status(b, 102, "p")], ["OUTBID", "BEST"]);
	assert.equal(fixture.detail(b, 102, "p")?.bid, 10n);
});

for (const [pays, reason] of [
	[0n, "paysNothing"],
	["EXECUTION_REVERTED", "reverted"],
	["OUT_OF_GAS", "reverted"],
	["NONCE_TOO_LOW", "invalid"],
	["INSUFFICIENT_FUNDS", "invalid"],
	["FEE_CAP_TOO_LOW", "invalid"],
] as const) {
	test(`the best one comes to ${pays} behind the new head: it is dropped as ${reason}, the next one is out`, async () => {
		const fixture = new AuctionFixture();
		const target = fixture.target("T");
		const a = await fixture.accepted("A", target, 9n, { first: 101, last: 103, uuid: "u" });
		await fixture.accepted("B", target, 5n, { first: 101, last: 103 });
		await fixture.block();
		fixture.builders.take();
		fixture.simulations.pays.set("A", pays);
		await fixture.look(target);
		assert.deepEqual(fixture.builders.take().at(-1), "send T B for 102 to a,b");
		assert.equal(fixture.status(a, 102), `DROPPED ${reason}`);
		assert.equal(fixture.bids.size, 1);
	});
}

for (const pays of ["NODE_UNAVAILABLE", "throws", "blind"] as const) {
	test(`the node gives no verdict (${pays}): the bid is kept and tried again, others play meanwhile`, async () => {
		const fixture = new AuctionFixture();
		const target = fixture.target("T");
		const a = await fixture.accepted("A", target, 9n, { first: 101, last: 103 });
		const b = await fixture.accepted("B", target, 5n, { first: 101, last: 103, owner: "you" });
		await fixture.block();
		fixture.builders.take();
		fixture.simulations.pays.set("A", pays);
		await fixture.look(target);
		assert.deepEqual(fixture.builders.take(), ["send T B for 102 to a,b"]);
		assert.notEqual(fixture.status(a, 102), "BEST");
		fixture.simulations.pays.set("A", 8n);
		await fixture.clock.advance(600);
		assert.equal(fixture.builders.take()[0], "send T A for 102 to a,b");
		assert.deepEqual([fixture.status(a, 102), fixture.status(b, 102, "you")], ["BEST", "OUTBID"]);
		assert.equal(fixture.clock.timers, 0);
	});
}

test("no verdict until the block is there: it is told that it was not simulated, and by nobody outbid", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const a = await fixture.accepted("A", target, 9n, { first: 101, last: 103 });
	await fixture.block();
	fixture.simulations.pays.set("A", "NODE_UNAVAILABLE");
	await fixture.look(target);
	await fixture.block([target]);
	assert.equal(fixture.status(a, 102), "NOT_INCLUDED notSimulated");
	assert.equal(fixture.bids.size, 0);
});

test("the verdict comes when the next head is there: it counts for nothing there", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const a = await fixture.accepted("A", target, 9n, { first: 101, last: 103 });
	await fixture.block();
	fixture.simulations.holding.add("A");
	await fixture.look(target);
	await fixture.block();
	assert.equal(fixture.status(a, 102), "NOT_INCLUDED targetNotIncluded");
	await fixture.look(target);
	fixture.builders.take();
	fixture.simulations.take();
	fixture.simulations.finish("A");
	await fixture.turn();
	assert.deepEqual([fixture.builders.take(), fixture.bids.size], [[], 1]);
	fixture.simulations.finish("A");
	await fixture.turn();
	assert.deepEqual(fixture.builders.take(), ["send T A for 103 to a,b"]);
});

test("a look while a bid is being simulated in that very state asks no second time", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	await fixture.accepted("A", target, 9n, { first: 101, last: 103 });
	await fixture.block();
	fixture.simulations.take();
	fixture.simulations.holding.add("A");
	for (let i = 0; i < 3; i += 1) await fixture.look(target);
	assert.deepEqual(fixture.simulations.take(), ["A 102 101"]);
});

test("cancelled while it is simulated again: the verdict comes too late to bring it back", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const a = await fixture.accepted("A", target, 9n, { first: 101, last: 103, uuid: "u" });
	await fixture.block();
	fixture.simulations.holding.add("A");
	await fixture.look(target);
	fixture.table.cancel("me", "u");
	fixture.builders.take();
	fixture.simulations.finish("A");
	await fixture.turn();
	assert.deepEqual(
		[fixture.builders.take(), fixture.status(a, 102), fixture.bids.size],
		[[], "CANCELLED", 0],
	);
});

test("the block holds target and backrun: the winner is included, the others were outbid", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const a = await fixture.accepted("A", target, 9n, { first: 101, last: 103, uuid: "u" });
	const b = await fixture.accepted("B", target, 5n, { first: 101, last: 103 });
	const block = await fixture.block([target, BACKRUN(fixture)]);
	assert.deepEqual([fixture.status(a, 101), fixture.detail(a, 101)?.blockHash], ["INCLUDED", block.hash]);
	assert.equal(fixture.status(b, 101), "NOT_INCLUDED outbid");
	assert.equal(fixture.status(b, 102), "DROPPED targetGone");
	assert.equal(fixture.bids.size, 0);
	assert.deepEqual(fixture.builders.take().slice(1), []);
});

test("the block holds the target alone: the best one was not chosen", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const a = await fixture.accepted("A", target, 9n);
	const b = await fixture.accepted("B", target, 5n);
	await fixture.block([target]);
	assert.deepEqual(
		[fixture.status(a, 101), fixture.status(b, 101)],
		["NOT_INCLUDED notChosen", "NOT_INCLUDED outbid"],
	);
});

test("a verdict that comes between a head and the look at it is about a state that is no more: nothing is dropped", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	await fixture.accepted("A", target, 9n, { first: 101, last: 103 });
	await fixture.block();
	fixture.simulations.holding.add("A");
	fixture.simulations.pays.set("A", "targetFails");
	await fixture.look(target);
	await fixture.block();
	fixture.simulations.finish("A");
	await fixture.turn();
	assert.equal(fixture.bids.size, 1);
	fixture.simulations.holding.clear();
	fixture.simulations.pays.set("A", 9n);
	fixture.builders.take();
	await fixture.look(target);
	assert.deepEqual(fixture.builders.take(), ["send T A for 103 to a,b"]);
});

test("the target fails behind the new head: its bids wait, and are simulated again when it passes", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T", { path: "noreverts" });
	const a = await fixture.accepted("A", target, 9n, { first: 101, last: 103 });
	await fixture.block();
	fixture.builders.take();
	fixture.simulations.pays.set("A", "targetFails");
	await fixture.look(target);
	assert.deepEqual([fixture.status(a, 102), fixture.builders.take()], ["ACCEPTED", []]);
	await fixture.block();
	fixture.simulations.pays.set("A", 8n);
	await fixture.look(target);
	assert.deepEqual([fixture.status(a, 103), fixture.builders.take()], ["BEST", ["send T A for 103 to a,b"]]);
});
