// Tests what the auctioneer reports of bids: their status after a block or a failed check,
// evictions, and when a backrun counts as sent. auction.model.test.ts tests which bids are sent.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { TransactionDisk } from "../../../../relay/transactions/disk.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { UNDAMAGED } from "../../../support/undamaged.ts";
import type { Pays } from "./auctionFakes.ts";
import { type AuctionFixture, withTarget } from "./auctionFixture.ts";

describe("a full book", () => {
	test("the lowest bid of the client with the most bids is evicted, which is reported with the block", async () => {
		const { fixture, target: one } = await withTarget({ bids: { maxTotal: 4 }, slots: 4 });
		const two = await fixture.target("U");
		const a = await fixture.accepted("A", one, 5n);
		const b = await fixture.accepted("B", one, 4n, { uuid: "u" });
		const c = await fixture.accepted("C", two, 9n);
		const d = await fixture.accepted("D", two, 1n, { owner: "you" });
		// Lower than all, but of another client.
		const e = await fixture.accepted("E", two, 1n, { owner: "her" });
		assert.equal(fixture.bids.size, 4);
		const stages = () => [
			...fixture.statuses(101, a, b, c),
			fixture.status(d, 101, "you"),
			fixture.status(e, 101, "her"),
		];
		assert.deepEqual(stages(), Array(5).fill("ACCEPTED"));
		await fixture.block([one, two]);
		assert.deepEqual(stages(), ["LOST", "NOT_PLACED", "LOST", "LOST", "LOST"]);
	});
});

test("whether a bid is still live its owner can't find out: a cancel, a replacement and the same bid again do the same", async () => {
	for (const isEvicted of [false, true]) {
		const { fixture, target } = await withTarget({ bids: { maxPerTarget: 1 } });
		const a = await fixture.accepted("A", target, 5n, { uuid: "a" });
		if (isEvicted) await fixture.accepted("B", target, 9n, { owner: "you" });
		assert.equal(fixture.bids.size, 1);
		fixture.published.splice(0);
		await fixture.accepted("A", target, 6n, { uuid: "a" });
		assert.deepEqual(fixture.published.splice(0), ["A 101 ACCEPTED"]);
		await fixture.accepted("C", target, 5n, { uuid: "a" });
		assert.deepEqual(fixture.published.splice(0), ["A 101 REPLACED", "? 101 ACCEPTED"]);
		fixture.table.cancel("me", "a");
		assert.deepEqual(fixture.published, ["C 101 CANCELLED"]);
		assert.equal(fixture.status(a, 101), "REPLACED");
	}
});

