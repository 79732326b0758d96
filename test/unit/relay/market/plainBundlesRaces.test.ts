// Tests plain bundles in races with another head, a later bundle or a bid of the same uuid, a cancel, missed blocks,
// and blocks that are taken back.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { PlainBundleRequest } from "../../../../relay/domain/bundle.ts";
import { rawTransaction, signedTransaction, testAccount } from "../../../support/txFactory.ts";
import { AuctionFixture } from "./auctionFixture.ts";

const TX = (label: number) => ({ by: testAccount(300 + label), nonce: 0 });
const MINED = (label: number) => ({ tx: signedTransaction(TX(label)) });

/** Sends one transaction as a bundle, under the uuid `u` unless said. */
function submit(
	fixture: AuctionFixture,
	label: number,
	first: number | null,
	last: number | null = null,
	uuid: string | null = "u",
) {
	fixture.label(MINED(label).tx.hash, `t${label}`);
	const request: PlainBundleRequest = {
		...{ owner: "me", network: "me", uuid, builders: null, refund: null },
		blocks: { first: first === null ? null : BigInt(first), last: last === null ? null : BigInt(last) },
		body: [{ raw: rawTransaction(TX(label)), canRevert: false }],
	};
	return fixture.submit(request);
}

async function accepted(...args: Parameters<typeof submit>): Promise<string> {
	const outcome = await submit(...args);
	if (outcome.outcome !== "accepted") throw new Error(outcome.message);
	return outcome.hash;
}

/** Makes the next questions about accounts wait; answers what lets them go. */
function holdAccounts(fixture: AuctionFixture): () => void {
	let open: () => void = () => {};
	fixture.accounts.gate = new Promise((resolve) => {
		open = resolve;
	});
	return () => {
		fixture.accounts.gate = Promise.resolve();
		open();
	};
}

const lines = (fixture: AuctionFixture) =>
	fixture.builders.take().map((line) => line.replace(/bundle \S+/, "it"));

test("its block comes while its accounts are asked for: it is in the past, not accepted for nothing", async () => {
	const fixture = new AuctionFixture();
	const open = holdAccounts(fixture);
	const bundle = submit(fixture, 1, 101);
	await fixture.turn();
	await fixture.block();
	open();
	const outcome = await bundle;
	assert.deepEqual(outcome.outcome === "refused" && outcome.code, "BLOCK_PAST");
	assert.deepEqual(lines(fixture), []);
});

test("of a range the rest goes out where a block came while its accounts were asked for", async () => {
	const fixture = new AuctionFixture();
	const open = holdAccounts(fixture);
	const bundle = accepted(fixture, 1, 101, 103);
	await fixture.turn();
	await fixture.block();
	open();
	assert.equal(fixture.status(await bundle, 102), "SENT");
	assert.deepEqual(lines(fixture), ["send t1 for 102 to a,b"]);
});

test("a cancel ends a bundle that was sent before it and is still looked at", async () => {
	const fixture = new AuctionFixture();
	const open = holdAccounts(fixture);
	const bundle = accepted(fixture, 1, 101);
	await fixture.turn();
	fixture.table.cancel("me", "u");
	open();
	const hash = await bundle;
	assert.deepEqual([fixture.status(hash, 101), lines(fixture)], ["CANCELLED", []]);
	await fixture.block();
	assert.deepEqual(lines(fixture), []);
});

test("the later one of a uuid was faster: the earlier one is replaced, and never goes out", async () => {
	const fixture = new AuctionFixture();
	const open = holdAccounts(fixture);
	const first = accepted(fixture, 1, 101);
	await fixture.turn();
	fixture.accounts.gate = Promise.resolve();
	const b = await accepted(fixture, 2, 101);
	open();
	const a = await first;
	assert.deepEqual([fixture.status(a, 101), fixture.status(b, 101)], ["REPLACED", "SENT"]);
	assert.deepEqual(lines(fixture), ["send t2 for 101 to a,b"]);
});

test("the very same bundle twice under one uuid, the later one faster: it is out, and told so", async () => {
	const fixture = new AuctionFixture();
	const open = holdAccounts(fixture);
	const first = accepted(fixture, 1, 101);
	await fixture.turn();
	fixture.accounts.gate = Promise.resolve();
	const hash = await accepted(fixture, 1, 101);
	open();
	assert.equal(await first, hash);
	assert.equal(fixture.status(hash, 101), "SENT");
});

test("a bid takes its uuid: the bundle is replaced, and its builders are told to forget it", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const hash = await accepted(fixture, 1, 101, 105);
	lines(fixture);
	await fixture.accepted("A", target, 5n, { uuid: "u" });
	assert.deepEqual(lines(fixture).sort(), ["cancel it for 101 at a,b", "send T A for 101 to a,b"]);
	assert.equal(fixture.status(hash, 101), "REPLACED");
	await fixture.block();
	assert.deepEqual(lines(fixture), []);
});

test("a bundle takes a bid's uuid: the bid is over", async () => {
	const fixture = new AuctionFixture();
	const target = fixture.target("T");
	const bid = await fixture.accepted("A", target, 5n, { uuid: "u" });
	fixture.builders.take();
	await accepted(fixture, 1, 101);
	assert.deepEqual(fixture.builders.take().sort(), [
		"cancel backrun T for 101 at a,b",
		"send t1 for 101 to a,b",
	]);
	assert.deepEqual([fixture.status(bid, 101), fixture.bids.size], ["REPLACED", 0]);
});

