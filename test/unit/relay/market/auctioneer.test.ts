// Tests what the auctioneer reports of bids: their status after a block or a failed check, evictions, and when a backrun counts
// as sent. auction.model.test.ts tests which bids are sent.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { TransactionDisk } from "../../../../relay/transactions/disk.ts";
import { silentLogger } from "../../../../shared/log.ts";
import type { Pays } from "./auctionFakes.ts";
import { type AuctionFixture, withTarget } from "./auctionFixture.ts";

describe("a full book", () => {
	test("the cheapest bid of the client with the most bids is evicted and its uuid is free", async () => {
		const { fixture, target: one } = await withTarget({ bids: { maxTotal: 4 } });
		const two = await fixture.target("U");
		const a = await fixture.accepted("A", one, 5n);
		const b = await fixture.accepted("B", one, 4n, { uuid: "u" });
		const c = await fixture.accepted("C", two, 9n);
		const d = await fixture.accepted("D", two, 1n, { owner: "you" });
		fixture.builders.take();
		// Cheaper than all, but of another client: accepted.
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
		const { fixture, target } = await withTarget();
		fixture.builders.holding = true;
		const hash = await fixture.accepted("A", target, 5n);
		const [leaves] = fixture.builders.waiting.splice(0);
		assert.deepEqual([fixture.status(hash, 101), fixture.events(target, "bundled")], ["BEST", []]);
		await fixture.clock.advance(7);
		for (let i = 0; i < 2; i += 1) leaves?.();
		const events = fixture.events(target, "bundled").map(({ bid, block, at }) => [bid, block, at]);
		assert.deepEqual(events, [["5", 101, fixture.clock.now()]]);
	});

	test("on disk too, soon and without a block: a refund may be due for it", async () => {
		const { fixture, target } = await withTarget();
		await fixture.accepted("A", target, 5n);
		await fixture.clock.advance(100);
		const disk = new TransactionDisk({ kv: fixture.disk, log: silentLogger });
		const last = [];
		for await (const { record } of disk.load()) last.push([record.hash, record.events.at(-1)?.type]);
		assert.deepEqual(last, [[target.tx.hash, "bundled"]]);
	});
});

const RANGE = { first: 101, last: 103 };

/** The backrun that was sent last. */
function backrun(fixture: AuctionFixture) {
	const tx = fixture.builders.sent.at(-1)?.transactions[1]?.tx;
	if (tx === undefined) throw new Error("nothing was sent");
	return { tx };
}

/** Of a bid for 101 to 103, whose times are 1212, 1224 and 1236: what it is for; its status while 101 is awaited, and behind it. */
for (const [times, now, then] of [
	[{ from: 1_212, until: 1_212 }, "BEST", ["targetNotIncluded", "timestamp"]],
	[{ from: 1_213, until: 1_236 }, "ACCEPTED timestamp", ["timestamp", "targetNotIncluded"]],
] as const) {
	test(`a bid for times from ${times.from} to ${times.until} takes part in the auction of those blocks alone`, async () => {
		const { fixture, target } = await withTarget();
		const a = await fixture.accepted("A", target, 9n, { ...RANGE, times });
		await fixture.accepted("B", target, 5n, { ...RANGE, owner: "you" });
		const first = now === "BEST" ? ["send T A for 101 to a,b"] : ["send T B for 101 to a,b"];
		assert.deepEqual([fixture.builders.take(), fixture.status(a, 101)], [first, now]);
		await fixture.block();
		await fixture.look(target);
		const second = now === "BEST" ? ["send T B for 102 to a,b"] : ["send T A for 102 to a,b"];
		assert.deepEqual(fixture.builders.take(), second);
		await fixture.block();
		const stages = [101, 102].map((block) => fixture.status(a, block));
		assert.deepEqual(
			stages,
			then.map((reason) => `NOT_INCLUDED ${reason}`),
		);
	});
}

test("when slots are missed before the next block, bids go out or are cancelled by its new time", async () => {
	const { fixture, target } = await withTarget({ places: 2 });
	const a = await fixture.accepted("A", target, 9n, { times: { from: 0, until: 1_212 } });
	const b = await fixture.accepted("B", target, 5n, { owner: "you", times: { from: 1_224, until: 1_224 } });
	fixture.builders.take();
	await fixture.missSlots(1);
	assert.deepEqual(fixture.builders.take(), ["cancel backrun T for 101 at a,b", "send T B for 101 to a,b"]);
	assert.deepEqual([fixture.status(a, 101), fixture.status(b, 101, "you")], ["ACCEPTED timestamp", "BEST"]);
});

test("a bid that was sent and whose block comes late was left out for its time, and lost to nobody", async () => {
	const { fixture, target } = await withTarget();
	const a = await fixture.accepted("A", target, 9n, { times: { from: 0, until: 1_211 + 1 } });
	const late = fixture.chain.make([target], "late");
	await fixture.came({ applied: [{ ...late, timestamp: 1_224 }], reverted: [] });
	assert.deepEqual(
		[fixture.status(a, 101), fixture.detail(a, 101)?.winner],
		["NOT_INCLUDED timestamp", null],
	);
});

