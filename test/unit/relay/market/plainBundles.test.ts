// Tests plain bundles: what is refused, for which blocks and to whom they are sent, and how they end: mined,
// cancelled, replaced under their uuid, out of range, or by reorganisations.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { BundleOutcome, PlainBundleRequest } from "../../../../relay/domain/bundle.ts";
import { keccak256 } from "../../../../shared/ethereum/signatures.ts";
import {
	rawTransaction,
	signedTransaction,
	type TxOptions,
	testAccount,
} from "../../../support/txFactory.ts";
import { AuctionFixture } from "./auctionFixture.ts";

type Options = Partial<Omit<PlainBundleRequest, "blocks" | "body">> & { first?: number; last?: number };

const TX = (index: number, options: TxOptions = {}) => ({
	by: testAccount(300 + index),
	nonce: 0,
	...options,
});

/** Sends the transactions with these labels (the numbers of their signers) as one bundle. */
function submit(
	fixture: AuctionFixture,
	body: readonly (number | TxOptions)[],
	options: Options = {},
): Promise<BundleOutcome> {
	const { first, last, ...rest } = options;
	const txs = body.map((one) => (typeof one === "number" ? TX(one) : one));
	txs.forEach((tx, i) => {
		const one = body[i];
		fixture.label(signedTransaction(tx).hash, typeof one === "number" ? `t${one}` : "?");
	});
	return fixture.submit({
		...{ owner: "me", network: "me", uuid: null, builders: null, refund: null, ...rest },
		blocks: {
			first: first === undefined ? null : BigInt(first),
			last: last === undefined ? null : BigInt(last),
		},
		body: txs.map((tx) => ({ raw: rawTransaction(tx), canRevert: false })),
	});
}

async function accepted(...args: Parameters<typeof submit>): Promise<string> {
	const outcome = await submit(...args);
	if (outcome.outcome !== "accepted") throw new Error(outcome.message);
	args[0].label(outcome.hash, args[1].map((one) => `t${one}`).join("+"));
	return outcome.hash;
}

const MINED = (...labels: number[]) => labels.map((label) => ({ tx: signedTransaction(TX(label)) }));

test("a bundle goes out for the next block at once, to all builders, under the hash of its transactions", async () => {
	const fixture = new AuctionFixture();
	const hash = await accepted(fixture, [1, 2]);
	const bytes = Buffer.from(
		MINED(1, 2)
			.map(({ tx }) => tx.hash.slice(2))
			.join(""),
		"hex",
	);
	assert.equal(hash, `0x${Buffer.from(keccak256(bytes)).toString("hex")}`);
	assert.deepEqual(fixture.builders.take(), ["send t1 t2 for 101 to a,b"]);
	assert.deepEqual(fixture.told, ["? 101 ACCEPTED", "? 101 SENT"]);
	assert.deepEqual([fixture.status(hash, 101), fixture.detail(hash, 101)?.bid], ["SENT", null]);
	assert.deepEqual(fixture.outcomes, ["accepted"]);
});

test("what may revert, its refund and its builders go with it; without a recipient the entry's sender gets it", async () => {
	const fixture = new AuctionFixture({ refunding: ["b"] });
	const body = [1, 2].map((label, i) => ({ raw: rawTransaction(TX(label)), canRevert: i === 0 }));
	const rest = { owner: "me", network: "me", uuid: null, blocks: { first: null, last: null }, body };
	await fixture.submit({
		...rest,
		builders: ["b"],
		refund: { bodyIdx: 1, percent: 40, recipient: null },
	});
	const recipient = `0x${"55".repeat(20)}`;
	await fixture.submit({ ...rest, builders: null, refund: { bodyIdx: 0, percent: 7, recipient } });
	const [one, two] = fixture.builders.sent;
	assert.deepEqual(
		one?.transactions.map(({ mayRevert, mayDrop }) => [mayRevert, mayDrop]),
		[
			[true, false],
			[false, false],
		],
	);
	assert.deepEqual(one?.refund, { percent: 40, recipient: testAccount(302).address, bodyIdx: 1, of: null });
	assert.deepEqual(two?.refund, { percent: 7, recipient, bodyIdx: 0, of: null });
	assert.deepEqual(
		fixture.builders.take().map((line) => line.split(" to ")[1]),
		["b", "b"],
	);
});

