// What the public pages say of bids and refunds: of bids only the one that was mined, of the refund what was paid.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { TxEvent } from "../../../../relay/domain/events.ts";
import { fold, newRecord, type TransactionRecord } from "../../../../relay/domain/record.ts";
import { eventsReport, statusReport } from "../../../../relay/status/report.ts";
import { privateTransaction } from "../../../support/txFactory.ts";

const at = Date.UTC(2026, 1, 3);
const bundled = (name: string, block: number): TxEvent => ({
	...{
		type: "bundled",
		at,
		block,
		bundle: `bundle of ${name}`,
		backrun: `backrun ${name}`,
		bid: `wei of ${name}`,
	},
	builders: ["a", "b"],
});
const included: TxEvent = { type: "included", at, block: 102, blockHash: "0x102", index: 0, reverted: false };
const refunded = (paid: string): TxEvent => ({
	...{
		type: "refunded",
		at,
		block: 102,
		bundle: "bundle of W",
		backrun: "backrun W",
		bid: "wei of W",
		brought: "6",
	},
	...{ cost: "1", owed: "4", paid, payer: "0xd", recipient: "0xe" },
});

/** Loses in block 101, and in 102 before the one that wins. */
function record(...more: readonly TxEvent[]): TransactionRecord {
	const one = newRecord(privateTransaction());
	one.shared = true;
	for (const event of [
		{ type: "received", at, block: 100 } as const,
		{ type: "broadcast", at, block: 101 } as const,
		{ type: "bid", at, bundle: "0xb" } as const,
		bundled("L1", 101),
		bundled("L2", 102),
		bundled("W", 102),
		...more,
	]) {
		assert.ok(fold(one, event), event.type);
	}
	return one;
}

const told = (one: TransactionRecord) => JSON.stringify(eventsReport(one, () => false));

test("while it may still be mined nothing is told of any bid but that there are some", () => {
	const one = record();
	for (const secret of ["bundle of", "backrun ", "wei of"]) assert.ok(!told(one).includes(secret), secret);
	const { events } = eventsReport(one, () => false) as { events: { type: string; builders?: unknown }[] };
	assert.deepEqual(events.filter(({ type }) => type === "bundled").length, 3);
	assert.equal(statusReport(one).backruns, 0);
});

for (const [name, end] of [
	["cancelled", { type: "cancelled", at, block: 102, builders: [] }],
	["replaced", { type: "replaced", at, block: 102, by: "0xother", builders: [] }],
	["expired", { type: "expired", at, block: 126 }],
	["dropped", { type: "dropped", at, block: 102 }],
	["mined without a backrun", included],
] as const) {
	test(`${name}: the bids that lost stay between the searchers and the builders`, () => {
		const one = record(end);
		for (const secret of ["bundle of", "backrun ", "wei of"]) assert.ok(!told(one).includes(secret), secret);
		assert.equal(statusReport(one).backruns, 1);
	});
}

test("mined with a backrun: that one is told with its bid and refund, the others are not", () => {
	const one = record(included, refunded("4"));
	assert.ok(!told(one).includes("L1") && !told(one).includes("L2"));
	const { events } = eventsReport(one, () => false) as { events: Record<string, unknown>[] };
	const at = "2026-02-03T00:00:00.000Z";
	assert.deepEqual(
		events.filter(({ type }) => type === "bundled"),
		[
			{ type: "bundled", at, block: 101, builders: ["a", "b"] },
			{ type: "bundled", at, block: 102, builders: ["a", "b"] },
			{ ...bundled("W", 102), at },
		],
	);
	assert.deepEqual(events.at(-1), { ...refunded("4"), at });
});

test("taken back by a reorganisation: it may be outbid again, and nothing is told", () => {
	const one = record(included, refunded("4"), { type: "reorged", at, block: 102 });
	const { events } = eventsReport(one, () => false) as { events: { type: string }[] };
	const bids = events.filter(({ type }) => type === "bundled");
	assert.ok(!JSON.stringify(bids).includes("wei of"));
	assert.equal(statusReport(one).refund, 0);
});

for (const [wei, ether] of [
	["0", "0"],
	["1", "1e-18"],
	["990", "9.9e-16"],
	["1000000000000000000", "1"],
	["1500000000000000000", "1.5"],
	["123456789012345678901", "123.456789012345678901"],
	["999999999999999999", "0.999999999999999999"],
] as const) {
	test(`${wei} wei of refund are ${ether} ETH in the status, or the nearest number`, () => {
		assert.equal(statusReport(record(included, refunded(wei))).refund, Number(ether));
	});
}
