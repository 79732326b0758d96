// Tests the admission of bids: refusals, limits, and what happens to a bid while it is simulated.
// No answer may show what hides a target.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { BidRequest, BundleOutcome } from "../../../../relay/domain/bundle.ts";
import { privateTransaction } from "../../../support/txFactory.ts";
import { type FixtureOptions, withTarget } from "./auctionFixture.ts";

const UNAVAILABLE = { code: -32603, data: { reason: "node unavailable" } };

/** `CODE message` where it was refused, and whether a simulation was spent; else `accepted`. */
function resultOf(outcome: BundleOutcome): readonly [string, boolean] {
	if (outcome.outcome === "accepted") return ["accepted", true];
	return [`${outcome.code} ${outcome.message}`, outcome.simulated];
}

/** A bid as it is sent, of these bytes. */
function raw(target: string, backrun: Buffer): BidRequest {
	const rest = { owner: "me", network: "me", uuid: null, times: null, builders: null };
	return { ...rest, blocks: { first: null, last: null }, target, backrun };
}

test("a bid ahead of time is simulated on today's state with its own block's number and time", async () => {
	const { fixture, target } = await withTarget();
	await fixture.accepted("A", target, 5n, { first: 110 });
	const { stateBlock, number, timestamp } = fixture.simulations.requests[0]?.block ?? {};
	assert.deepEqual([stateBlock, number, timestamp], [100, 110, 110 * 12]);
});

const NOT_FOUND = "TARGET_NOT_FOUND target transaction not found";

test("if the node gives no result, the bid fails and nothing is kept", async () => {
	for (const pays of ["NODE_UNAVAILABLE", "throws", "blind"] as const) {
		const { fixture, target } = await withTarget();
		await assert.rejects(fixture.bid("A", target, pays), UNAVAILABLE);
		assert.deepEqual([fixture.bids.size, fixture.outcomes], [0, ["failed"]]);
	}
});

test("what may be otherwise in a moment is asked again before the bid is refused", async () => {
	for (const [pays, answer] of [
		["refused", "NO_BIDDING bidding is not available with this target: refused"],
		["targetGap", NOT_FOUND],
	] as const) {
		for (const passes of [true, false]) {
			const { fixture, target } = await withTarget();
			fixture.accounts.onFresh = () => {
				if (passes) fixture.accounts.nonces.set(target.tx.from, 1n);
				return 100;
			};
			const bid = fixture.bid("A", target, pays);
			await fixture.turn();
			if (passes) fixture.simulations.pays.set("A", 5n);
			await fixture.clock.advance(1_000);
			assert.deepEqual(resultOf(await bid), [passes ? "accepted" : answer, true]);
		}
	}
});

test("a failing simulation decides the refusal, and a refused bid replaces nothing", async () => {
	for (const [pays, answer] of [
		["OUT_OF_GAS", "BACKRUN_REVERTED backrun reverted: it is OUT_OF_GAS"],
		["NONCE_GAP", "BACKRUN_INVALID it is NONCE_GAP"],
		["targetFails", NOT_FOUND],
		[0n, "PAYS_NOTHING backrun pays nothing to the fee recipient 0xfee101"],
	] as const) {
		const { fixture, target } = await withTarget();
		const held = await fixture.accepted("A", target, 5n, { uuid: "u" });
		assert.deepEqual(resultOf(await fixture.bid("B", target, pays, { uuid: "u" })), [answer, true]);
		assert.deepEqual([fixture.status(held, 101), fixture.bids.size], ["ACCEPTED", 1]);
	}
});

for (const [name, options, message] of [
	["the node can't run sequences", { enabled: false }, "this node"],
	["no builder refunds", { refunding: [] }, "these builders: none pays refunds"],
] as const satisfies readonly (readonly [string, FixtureOptions, string])[]) {
	test(`${name}: bidding is refused for every target`, async () => {
		const { fixture, target } = await withTarget(options);
		for (const one of [target, privateTransaction({ nonce: 50 })]) {
			const answer = resultOf(await fixture.bid("A", one, 5n));
			assert.deepEqual(answer, [`NO_BIDDING bidding is not available with ${message}`, false]);
		}
	});
}

test("a transaction can't be its own backrun", async () => {
	const { fixture, target } = await withTarget();
	assert.deepEqual(resultOf(await fixture.send(raw(target.tx.hash, target.tx.raw))), [NOT_FOUND, false]);
});

