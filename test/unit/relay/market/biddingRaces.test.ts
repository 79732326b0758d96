// Bids that meet something on their way: another head, another target, a cancel, a bid of the same uuid, or the very same
// bundle, which is one with one record, out once and counted once.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testAccount } from "../../../support/txFactory.ts";
import { AuctionFixture, withTarget } from "./auctionFixture.ts";

/** A target whose bids' simulations wait. */
function held(...labels: string[]) {
	const { fixture, target } = withTarget();
	for (const label of labels) fixture.simulations.holding.add(label);
	return { fixture, target };
}

describe("while a bid is simulated", () => {
	test("the head moves: it is simulated again, for the new next block", async () => {
		const { fixture, target } = held("A");
		const bid = fixture.accepted("A", target, 5n);
		await fixture.turn();
		await fixture.block();
		fixture.sendTarget(target);
		fixture.simulations.finish("A");
		await fixture.turn();
		assert.deepEqual(fixture.simulations.take(), ["A 101 100", "A 102 101"]);
		fixture.simulations.finish("A");
		const hash = await bid;
		assert.deepEqual(fixture.builders.take(), ["send T A for 102 to a,b"]);
		assert.deepEqual([fixture.status(hash, 101), fixture.status(hash, 102)], [undefined, "BEST"]);
	});

	test("the head moves again and again: after three simulations the node is called unavailable", async () => {
		const { fixture, target } = held("A");
		const bid = assert.rejects(fixture.bid("A", target, 5n), { data: { reason: "node unavailable" } });
		for (let i = 0; i < 3; i += 1) {
			await fixture.turn();
			await fixture.block();
			fixture.simulations.finish("A");
		}
		await bid;
		assert.deepEqual([fixture.simulations.take().length, fixture.bids.size], [3, 0]);
	});

	for (const [end, code] of [
		["replaced", "TARGET_NOT_FOUND"],
		["mined", "TARGET_NOT_FOUND"],
		["cancelled", "TARGET_NOT_FOUND"],
		["past its block", "BLOCK_PAST"],
	] as const) {
		test(`its target is ${end}: ${code}`, async () => {
			const { fixture, target } = held("A");
			const last = end === "past its block" ? 101 : 105;
			const bid = fixture.bid("A", target, 5n, { first: 101, last });
			await fixture.turn();
			if (end === "past its block") await fixture.block();
			else if (end === "mined") await fixture.block([target]);
			else fixture.pool.remove(fixture.entry(target));
			const event = { at: 2, block: 100, builders: [] };
			if (end === "cancelled") fixture.emit(target, { type: "cancelled", ...event });
			if (end === "replaced") fixture.emit(target, { type: "replaced", by: "0xother", ...event });
			fixture.simulations.finish("A");
			const outcome = await bid;
			assert.equal(outcome.outcome === "refused" && outcome.code, code);
			assert.deepEqual([fixture.bids.size, fixture.builders.take(), fixture.faults], [0, [], []]);
		});
	}

	test("a link before its target is replaced: it is simulated behind the new one", async () => {
		const fixture = new AuctionFixture();
		const by = testAccount(7);
		const first = fixture.target("first", { by, nonce: 0 });
		const target = fixture.target("T", { by, nonce: 1 });
		fixture.simulations.holding.add("A");
		const bid = fixture.accepted("A", target, 5n);
		await fixture.turn();
		fixture.pool.remove(fixture.entry(first));
		const dearer = { maxFeePerGas: 50_000_000_000n, maxPriorityFeePerGas: 5_000_000_000n };
		const other = fixture.target("other", { by, nonce: 0, ...dearer });
		for (let i = 0; i < 2; i += 1) {
			fixture.simulations.finish("A");
			await fixture.turn();
		}
		await bid;
		assert.deepEqual(
			fixture.simulations.requests.map(({ transactions }) => transactions[0]?.hash),
			[first.tx.hash, other.tx.hash],
		);
		assert.deepEqual(fixture.builders.take(), ["send T A for 101 to a,b"]);
	});

	test("a cancel ends it, and none of its uuid that is sent after that", async () => {
		const { fixture, target } = held("A", "B");
		const before = fixture.accepted("A", target, 9n, { uuid: "u" });
		await fixture.turn();
		fixture.table.cancel("me", "u");
		const after = fixture.accepted("B", target, 5n, { uuid: "u" });
		await fixture.turn();
		fixture.simulations.finish("A");
		assert.equal(fixture.status(await before, 101), "CANCELLED");
		assert.deepEqual([fixture.builders.take(), fixture.bids.size], [[], 0]);
		fixture.simulations.finish("B");
		assert.equal(fixture.status(await after, 101), "BEST");
		assert.deepEqual(fixture.builders.take(), ["send T B for 101 to a,b"]);
	});

	test("another client's cancel of its uuid ends nothing", async () => {
		const { fixture, target } = held("A");
		const bid = fixture.accepted("A", target, 9n, { uuid: "u" });
		await fixture.turn();
		fixture.table.cancel("you", "u");
		fixture.simulations.finish("A");
		assert.equal(fixture.status(await bid, 101), "BEST");
	});

	test("a later one of its uuid is faster: that one stays, and it is replaced", async () => {
		const { fixture, target } = held("A", "B");
		const first = fixture.accepted("A", target, 9n, { uuid: "u" });
		const second = fixture.accepted("B", target, 5n, { uuid: "u" });
		await fixture.turn();
		fixture.simulations.finish("B");
		const b = await second;
		fixture.simulations.finish("A");
		assert.deepEqual(fixture.statuses(101, await first, b), ["REPLACED", "BEST"]);
		assert.deepEqual([fixture.builders.take(), fixture.bids.size], [["send T B for 101 to a,b"], 1]);
	});

	for (const between of ["nothing", "a cancel"] as const) {
		test(`the very same one of its uuid, with ${between} between, is faster: it is out once, and told so`, async () => {
			const { fixture, target } = held("A");
			const first = fixture.accepted("A", target, 9n, { uuid: "u" });
			await fixture.turn();
			if (between === "a cancel") fixture.table.cancel("me", "u");
			const second = fixture.accepted("A", target, 9n, { uuid: "u" });
			await fixture.turn();
			fixture.simulations.finishLast("A");
			const hash = await second;
			fixture.simulations.finish("A");
			assert.equal(await first, hash);
			assert.deepEqual([fixture.status(hash, 101), fixture.bids.size], ["BEST", 1]);
			assert.deepEqual(fixture.builders.take(), ["send T A for 101 to a,b"]);
		});
	}
});

