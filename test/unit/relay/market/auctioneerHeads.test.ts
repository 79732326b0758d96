// The auctioneer over blocks: what a block says of each bid, bids of a range that are simulated again at each head, and
// answers of the node that come late or not at all.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type AuctionFixture, withTarget } from "./auctionFixture.ts";
import type { Pays } from "./auctionHands.ts";

const RANGE = { first: 101, last: 103 };

/** The backrun that was sent last. */
function backrun(fixture: AuctionFixture) {
	const tx = fixture.builders.sent.at(-1)?.transactions[1]?.tx;
	if (tx === undefined) throw new Error("nothing was sent");
	return { tx };
}

/** A bid for 101 to 103 at head 101; it pays `pays` behind that, and its target has not been looked at there yet. */
async function atNextHead(pays: Pays = 9n) {
	const { fixture, target } = withTarget();
	const a = await fixture.accepted("A", target, 9n, { ...RANGE, uuid: "u" });
	await fixture.block();
	fixture.simulations.pays.set("A", pays);
	fixture.builders.take();
	fixture.simulations.take();
	return { fixture, target, a };
}

describe("what a block says of the bids on a target", () => {
	/** What block 101 holds, and what is told of the best bid and of one for later blocks too. */
	const rows = [
		["neither", [], "NOT_INCLUDED targetNotIncluded", "NOT_INCLUDED targetNotIncluded", "ACCEPTED"],
		["the target alone", ["T"], "NOT_INCLUDED notChosen", "NOT_INCLUDED outbid", "DROPPED targetGone"],
		["both", ["T", "A"], "INCLUDED", "NOT_INCLUDED outbid", "DROPPED targetGone"],
		[
			"the best before its target",
			["A", "T"],
			"NOT_INCLUDED notChosen",
			"NOT_INCLUDED outbid",
			"DROPPED targetGone",
		],
	] as const;
	for (const [name, held, best, other, later] of rows) {
		test(`where it holds ${name}`, async () => {
			const { fixture, target } = withTarget();
			const a = await fixture.accepted("A", target, 9n);
			const sent = backrun(fixture);
			const b = await fixture.accepted("B", target, 5n, RANGE);
			fixture.builders.take();
			const block = await fixture.block(held.map((one) => (one === "T" ? target : sent)));
			assert.deepEqual(fixture.statuses(101, a, b), [best, other]);
			assert.equal(fixture.status(b, 102), later);
			assert.equal(fixture.detail(a, 101)?.blockHash, best === "INCLUDED" ? block.hash : null);
			assert.deepEqual([fixture.bids.size, fixture.builders.take()], [held.length === 0 ? 1 : 0, []]);
		});
	}

	test("where the node gave no verdict: it was not simulated, and by nobody outbid", async () => {
		const { fixture, target, a } = await atNextHead("NODE_UNAVAILABLE");
		await fixture.look(target);
		await fixture.block([target]);
		assert.deepEqual([fixture.status(a, 102), fixture.bids.size], ["NOT_INCLUDED notSimulated", 0]);
	});

	test("where it is taken back, and where the new block holds it too", async () => {
		const { fixture, target: one } = withTarget();
		const two = fixture.target("U");
		const a = await fixture.accepted("A", one, 9n);
		const backrunA = backrun(fixture);
		const b = await fixture.accepted("B", two, 5n);
		await fixture.block([one, backrunA, two, backrun(fixture)]);
		assert.deepEqual(fixture.statuses(101, a, b), ["INCLUDED", "INCLUDED"]);
		const other = await fixture.reorganise([one, backrunA]);
		assert.deepEqual(fixture.statuses(101, a, b), ["INCLUDED", "NOT_INCLUDED reorganised"]);
		assert.deepEqual(
			[a, b].map((hash) => fixture.detail(hash, 101)?.blockHash),
			[other.hash, null],
		);
	});

	test("where blocks were missed: bids for them and on targets that went with them have ended", async () => {
		const { fixture, target: one } = withTarget();
		const two = fixture.target("U");
		const a = await fixture.accepted("A", one, 9n, { first: 101, last: 102 });
		const b = await fixture.accepted("B", one, 5n, { first: 104 });
		const c = await fixture.accepted("C", two, 5n, { first: 104 });
		for (let i = 0; i < 2; i += 1) fixture.chain.make();
		const last = fixture.chain.make();
		fixture.pool.remove(fixture.entry(two));
		await fixture.came({ applied: [last], reverted: [] }, true);
		assert.equal(fixture.status(a, 102), "NOT_INCLUDED notChosen");
		assert.deepEqual(fixture.statuses(104, b, c), ["ACCEPTED", "DROPPED targetGone"]);
		fixture.builders.take();
		await fixture.look(one);
		assert.deepEqual(fixture.builders.take(), ["send T B for 104 to a,b"]);
	});
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
		const { fixture, target, a } = await atNextHead(pays);
		await fixture.accepted("B", target, 5n, { first: 102 });
		fixture.builders.take();
		await fixture.look(target);
		assert.deepEqual(fixture.builders.take(), ["send T B for 102 to a,b"]);
		assert.deepEqual([fixture.status(a, 102), fixture.bids.size], [`DROPPED ${reason}`, 1]);
	});
}

