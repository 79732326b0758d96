// Plain bundles without a uuid that are sent again for a range that moves on, as many do: one bundle for all of them. And
// those that ask for a refund that nobody would pay.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { BundleOutcome, PlainBundleRequest } from "../../../../relay/domain/bundle.ts";
import { rawTransaction, signedTransaction, testAccount } from "../../../support/txFactory.ts";
import { AuctionFixture } from "./auctionFixture.ts";

const TX = { by: testAccount(300), nonce: 0 };

/** The same transaction each time, for the blocks from `first` to `last`. */
async function submit(
	fixture: AuctionFixture,
	first: number,
	last: number,
	more: Partial<PlainBundleRequest> = {},
): Promise<BundleOutcome> {
	fixture.label(signedTransaction(TX).hash, "t");
	return fixture.submit({
		...{ owner: "me", network: "me", uuid: null, builders: null, refund: null },
		blocks: { first: BigInt(first), last: BigInt(last) },
		body: [{ raw: rawTransaction(TX), canRevert: false }],
		...more,
	});
}

async function accepted(...args: Parameters<typeof submit>): Promise<string> {
	const outcome = await submit(...args);
	if (outcome.outcome !== "accepted") throw new Error(outcome.message);
	return outcome.hash;
}

const names = (fixture: AuctionFixture) => new Set(fixture.builders.sent.map(({ name }) => name)).size;

test("a range that moves on block by block: sent once for each block under one name, told for each, never cancelled", async () => {
	const fixture = new AuctionFixture();
	const hash = await accepted(fixture, 101, 103);
	for (const first of [102, 103, 104]) {
		await fixture.block();
		assert.equal(await accepted(fixture, first, first + 2), hash);
	}
	assert.deepEqual(
		fixture.builders.take(),
		[101, 102, 103, 104].map((block) => `send t for ${block} to a,b`),
	);
	assert.equal(names(fixture), 1);
	assert.deepEqual(
		[101, 102, 103, 104].map((block) => fixture.status(hash, block)),
		["NOT_INCLUDED notChosen", "NOT_INCLUDED notChosen", "NOT_INCLUDED notChosen", "SENT"],
	);
	// To the end of the last range.
	for (let i = 0; i < 3; i += 1) await fixture.block();
	assert.deepEqual(fixture.builders.take(), ["send t for 105 to a,b", "send t for 106 to a,b"]);
});

for (const [name, first, last] of [
	["the same blocks", 102, 103],
	["more blocks", 101, 105],
	["blocks that begin where the others end", 104, 105],
	["blocks that end where the others begin", 101, 101],
	["fewer blocks", 103, 103],
] as const) {
	test(`again for ${name}: one bundle, for all of them`, async () => {
		const fixture = new AuctionFixture();
		await accepted(fixture, 102, 103);
		await accepted(fixture, first, last);
		for (let i = 0; i < 6; i += 1) await fixture.block();
		const blocks = [];
		for (let block = Math.min(102, first); block <= Math.max(103, last); block += 1) blocks.push(block);
		assert.deepEqual(
			fixture.builders.take(),
			blocks.map((block) => `send t for ${block} to a,b`),
		);
		assert.equal(names(fixture), 1);
	});
}

test("blocks between the ranges, another owner or a uuid: bundles of their own", async () => {
	for (const [block, more] of [
		[102, { owner: "you" }],
		[104, {}],
		[102, { uuid: "u" }],
	] as const) {
		const fixture = new AuctionFixture();
		await accepted(fixture, 102, 102);
		await accepted(fixture, block, block, more);
		for (let i = 0; i < 4; i += 1) await fixture.block();
		assert.equal(names(fixture), 2);
	}
});

test("again for fewer builders: the range is wider, and the other builder is told to forget it", async () => {
	const fixture = new AuctionFixture();
	await accepted(fixture, 101, 101);
	await accepted(fixture, 102, 102, { builders: ["a"] });
	const lines = fixture.builders.take().map((line) => line.replace(/bundle \S+/, "it"));
	assert.deepEqual(lines, ["send t for 101 to a,b", "send t for 101 to a", "cancel it for 101 at b"]);
	await fixture.block();
	assert.deepEqual(fixture.builders.take(), ["send t for 102 to a"]);
});

test("what is in a block is over: the same transactions again are another bundle", async () => {
	const fixture = new AuctionFixture();
	await accepted(fixture, 101, 105);
	await fixture.block([{ tx: signedTransaction(TX) }]);
	fixture.builders.take();
	await accepted(fixture, 102, 102);
	assert.deepEqual([fixture.builders.take(), names(fixture)], [["send t for 102 to a,b"], 2]);
});

const REFUND = { percent: 50, recipient: null, bodyIdx: 0 };
for (const [name, refunding, builders, isTaken] of [
	["where no builder pays refunds", [], null, false],
	["of a builder that pays none", ["b"], ["a"], false],
	["of builders of which one pays", ["b"], ["a", "b"], true],
	["of all, of which one pays", ["b"], null, true],
] as const) {
	test(`a refund ${name}: ${isTaken ? "taken" : "refused"}; without one the bundle is taken`, async () => {
		const fixture = new AuctionFixture({ refunding });
		const outcome = await submit(fixture, 101, 101, { refund: REFUND, builders });
		assert.equal(
			outcome.outcome === "refused" ? outcome.code : "accepted",
			isTaken ? "accepted" : "NO_BIDDING",
		);
		if (!isTaken) assert.deepEqual([fixture.builders.take(), fixture.told], [[], []]);
		await accepted(fixture, 101, 101, { builders });
	});
}