test("the best bid is raised under its uuid: the new one takes its place, with no cancel and no fallback between", async () => {
	const { fixture, target } = withTarget();
	const a = await fixture.accepted("A", target, 9n, { uuid: "u" });
	await fixture.accepted("C", target, 3n);
	fixture.builders.take();
	const b = await fixture.accepted("B", target, 12n, { uuid: "u" });
	assert.deepEqual(fixture.builders.take(), ["send T B for 101 to a,b"]);
	assert.deepEqual(fixture.statuses(101, a, b), ["REPLACED", "BEST"]);
});

test("a uuid goes to another target: the bid on the first one is over", async () => {
	const { fixture, target: one } = withTarget();
	const two = fixture.target("U");
	const a = await fixture.accepted("A", one, 9n, { uuid: "u" });
	fixture.builders.take();
	const b = await fixture.accepted("B", two, 5n, { uuid: "u" });
	const lines = ["cancel backrun T for 101 at a,b", "send U B for 101 to a,b"];
	assert.deepEqual(fixture.builders.take().sort(), lines);
	assert.deepEqual(fixture.statuses(101, a, b), ["REPLACED", "BEST"]);
});

test("a refused bid replaces nothing: what holds its uuid stays out", async () => {
	const { fixture, target } = withTarget();
	const a = await fixture.accepted("A", target, 9n, { uuid: "u" });
	fixture.builders.take();
	await fixture.bid("B", target, 0n, { uuid: "u" });
	assert.deepEqual([fixture.status(a, 101), fixture.builders.take()], ["BEST", []]);
});

