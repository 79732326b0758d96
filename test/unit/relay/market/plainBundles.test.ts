// Plain bundles: which are refused, for which blocks and to whom they go out, how they end, and how much room a client
// has. Those that are simulated again are in `plainBundlesTried.test.ts`.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { bundleHash } from "../../../../relay/domain/bundle.ts";
import { rawTransaction, testAccount } from "../../../support/txFactory.ts";
import { PlainFixture as Fixture, type PlainOptions } from "./plainFixture.ts";

const RANGE = { first: 101, last: 105, uuid: "u" };
const TOLD = "send t1 for 101 to a,b";

describe("a bundle that is taken", () => {
	test("goes out for the next block at once, to all builders, under the hash of its transactions", async () => {
		const fixture = new Fixture();
		const hash = await fixture.taken([1, 2]);
		assert.equal(hash, bundleHash([1, 2].map((label) => fixture.mined(label).tx.hash)));
		assert.deepEqual(fixture.lines(), ["send t1 t2 for 101 to a,b"]);
		assert.deepEqual(fixture.told, ["? 101 ACCEPTED", "? 101 SENT"]);
		assert.deepEqual([fixture.status(hash, 101), fixture.detail(hash, 101)?.bid], ["SENT", null]);
		assert.deepEqual(fixture.outcomes, ["accepted"]);
	});

	test("takes along what may revert and its refund; without a recipient the entry's sender gets it", async () => {
		const fixture = new Fixture({ refunding: ["b"] });
		const recipient = `0x${"55".repeat(20)}`;
		const refunds = [
			{ bodyIdx: 1, percent: 40, recipient: null },
			{ bodyIdx: 0, percent: 7, recipient },
		];
		for (const refund of refunds) await fixture.taken([1, 2], { mayRevert: [1], refund });
		const { sent } = fixture.builders;
		assert.deepEqual(
			sent[0]?.transactions.map(({ mayRevert, mayDrop }) => [mayRevert, mayDrop]),
			[
				[true, false],
				[false, false],
			],
		);
		assert.deepEqual(
			sent.map(({ refund }) => refund),
			[
				{ percent: 40, recipient: fixture.signerOf(2).address, bodyIdx: 1, of: null },
				{ percent: 7, recipient, bodyIdx: 0, of: null },
			],
		);
		assert.deepEqual(fixture.lines(), Array(2).fill("send t1 t2 for 101 to b"));
	});

	test("is sent for every block of its range, told for each, and takes no room behind it", async () => {
		const fixture = new Fixture();
		const hash = await fixture.taken([1], { first: 102, last: 103, uuid: "u" });
		assert.deepEqual([fixture.lines(), fixture.status(hash, 102)], [[], "ACCEPTED"]);
		for (let i = 0; i < 4; i += 1) await fixture.block();
		assert.deepEqual(fixture.lines(), ["send t1 for 102 to a,b", "send t1 for 103 to a,b"]);
		assert.deepEqual(
			[102, 103, 104].map((block) => fixture.status(hash, block)),
			["NOT_INCLUDED notChosen", "NOT_INCLUDED notChosen", undefined],
		);
		// Its last block has come: there is nothing to cancel.
		fixture.table.cancel("me", "u");
		assert.deepEqual(fixture.lines(), []);
	});
});

