// Tests what follows from a record for the list of refunds and the totals, as a table of lives.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Refund, TxEvent } from "../../../../relay/domain/events.ts";
import { fold, newRecord, type TransactionRecord } from "../../../../relay/domain/record.ts";
import { countedOf, partiesOf, refundRowOf } from "../../../../relay/domain/refundRow.ts";
import { privateTransaction } from "../../../support/txFactory.ts";

const PAYER = `0x${"cb".repeat(20)}`;
const RECIPIENT = `0x${"fe".repeat(20)}`;
const { tx } = privateTransaction();

const refund = (paid: string): Refund => ({
	...{ bundle: "0x1", backrun: "0x2", bid: "30", brought: "40", cost: "4", owed: "32" },
	...{ paid, payer: PAYER, recipient: RECIPIENT },
});
const timeOf = (block: number) => 100 * block;
const BROADCAST: TxEvent = { type: "broadcast", at: 1, block: 7 };
const included = (block: number, reverted = false): TxEvent => ({
	...{ type: "included", at: timeOf(block), block, blockHash: `0xb${block}`, index: 0, reverted },
});
const refunded = (block: number, paid = "32"): TxEvent => ({
	...{ type: "refunded", at: timeOf(block) + 1, block },
	...refund(paid),
});
const REORGED: TxEvent = { type: "reorged", at: 702, block: 7 };
const EXPOSED: TxEvent = { type: "exposed", at: 703, block: 7, depth: 1 };

function recordOf(...events: readonly TxEvent[]): TransactionRecord {
	const record = newRecord(privateTransaction());
	for (const event of events) assert.ok(fold(record, event), event.type);
	return record;
}

const row = (block: number, paid: string) => ({
	...{ block, blockHash: `0xb${block}`, hash: tx.hash, sender: tx.from },
	...{ recipient: RECIPIENT, payer: PAYER, owed: "32", paid, at: timeOf(block) },
});

for (const [life, events, shown, counted] of [
	["pending", [BROADCAST], null, null],
	["mined, and nothing read yet", [BROADCAST, included(7)], null, [700, 1, 0n]],
	["mined and refunded", [BROADCAST, included(7), refunded(7)], row(7, "32"), [700, 1, 32n]],
	["refunded by nothing", [BROADCAST, included(7), refunded(7, "0")], row(7, "0"), [700, 1, 0n]],
	["reverted in its block", [BROADCAST, included(7, true)], null, [700, 0, 0n]],
	["in a block that is gone", [BROADCAST, included(7), refunded(7), REORGED, EXPOSED], null, null],
	[
		"mined again, and nothing read yet",
		[BROADCAST, included(7), refunded(7), REORGED, EXPOSED, included(8)],
		null,
		[800, 0, 0n],
	],
	[
		"mined and refunded again",
		[BROADCAST, included(7), refunded(7), REORGED, EXPOSED, included(8), refunded(8, "5")],
		row(8, "5"),
		[800, 0, 5n],
	],
] as const) {
	test(`${life}: its row and what it counts`, () => {
		const record = recordOf(...(events as readonly TxEvent[]));
		assert.deepEqual(refundRowOf(record), shown);
		const count = countedOf(record);
		assert.deepEqual(count && [count.at, count.transactions, count.refunded], counted);
	});
}

test("a refund concerns its sender and its recipient, each once", () => {
	assert.deepEqual(partiesOf(row(7, "1")), [tx.from, RECIPIENT]);
	assert.deepEqual(partiesOf({ ...row(7, "1"), recipient: tx.from }), [tx.from]);
});

test("a row has the referrer that all owners name", () => {
	const record = recordOf(BROADCAST, included(7), refunded(7));
	const [first] = record.owners;
	assert.ok(first !== undefined);
	const named = (...referrers: readonly (string | null)[]) =>
		refundRowOf({ ...record, owners: referrers.map((referrer) => ({ ...first, referrer })) })?.referrer;
	assert.equal(named("shop"), "shop");
	assert.equal(named("shop", "shop"), "shop");
	assert.equal(named("shop", null), undefined);
});
