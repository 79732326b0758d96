// Tests the admission of bids: the answer to each fault, in order, what a good one is simulated behind and for which
// block, and the limits. No answer may show what hides a target.

import assert from "node:assert/strict";
import { test } from "node:test";
import { keccak256 } from "../../../../shared/ethereum/signatures.ts";
import {
	privateTransaction,
	rawTransaction,
	signedTransaction,
	testAccount,
} from "../../../support/txFactory.ts";
import { AuctionFixture, type FixtureOptions } from "./auctionFixture.ts";

const TO = `0x${"70".repeat(20)}`;

/** The answer to a bid: `accepted`, or code, message and whether a simulation was spent. */
async function answer(fixture: AuctionFixture, ...bid: Parameters<AuctionFixture["bid"]>): Promise<unknown> {
	const outcome = await fixture.bid(...bid);
	return outcome.outcome === "accepted" ? "accepted" : [outcome.code, outcome.message, outcome.simulated];
}

test("the bundle's hash is the keccak256 of both hashes in a row", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const hash = await fixture.accepted("A", target, 5n, { by: 40, nonce: 2, to: TO });
	const backrun = signedTransaction({ by: testAccount(40), nonce: 2, to: TO }).hash;
	const bytes = Buffer.from(target.tx.hash.slice(2) + backrun.slice(2), "hex");
	assert.equal(hash, `0x${Buffer.from(keccak256(bytes)).toString("hex")}`);
	assert.deepEqual(fixture.outcomes, ["accepted"]);
});

test("a backrun is simulated right behind its target and the links before it, with the accounts as they are", async () => {
	const fixture = new AuctionFixture();
	const by = testAccount(7);
	fixture.target("first", { by, nonce: 0 });
	const target = fixture.target("T", { by, nonce: 1 });
	fixture.target("behind", { by, nonce: 2 });
	fixture.accounts.nonces.set(testAccount(40).address, 6n);
	await fixture.accepted("A", target, 5n, { by: 40, nonce: 6 });
	const [request] = fixture.simulations.requests;
	assert.deepEqual(
		request?.transactions.map(({ nonce }) => nonce),
		[0n, 1n, 6n],
	);
	const nonces = [by, testAccount(40)].map(({ address }) => request?.accounts.get(address)?.nonce);
	assert.deepEqual(nonces, [0n, 6n]);
	assert.equal(request?.client, "me");
	const { stateBlock, number, timestamp, feeRecipient } = request?.block ?? {};
	assert.deepEqual([stateBlock, number, timestamp, feeRecipient], [100, 101, 101 * 12, "0xfee101"]);
});

test("a bid ahead of time is simulated on today's state with its own block's number and time", async () => {
	const fixture = new AuctionFixture();
	await fixture.accepted("A", fixture.target("T"), 5n, { first: 110 });
	const { stateBlock, number, timestamp } = fixture.simulations.requests[0]?.block ?? {};
	assert.deepEqual([stateBlock, number, timestamp], [100, 110, 110 * 12]);
});

for (const [name, first, last, expected] of [
	["no block", undefined, undefined, [101, 101]],
	["the head's number", 100, undefined, [101, 101]],
	["the next block", 101, undefined, [101, 101]],
	["30 above the head", 130, undefined, [130, 130]],
	["a range that has begun", 99, 104, [101, 104]],
	["a range ahead", 104, 120, [104, 120]],
] as const) {
	test(`${name}: the bid is for ${expected.join(" to ")}`, async () => {
		const fixture = new AuctionFixture();
		const target = fixture.target("T");
		await fixture.accepted("A", target, 5n, { ...(first && { first }), ...(last && { last }) });
		const [bid] = fixture.bids.of(target.tx.hash);
		assert.deepEqual([bid?.firstBlock, bid?.lastBlock], expected);
	});
}