describe("how many there may be", () => {
	test("on a full target the lowest bid is evicted, also if it came last; nothing is reported before the block", async () => {
		const { fixture, target } = await withTarget({ bids: { maxPerTarget: 2 } });
		const a = await fixture.accepted("A", target, 5n, { uuid: "a" });
		const b = await fixture.accepted("B", target, 7n);
		const c = await fixture.accepted("C", target, 4n);
		const d = await fixture.accepted("D", target, 6n);
		assert.deepEqual([fixture.statuses(101, a, b, c, d), fixture.bids.size], [Array(4).fill("ACCEPTED"), 2]);
		const live = fixture.bids.of(target.tx.hash).map(({ value }) => value);
		assert.deepEqual(live.sort(), [6n, 7n]);
	});

	test("on a full target the client with the most bids gives way, whatever they are worth", async () => {
		const { fixture, target } = await withTarget({ bids: { maxPerTarget: 4 } });
		await fixture.accepted("A", target, 9n, { owner: "you" });
		await fixture.accepted("B", target, 8n, { owner: "you" });
		await fixture.accepted("C", target, 7n, { owner: "her", first: 103, last: 110 });
		await fixture.accepted("D", target, 6n, { owner: "him" });
		await fixture.accepted("E", target, 1n);
		const live = fixture.bids.of(target.tx.hash).map(({ value, owner }) => `${owner} ${value}`);
		assert.deepEqual(live.sort(), ["her 7", "him 6", "me 1", "you 9"]);
	});

	test("the bids that others make with a sender's backruns take nothing of its own share", async () => {
		const { fixture, target } = await withTarget({ bids: { maxPerSender: 1 } });
		const other = await fixture.target("U");
		await fixture.accepted("A", target, 5n, { by: 1, owner: "you" });
		await fixture.accepted("A", target, 5n, { by: 1 });
		const [answer] = resultOf(await fixture.bid("A", other, 5n, { by: 1 }));
		assert.equal(answer, "LIMIT limit exceeded: 1 bids of one sender");
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
			const { fixture, target } = await withTarget({ bids });
			for (const label of ["A", "B"]) await fixture.accepted(label, target, 5n, { uuid: label });
			const [answer, simulated] = resultOf(await fixture.bid("C", target, 9n));
			assert.match(answer, message);
			assert.equal(simulated, false);
			const d = await fixture.accepted("D", target, 9n, { uuid: "A" });
			await fixture.accepted("E", target, 5n, { owner: "you" });
			assert.deepEqual([fixture.status(d, 101), fixture.bids.size], ["ACCEPTED", 3]);
		});
	}
});

/** A target whose bids' simulations wait. */
async function held(...labels: string[]) {
	const { fixture, target } = await withTarget();
	for (const label of labels) fixture.simulations.holding.add(label);
	return { fixture, target };
}

describe("while a bid is simulated", () => {
	test("the head moves: it is simulated again, for the new next block", async () => {
		const { fixture, target } = await held("A");
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
		assert.deepEqual([fixture.status(hash, 101), fixture.status(hash, 102)], [undefined, "ACCEPTED"]);
	});

	test("a cancel ends it, but no bid with its uuid that is sent later", async () => {
		const { fixture, target } = await held("A", "B");
		const before = fixture.accepted("A", target, 9n, { uuid: "u" });
		await fixture.turn();
		fixture.table.cancel("me", "u");
		const after = fixture.accepted("B", target, 5n, { uuid: "u" });
		await fixture.turn();
		fixture.simulations.finish("A");
		assert.equal(fixture.status(await before, 101), "CANCELLED");
		assert.deepEqual([fixture.builders.take(), fixture.bids.size], [[], 0]);
		fixture.simulations.finish("B");
		assert.equal(fixture.status(await after, 101), "ACCEPTED");
		assert.deepEqual(fixture.builders.take(), ["send T B for 101 to a,b"]);
	});

	test("a later bid with its uuid is faster: the later one stays, the earlier one is replaced", async () => {
		const { fixture, target } = await held("A", "B");
		const first = fixture.accepted("A", target, 9n, { uuid: "u" });
		const second = fixture.accepted("B", target, 5n, { uuid: "u" });
		await fixture.turn();
		fixture.simulations.finish("B");
		const b = await second;
		fixture.simulations.finish("A");
		assert.deepEqual(fixture.statuses(101, await first, b), ["REPLACED", "ACCEPTED"]);
		assert.deepEqual([fixture.builders.take(), fixture.bids.size], [["send T B for 101 to a,b"], 1]);
	});

	for (const between of ["nothing", "a cancel"] as const) {
		test(`an identical bid with its uuid, with ${between} between, is faster: it is sent once`, async () => {
			const { fixture, target } = await held("A");
			const first = fixture.accepted("A", target, 9n, { uuid: "u" });
			await fixture.turn();
			if (between === "a cancel") fixture.table.cancel("me", "u");
			const second = fixture.accepted("A", target, 9n, { uuid: "u" });
			await fixture.turn();
			fixture.simulations.finishLast("A");
			const hash = await second;
			fixture.simulations.finish("A");
			assert.equal(await first, hash);
			assert.deepEqual([fixture.status(hash, 101), fixture.bids.size], ["ACCEPTED", 1]);
			assert.deepEqual(fixture.builders.take(), ["send T A for 101 to a,b"]);
		});
	}
});
