// The admission of bids: the answer to each fault, what a good one is simulated behind and for which block, and how many
// there may be. No answer may show what hides a target.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { BidRequest, BundleOutcome } from "../../../../relay/domain/bundle.ts";
import { keccak256 } from "../../../../shared/ethereum/signatures.ts";
import {
	privateTransaction,
	rawTransaction,
	signedTransaction,
	testAccount,
} from "../../../support/txFactory.ts";
import { AuctionFixture, type BidOptions, type FixtureOptions, withTarget } from "./auctionFixture.ts";
import type { Pays } from "./auctionHands.ts";

const TO = `0x${"70".repeat(20)}`;
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

test("a backrun is simulated right behind its target and the links before it, with the accounts as they are", async () => {
	const fixture = new AuctionFixture();
	const by = testAccount(7);
	fixture.target("first", { by, nonce: 0 });
	const target = fixture.target("T", { by, nonce: 1 });
	fixture.target("behind", { by, nonce: 2 });
	fixture.accounts.nonces.set(testAccount(40).address, 6n);
	const hash = await fixture.accepted("A", target, 5n, { by: 40, nonce: 6, to: TO });
	const backrun = signedTransaction({ by: testAccount(40), nonce: 6, to: TO });
	// Both hashes in a row, hashed.
	const bytes = Buffer.from(target.tx.hash.slice(2) + backrun.hash.slice(2), "hex");
	assert.equal(hash, `0x${Buffer.from(keccak256(bytes)).toString("hex")}`);
	assert.deepEqual(fixture.outcomes, ["accepted"]);
	const [request] = fixture.simulations.requests;
	assert.deepEqual(
		request?.transactions.map(({ nonce }) => nonce),
		[0n, 1n, 6n],
	);
	const nonces = [by, testAccount(40)].map(({ address }) => request?.accounts.get(address)?.nonce);
	assert.deepEqual([nonces, request?.client], [[0n, 6n], "me"]);
	const { stateBlock, number, timestamp, feeRecipient } = request?.block ?? {};
	assert.deepEqual([stateBlock, number, timestamp, feeRecipient], [100, 101, 101 * 12, "0xfee101"]);
});

test("a bid ahead of time is simulated on today's state with its own block's number and time", async () => {
	const { fixture, target } = withTarget();
	await fixture.accepted("A", target, 5n, { first: 110 });
	const { stateBlock, number, timestamp } = fixture.simulations.requests[0]?.block ?? {};
	assert.deepEqual([stateBlock, number, timestamp], [100, 110, 110 * 12]);
});

const NOT_FOUND = "TARGET_NOT_FOUND target transaction not found";
/** What it pays, what is asked for, the answer, and whether a simulation was spent. */
const REFUSED: readonly (readonly [name: string, Pays, BidOptions, answer: string, simulated: boolean])[] = [
	["below the head", 5n, { first: 99 }, "BLOCK_PAST bundle block 99 is in the past", false],
	[
		"a range below the head",
		5n,
		{ first: 90, last: 100 },
		"BLOCK_PAST bundle block 100 is in the past",
		false,
	],
	["31 above the head", 5n, { first: 131 }, "BLOCK_TOO_FAR bundle block 131 is too far ahead", false],
	["nothing paid", 0n, {}, "PAYS_NOTHING backrun pays nothing to the fee recipient 0xfee101", true],
	["a revert", "EXECUTION_REVERTED", {}, "BACKRUN_REVERTED backrun reverted: no luck", true],
	["no gas", "OUT_OF_GAS", {}, "BACKRUN_REVERTED backrun reverted: it is OUT_OF_GAS", true],
	["a nonce ahead", "NONCE_GAP", {}, "BACKRUN_INVALID it is NONCE_GAP", true],
	["a used nonce", "NONCE_TOO_LOW", {}, "BACKRUN_INVALID it is NONCE_TOO_LOW", true],
	["no funds", "INSUFFICIENT_FUNDS", {}, "BACKRUN_INVALID it is INSUFFICIENT_FUNDS", true],
	["a target that fails", "targetFails", {}, NOT_FOUND, true],
];
for (const [name, pays, options, answer, simulated] of REFUSED) {
	test(`${name}: ${answer.split(" ")[0]}, nothing is kept`, async () => {
		const { fixture, target } = withTarget();
		const outcome = await fixture.bid("A", target, pays, { uuid: "u", ...options });
		assert.deepEqual(told(outcome), [answer, simulated]);
		assert.equal(fixture.simulations.take().length, simulated ? 1 : 0);
		assert.deepEqual([fixture.bids.size, fixture.builders.take(), fixture.told], [0, [], []]);
		assert.deepEqual(fixture.outcomes, [answer.split(" ")[0]]);
		assert.equal(fixture.records.get(target.tx.hash)?.record.backruns, 0);
	});
}