const BY_9 = { by: testAccount(309) };
/** The entry that is wrong stands second; the sender of BY_9 has used four nonces. */
const REFUSED: readonly (readonly [name: string, entry: object | number, options: PlainOptions, RegExp])[] = [
	["a block that is over", 2, { first: 99 }, /^BLOCK_PAST bundle block 99 is in the past/],
	["a range that is over", 2, { first: 90, last: 100 }, /^BLOCK_PAST/],
	["a block too far ahead", 2, { first: 131 }, /^BLOCK_TOO_FAR bundle block 131/],
	["another chain's", { ...BY_9, chainId: 1n }, {}, /^BAD_TRANSACTION invalid chain id.*\(body\[1\]\)/],
	[
		"too little gas",
		{ ...BY_9, gasLimit: 20_999 },
		{},
		/^BAD_TRANSACTION intrinsic gas too low.*\(body\[1\]\)/,
	],
	["a used nonce", { ...BY_9, nonce: 3 }, {}, /nonce too low: next nonce 4, tx nonce 3 \(body\[1\]\)/],
];
for (const [name, entry, options, expected] of REFUSED) {
	test(`${name}: refused, nothing is kept or sent`, async () => {
		const fixture = new Fixture();
		fixture.accounts.nonces.set(BY_9.by.address, 4n);
		assert.match(await fixture.refused([1, entry], options), expected);
		assert.deepEqual([fixture.lines(), fixture.told, fixture.simulations.plain], [[], [], []]);
	});
}

test("bytes that are no transaction are refused, and the entry is named", async () => {
	const body = [rawTransaction(BY_9), Buffer.from("02c0", "hex")].map((raw) => ({ raw, canRevert: false }));
	const outcome = await new Fixture().submit({
		...{ owner: "me", network: "me", uuid: null, builders: null, refund: null },
		...{ blocks: { first: null, last: null }, body },
	});
	assert.ok(outcome.outcome === "refused" && outcome.code === "BAD_TRANSACTION");
	assert.match(outcome.message, /\(body\[1\]\)$/);
});

test("a nonce ahead is refused for one block, and waited for where the range has later ones", async () => {
	const fixture = new Fixture();
	const ahead = { ...BY_9, nonce: 9 };
	assert.match(await fixture.refused([ahead]), /nonce too high: next nonce 0, tx nonce 9/);
	await fixture.taken([ahead], { first: 101, last: 102 });
});

const REFUND = { percent: 50, recipient: null, bodyIdx: 0 };
for (const [name, refunding, builders, isTaken] of [
	["where no builder pays refunds", [], null, false],
	["of a builder that pays none", ["b"], ["a"], false],
	["of builders of which one pays", ["b"], ["a", "b"], true],
	["of all, of which one pays", ["b"], null, true],
] as const) {
	test(`a refund ${name}: ${isTaken ? "taken" : "refused"}; without one the bundle is taken`, async () => {
		const fixture = new Fixture({ refunding });
		const outcome = await fixture.plainBundle([1], { refund: REFUND, builders });
		assert.equal(outcome.outcome === "refused" ? outcome.code : "taken", isTaken ? "taken" : "NO_BIDDING");
		if (!isTaken) assert.deepEqual([fixture.lines(), fixture.told], [[], []]);
		await fixture.taken([1], { builders });
	});
}

interface End {
	readonly name: string;
	readonly options?: PlainOptions;
	readonly ends: (fixture: Fixture) => unknown;
	/** What the builders are told behind what they were sent; nothing unless said. */
	readonly lines?: readonly string[];
	readonly status: string;
	readonly block?: number;
}
/** A bundle of t1 and t2, for 101 to 105. */
const ENDS: readonly End[] = [
	{
		name: "a block holds it: it is included",
		ends: (fixture) => fixture.block([fixture.mined(1), fixture.mined(2)]),
		status: "INCLUDED",
	},
	{
		name: "one of its transactions is mined by itself: it can't be mined any more",
		ends: (fixture) => fixture.block([fixture.mined(2)]),
		status: "DROPPED transactionMined",
	},
	{
		name: "it is cancelled: the builders that have it are told",
		options: { builders: ["b"] },
		ends: (fixture) => fixture.table.cancel("me", "u"),
		lines: ["cancel it for 101 at b"],
		status: "CANCELLED",
	},
	{
		name: "it is cancelled before its first block: no builder is told of what it never had",
		options: { first: 104 },
		ends: (fixture) => fixture.table.cancel("me", "u"),
		...{ status: "CANCELLED", block: 104 },
	},
	{
		name: "a bundle for a later block takes its uuid: it is taken back now",
		ends: (fixture) => fixture.taken([3], { first: 130, uuid: "u" }),
		lines: ["cancel it for 101 at a,b"],
		status: "REPLACED",
	},
	{
		name: "a bid takes its uuid: it is taken back, and the bid is out",
		ends: (fixture) => fixture.accepted("A", fixture.target("T"), 5n, { uuid: "u" }),
		lines: ["send T A for 101 to a,b", "cancel it for 101 at a,b"],
		status: "REPLACED",
	},
];
for (const { name, options, ends, lines = [], status, block = 101 } of ENDS) {
	test(`${name}; it goes out no more`, async () => {
		const fixture = new Fixture();
		const hash = await fixture.taken([1, 2], { ...RANGE, ...options });
		fixture.lines();
		await ends(fixture);
		await fixture.turn();
		assert.deepEqual([fixture.lines(), fixture.status(hash, block)], [lines, status]);
		if (status === "INCLUDED") assert.equal(fixture.detail(hash, block)?.blockHash, fixture.head.hash);
		for (let i = 0; i < 5; i += 1) await fixture.block();
		assert.deepEqual(fixture.lines(), []);
	});
}