test("the same bid again with other times replaces it at the builders, with its status", async () => {
	const { fixture, target } = await withTarget();
	const a = await fixture.accepted("A", target, 9n, { times: { from: 0, until: 1_212 } });
	await fixture.accepted("A", target, 9n, { times: { from: 0, until: 1_224 } });
	assert.deepEqual(fixture.builders.take(), ["send T A for 101 to a,b", "send T A for 101 to a,b"]);
	assert.deepEqual(
		[fixture.builders.sent.at(-1)?.times?.until, fixture.status(a, 101), fixture.bids.size],
		[1_224, "BEST", 1],
	);
	await fixture.accepted("A", target, 9n, { times: { from: 1_224, until: 1_224 } });
	assert.deepEqual(fixture.builders.take(), ["cancel backrun T for 101 at a,b"]);
	assert.equal(fixture.status(a, 101), "ACCEPTED timestamp");
});

/** A bid for 101 to 103 at head 101; it pays `pays` behind that, and its target has not been sent for 102 yet. */
async function atNextHead(pays: Pays = 9n) {
	const { fixture, target } = await withTarget();
	const a = await fixture.accepted("A", target, 9n, { ...RANGE, uuid: "u" });
	await fixture.block();
	fixture.simulations.pays.set("A", pays);
	fixture.builders.take();
	fixture.simulations.take();
	return { fixture, target, a };
}

describe("what a block says of the bids on a target", () => {
	/** What block 101 contains; the status of the best bid there, and of one for later blocks too, there and in 102. */
	const rows = [
		["neither", [], "NOT_INCLUDED targetNotIncluded", "NOT_INCLUDED targetNotIncluded", "ACCEPTED"],
		["the target alone", ["T"], "NOT_INCLUDED notChosen", "NOT_INCLUDED outbid", "DROPPED targetGone"],
		["both", ["T", "A"], "INCLUDED", "NOT_INCLUDED outbid", "DROPPED targetGone"],
		[
			"the best before its target",
			["A", "T"],
			"NOT_INCLUDED transactionMined",
			"NOT_INCLUDED outbid",
			"DROPPED targetGone",
		],
	] as const;
	for (const [name, held, best, other, later] of rows) {
		test(`where it holds ${name}`, async () => {
			const { fixture, target } = await withTarget();
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

	test("where the node gave no result it is notSimulated and not outbid", async () => {
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
	test(`a best bid that gives ${pays} at the new head is dropped as ${reason}, and the next one is sent`, async () => {
		const { fixture, target, a } = await atNextHead(pays);
		await fixture.accepted("B", target, 5n, { first: 102 });
		fixture.builders.take();
		await fixture.look(target);
		assert.deepEqual(fixture.builders.take(), ["send T B for 102 to a,b"]);
		assert.deepEqual([fixture.status(a, 102), fixture.bids.size], [`DROPPED ${reason}`, 1]);
	});
}

for (const pays of ["NODE_UNAVAILABLE", "throws", "blind"] as const) {
	test(`without a result from the node (${pays}) the bid is kept and retried, and others are sent meanwhile`, async () => {
		const { fixture, target, a } = await atNextHead(pays);
		const b = await fixture.accepted("B", target, 5n, { first: 102, owner: "you" });
		await fixture.look(target);
		assert.deepEqual(fixture.builders.take(), ["send T B for 102 to a,b"]);
		assert.notEqual(fixture.status(a, 102), "BEST");
		fixture.simulations.pays.set("A", 8n);
		await fixture.clock.advance(600);
		await fixture.turn();
		assert.equal(fixture.builders.take()[0], "send T A for 102 to a,b");
		assert.deepEqual([fixture.status(a, 102), fixture.status(b, 102, "you")], ["BEST", "OUTBID"]);
	});
}

test("what the node refuses is tried again when that is said, and for the next head if it is not", async () => {
	const { fixture, target, a } = await atNextHead("refused");
	await fixture.look(target);
	fixture.simulations.take();
	await fixture.clock.advance(1_900);
	assert.deepEqual(fixture.simulations.take(), []);
	fixture.simulations.pays.set("A", "impossible");
	await fixture.clock.advance(200);
	assert.deepEqual(fixture.simulations.take(), ["A 102 101"]);
	fixture.simulations.pays.set("A", 8n);
	await fixture.clock.advance(12_000);
	assert.deepEqual([fixture.simulations.take(), fixture.builders.take()], [[], []]);
	assert.equal(fixture.status(a, 102), "ACCEPTED");
});

test("a target that fails by an account that has changed meanwhile is no verdict: the bid is tried again", async () => {
	for (const [changes, sent] of [
		[true, ["send T A for 102 to a,b"]],
		[false, []],
	] as const) {
		const { fixture, target } = await atNextHead("targetGap");
		fixture.accounts.onFresh = () => {
			if (changes) fixture.accounts.nonces.set(target.tx.from, 1n);
			return fixture.head.number;
		};
		await fixture.look(target);
		fixture.simulations.pays.set("A", 8n);
		await fixture.clock.advance(600);
		await fixture.turn();
		assert.deepEqual(fixture.builders.take(), sent);
	}
});

test("a failure in the state before a new head is ignored, and the bid is simulated again", async () => {
	const { fixture, target } = await atNextHead("EXECUTION_REVERTED");
	fixture.simulations.holding.add("A");
	await fixture.look(target);
	fixture.simulations.holding.clear();
	fixture.simulations.pays.set("A", 9n);
	await fixture.block();
	fixture.simulations.finish("A");
	await fixture.turn();
	assert.equal(fixture.bids.size, 1);
	await fixture.look(target);
	assert.deepEqual(fixture.builders.take(), ["send T A for 103 to a,b"]);
});