const NO_VERDICT: Readonly<Record<string, (fixture: AuctionFixture) => Pays>> = {
	"says that it is out": () => "NODE_UNAVAILABLE",
	"can't be reached": () => "throws",
	"does not show what was paid": () => "blind",
	"gives no accounts": ({ accounts }) => {
		accounts.down = true;
		return 5n;
	},
	"has not told of a head yet": ({ tip, head }) => {
		tip.set(head, null);
		return 5n;
	},
};
for (const [name, failing] of Object.entries(NO_VERDICT)) {
	test(`a node that ${name}: thrown as such, nothing is kept`, async () => {
		const { fixture, target } = withTarget();
		const pays = failing(fixture);
		await assert.rejects(fixture.bid("A", target, pays), UNAVAILABLE);
		assert.deepEqual([fixture.bids.size, fixture.outcomes], [0, ["failed"]]);
	});
}

test("a contract's address can't bid", async () => {
	const { fixture, target } = withTarget();
	fixture.accounts.contracts.add(testAccount(40).address);
	assert.match(told(await fixture.bid("A", target, 5n, { by: 40 }))[0], /sender not an eoa/);
	assert.deepEqual(fixture.simulations.take(), []);
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

test("builders named that all pay no refund: refused; one that does is enough", async () => {
	const { fixture, target } = withTarget({ refunding: ["b"] });
	assert.match(told(await fixture.bid("A", target, 5n, { builders: ["a"] }))[0], /^NO_BIDDING/);
	await fixture.accepted("B", target, 5n, { builders: ["a", "b"] });
	assert.deepEqual(fixture.builders.take(), ["send T B for 101 to b"]);
});

test("bytes that are no transaction, or not one for this chain, are refused in the words of a submission", async () => {
	const { fixture, target } = withTarget({ maxTxGas: 50_000n });
	for (const [backrun, words] of [
		[Buffer.from("02", "hex"), /^BAD_TRANSACTION (rlp: |.*transaction)/],
		[rawTransaction({ chainId: 1n }), /^BAD_TRANSACTION invalid chain id for signer: have 1 want 31337/],
		[rawTransaction({ gasLimit: 20_000 }), /^BAD_TRANSACTION intrinsic gas too low/],
		[rawTransaction({ gasLimit: 60_000 }), /^BAD_TRANSACTION transaction gas limit too high/],
		[target.tx.raw, /^TARGET_NOT_FOUND/],
	] as const) {
		assert.match(told(await fixture.send(raw(target.tx.hash, backrun)))[0], words);
	}
	assert.deepEqual(fixture.simulations.take(), []);
});

test("targets that can't be bid on are all alike, cost no simulation, and are no answer to eth_callMany", async () => {
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
	for (const target of [hidden, behind, behindQuiet, unshared, unchecked, gap, writing, gone, never]) {
		assert.deepEqual(told(await fixture.bid("A", target, 5n, { by: 40 })), [NOT_FOUND, false]);
		// A hidden target answers before every fault that comes behind it.
		const bad = raw(target.tx.hash, rawTransaction({ chainId: 1n }));
		assert.deepEqual(told(await fixture.send(bad)), [NOT_FOUND, false]);
	}
	assert.deepEqual(fixture.simulations.take(), []);
	for (const { tx } of [hidden, unshared, unchecked, writing, gone, never])
		assert.equal(fixture.simulation.shared(tx.hash), null);
	assert.equal(fixture.simulation.shared(behind.tx.hash), behind.tx);
});

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

	test("of a full target those for later blocks give way to one for the next, however dear they are", async () => {
		const { fixture, target } = withTarget({ bids: { maxPerTarget: 2 } });
		const far = await fixture.accepted("A", target, 90n, { first: 110, uuid: "a" });
		await fixture.accepted("B", target, 5n);
		const c = await fixture.accepted("C", target, 1n);
		assert.deepEqual([fixture.status(far, 110), fixture.status(c, 101)], ["DROPPED outbid", "OUTBID"]);
		await fixture.accepted("D", target, 3n, { first: 110 });
		assert.deepEqual([fixture.status(c, 101), fixture.bids.size], ["DROPPED outbid", 2]);
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

	test("bids that are simulated at the same time do not pass a client's limit together", async () => {
		const { fixture, target } = withTarget({ bids: { maxPerClient: 2 } });
		const labels = ["A", "B", "C", "D"];
		for (const label of labels) fixture.simulations.holding.add(label);
		const bids = labels.map((label) => fixture.bid(label, target, 5n));
		await fixture.turn();
		for (const label of labels) fixture.simulations.finish(label);
		const outcomes = await Promise.all(bids);
		assert.equal(outcomes.filter(({ outcome }) => outcome === "accepted").length, 2);
		assert.equal(fixture.bids.size, 2);
	});
});
