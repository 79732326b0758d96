// The auctioneer within one block: what a target is told of its bids, whose bid gives way where the book is full, and
// when a backrun counts as sent. Which bids are out is in `auction.model.test.ts`.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type AuctionFixture, withTarget } from "./auctionFixture.ts";
import type { Pays } from "./auctionHands.ts";

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
});

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
});

for (const [pays, reason] of [
	[0n, "paysNothing"],
	["EXECUTION_REVERTED", "reverted"],
	["NONCE_TOO_LOW", "invalid"],
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

describe("while a bid is simulated again", () => {
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
});
