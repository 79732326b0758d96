// Tests the admission of bids: refusals, limits, and what happens to a bid while it is simulated. No answer may show what hides
// a target.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { BidRequest, BundleOutcome } from "../../../../relay/domain/bundle.ts";
import { privateTransaction } from "../../../support/txFactory.ts";
import { type FixtureOptions, withTarget } from "./auctionFixture.ts";

const UNAVAILABLE = { code: -32603, data: { reason: "node unavailable" } };

/** `CODE message` where it was refused, and whether a simulation was spent; else `accepted`. */
function told(outcome: BundleOutcome): readonly [string, boolean] {
	if (outcome.outcome === "accepted") return ["accepted", true];
	return [`${outcome.code} ${outcome.message}`, outcome.simulated];
}

/** A bid as it is sent, of these bytes. */
function raw(target: string, backrun: Buffer): BidRequest {
	const rest = { owner: "me", network: "me", uuid: null, builders: null };
	return { ...rest, blocks: { first: null, last: null }, target, backrun };
}

test("a bid ahead of time is simulated on today's state with its own block's number and time", async () => {
	const { fixture, target } = withTarget();
	await fixture.accepted("A", target, 5n, { first: 110 });
	const { stateBlock, number, timestamp } = fixture.simulations.requests[0]?.block ?? {};
	assert.deepEqual([stateBlock, number, timestamp], [100, 110, 110 * 12]);
});

const NOT_FOUND = "TARGET_NOT_FOUND target transaction not found";

test("a node that gives no verdict: thrown as such, nothing is kept", async () => {
	for (const pays of ["NODE_UNAVAILABLE", "throws", "blind"] as const) {
		const { fixture, target } = withTarget();
		await assert.rejects(fixture.bid("A", target, pays), UNAVAILABLE);
		assert.deepEqual([fixture.bids.size, fixture.outcomes], [0, ["failed"]]);
	}
});

test("what its simulation finds is what a bid is refused for, and a refused one replaces nothing", async () => {
	for (const [pays, answer] of [
		["OUT_OF_GAS", "BACKRUN_REVERTED backrun reverted: it is OUT_OF_GAS"],
		["NONCE_GAP", "BACKRUN_INVALID it is NONCE_GAP"],
		["targetFails", NOT_FOUND],
		[0n, "PAYS_NOTHING backrun pays nothing to the fee recipient 0xfee101"],
	] as const) {
		const { fixture, target } = withTarget();
		const held = await fixture.accepted("A", target, 5n, { uuid: "u" });
		assert.deepEqual(told(await fixture.bid("B", target, pays, { uuid: "u" })), [answer, true]);
		assert.deepEqual([fixture.status(held, 101), fixture.bids.size], ["BEST", 1]);
	}
});

for (const [name, options, message] of [
	["the node can't run sequences", { enabled: false }, "this node"],
	["no builder refunds", { refunding: [] }, "these builders: none pays refunds"],
] as const satisfies readonly (readonly [string, FixtureOptions, string])[]) {
	test(`${name}: there is no bidding, whatever the target`, async () => {
		const { fixture, target } = withTarget(options);
		for (const one of [target, privateTransaction({ nonce: 50 })]) {
			const answer = told(await fixture.bid("A", one, 5n));
			assert.deepEqual(answer, [`NO_BIDDING bidding is not available with ${message}`, false]);
		}
	});
}

test("a transaction can't be its own backrun", async () => {
	const { fixture, target } = withTarget();
	assert.deepEqual(told(await fixture.send(raw(target.tx.hash, target.tx.raw))), [NOT_FOUND, false]);
});

describe("how many there may be", () => {
	test("a full target: a dearer bid puts out the cheapest one, which is told; an equal or cheaper one is refused", async () => {
		const { fixture, target } = withTarget({ bids: { maxPerTarget: 2 } });
		const a = await fixture.accepted("A", target, 5n, { uuid: "a" });
		const b = await fixture.accepted("B", target, 7n);
		for (const value of [5n, 4n]) {
			const [answer] = told(await fixture.bid(`C${value}`, target, value));
			assert.equal(answer, "LIMIT limit exceeded: too many better bids on this transaction");
		}
		const e = await fixture.accepted("E", target, 6n);
		assert.deepEqual(fixture.statuses(101, a, b, e), ["DROPPED outbid", "BEST", "OUTBID"]);
		assert.equal(fixture.bids.size, 2);
	});

	for (const [name, bids, message] of [
		["of one client", { maxPerClient: 2 }, /^LIMIT limit exceeded: 2 bids of one client$/],
		[
			"of one client on one target",
			{ maxOwnPerTarget: 2 },
			/^LIMIT limit exceeded: 2 bids .* on one transaction$/,
		],
	] as const) {
		test(`${name}: refused before anything is simulated; its own may be replaced, and others' are taken`, async () => {
			const { fixture, target } = withTarget({ bids });
			for (const label of ["A", "B"]) await fixture.accepted(label, target, 5n, { uuid: label });
			const [answer, simulated] = told(await fixture.bid("C", target, 9n));
			assert.match(answer, message);
			assert.equal(simulated, false);
			const d = await fixture.accepted("D", target, 9n, { uuid: "A" });
			await fixture.accepted("E", target, 5n, { owner: "you" });
			assert.deepEqual([fixture.status(d, 101), fixture.bids.size], ["BEST", 3]);
		});
	}
});

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
});