for (const [name, body, options, expected] of [
	["a block that is over", [1], { first: 99 }, /^BLOCK_PAST bundle block 99 is in the past/],
	["a range that is over", [1], { first: 90, last: 100 }, /^BLOCK_PAST/],
	["a block too far ahead", [1], { first: 131 }, /^BLOCK_TOO_FAR bundle block 131/],
	[
		"another chain's transaction",
		[1, TX(2, { chainId: 1n })],
		{},
		/^BAD_TRANSACTION invalid chain id.*\(body\[1\]\)/,
	],
	[
		"too little gas",
		[TX(2, { gasLimit: 20_999 })],
		{},
		/^BAD_TRANSACTION intrinsic gas too low.*\(body\[0\]\)/,
	],
] as const) {
	test(`${name}: refused, nothing is kept or sent`, async () => {
		const fixture = new AuctionFixture();
		const outcome = await submit(fixture, body, { ...options });
		assert.ok(outcome.outcome === "refused");
		assert.match(`${outcome.code} ${outcome.message}`, expected);
		assert.deepEqual([fixture.builders.take(), fixture.told, outcome.simulated], [[], [], false]);
	});
}

test("bytes that are no transaction and a nonce that is used are refused; one that is ahead may come later", async () => {
	const fixture = new AuctionFixture();
	fixture.accounts.nonces.set(testAccount(301).address, 4n);
	const used = await submit(fixture, [TX(2), TX(1, { nonce: 3 })]);
	assert.ok(used.outcome === "refused" && /^nonce too low: next nonce 4, tx nonce 3/.test(used.message));
	const early = await submit(fixture, [TX(1, { nonce: 9 })]);
	assert.ok(early.outcome === "refused" && /^nonce too high: next nonce 4, tx nonce 9/.test(early.message));
	assert.equal((await submit(fixture, [TX(1, { nonce: 9 })], { first: 101, last: 102 })).outcome, "accepted");
	const bytes = { raw: Buffer.from("02c0", "hex"), canRevert: false };
	const rest = {
		owner: "me",
		network: "me",
		uuid: null,
		builders: null,
		refund: null,
		blocks: { first: null, last: null },
	};
	const outcome = await fixture.submit({ ...rest, body: [bytes] });
	assert.ok(outcome.outcome === "refused" && outcome.code === "BAD_TRANSACTION");
	assert.match(outcome.message, /\(body\[0\]\)$/);
});

test("accounts that can't be had: thrown, nothing is kept", async () => {
	const fixture = new AuctionFixture();
	fixture.accounts.down = true;
	await assert.rejects(submit(fixture, [1]), { data: { reason: "node unavailable" } });
	assert.deepEqual([fixture.builders.take(), fixture.outcomes], [[], ["failed"]]);
});

test("it is sent for every block of its range, and told for each, until the range is over", async () => {
	const fixture = new AuctionFixture();
	const hash = await accepted(fixture, [1], { first: 102, last: 103 });
	assert.deepEqual([fixture.builders.take(), fixture.status(hash, 102)], [[], "ACCEPTED"]);
	for (let i = 0; i < 4; i += 1) await fixture.block();
	assert.deepEqual(fixture.builders.take(), ["send t1 for 102 to a,b", "send t1 for 103 to a,b"]);
	assert.deepEqual(
		[102, 103].map((block) => fixture.status(hash, block)),
		["NOT_INCLUDED notChosen", "NOT_INCLUDED notChosen"],
	);
	assert.equal(fixture.status(hash, 104), undefined);
	// It takes no room any more, and nothing is cancelled: its last block has come.
	fixture.table.cancel("me", "u");
	assert.deepEqual(fixture.builders.take(), []);
});

test("a block holds it: it is included and goes out no more", async () => {
	const fixture = new AuctionFixture();
	const hash = await accepted(fixture, [1, 2], { first: 101, last: 105 });
	fixture.builders.take();
	const block = await fixture.block(MINED(1, 2));
	assert.deepEqual(
		[fixture.status(hash, 101), fixture.detail(hash, 101)?.blockHash],
		["INCLUDED", block.hash],
	);
	await fixture.block();
	assert.deepEqual(fixture.builders.take(), []);
});

test("one of its transactions is mined by itself: the bundle can't be mined any more, and is dropped", async () => {
	const fixture = new AuctionFixture();
	const hash = await accepted(fixture, [1, 2], { first: 101, last: 105 });
	fixture.builders.take();
	await fixture.block(MINED(2));
	assert.equal(fixture.status(hash, 101), "DROPPED transactionMined");
	await fixture.block();
	assert.deepEqual(fixture.builders.take(), []);
});

test("cancelled: the builders that have had it for the next block are told, and nothing more goes out", async () => {
	const fixture = new AuctionFixture();
	const hash = await accepted(fixture, [1], { first: 101, last: 105, uuid: "u", builders: ["b"] });
	fixture.table.cancel("me", "u");
	assert.deepEqual(
		fixture.builders.take().map((line) => line.replace(/bundle \S+/, "it")),
		["send t1 for 101 to b", "cancel it for 101 at b"],
	);
	assert.equal(fixture.status(hash, 101), "CANCELLED");
	await fixture.block();
	assert.deepEqual(fixture.builders.take(), []);
});