for (const [name, options, expected] of [
	["below the head", { first: 99 }, ["BLOCK_PAST", "bundle block 99 is in the past", false]],
	[
		"a range below the head",
		{ first: 90, last: 100 },
		["BLOCK_PAST", "bundle block 100 is in the past", false],
	],
	["31 above the head", { first: 131 }, ["BLOCK_TOO_FAR", "bundle block 131 is too far ahead", false]],
] as const) {
	test(`${name}: refused, nothing simulated`, async () => {
		const fixture = new AuctionFixture();
		assert.deepEqual(await answer(fixture, "A", fixture.target("T"), 5n, options), expected);
		assert.deepEqual([fixture.simulations.take(), fixture.bids.size], [[], 0]);
		assert.deepEqual(fixture.outcomes, [expected[0]]);
	});
}

for (const [pays, expected] of [
	[0n, ["PAYS_NOTHING", "backrun pays nothing to the fee recipient 0xfee101", true]],
	["EXECUTION_REVERTED", ["BACKRUN_REVERTED", "backrun reverted: no luck", true]],
	["OUT_OF_GAS", ["BACKRUN_REVERTED", "backrun reverted: it is OUT_OF_GAS", true]],
	["NONCE_GAP", ["BACKRUN_INVALID", "it is NONCE_GAP", true]],
	["NONCE_TOO_LOW", ["BACKRUN_INVALID", "it is NONCE_TOO_LOW", true]],
	["INSUFFICIENT_FUNDS", ["BACKRUN_INVALID", "it is INSUFFICIENT_FUNDS", true]],
	["targetFails", ["TARGET_NOT_FOUND", "target transaction not found", true]],
] as const) {
	test(`simulated as ${pays}: ${expected[0]}, nothing is kept`, async () => {
		const fixture = new AuctionFixture();
		const target = fixture.target("T");
		assert.deepEqual(await answer(fixture, "A", target, pays, { uuid: "u" }), expected);
		assert.deepEqual([fixture.bids.size, fixture.builders.take(), fixture.told], [0, [], []]);
		assert.equal(fixture.records.get(target.tx.hash)?.record.backruns, 0);
	});
}

for (const pays of ["NODE_UNAVAILABLE", "throws", "blind"] as const) {
	test(`the node gives no verdict (${pays}): thrown as such, nothing is kept`, async () => {
		const fixture = new AuctionFixture();
		await assert.rejects(
			fixture.bid("A", fixture.target("T"), pays),
			(thrown: { code?: number; data?: unknown }) => {
				assert.deepEqual([thrown.code, thrown.data], [-32603, { reason: "node unavailable" }]);
				return true;
			},
		);
		assert.deepEqual([fixture.bids.size, fixture.outcomes], [0, ["failed"]]);
	});
}

test("accounts that can't be had are no verdict either", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	fixture.accounts.down = true;
	await assert.rejects(fixture.bid("A", target, 5n), { data: { reason: "node unavailable" } });
});

test("a contract's address can't bid", async () => {
	const fixture = new AuctionFixture();
	fixture.accounts.contracts.add(testAccount(40).address);
	const outcome = await fixture.bid("A", fixture.target("T"), 5n, { by: 40 });
	assert.match(outcome.outcome === "refused" ? outcome.message : "", /sender not an eoa/);
	assert.deepEqual(fixture.simulations.take(), []);
});

for (const [name, options, message] of [
	["the node can't run sequences", { enabled: false }, "bidding is not available with this node"],
	[
		"no builder refunds",
		{ refunding: [] },
		"bidding is not available with these builders: none pays refunds",
	],
] as const satisfies readonly (readonly [string, FixtureOptions, string])[]) {
	test(`${name}: there is no bidding, whatever the target`, async () => {
		const fixture = new AuctionFixture(options);
		const known = await answer(fixture, "A", fixture.target("T"), 5n);
		assert.deepEqual(known, ["NO_BIDDING", message, false]);
		assert.deepEqual(await answer(fixture, "B", privateTransaction({ nonce: 50 }), 5n), known);
	});
}

test("builders named that all pay no refund: refused; one that does is enough", async () => {
	const fixture = new AuctionFixture({ refunding: ["b"] });
	const target = fixture.target("T");
	const [code] = (await answer(fixture, "A", target, 5n, { builders: ["a"] })) as string[];
	assert.equal(code, "NO_BIDDING");
	assert.equal(await answer(fixture, "B", target, 5n, { builders: ["a", "b"] }), "accepted");
	assert.deepEqual(fixture.builders.take(), ["send T B for 101 to b"]);
});

