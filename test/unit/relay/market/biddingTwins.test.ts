// The very same bundle again, from the same searcher: it is one bundle with one record, out once, counted once, whatever
// uuid, range or builders it comes with, and whichever of two is simulated first.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AuctionScene } from "./auctionScene.ts";

for (const [name, options] of [
	["without a uuid", {}],
	["under its uuid", { uuid: "u" }],
] as const) {
	test(`the very same bid again, ${name}: the same hash, counted once, told to nobody, not sent again`, async () => {
		const scene = new AuctionScene();
		const target = scene.target("T");
		const a = await scene.accepted("A", target, 9n, options);
		scene.builders.take();
		scene.told.length = 0;
		assert.equal(await scene.accepted("A", target, 9n, options), a);
		assert.deepEqual([scene.bids.size, scene.status(a, 101)], [1, "BEST"]);
		assert.equal(scene.ledger.get(target.tx.hash)?.record.backruns, 1);
		assert.deepEqual(scene.builders.take(), []);
		assert.deepEqual(scene.told, []);
	});
}

test("the very same bid twice under one uuid, the later one simulated first: it is out, and told so", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	scene.simulations.holding.add("A");
	const first = scene.accepted("A", target, 9n, { uuid: "u" });
	const second = scene.accepted("A", target, 9n, { uuid: "u" });
	await scene.turn();
	assert.equal(scene.simulations.waiting, 2);
	scene.simulations.finishLast("A");
	const hash = await second;
	scene.simulations.finish("A");
	assert.equal(await first, hash);
	assert.deepEqual([scene.status(hash, 101), scene.bids.size], ["BEST", 1]);
});

test("the same bundle for ranges that overlap is told of once in a block: it is the best", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const hash = await scene.accepted("A", target, 9n, { first: 101, last: 103 });
	await scene.block();
	await scene.look(target);
	assert.equal(await scene.accepted("A", target, 9n, { first: 102, last: 104 }), hash);
	assert.equal(scene.status(hash, 102), "BEST");
});

test("sent, cancelled and sent again, the last one simulated first: it is out, and told so", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	scene.simulations.holding.add("A");
	const first = scene.accepted("A", target, 9n, { uuid: "u" });
	await scene.turn();
	scene.table.cancel("me", "u");
	const second = scene.accepted("A", target, 9n, { uuid: "u" });
	await scene.turn();
	scene.simulations.finishLast("A");
	const hash = await second;
	scene.simulations.finish("A");
	await first;
	assert.deepEqual([scene.status(hash, 101), scene.bids.size], ["BEST", 1]);
	assert.deepEqual(scene.builders.take(), ["send T A for 101 to a,b"]);
});

test("under another uuid: from now on that one names it, the old one nothing", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const hash = await scene.accepted("A", target, 9n, { uuid: "old" });
	await scene.accepted("A", target, 9n, { uuid: "new" });
	scene.builders.take();
	scene.table.cancel("me", "old");
	assert.deepEqual([scene.status(hash, 101), scene.bids.size, scene.builders.take()], ["BEST", 1, []]);
	scene.table.cancel("me", "new");
	assert.deepEqual([scene.status(hash, 101), scene.bids.size], ["CANCELLED", 0]);
	assert.deepEqual(scene.builders.take(), ["cancel backrun T for 101 at a,b"]);
});

test("under a uuid that held another bid: that one is replaced, and the bundle stays out", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const a = await scene.accepted("A", target, 9n);
	const b = await scene.accepted("B", target, 5n, { uuid: "u" });
	scene.builders.take();
	await scene.accepted("A", target, 9n, { uuid: "u" });
	await scene.turn();
	assert.deepEqual(
		[scene.status(a, 101), scene.status(b, 101), scene.builders.take()],
		["BEST", "REPLACED", []],
	);
});

test("for fewer builders: those have it already, and the others are told to forget it", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const hash = await scene.accepted("A", target, 9n);
	await scene.accepted("A", target, 9n, { builders: ["b"] });
	assert.deepEqual(scene.builders.take(), ["send T A for 101 to a,b", "cancel backrun T for 101 at a"]);
	assert.deepEqual([scene.status(hash, 101), scene.bids.size], ["BEST", 1]);
	// And for more again: it goes to the one that has it not.
	await scene.accepted("A", target, 9n);
	assert.deepEqual(scene.builders.take(), ["send T A for 101 to a"]);
	assert.equal(scene.status(hash, 101), "BEST");
});

test("it comes to less than it did: the next best takes its place", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const a = await scene.accepted("A", target, 9n);
	const b = await scene.accepted("B", target, 5n);
	scene.builders.take();
	await scene.accepted("A", target, 3n);
	assert.deepEqual(scene.builders.take(), ["send T B for 101 to a,b"]);
	assert.deepEqual([scene.status(a, 101), scene.status(b, 101)], ["OUTBID", "BEST"]);
});

test("a loser again: it stays a loser, in its old place among equals", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const best = await scene.accepted("A", target, 9n, { uuid: "best" });
	const [b, c] = [
		await scene.accepted("B", target, 5n, { uuid: "b" }),
		await scene.accepted("C", target, 5n),
	];
	scene.builders.take();
	await scene.accepted("B", target, 5n, { uuid: "b" });
	assert.deepEqual(
		[best, b, c].map((hash) => scene.status(hash, 101)),
		["BEST", "OUTBID", "OUTBID"],
	);
	assert.deepEqual(scene.builders.take(), []);
	scene.table.cancel("me", "best");
	await scene.turn();
	assert.deepEqual([scene.status(b, 101), scene.status(c, 101)], ["BEST", "OUTBID"]);
});

test("ranges that do not meet are two bids of one record, each for its own blocks", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const hash = await scene.accepted("A", target, 9n, { first: 101 });
	await scene.accepted("A", target, 9n, { first: 103 });
	assert.equal(scene.bids.size, 2);
	await scene.block();
	assert.deepEqual(
		[scene.status(hash, 101), scene.status(hash, 103)],
		["NOT_INCLUDED targetNotIncluded", "ACCEPTED"],
	);
	assert.equal(scene.bids.size, 1);
});

test("another searcher's same backrun is another bundle: neither sees or ends the other's", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const hash = await scene.accepted("A", target, 9n, { owner: "me", uuid: "u" });
	assert.equal(await scene.accepted("A", target, 9n, { owner: "you", uuid: "u" }), hash);
	assert.deepEqual([scene.status(hash, 101, "me"), scene.status(hash, 101, "you")], ["BEST", "OUTBID"]);
	scene.table.cancel("you", "u");
	assert.deepEqual([scene.status(hash, 101, "me"), scene.status(hash, 101, "you")], ["BEST", "CANCELLED"]);
});
