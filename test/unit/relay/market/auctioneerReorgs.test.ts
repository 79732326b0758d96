// The auctioneer where the chain is not one block after another: blocks that were missed, that are taken back, and that
// come back.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AuctionScene } from "./auctionScene.ts";

const BACKRUN = (scene: AuctionScene, index = -1) => {
	const tx = scene.builders.sent.at(index)?.transactions[1]?.tx;
	if (tx === undefined) throw new Error("nothing was sent");
	return { tx };
};

test("the head comes back to what it was while a bid is simulated for another one: that verdict is of no use", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	const old = scene.chain.make();
	await scene.came({ applied: [old], reverted: [] });
	await scene.look(target);
	const a = await scene.accepted("A", target, 9n, { first: 102, last: 104 });
	scene.simulations.holding.add("A");
	scene.simulations.pays.set("A", "EXECUTION_REVERTED");
	// Another block 101, and back.
	const gone = scene.chain.unmake(1);
	const other = scene.chain.make([], "b");
	await scene.came({ applied: [other], reverted: gone });
	await scene.look(target);
	scene.chain.unmake(1);
	const back = scene.chain.make();
	assert.equal(back.hash, old.hash);
	await scene.came({ applied: [back], reverted: [other] });
	await scene.look(target);
	assert.equal(scene.status(a, 102), "BEST");
	scene.builders.take();
	scene.simulations.finish("A");
	await scene.turn();
	assert.deepEqual([scene.status(a, 102), scene.bids.size, scene.builders.take()], ["BEST", 1, []]);
});

test("blocks that were missed end their bids, and targets that went with them", async () => {
	const scene = new AuctionScene();
	const [one, two] = [scene.target("T"), scene.target("U")];
	const a = await scene.accepted("A", one, 9n, { first: 101, last: 102 });
	const b = await scene.accepted("B", one, 5n, { first: 104 });
	const c = await scene.accepted("C", two, 5n, { first: 104 });
	for (let i = 0; i < 2; i += 1) scene.chain.make();
	const last = scene.chain.make();
	scene.pool.remove(scene.entry(two));
	await scene.came({ applied: [last], reverted: [] }, true);
	assert.deepEqual(scene.status(a, 102), "NOT_INCLUDED notChosen");
	assert.deepEqual([scene.status(b, 104), scene.status(c, 104)], ["ACCEPTED", "DROPPED targetGone"]);
	scene.builders.take();
	await scene.look(one);
	assert.deepEqual(scene.builders.take(), ["send T B for 104 to a,b"]);
});

test("another block of the same number: bids for the next one are simulated again and sent again", async () => {
	const scene = new AuctionScene();
	const target = scene.target("T");
	await scene.block();
	await scene.look(target);
	const a = await scene.accepted("A", target, 9n);
	scene.builders.take();
	scene.simulations.take();
	const gone = scene.chain.unmake(1);
	const other = scene.chain.make([], "b");
	await scene.came({ applied: [other], reverted: gone });
	await scene.look(target);
	assert.deepEqual(scene.simulations.take(), ["A 102 101"]);
	assert.equal(scene.builders.take().at(-1), "send T A for 102 to a,b");
	assert.equal(scene.status(a, 102), "BEST");
});

test("the block that held a bundle is taken back: it is told; where the new block holds it too, it is included there", async () => {
	const scene = new AuctionScene();
	const [one, two] = [scene.target("T"), scene.target("U")];
	const a = await scene.accepted("A", one, 9n);
	const backrunA = BACKRUN(scene);
	const b = await scene.accepted("B", two, 5n);
	const backrunB = BACKRUN(scene);
	await scene.block([one, backrunA, two, backrunB]);
	assert.deepEqual([scene.status(a, 101), scene.status(b, 101)], ["INCLUDED", "INCLUDED"]);
	const gone = scene.chain.unmake(1);
	const other = scene.chain.make([one, backrunA], "b");
	await scene.came({ applied: [other], reverted: gone });
	assert.deepEqual(
		[scene.status(b, 101), scene.detail(b, 101)?.blockHash],
		["NOT_INCLUDED reorganised", null],
	);
	assert.deepEqual([scene.status(a, 101), scene.detail(a, 101)?.blockHash], ["INCLUDED", other.hash]);
});