test("bytes that are no transaction, or not one for this chain, are refused in the words of a submission", async () => {
	const fixture = new AuctionFixture({ maxTxGas: 50_000n });
	const target = fixture.target("T");
	const envelope = {
		owner: "me",
		network: "me",
		blocks: { first: null, last: null },
		uuid: null,
		builders: null,
	};
	for (const [backrun, words] of [
		[Buffer.from("02", "hex"), /^rlp: |transaction/],
		[rawTransaction({ chainId: 1n }), /^invalid chain id for signer: have 1 want 31337/],
		[rawTransaction({ gasLimit: 20_000 }), /^intrinsic gas too low/],
		[rawTransaction({ gasLimit: 60_000 }), /^transaction gas limit too high/],
	] as const) {
		const outcome = await fixture.send({ ...envelope, target: target.tx.hash, backrun });
		assert.ok(outcome.outcome === "refused" && outcome.code === "BAD_TRANSACTION");
		assert.match(outcome.message, words);
	}
	assert.deepEqual(fixture.simulations.take(), []);
});

test("targets that can't be bid on are all alike, and cost no simulation", async () => {
	const fixture = new AuctionFixture();
	const chain = testAccount(7);
	const hidden = fixture.target("H", { by: chain, nonce: 0, path: "fullprivacy", shared: false });
	const behind = fixture.target("B", { by: chain, nonce: 1 });
	const quiet = testAccount(8);
	fixture.target("Q", { by: quiet, nonce: 0, shared: false });
	const behindQuiet = fixture.target("R", { by: quiet, nonce: 1 });
	const unshared = fixture.target("S", { shared: false });
	const unchecked = fixture.target("N", { path: "nochecks", shared: false });
	const gap = fixture.target("G", { nonce: 5, path: "maxbackruns", out: false });
	const writing = fixture.target("W");
	fixture.entry(writing).durable = false;
	const gone = fixture.target("X");
	fixture.pool.remove(fixture.entry(gone));
	const never = privateTransaction({ nonce: 60 });
	const answers: unknown[] = [];
	for (const target of [hidden, behind, behindQuiet, unshared, unchecked, gap, writing, gone, never]) {
		answers.push(await fixture.bid("A", target, 5n, { by: 40 }));
	}
	const [first] = answers;
	assert.deepEqual(first, {
		...{ outcome: "refused", code: "TARGET_NOT_FOUND" },
		...{ message: "target transaction not found", simulated: false },
	});
	for (const other of answers) assert.deepEqual(other, first);
	assert.deepEqual(fixture.simulations.take(), []);
	// The same for every fault that comes behind the target: a hidden one answers before them.
	const bad = { owner: "me", network: "me", blocks: { first: null, last: null }, uuid: null, builders: null };
	const backrun = rawTransaction({ chainId: 1n });
	for (const target of [hidden, behind, never]) {
		const outcome = await fixture.send({ ...bad, target: target.tx.hash, backrun });
		assert.deepEqual(outcome, first);
	}
});

test("a transaction can't be its own backrun", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const envelope = {
		owner: "me",
		network: "me",
		blocks: { first: null, last: null },
		uuid: null,
		builders: null,
	};
	const outcome = await fixture.send({ ...envelope, target: target.tx.hash, backrun: target.tx.raw });
	assert.ok(outcome.outcome === "refused" && outcome.code === "TARGET_NOT_FOUND");
});

test("what may be shared is told by hash, signature included only for our own use; all else is null", () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const hidden = fixture.target("H", { path: "fullprivacy", shared: false });
	const unshared = fixture.target("S", { shared: false });
	assert.equal(fixture.simulation.shared(target.tx.hash), target.tx);
	for (const { tx } of [hidden, unshared, privateTransaction({ nonce: 60 })]) {
		assert.equal(fixture.simulation.shared(tx.hash), null);
	}
});

test("before the first head nothing can be bid on", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	fixture.tip.set(fixture.head, null);
	await assert.rejects(fixture.bid("A", target, 5n), { data: { reason: "node unavailable" } });
});
