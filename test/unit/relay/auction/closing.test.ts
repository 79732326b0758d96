// What a block means for the bids that were for it, case by case; nobody is told more than his own part.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Bid } from "../../../../relay/auction/book.ts";
import { closeBids } from "../../../../relay/auction/closing.ts";
import type { Block } from "../../../../relay/domain/chain.ts";
import { backrunOf, bidOf } from "./bids.ts";

function blockWith(...hashes: readonly string[]): Block {
	const header = { number: 101, hash: "0x101", parentHash: "0x100", timestamp: 1, gasLimit: 1n, gasUsed: 1n };
	const fees = { baseFee: 1n, excessBlobGas: 0n, blobGasUsed: 0n, miner: "0xm", touched: [] };
	return { ...header, ...fees, transactions: hashes.map((hash) => ({ hash, from: "0xf" })) };
}

/** Each bid's outcome: `INCLUDED`, or its reason and by how much it was outbid. */
function told(block: Block, bids: readonly Bid[], best: Bid | null): unknown[] {
	return closeBids(block, "0xt", bids, new Set(best === null ? [] : [best])).map(({ bid, change }, i) => {
		assert.equal(bid, bids[i]);
		if (change === null) return "INCLUDED";
		assert.equal(change.stage, "NOT_INCLUDED");
		return [change.reason, change.outbidBy];
	});
}

test("target and backrun are there: that one is included, the others were outbid by so much", () => {
	const [a, b, c] = [
		bidOf({ value: 9n, backrun: backrunOf(1, 1) }),
		bidOf({ value: 5n }),
		bidOf({ value: 9n }),
	] as const;
	assert.deepEqual(told(blockWith("0xt", a.backrun.hash), [a, b, c], a), [
		"INCLUDED",
		["outbid", 4n],
		["outbid", 0n],
	]);
});

test("the target alone is there: the best was not chosen", () => {
	const [a, b] = [bidOf({ value: 9n }), bidOf({ value: 5n })];
	assert.deepEqual(told(blockWith("0xt"), [a, b], a), [
		["notChosen", null],
		["outbid", 4n],
	]);
});

test("the target is not there: that is why, for all of them; a backrun by itself is not included", () => {
	const [a, b] = [bidOf({ value: 9n, backrun: backrunOf(1, 1) }), bidOf({ value: 5n })];
	assert.deepEqual(told(blockWith(a.backrun.hash), [a, b], a), [
		["targetNotIncluded", null],
		["targetNotIncluded", 4n],
	]);
});

test("one that was not simulated for the block, or still is, was not outbid", () => {
	const best = bidOf({ value: 9n });
	const [never, under] = [bidOf({ value: 5n, basis: null }), bidOf({ value: 5n, checking: "another state" })];
	const reasons = told(blockWith("0xt"), [best, never, under], best).map((one) => (one as unknown[])[0]);
	assert.deepEqual(reasons, ["notChosen", "notSimulated", "notSimulated"]);
});

test("nothing was out: nobody is outbid by anything", () => {
	const bid = bidOf({ value: 5n });
	assert.deepEqual(told(blockWith("0xt"), [bid], null), [["notChosen", null]]);
});

test("one that was dearer than the best lost its nonce to another target's bid", () => {
	const best = bidOf({ value: 5n });
	assert.deepEqual(told(blockWith("0xt"), [bidOf({ value: 9n })], best), [["nonceTaken", null]]);
});

test("a backrun that stands before its target is in the block by another road", () => {
	const bid = bidOf({ value: 5n });
	assert.deepEqual(told(blockWith(bid.backrun.hash, "0xt"), [bid], bid), [["notChosen", null]]);
});

test("an earlier best that a builder chose all the same is included, the best is not chosen", () => {
	const [old, best] = [bidOf({ value: 5n, backrun: backrunOf(1, 1) }), bidOf({ value: 9n })];
	assert.deepEqual(told(blockWith("0xt", old.backrun.hash), [old, best], best), [
		"INCLUDED",
		["notChosen", null],
	]);
});