describe("the very same bundle again", () => {
	for (const uuid of [undefined, "u"]) {
		test(`${uuid === undefined ? "without a uuid" : "under its uuid"}: counted once, told to nobody, not sent again`, async () => {
			const { fixture, target } = withTarget();
			const options = uuid === undefined ? {} : { uuid };
			const a = await fixture.accepted("A", target, 9n, options);
			fixture.builders.take();
			fixture.told.length = 0;
			assert.equal(await fixture.accepted("A", target, 9n, options), a);
			assert.deepEqual([fixture.bids.size, fixture.status(a, 101)], [1, "BEST"]);
			assert.equal(fixture.records.get(target.tx.hash)?.record.backruns, 1);
			assert.deepEqual([fixture.builders.take(), fixture.told], [[], []]);
		});
	}

	test("under another uuid: from now on that one names it, and what that named is replaced", async () => {
		const { fixture, target } = withTarget();
		const a = await fixture.accepted("A", target, 9n, { uuid: "old" });
		const b = await fixture.accepted("B", target, 5n, { uuid: "new" });
		fixture.builders.take();
		await fixture.accepted("A", target, 9n, { uuid: "new" });
		await fixture.turn();
		fixture.table.cancel("me", "old");
		assert.deepEqual([fixture.statuses(101, a, b), fixture.builders.take()], [["BEST", "REPLACED"], []]);
		fixture.table.cancel("me", "new");
		assert.deepEqual([fixture.status(a, 101), fixture.bids.size], ["CANCELLED", 0]);
	});

	test("for fewer builders: those have it already, the others are told to forget it; and for more again", async () => {
		const { fixture, target } = withTarget();
		const hash = await fixture.accepted("A", target, 9n);
		await fixture.accepted("A", target, 9n, { builders: ["b"] });
		await fixture.accepted("A", target, 9n);
		const lines = ["send T A for 101 to a,b", "cancel backrun T for 101 at a", "send T A for 101 to a"];
		assert.deepEqual(fixture.builders.take(), lines);
		assert.deepEqual([fixture.status(hash, 101), fixture.bids.size], ["BEST", 1]);
	});

	test("that comes to less than it did: the next best takes its place", async () => {
		const { fixture, target } = withTarget();
		const a = await fixture.accepted("A", target, 9n);
		const b = await fixture.accepted("B", target, 5n);
		fixture.builders.take();
		await fixture.accepted("A", target, 3n);
		assert.deepEqual(fixture.builders.take(), ["send T B for 101 to a,b"]);
		assert.deepEqual(fixture.statuses(101, a, b), ["OUTBID", "BEST"]);
	});

	test("that loses: it keeps its old place among equals", async () => {
		const { fixture, target } = withTarget();
		await fixture.accepted("A", target, 9n, { uuid: "best" });
		const b = await fixture.accepted("B", target, 5n, { uuid: "b" });
		const c = await fixture.accepted("C", target, 5n);
		fixture.builders.take();
		await fixture.accepted("B", target, 5n, { uuid: "b" });
		assert.deepEqual(fixture.builders.take(), []);
		fixture.table.cancel("me", "best");
		await fixture.turn();
		assert.deepEqual(fixture.statuses(101, b, c), ["BEST", "OUTBID"]);
	});

	test("for a range that overlaps: one bid, told of once in a block", async () => {
		const { fixture, target } = withTarget();
		const hash = await fixture.accepted("A", target, 9n, { first: 101, last: 103 });
		await fixture.block();
		await fixture.look(target);
		assert.equal(await fixture.accepted("A", target, 9n, { first: 102, last: 104 }), hash);
		assert.deepEqual([fixture.status(hash, 102), fixture.bids.size], ["BEST", 1]);
	});

	test("for a range that does not meet the first: two bids of one record, each for its own blocks", async () => {
		const { fixture, target } = withTarget();
		const hash = await fixture.accepted("A", target, 9n, { first: 101 });
		await fixture.accepted("A", target, 9n, { first: 103 });
		assert.equal(fixture.bids.size, 2);
		await fixture.block();
		assert.deepEqual(
			[fixture.status(hash, 101), fixture.status(hash, 103), fixture.bids.size],
			["NOT_INCLUDED targetNotIncluded", "ACCEPTED", 1],
		);
	});

	test("of another searcher: it is another bundle, and neither sees or ends the other's", async () => {
		const { fixture, target } = withTarget();
		const hash = await fixture.accepted("A", target, 9n, { owner: "me", uuid: "u" });
		assert.equal(await fixture.accepted("A", target, 9n, { owner: "you", uuid: "u" }), hash);
		const both = () => [fixture.status(hash, 101, "me"), fixture.status(hash, 101, "you")];
		assert.deepEqual(both(), ["BEST", "OUTBID"]);
		fixture.table.cancel("you", "u");
		assert.deepEqual(both(), ["BEST", "CANCELLED"]);
	});
});
