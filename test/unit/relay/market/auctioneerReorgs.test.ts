// The auctioneer where the chain is not one block after another: blocks that were missed, that are taken back, and that
// come back.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AuctionFixture } from "./auctionFixture.ts";

const BACKRUN = (fixture: AuctionFixture, index = -1) => {
	const tx = fixture.builders.sent.at(index)?.transactions[1]?.tx;
	if (tx === undefined) throw new Error("nothing was sent");
	return { tx };
};

test("the head comes back to what it was while a bid is simulated for another one: that verdict is of no use", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const old = fixture.chain.make();
	await fixture.came({ applied: [old], reverted: [] });
	await fixture.look(target);
	const a = await fixture.accepted("A", target, 9n, { first: 102, last: 104 });
	fixture.simulations.holding.add("A");
	fixture.simulations.pays.set("A", "EXECUTION_REVERTED");
	// Another block 101, and back.
	const gone = fixture.chain.unmake(1);
	const other = fixture.chain.make([], "b");
	await fixture.came({ applied: [other], reverted: gone });
	await fixture.look(target);
	fixture.chain.unmake(1);
	const back = fixture.chain.make();
	assert.equal(back.hash, old.hash);
	await fixture.came({ applied: [back], reverted: [other] });
	await fixture.look(target);
	assert.equal(fixture.status(a, 102), "BEST");
	fixture.builders.take();
	fixture.simulations.finish("A");
	await fixture.turn();
	assert.deepEqual([fixture.status(a, 102), fixture.bids.size, fixture.builders.take()], ["BEST", 1, []]);
});

test("blocks that were missed end their bids, and targets that went with them", async () => {
	const fixture = new AuctionFixture();
	const [one, two] = [fixture.target("T"), fixture.target("U")];
	const a = await fixture.accepted("A", one, 9n, { first: 101, last: 102 });
	const b = await fixture.accepted("B", one, 5n, { first: 104 });
	const c = await fixture.accepted("C", two, 5n, { first: 104 });
	for (let i = 0; i < 2; i += 1) fixture.chain.make();
	const last = fixture.chain.make();
	fixture.pool.remove(fixture.entry(two));
	await fixture.came({ applied: [last], reverted: [] }, true);
	assert.deepEqual(fixture.status(a, 102), "NOT_INCLUDED notChosen");
	assert.deepEqual([fixture.status(b, 104), fixture.status(c, 104)], ["ACCEPTED", "DROPPED targetGone"]);
	fixture.builders.take();
	await fixture.look(one);
	assert.deepEqual(fixture.builders.take(), ["send T B for 104 to a,b"]);
});

test("another block of the same number: bids for the next one are simulated again and sent again", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	await fixture.block();
	await fixture.look(target);
	const a = await fixture.accepted("A", target, 9n);
	fixture.builders.take();
	fixture.simulations.take();
	const gone = fixture.chain.unmake(1);
	const other = fixture.chain.make([], "b");
	await fixture.came({ applied: [other], reverted: gone });
	await fixture.look(target);
	assert.deepEqual(fixture.simulations.take(), ["A 102 101"]);
	assert.equal(fixture.builders.take().at(-1), "send T A for 102 to a,b");
	assert.equal(fixture.status(a, 102), "BEST");
});

test("the block that held a bundle is taken back: it is told; where the new block holds it too, it is included there", async () => {
	const fixture = new AuctionFixture();
	const [one, two] = [fixture.target("T"), fixture.target("U")];
	const a = await fixture.accepted("A", one, 9n);
	const backrunA = BACKRUN(fixture);
	const b = await fixture.accepted("B", two, 5n);
	const backrunB = BACKRUN(fixture);
	await fixture.block([one, backrunA, two, backrunB]);
	assert.deepEqual([fixture.status(a, 101), fixture.status(b, 101)], ["INCLUDED", "INCLUDED"]);
	const gone = fixture.chain.unmake(1);
	const other = fixture.chain.make([one, backrunA], "b");
	await fixture.came({ applied: [other], reverted: gone });
	assert.deepEqual(
		[fixture.status(b, 101), fixture.detail(b, 101)?.blockHash],
		["NOT_INCLUDED reorganised", null],
	);
	assert.deepEqual([fixture.status(a, 101), fixture.detail(a, 101)?.blockHash], ["INCLUDED", other.hash]);
});