for (const pays of ["NODE_UNAVAILABLE", "throws", "blind"] as const) {
	test(`the node gives no verdict (${pays}): the bid is kept and tried again, others play meanwhile`, async () => {
		const { fixture, target, a } = await atNextHead(pays);
		const b = await fixture.accepted("B", target, 5n, { first: 102, owner: "you" });
		await fixture.look(target);
		assert.deepEqual(fixture.builders.take(), ["send T B for 102 to a,b"]);
		assert.notEqual(fixture.status(a, 102), "BEST");
		fixture.simulations.pays.set("A", 8n);
		await fixture.clock.advance(600);
		assert.equal(fixture.builders.take()[0], "send T A for 102 to a,b");
		assert.deepEqual([fixture.status(a, 102), fixture.status(b, 102, "you")], ["BEST", "OUTBID"]);
	});
}

test("an outbid one that pays more behind the new head takes the first place", async () => {
	const { fixture, target } = withTarget();
	const a = await fixture.accepted("A", target, 9n, RANGE);
	const b = await fixture.accepted("B", target, 5n, { by: 2, owner: "p", ...RANGE });
	await fixture.block();
	fixture.simulations.pays.set("B", 10n);
	await fixture.look(target);
	assert.deepEqual([fixture.status(a, 102), fixture.status(b, 102, "p")], ["OUTBID", "BEST"]);
	assert.equal(fixture.detail(b, 102, "p")?.bid, 10n);
});

describe("while a bid is simulated again", () => {
	test("another look at its target in the same state asks no second time", async () => {
		const { fixture, target } = await atNextHead();
		fixture.simulations.holding.add("A");
		for (let i = 0; i < 3; i += 1) await fixture.look(target);
		assert.deepEqual(fixture.simulations.take(), ["A 102 101"]);
	});

	test("it is cancelled: the verdict comes too late to bring it back", async () => {
		const { fixture, target, a } = await atNextHead();
		fixture.simulations.holding.add("A");
		await fixture.look(target);
		fixture.table.cancel("me", "u");
		fixture.simulations.finish("A");
		await fixture.turn();
		assert.deepEqual(
			[fixture.builders.take(), fixture.status(a, 102), fixture.bids.size],
			[[], "CANCELLED", 0],
		);
	});

	test("the next head comes, and is looked at: the verdict counts for nothing there", async () => {
		const { fixture, target, a } = await atNextHead();
		fixture.simulations.holding.add("A");
		await fixture.look(target);
		await fixture.block();
		assert.equal(fixture.status(a, 102), "NOT_INCLUDED targetNotIncluded");
		await fixture.look(target);
		fixture.simulations.finish("A");
		await fixture.turn();
		assert.deepEqual([fixture.builders.take(), fixture.bids.size], [[], 1]);
		fixture.simulations.finish("A");
		await fixture.turn();
		assert.deepEqual(fixture.builders.take(), ["send T A for 103 to a,b"]);
	});

	test("the next head comes, and is not looked at yet: nothing is dropped for a state that is no more", async () => {
		const { fixture, target } = await atNextHead("targetFails");
		fixture.simulations.holding.add("A");
		await fixture.look(target);
		await fixture.block();
		fixture.simulations.finish("A");
		await fixture.turn();
		assert.equal(fixture.bids.size, 1);
		fixture.simulations.holding.clear();
		fixture.simulations.pays.set("A", 9n);
		await fixture.look(target);
		assert.deepEqual(fixture.builders.take(), ["send T A for 103 to a,b"]);
	});

	test("the head goes to another branch and comes back: a verdict of that branch is of no use", async () => {
		const { fixture, target } = withTarget();
		const old = await fixture.block();
		await fixture.look(target);
		const a = await fixture.accepted("A", target, 9n, { first: 102, last: 104 });
		fixture.simulations.holding.add("A");
		fixture.simulations.pays.set("A", "EXECUTION_REVERTED");
		const other = await fixture.reorganise();
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
});