describe("a uuid", () => {
	test("goes to a new bundle under the same name; a builder that does not get that is told to forget the old one", async () => {
		const fixture = new Fixture();
		const old = await fixture.taken([1], RANGE);
		const same = await fixture.taken([2], RANGE);
		assert.deepEqual([fixture.lines(), fixture.names], [[TOLD, "send t2 for 101 to a,b"], 1]);
		const fewer = await fixture.taken([3], { ...RANGE, builders: ["a"] });
		assert.deepEqual(fixture.lines(), ["send t3 for 101 to a", "cancel it for 101 at b"]);
		assert.deepEqual(
			[old, same, fewer].map((hash) => fixture.status(hash, 101)),
			["REPLACED", "REPLACED", "SENT"],
		);
		await fixture.block();
		assert.deepEqual(fixture.lines(), ["send t3 for 102 to a"]);
	});

	test("goes from a bid to a bundle: the bid is over", async () => {
		const fixture = new Fixture();
		const bid = await fixture.accepted("A", fixture.target("T"), 5n, { uuid: "u" });
		fixture.lines();
		await fixture.taken([1], RANGE);
		await fixture.turn();
		assert.deepEqual(fixture.builders.take().sort(), ["cancel backrun T for 101 at a,b", TOLD]);
		assert.deepEqual([fixture.status(bid, 101), fixture.bids.size], ["REPLACED", 0]);
	});

	test("of the very same bundle again: the same hash, told to nobody, not sent again", async () => {
		const fixture = new Fixture();
		const hash = await fixture.taken([1], RANGE);
		fixture.told.length = 0;
		fixture.lines();
		assert.equal(await fixture.taken([1], RANGE), hash);
		assert.deepEqual([fixture.lines(), fixture.told, fixture.status(hash, 101)], [[], [], "SENT"]);
	});

	test("of the very same bundle for a later block: it is taken back for this one", async () => {
		const fixture = new Fixture();
		await fixture.taken([1], { first: 101, uuid: "u" });
		await fixture.taken([1], { first: 104, uuid: "u" });
		assert.deepEqual(fixture.lines(), [TOLD, "cancel it for 101 at a,b"]);
		for (let i = 0; i < 4; i += 1) await fixture.block();
		assert.deepEqual(fixture.lines(), ["send t1 for 104 to a,b"]);
	});
});

