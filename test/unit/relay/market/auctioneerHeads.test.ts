// Tests the auctioneer over blocks: bids of a range simulated again at each head, late or missing answers of the
// node, what the block says of each bid, and blocks that are taken back.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AuctionScene } from "./auctionScene.ts";

const BACKRUN = (scene: AuctionScene, index = -1) => {
	const tx = scene.builders.sent.at(index)?.transactions[1]?.tx;
	if (tx === undefined) throw new Error("nothing was sent");
	return { tx };
};

test("a bid for one block ends with it; one for a range is simulated again and goes out again", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const a = await scene.accepted("A", target, 9n, { uuid: "a" });
	const b = await scene.accepted("B", target, 5n, { first: 101, last: 103 });
	scene.builders.take();
	scene.simulations.take();
	await scene.block();
	assert.deepEqual(
		[scene.status(a, 101), scene.status(b, 101)],
		["NOT_INCLUDED targetNotIncluded", "NOT_INCLUDED targetNotIncluded"],
	);
	assert.equal(scene.bids.size, 1);
	assert.deepEqual(scene.builders.take(), []);
	await scene.look(target);
	assert.deepEqual(scene.simulations.take(), ["B 102 101"]);
	assert.deepEqual(scene.builders.take(), ["send T B for 102 to a,b"]);
	assert.deepEqual([scene.status(b, 102), scene.detail(b, 102)?.bid], ["BEST", 5n]);
	assert.equal(scene.status(a, 102), undefined);
	assert.deepEqual(scene.faults, []);
});

test("a bid made ahead of time is simulated for its block, plays when that is next, and is not out before", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const a = await scene.accepted("A", target, 9n, { first: 103 });
	assert.deepEqual(scene.simulations.take(), ["A 103 100"]);
	assert.equal(scene.status(a, 103), "ACCEPTED");
	for (const _ of [101, 102]) {
		assert.deepEqual(scene.builders.take(), []);
		await scene.block();
		await scene.look(target);
	}
	assert.deepEqual(scene.simulations.take(), ["A 103 102"]);
	assert.deepEqual(scene.builders.take(), ["send T A for 103 to a,b"]);
});

test("one that pays less behind the new head falls behind; one that pays more takes the place", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const a = await scene.accepted("A", target, 9n, { last: 103, first: 101 });
	const b = await scene.accepted("B", target, 5n, { last: 103, first: 101 });
	await scene.block();
	scene.builders.take();
	scene.simulations.pays.set("A", 3n);
	for (const label of ["A", "B"]) scene.simulations.holding.add(label);
	await scene.look(target);
	assert.deepEqual(scene.builders.take(), []);
	scene.simulations.finish("A");
	await scene.turn();
	assert.deepEqual(scene.builders.take(), ["send T A for 102 to a,b"]);
	scene.simulations.finish("B");
	await scene.turn();
	assert.deepEqual(scene.builders.take(), ["send T B for 102 to a,b"]);
	assert.deepEqual([scene.status(a, 102), scene.detail(a, 102)?.bid], ["OUTBID", 3n]);
	assert.deepEqual([scene.status(b, 102), scene.detail(b, 102)?.bid], ["BEST", 5n]);
});

test("an outbid one that pays more behind the new head takes the first place", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const a = await scene.accepted("A", target, 9n, { first: 101, last: 103 });
	const b = await scene.accepted("B", target, 5n, { by: 2, owner: "p", first: 101, last: 103 });
	await scene.block();
	scene.simulations.pays.set("B", 10n);
	await scene.look(target);
	assert.deepEqual([scene.status(a, 102), scene.status(b, 102, "p")], ["OUTBID", "BEST"]);
	assert.equal(scene.detail(b, 102, "p")?.bid, 10n);
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
		const scene = new AuctionScene();
		const target = scene.target("T");
		const a = await scene.accepted("A", target, 9n, { first: 101, last: 103, uuid: "u" });
		await scene.accepted("B", target, 5n, { first: 101, last: 103 });
		await scene.block();
		scene.builders.take();
		scene.simulations.pays.set("A", pays);
		await scene.look(target);
		assert.deepEqual(scene.builders.take().at(-1), "send T B for 102 to a,b");
		assert.equal(scene.status(a, 102), `DROPPED ${reason}`);
		assert.equal(scene.bids.size, 1);
	});
}

for (const pays of ["NODE_UNAVAILABLE", "throws", "blind"] as const) {
	test(`the node gives no verdict (${pays}): the bid is kept and tried again, others play meanwhile`, async () => {
		const scene = new AuctionScene();
		const target = scene.target("T");
		const a = await scene.accepted("A", target, 9n, { first: 101, last: 103 });
		const b = await scene.accepted("B", target, 5n, { first: 101, last: 103, owner: "you" });
		await scene.block();
		scene.builders.take();
		scene.simulations.pays.set("A", pays);
		await scene.look(target);
		assert.deepEqual(scene.builders.take(), ["send T B for 102 to a,b"]);
		assert.notEqual(scene.status(a, 102), "BEST");
		scene.simulations.pays.set("A", 8n);
		await scene.clock.advance(600);
		assert.equal(scene.builders.take()[0], "send T A for 102 to a,b");
		assert.deepEqual([scene.status(a, 102), scene.status(b, 102, "you")], ["BEST", "OUTBID"]);
		assert.equal(scene.clock.timers, 0);
	});
}