describe("a backrun counts as sent", () => {
	test("when it leaves for the first builder, once", async () => {
		const { fixture, target } = await withTarget();
		fixture.builders.holding = true;
		const hash = await fixture.accepted("A", target, 5n);
		const [leaves] = fixture.builders.waiting.splice(0);
		assert.deepEqual([fixture.status(hash, 101), fixture.events(target, "bundled")], ["ACCEPTED", []]);
		await fixture.clock.advance(7);
		for (let i = 0; i < 2; i += 1) leaves?.();
		const events = fixture.events(target, "bundled").map(({ bid, block, at }) => [bid, block, at]);
		assert.deepEqual(events, [["5", 101, fixture.clock.now()]]);
	});

	test("on disk too, soon and without a block: a refund may be due for it", async () => {
		const { fixture, target } = await withTarget();
		await fixture.accepted("A", target, 5n);
		await fixture.clock.advance(100);
		const disk = new TransactionDisk({ kv: fixture.disk, damaged: UNDAMAGED, log: silentLogger });
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

/**
 * The time range of a bid for blocks 101 to 103, which come at 1212, 1224 and 1236. Then whether it
 * is sent for 101 and 102.
 */
for (const [times, isOut] of [
	[{ from: 1_212, until: 1_212 }, [true, false]],
	[{ from: 1_213, until: 1_236 }, [false, true]],
] as const) {
	test(`a bid for times from ${times.from} to ${times.until} takes part in the auction of those blocks alone`, async () => {
		const { fixture, target } = await withTarget({ slots: 2 });
		const a = await fixture.accepted("A", target, 9n, { ...RANGE, times });
		await fixture.accepted("B", target, 5n, { ...RANGE, owner: "you" });
		for (const [i, block] of [101, 102].entries()) {
			const out = fixture.builders.take().includes(`send T A for ${block} to a,b`);
			assert.deepEqual([out, fixture.status(a, block)], [isOut[i], "ACCEPTED"]);
			await fixture.block(i === 1 ? [target] : []);
			if (i === 0) await fixture.look(target);
		}
		assert.deepEqual(
			[fixture.status(a, 101), fixture.status(a, 102)],
			["TARGET_NOT_MINED", isOut[1] ? "LOST" : "NOT_PLACED timestamp"],
		);
	});
}

test("when slots are missed before the next block, bids go out or are cancelled by its new time", async () => {
	const { fixture, target } = await withTarget({ slots: 2 });
	const a = await fixture.accepted("A", target, 9n, { times: { from: 0, until: 1_212 } });
	const b = await fixture.accepted("B", target, 5n, { owner: "you", times: { from: 1_224, until: 1_224 } });
	fixture.builders.take();
	await fixture.missSlots(1);
	assert.deepEqual(fixture.builders.take(), ["cancel backrun T for 101 at a,b", "send T B for 101 to a,b"]);
	assert.deepEqual([fixture.status(a, 101), fixture.status(b, 101, "you")], ["ACCEPTED", "ACCEPTED"]);
});

test("a bid that was sent and whose block comes late was left out for its time", async () => {
	const { fixture, target } = await withTarget();
	const a = await fixture.accepted("A", target, 9n, { times: { from: 0, until: 1_211 + 1 } });
	const late = fixture.chain.make([target], "late");
	await fixture.came({ applied: [{ ...late, timestamp: 1_224 }], reverted: [] });
	assert.equal(fixture.status(a, 101), "LOST timestamp");
});

test("the same bid again with other times replaces it at the builders, with its status", async () => {
	const { fixture, target } = await withTarget();
	const a = await fixture.accepted("A", target, 9n, { times: { from: 0, until: 1_212 } });
	await fixture.accepted("A", target, 9n, { times: { from: 0, until: 1_224 } });
	assert.deepEqual(fixture.builders.take(), ["send T A for 101 to a,b"]);
	await fixture.clock.advance(1_000);
	await fixture.turn();
	assert.deepEqual(fixture.builders.take(), ["send T A for 101 to a,b"]);
	assert.deepEqual(
		[fixture.builders.sent.at(-1)?.times?.until, fixture.status(a, 101), fixture.bids.size],
		[1_224, "ACCEPTED", 1],
	);
	await fixture.accepted("A", target, 9n, { times: { from: 1_224, until: 1_224 } });
	assert.deepEqual(fixture.builders.take(), ["cancel backrun T for 101 at a,b"]);
	assert.equal(fixture.status(a, 101), "ACCEPTED");
});

test("a client's bids that follow each other go out once a second, the last one then", async () => {
	const { fixture, target } = await withTarget();
	for (const [i, label] of ["A", "B", "C"].entries())
		await fixture.accepted(label, target, BigInt(9 - i), { by: 1, uuid: "u", nonce: i });
	assert.deepEqual(fixture.builders.take(), ["send T A for 101 to a,b"]);
	await fixture.clock.advance(999);
	await fixture.turn();
	assert.deepEqual(fixture.builders.take(), []);
	await fixture.clock.advance(1);
	await fixture.turn();
	assert.deepEqual(fixture.builders.take(), ["send T C for 101 to a,b"]);
});

test("where a builder's requests of a chain slot don't reach for all targets, each has fewer slots, but two at least", async () => {
	for (const [perSecond, each] of [
		[10, 5],
		[1, 3],
		[0.1, 2],
	] as const) {
		const { fixture, target } = await withTarget({ slots: 16 });
		fixture.builders.requests = perSecond;
		const targets = [target, await fixture.target("U"), await fixture.target("V"), await fixture.target("W")];
		for (const [i, one] of targets.entries())
			for (let n = 0; n < 5; n += 1)
				await fixture.accepted(`B${i}${n}`, one, 5n, { ...RANGE, owner: `client ${n}` });
		await fixture.block();
		fixture.builders.take();
		await fixture.look(...targets);
		assert.equal(fixture.bids.size, 20);
		const sent = fixture.builders.take().map((line) => line.slice("send ".length, "send ".length + 1));
		for (const name of ["T", "U", "V", "W"])
			assert.equal(sent.filter((one) => one === name).length, each, `${name} at ${perSecond} a second`);
	}
});

/**
 * A bid for 101 to 103 at head 101; it pays `pays` behind that, and its target has not been sent
 * for 102 yet.
 */
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
	/**
	 * The contents of block 101. Then the status of the bid with the slot there, of one without, and
	 * of the latter in 102.
	 */
	const rows = [
		["neither", [], "TARGET_NOT_MINED", "TARGET_NOT_MINED", "ACCEPTED"],
		["the target alone", ["T"], "LOST", "NOT_PLACED", undefined],
		["both", ["T", "A"], "INCLUDED", "NOT_PLACED", undefined],
		["the backrun before its target", ["A", "T"], "LOST transactionMined", "NOT_PLACED", undefined],
		["another transaction between", ["T", "other", "A"], "LOST transactionMined", "NOT_PLACED", undefined],
	] as const;
	for (const [name, held, first, other, later] of rows) {
		test(`where it holds ${name}`, async () => {
			const { fixture, target } = await withTarget();
			const a = await fixture.accepted("A", target, 9n);
			const sent = backrun(fixture);
			const b = await fixture.accepted("B", target, 5n, RANGE);
			fixture.builders.take();
			assert.deepEqual(fixture.statuses(101, a, b), ["ACCEPTED", "ACCEPTED"]);
			const mined = { T: target, A: sent, other: { tx: { hash: "0xother", from: "0xsome" } } };
			const block = await fixture.block(held.map((one) => mined[one]));
			assert.deepEqual(fixture.statuses(101, a, b), [first, other]);
			assert.equal(fixture.status(b, 102), later);
			const { blockHash, placed, isDisclosed } = fixture.detail(a, 101) ?? assert.fail();
			const isMined = held.length > 0;
			assert.deepEqual(
				[blockHash, placed, isDisclosed],
				[first === "INCLUDED" ? block.hash : null, isMined, isMined],
			);
			assert.deepEqual([fixture.bids.size, fixture.builders.take()], [isMined ? 0 : 1, []]);
		});
	}

	for (const [how, stage] of [
		["replaced", "REPLACED"],
		["cancelled", "CANCELLED"],
	] as const) {
		test(`a bid that was ${how} keeps that, or has landed, and then tells whether builders had it`, async () => {
			for (const lands of [false, true]) {
				const { fixture, target } = await withTarget();
				const a = await fixture.accepted("A", target, 9n, { uuid: "u" });
				const sent = backrun(fixture);
				fixture.builders.last?.({ at: 1, builder: "a", kind: "bundle", answer: "accepted", ms: 1 });
				if (how === "replaced") await fixture.accepted("B", target, 5n, { uuid: "u" });
				else fixture.table.cancel("me", "u");
				const before = fixture.detail(a, 101) ?? assert.fail();
				assert.deepEqual([before.stage, before.placed, before.isDisclosed], [stage, false, false]);
				await fixture.block(lands ? [target, sent] : [target]);
				const after = fixture.detail(a, 101) ?? assert.fail();
				assert.deepEqual(
					[after.stage, after.placed, after.isDisclosed],
					[lands ? "INCLUDED" : stage, true, true],
				);
			}
		});
	}

	test("where the node gave no result it is notSimulated", async () => {
		const { fixture, target, a } = await atNextHead("NODE_UNAVAILABLE");
		await fixture.look(target);
		await fixture.block([target]);
		assert.deepEqual([fixture.status(a, 102), fixture.bids.size], ["NOT_PLACED notSimulated", 0]);
	});

	test("the payment of the transaction behind the target is reported to the bid in the block and to those that lost", async () => {
		const { fixture, target } = await withTarget({ slots: 4 });
		const a = await fixture.accepted("A", target, 9n);
		const winner = backrun(fixture);
		const b = await fixture.accepted("B", target, 5n, { owner: "you" });
		fixture.transfers.set(winner.tx.hash, 7n);
		await fixture.block([target, winner]);
		const [own, other] = [fixture.detail(a, 101), fixture.detail(b, 101, "you")];
		assert.deepEqual([own?.stage, own?.bid, own?.paid], ["INCLUDED", 9n, 7n]);
		assert.deepEqual([other?.stage, other?.bid, other?.paid], ["LOST", 5n, 7n]);
	});

	test("a bid in a block that leaves the chain is for the next one again", async () => {
		const { fixture, target } = await withTarget();
		const a = await fixture.accepted("A", target, 9n, RANGE);
		await fixture.block([target, backrun(fixture)]);
		assert.equal(fixture.status(a, 101), "INCLUDED");
		fixture.transactions.reorged(fixture.transactions.records.get(target.tx.hash) ?? assert.fail());
		await fixture.reorganise();
		assert.equal(fixture.status(a, 101), "TARGET_NOT_MINED");
		fixture.builders.take();
		await fixture.look(target);
		assert.deepEqual(fixture.builders.take(), ["send T A for 102 to a,b"]);
	});
});

for (const [pays, reason] of [
	[0n, "paysNothing"],
	["EXECUTION_REVERTED", "reverted"],
	["NONCE_TOO_LOW", "invalid"],
] as const) {
	test(`a bid that gives ${pays} at the new head gives way to the next one, and is reported as ${reason} with the block`, async () => {
		const { fixture, target, a } = await atNextHead(pays);
		await fixture.accepted("B", target, 5n, { first: 102 });
		fixture.builders.take();
		await fixture.look(target);
		assert.deepEqual(fixture.builders.take(), ["send T B for 102 to a,b"]);
		assert.deepEqual([fixture.status(a, 102), fixture.bids.size], ["ACCEPTED", 1]);
		await fixture.block([target]);
		assert.equal(fixture.status(a, 102), `NOT_PLACED ${reason}`);
	});
}

for (const pays of ["NODE_UNAVAILABLE", "throws", "blind"] as const) {
	test(`without a result from the node (${pays}) the bid is kept and retried, and others are sent meanwhile`, async () => {
		const { fixture, target, a } = await atNextHead(pays);
		await fixture.accepted("B", target, 5n, { first: 102, owner: "you" });
		await fixture.look(target);
		assert.deepEqual(fixture.builders.take(), ["send T B for 102 to a,b"]);
		fixture.simulations.pays.set("A", 10n ** 18n);
		await fixture.clock.advance(600);
		await fixture.turn();
		assert.equal(fixture.status(a, 102), "ACCEPTED");
		await fixture.clock.advance(1_000);
		await fixture.turn();
		assert.equal(fixture.simulations.take().at(-1), "A 102 101");
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