describe("without a uuid", () => {
	test("a range that moves on block by block: sent once for each under one name, told for each, never cancelled", async () => {
		const fixture = new Fixture();
		const hash = await fixture.taken([1], { first: 101, last: 103 });
		for (const first of [102, 103, 104]) {
			await fixture.block();
			assert.equal(await fixture.taken([1], { first, last: first + 2 }), hash);
		}
		for (let i = 0; i < 3; i += 1) await fixture.block();
		assert.deepEqual(
			fixture.lines(),
			[101, 102, 103, 104, 105, 106].map((block) => `send t1 for ${block} to a,b`),
		);
		assert.equal(fixture.names, 1);
		assert.deepEqual(
			[101, 104, 106].map((block) => fixture.status(hash, block)),
			Array(3).fill("NOT_INCLUDED notChosen"),
		);
	});

	const ONE = 1;
	const OWN = 2;
	for (const [name, first, last, bundles, more] of [
		["the same blocks", 102, 103, ONE, {}],
		["more blocks", 101, 105, ONE, {}],
		["fewer blocks", 103, 103, ONE, {}],
		["blocks that begin where the others end", 104, 105, ONE, {}],
		["blocks that end where the others begin", 101, 101, ONE, {}],
		["blocks behind one that is in neither", 105, 105, OWN, {}],
		["another owner", 102, 103, OWN, { owner: "you" }],
		["a uuid", 102, 103, OWN, { uuid: "u" }],
	] as const) {
		test(`again for ${name}: ${bundles === ONE ? "one bundle for all of them" : "a bundle of its own"}`, async () => {
			const fixture = new Fixture();
			await fixture.taken([1], { first: 102, last: 103 });
			await fixture.taken([1], { first, last, ...more });
			for (let i = 0; i < 6; i += 1) await fixture.block();
			const blocks = new Set([102, 103]);
			for (let block: number = first; block <= last; block += 1) blocks.add(block);
			const expected = [...blocks].sort().map((block) => `send t1 for ${block} to a,b`);
			const lines = fixture.lines();
			assert.deepEqual([...new Set(lines)], expected);
			if (bundles === ONE) assert.equal(lines.length, expected.length);
			assert.equal(fixture.names, bundles);
		});
	}

	test("again for fewer builders: the range is wider, and the other builder is told to forget it", async () => {
		const fixture = new Fixture();
		await fixture.taken([1], { first: 101 });
		await fixture.taken([1], { first: 102, builders: ["a"] });
		assert.deepEqual(fixture.lines(), [TOLD, "send t1 for 101 to a", "cancel it for 101 at b"]);
		await fixture.block();
		assert.deepEqual(fixture.lines(), ["send t1 for 102 to a"]);
	});

	test("what is in a block is over: the same transactions again are another bundle", async () => {
		const fixture = new Fixture();
		await fixture.taken([1], { first: 101, last: 105 });
		await fixture.block([fixture.mined(1)]);
		fixture.lines();
		await fixture.taken([1], { first: 102 });
		assert.deepEqual([fixture.lines(), fixture.names], [["send t1 for 102 to a,b"], 2]);
	});
});

test("a client has so many transactions in bundles at most, whatever keys it signs with", async () => {
	const bytes = { total: 10_000, perClient: 10_000 };
	const fixture = new Fixture({ plain: { transactions: { total: 7, perClient: 5 }, bytes } });
	const network = "me";
	await fixture.taken([1, 2], { uuid: "u" });
	await fixture.taken([3, 4], { owner: "me too", network });
	const own = await fixture.refused([5, 6], { owner: "me three", network });
	assert.equal(own, "LIMIT limit exceeded: too many bundles from this client");
	assert.equal(fixture.simulations.plain.length, 2, "it is refused before it costs the node anything");
	// In the place of one of its own there is room, and others have theirs until all of it is taken.
	await fixture.taken([5, 6, 7], { uuid: "u" });
	await fixture.taken([8], { owner: "you" });
	const all = await fixture.refused([1, 2], { owner: "you" });
	assert.equal(all, "LIMIT limit exceeded: too many bundles in all");
	await fixture.block();
	await fixture.taken([5, 6]);
});

test("a client has so many bytes in bundles at most", async () => {
	const { size } = new Fixture().mined(1).tx;
	const transactions = { total: 100, perClient: 100 };
	const bytes = { total: 10 * size, perClient: 2 * size + 20 };
	const fixture = new Fixture({ plain: { transactions, bytes } });
	await fixture.taken([1, 2]);
	assert.match(await fixture.refused([3]), /^LIMIT/);
	await fixture.taken([3], { owner: "you" });
	await fixture.block();
	await fixture.taken([1, 3]);
});