test("blocks that were missed: what it was out for is over, and told so", async () => {
	const fixture = new AuctionFixture();
	const hash = await accepted(fixture, 1, 101, 102);
	fixture.chain.make();
	fixture.chain.make();
	const last = fixture.chain.make();
	await fixture.came({ applied: [last], reverted: [] }, true);
	assert.equal(fixture.status(hash, 101), "NOT_INCLUDED notChosen");
	await fixture.block();
	assert.deepEqual(lines(fixture), ["send t1 for 101 to a,b"]);
});

test("another block of the same number: it is sent again for the next one", async () => {
	const fixture = new AuctionFixture();
	await fixture.block();
	await accepted(fixture, 1, 102);
	const gone = fixture.chain.unmake(1);
	await fixture.came({ applied: [fixture.chain.make([], "b")], reverted: gone });
	assert.deepEqual(lines(fixture), ["send t1 for 102 to a,b", "send t1 for 102 to a,b"]);
});

test("the block that held it is taken back: it is no longer included, and goes out for what is left of its range", async () => {
	const fixture = new AuctionFixture();
	const hash = await accepted(fixture, 1, 101, 105);
	await fixture.block([MINED(1)]);
	assert.equal(fixture.status(hash, 101), "INCLUDED");
	lines(fixture);
	const gone = fixture.chain.unmake(1);
	await fixture.came({ applied: [fixture.chain.make([], "b")], reverted: gone });
	assert.deepEqual(
		[fixture.status(hash, 101), fixture.detail(hash, 101)?.blockHash],
		["NOT_INCLUDED reorganised", null],
	);
	assert.deepEqual(lines(fixture), ["send t1 for 102 to a,b"]);
});

test("the very same bundle again: the same hash, told to nobody, not sent again", async () => {
	const fixture = new AuctionFixture();
	const hash = await accepted(fixture, 1, 101, 103);
	fixture.told.length = 0;
	lines(fixture);
	assert.equal(await accepted(fixture, 1, 101, 103), hash);
	assert.deepEqual([lines(fixture), fixture.told, fixture.status(hash, 101)], [[], [], "SENT"]);
});

test("taken back by a reorganisation, it can still be cancelled by its uuid", async () => {
	const fixture = new AuctionFixture();
	const hash = await accepted(fixture, 1, 101, 105);
	await fixture.block([MINED(1)]);
	const gone = fixture.chain.unmake(1);
	await fixture.came({ applied: [fixture.chain.make([], "b")], reverted: gone });
	lines(fixture);
	fixture.table.cancel("me", "u");
	assert.deepEqual(lines(fixture), ["cancel it for 102 at a,b"]);
	assert.equal(fixture.status(hash, 102), "CANCELLED");
});

test("taken back by a reorganisation, it does not come back where another bundle has its uuid by now", async () => {
	for (const kind of ["bid", "bundle"] as const) {
		const fixture = new AuctionFixture();
		const target = fixture.target("T");
		await accepted(fixture, 1, 101, 105);
		await fixture.block([MINED(1)]);
		fixture.sendTarget(target);
		if (kind === "bid") await fixture.accepted("A", target, 5n, { uuid: "u" });
		else await accepted(fixture, 2, 102);
		fixture.builders.take();
		const gone = fixture.chain.unmake(1);
		await fixture.came({ applied: [fixture.chain.make([], "b")], reverted: gone });
		assert.deepEqual(
			lines(fixture).filter((line) => line.startsWith("send t1")),
			[],
			kind,
		);
	}
});

test("one without a uuid can't be replaced: sent again for other blocks it goes out for both", async () => {
	const fixture = new AuctionFixture();
	await accepted(fixture, 1, 101, 102, null);
	await accepted(fixture, 1, 104, 104, null);
	assert.deepEqual(lines(fixture), ["send t1 for 101 to a,b"]);
	for (let i = 0; i < 4; i += 1) await fixture.block();
	assert.deepEqual(lines(fixture), ["send t1 for 102 to a,b", "send t1 for 104 to a,b"]);
});

test("the very same one under its uuid for a later block: it is taken back for this one", async () => {
	const fixture = new AuctionFixture();
	await accepted(fixture, 1, 101);
	await accepted(fixture, 1, 104);
	assert.deepEqual(lines(fixture), ["send t1 for 101 to a,b", "cancel it for 101 at a,b"]);
	for (let i = 0; i < 4; i += 1) await fixture.block();
	assert.deepEqual(lines(fixture), ["send t1 for 104 to a,b"]);
});

test("in a block of the other branch too: it is included there, and goes out no more", async () => {
	const fixture = new AuctionFixture();
	const hash = await accepted(fixture, 1, 101, 105);
	await fixture.block([MINED(1)]);
	lines(fixture);
	const gone = fixture.chain.unmake(1);
	const other = fixture.chain.make([MINED(1)], "b");
	await fixture.came({ applied: [other], reverted: gone });
	assert.deepEqual(
		[fixture.status(hash, 101), fixture.detail(hash, 101)?.blockHash],
		["INCLUDED", other.hash],
	);
	assert.deepEqual(lines(fixture), []);
});
