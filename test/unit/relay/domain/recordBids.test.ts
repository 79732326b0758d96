// Tests what bids, backruns and refunds leave in their target's record: counts, events, what was really paid.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { TxEvent } from "../../../../relay/domain/events.ts";
import { fold, MAX_EVENTS, newRecord, type TransactionRecord } from "../../../../relay/domain/record.ts";
import { privateTransaction } from "../../../support/txFactory.ts";

const bid = (bundle: string): TxEvent => ({ type: "bid", at: 1, bundle });
const bundled = (block: number, wei = "5"): TxEvent => ({
	...{ type: "bundled", at: 1, block, bundle: "0xb", backrun: "0xc", bid: wei, builders: ["a"] },
});
const refunded = (paid: string): TxEvent => ({
	...{
		type: "refunded",
		at: 1,
		block: 101,
		bundle: "0xb",
		backrun: "0xc",
		bid: "5",
		brought: "6",
		cost: "1",
	},
	...{ owed: "4", paid, payer: "0xd", recipient: "0xe" },
});
const included = (block: number): TxEvent => ({
	...{ type: "included", at: 1, block, blockHash: `0x${block}`, index: 0, reverted: false },
});
const BROADCAST: TxEvent = { type: "broadcast", at: 1, block: 101 };
const REORGED: TxEvent = { type: "reorged", at: 1, block: 101 };

function after(...events: readonly TxEvent[]): TransactionRecord {
	const record = newRecord(privateTransaction());
	for (const event of [{ type: "received", at: 1, block: 100 } as const, ...events]) {
		assert.ok(fold(record, event), `${event.type} at ${record.stage}`);
	}
	return record;
}

test("bids are counted and not listed, however many", () => {
	const record = after(BROADCAST, ...Array.from({ length: 1_000 }, (_, i) => bid(`0x${i}`)));
	assert.deepEqual([record.backruns, record.events.length, record.omitted], [1_000, 2, 0]);
	assert.deepEqual([record.stage, record.block], ["BROADCAST", 100]);
});

test("a bid is taken at every live stage and at no other", () => {
	const ended = after(BROADCAST, bid("0x1"), { type: "cancelled", at: 1, block: 101, builders: [] });
	assert.equal(fold(ended, bid("0x2")), false);
	assert.equal(fold(after(BROADCAST, included(101)), bid("0x2")), false);
	assert.equal(ended.backruns, 1);
});

test("a backrun that goes out is listed with its bid, and moves neither stage nor block", () => {
	const record = after(BROADCAST, bundled(101));
	assert.deepEqual([record.stage, record.block, record.events.at(-1)], ["BROADCAST", 100, bundled(101)]);
});

test("the refund is what was paid in the block that holds it, and nothing where it is in none", () => {
	const record = after(BROADCAST, bundled(101), included(101));
	assert.equal(record.refund, "0");
	assert.ok(fold(record, refunded("4")));
	assert.deepEqual([record.refund, record.block], ["4", 101]);
	assert.ok(fold(record, REORGED));
	assert.equal(record.refund, "0");
	for (const event of [BROADCAST, included(102)]) assert.ok(fold(record, event));
	assert.equal(record.refund, "0");
	assert.ok(fold(record, refunded("3")));
	assert.equal(record.refund, "3");
});

test("a refund of what is not mined is refused, and changes nothing", () => {
	const record = after(BROADCAST, bundled(101));
	const before = structuredClone(record);
	assert.equal(fold(record, refunded("4")), false);
	assert.deepEqual(record, before);
});

test("many backruns push out neither the beginning nor the end of its life", () => {
	const record = after(
		BROADCAST,
		...Array.from({ length: 400 }, (_, i) => bundled(101, String(i))),
		included(101),
	);
	assert.ok(fold(record, refunded("4")));
	assert.equal(record.events.length, MAX_EVENTS);
	const types = record.events.map(({ type }) => type);
	assert.deepEqual(
		[types[0], types[1], types.at(-2), types.at(-1)],
		["received", "broadcast", "included", "refunded"],
	);
	// The last one that went out is the likeliest to be mined.
	const last = record.events.findLast((event) => event.type === "bundled");
	assert.equal(last?.type === "bundled" && last.bid, "399");
});