test("no verdict until the block is there: it is told that it was not simulated, and by nobody outbid", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const a = await scene.accepted("A", target, 9n, { first: 101, last: 103 });
	await scene.block();
	scene.simulations.pays.set("A", "NODE_UNAVAILABLE");
	await scene.look(target);
	await scene.block([target]);
	assert.equal(scene.status(a, 102), "NOT_INCLUDED notSimulated");
	assert.equal(scene.bids.size, 0);
});

test("the verdict comes when the next head is there: it counts for nothing there", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const a = await scene.accepted("A", target, 9n, { first: 101, last: 103 });
	await scene.block();
	scene.simulations.holding.add("A");
	await scene.look(target);
	await scene.block();
	assert.equal(scene.status(a, 102), "NOT_INCLUDED targetNotIncluded");
	await scene.look(target);
	scene.builders.take();
	scene.simulations.take();
	scene.simulations.finish("A");
	await scene.turn();
	assert.deepEqual([scene.builders.take(), scene.bids.size], [[], 1]);
	scene.simulations.finish("A");
	await scene.turn();
	assert.deepEqual(scene.builders.take(), ["send T A for 103 to a,b"]);
});

test("a look while a bid is being simulated in that very state asks no second time", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	await scene.accepted("A", target, 9n, { first: 101, last: 103 });
	await scene.block();
	scene.simulations.take();
	scene.simulations.holding.add("A");
	for (let i = 0; i < 3; i += 1) await scene.look(target);
	assert.deepEqual(scene.simulations.take(), ["A 102 101"]);
});

test("cancelled while it is simulated again: the verdict comes too late to bring it back", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const a = await scene.accepted("A", target, 9n, { first: 101, last: 103, uuid: "u" });
	await scene.block();
	scene.simulations.holding.add("A");
	await scene.look(target);
	scene.table.cancel("me", "u");
	scene.builders.take();
	scene.simulations.finish("A");
	await scene.turn();
	assert.deepEqual([scene.builders.take(), scene.status(a, 102), scene.bids.size], [[], "CANCELLED", 0]);
});

test("the block holds target and backrun: the winner is included, the others were outbid", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const a = await scene.accepted("A", target, 9n, { first: 101, last: 103, uuid: "u" });
	const b = await scene.accepted("B", target, 5n, { first: 101, last: 103 });
	const block = await scene.block([target, BACKRUN(scene)]);
	assert.deepEqual([scene.status(a, 101), scene.detail(a, 101)?.blockHash], ["INCLUDED", block.hash]);
	assert.equal(scene.status(b, 101), "NOT_INCLUDED outbid");
	assert.equal(scene.status(b, 102), "DROPPED targetGone");
	assert.equal(scene.bids.size, 0);
	assert.deepEqual(scene.builders.take().slice(1), []);
});

test("the block holds the target alone: the best one was not chosen", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const a = await scene.accepted("A", target, 9n);
	const b = await scene.accepted("B", target, 5n);
	await scene.block([target]);
	assert.deepEqual(
		[scene.status(a, 101), scene.status(b, 101)],
		["NOT_INCLUDED notChosen", "NOT_INCLUDED outbid"],
	);
});

test("a verdict that comes between a head and the look at it is about a state that is no more: nothing is dropped", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	await scene.accepted("A", target, 9n, { first: 101, last: 103 });
	await scene.block();
	scene.simulations.holding.add("A");
	scene.simulations.pays.set("A", "targetFails");
	await scene.look(target);
	await scene.block();
	scene.simulations.finish("A");
	await scene.turn();
	assert.equal(scene.bids.size, 1);
	scene.simulations.holding.clear();
	scene.simulations.pays.set("A", 9n);
	scene.builders.take();
	await scene.look(target);
	assert.deepEqual(scene.builders.take(), ["send T A for 103 to a,b"]);
});

test("the target fails behind the new head: its bids wait, and are simulated again when it passes", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T", { path: "noreverts" });
	const a = await scene.accepted("A", target, 9n, { first: 101, last: 103 });
	await scene.block();
	scene.builders.take();
	scene.simulations.pays.set("A", "targetFails");
	await scene.look(target);
	assert.deepEqual([scene.status(a, 102), scene.builders.take()], ["ACCEPTED", []]);
	await scene.block();
	scene.simulations.pays.set("A", 8n);
	await scene.look(target);
	assert.deepEqual([scene.status(a, 103), scene.builders.take()], ["BEST", ["send T A for 103 to a,b"]]);
});