test("cancelled before its first block: no builder is told of what it never had", async () => {
	const fixture = new AuctionFixture();
	const hash = await accepted(fixture, [1], { first: 104, uuid: "u" });
	fixture.table.cancel("me", "u");
	assert.deepEqual([fixture.builders.take(), fixture.status(hash, 104)], [[], "CANCELLED"]);
});

test("replaced under its uuid: the new one takes its place; who does not get that is told to forget the old one", async () => {
	const fixture = new AuctionFixture();
	const old = await accepted(fixture, [1], { first: 101, last: 105, uuid: "u" });
	const same = await accepted(fixture, [2], { first: 101, last: 105, uuid: "u" });
	assert.deepEqual(fixture.builders.take(), ["send t1 for 101 to a,b", "send t2 for 101 to a,b"]);
	assert.equal(fixture.builders.sent[0]?.name, fixture.builders.sent[1]?.name);
	const fewer = await accepted(fixture, [3], { first: 101, last: 105, uuid: "u", builders: ["a"] });
	assert.deepEqual(
		fixture.builders.take().map((line) => line.replace(/bundle \S+/, "it")),
		["send t3 for 101 to a", "cancel it for 101 at b"],
	);
	assert.deepEqual(
		[old, same, fewer].map((hash) => fixture.status(hash, 101)),
		["REPLACED", "REPLACED", "SENT"],
	);
	await fixture.block();
	assert.deepEqual(fixture.builders.take(), ["send t3 for 102 to a"]);
});

test("replaced by one for a later block: the old one is taken back now", async () => {
	const fixture = new AuctionFixture();
	await accepted(fixture, [1], { first: 101, uuid: "u" });
	fixture.builders.take();
	await accepted(fixture, [2], { first: 104, uuid: "u" });
	assert.deepEqual(
		fixture.builders.take().map((line) => line.replace(/bundle \S+/, "it")),
		["cancel it for 101 at a,b"],
	);
});

test("names of bundles never meet: other owners' uuids, and a uuid that looks like another bundle's hash", async () => {
	const fixture = new AuctionFixture();
	const hash = await accepted(fixture, [1]);
	await accepted(fixture, [2], { uuid: hash });
	await accepted(fixture, [3], { uuid: "u" });
	await accepted(fixture, [4], { uuid: "u", owner: "you" });
	await accepted(fixture, [5], { uuid: 'u"],["' });
	assert.equal(new Set(fixture.builders.sent.map(({ name }) => name)).size, 5);
	assert.deepEqual(
		fixture.builders.take().filter((line) => line.startsWith("cancel")),
		[],
	);
	fixture.table.cancel("you", "u");
	assert.equal(fixture.builders.take().length, 1);
});

test("a client has so many transactions in bundles at most, whatever keys it signs with", async () => {
	const plain = {
		transactions: { total: 7, perClient: 5 },
		bytes: { total: 10_000, perClient: 10_000 },
	};
	const fixture = new AuctionFixture({ plain });
	await accepted(fixture, [1, 2], { uuid: "u" });
	await accepted(fixture, [3, 4], { owner: "me too" });
	const outcome = await submit(fixture, [5, 6], { owner: "me three" });
	assert.ok(outcome.outcome === "refused" && outcome.code === "LIMIT");
	assert.equal(outcome.message, "limit exceeded: too many bundles from this client");
	assert.equal(fixture.simulations.plain.length, 2, "it is refused before it costs the node anything");
	// In the place of one of its own there is room, and others have theirs until all of it is taken.
	await accepted(fixture, [5, 6, 7], { uuid: "u" });
	await accepted(fixture, [8], { network: "you", owner: "you" });
	const full = await submit(fixture, [1, 2], { network: "you", owner: "you" });
	assert.ok(full.outcome === "refused" && full.message === "limit exceeded: too many bundles in all");
	await fixture.block();
	await accepted(fixture, [5, 6]);
});

test("bytes are bounded by client too", async () => {
	const { size } = signedTransaction(TX(1));
	const transactions = { total: 100, perClient: 100 };
	const plain = { transactions, bytes: { total: 10 * size, perClient: 2 * size + 20 } };
	const fixture = new AuctionFixture({ plain });
	await accepted(fixture, [1, 2]);
	assert.equal((await submit(fixture, [3])).outcome, "refused");
	await accepted(fixture, [3], { network: "you" });
});
