// Tests the receipts as a table of lives: the terms, the end and the cancels in the statements.
// Whether a record is shown or denied, the store is read once.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { LifeEvent, TransactionRecord } from "../../../../relay/domain/record.ts";
import { fold, newRecord } from "../../../../relay/domain/record.ts";
import { signedReceipts } from "../../../../relay/ingress/signedReceipts.ts";
import type { RecordsReader } from "../../../../relay/transactions/records.ts";
import { privateTransaction } from "../../../support/txFactory.ts";

const KEY = `0x${"5a".repeat(32)}`;
const BLOCK_HASH = `0x${"b1".repeat(32)}`;
const NO_BLOCK = `0x${"00".repeat(32)}`;
const [RECIPIENT, PAYER] = [`0x${"fe".repeat(20)}`, `0x${"cb".repeat(20)}`];

const RECEIVED: LifeEvent = { type: "received", at: 1_000, block: 5 };
const BROADCAST: LifeEvent = { type: "broadcast", at: 2_000, block: 6 };
const INCLUDED: LifeEvent = {
	...{ type: "included", at: 3_000, block: 7, blockHash: BLOCK_HASH, index: 0, reverted: false },
};
const REFUNDED: LifeEvent = {
	...{ type: "refunded", at: 3_001, block: 7, bundle: "0x1", backrun: "0x2", bid: "30", brought: "40" },
	...{ cost: "4", owed: "32", paid: "16", payer: PAYER, recipient: RECIPIENT },
};
const CANCELLED: LifeEvent = { type: "cancelled", at: 2_500, block: 6, builders: ["dev"] };
const BY_ADDRESS: LifeEvent = { ...CANCELLED, byAddress: true };
const REPLACED: LifeEvent = { type: "replaced", at: 2_500, block: 6, builders: [], by: "0x12" };
const EXPIRED: LifeEvent = { type: "expired", at: 4_000, block: 31 };

function recordOf(...events: readonly LifeEvent[]): TransactionRecord {
	const record = newRecord(privateTransaction());
	for (const event of events) assert.ok(fold(record, event), event.type);
	return record;
}

/** The receipt of `record`, in memory or archived, and how often the archive was read. */
async function receiptOf(
	record: TransactionRecord | null,
	{ isSettled = true, cancelPolicy = "origin" as "origin" | "open", isOwn = true, isArchived = false } = {},
) {
	let reads = 0;
	const live = isArchived || record === null ? undefined : { record };
	const { receiptOf, signer } = signedReceipts(
		{ chainId: 1n, key: KEY, refundPercent: 90, cancelPolicy },
		{
			builders: { eligible: () => ["dev"] },
			market: { isSettled: () => isSettled },
			transactions: {
				async archived() {
					reads += 1;
					return isArchived ? record : null;
				},
				records: { get: () => live } as unknown as RecordsReader,
			},
		},
	);
	const receipt = await receiptOf(record?.hash ?? "0x", () => isOwn);
	return { receipt, signer, reads };
}

const NOT_PAID = { owed: "0", paid: "0" };
const cancel = (by: string, builders = ["dev"]) => [
	{ at: "1970-01-01T00:00:02.500Z", block: 6, by, builders },
];

for (const [life, events, expected, options] of [
	["pending", [RECEIVED, BROADCAST], null],
	["mined, its refund not read yet", [RECEIVED, BROADCAST, INCLUDED], null, { isSettled: false }],
	["mined without a bid", [RECEIVED, BROADCAST, INCLUDED], { stage: "INCLUDED", ...NOT_PAID, cancels: [] }],
	[
		"mined with a refund",
		[RECEIVED, BROADCAST, INCLUDED, REFUNDED],
		{ stage: "INCLUDED", owed: "32", paid: "16", cancels: [], refundRecipient: RECIPIENT },
	],
	[
		"out of its block again",
		[RECEIVED, BROADCAST, INCLUDED, REFUNDED, { type: "reorged", at: 3_002, block: 7 }],
		null,
	],
	[
		"cancelled by its sender",
		[RECEIVED, BROADCAST, CANCELLED],
		{ stage: "CANCELLED", block: 6, ...NOT_PAID, cancels: cancel("sender") },
	],
	[
		"cancelled by address",
		[RECEIVED, BROADCAST, BY_ADDRESS],
		{ stage: "CANCELLED", block: 6, ...NOT_PAID, cancels: cancel("address") },
	],
	[
		"cancelled where anyone may",
		[RECEIVED, BROADCAST, CANCELLED],
		{ stage: "CANCELLED", block: 6, ...NOT_PAID, cancels: cancel("anyone") },
		{ cancelPolicy: "open" },
	],
	[
		"replaced",
		[RECEIVED, BROADCAST, REPLACED],
		{ stage: "REPLACED", block: 6, ...NOT_PAID, cancels: cancel("replacement", []) },
	],
	[
		"cancelled and mined",
		[RECEIVED, BROADCAST, CANCELLED, INCLUDED],
		{ stage: "INCLUDED", ...NOT_PAID, cancels: cancel("sender") },
	],
	[
		"cancelled, mined, and out of its block",
		[RECEIVED, BROADCAST, CANCELLED, INCLUDED, { type: "reorged", at: 3_002, block: 7 }],
		{ stage: "CANCELLED", ...NOT_PAID, cancels: cancel("sender") },
	],
	[
		"cancelled, submitted again, and mined",
		[RECEIVED, BROADCAST, BY_ADDRESS, RECEIVED, BROADCAST, INCLUDED],
		{ stage: "INCLUDED", ...NOT_PAID, cancels: [] },
	],
	["expired", [RECEIVED, BROADCAST, EXPIRED], { stage: "EXPIRED", block: 31, ...NOT_PAID, cancels: [] }],
	[
		"expired, and archived",
		[RECEIVED, BROADCAST, EXPIRED],
		{ stage: "EXPIRED", block: 31, ...NOT_PAID, cancels: [] },
		{ isArchived: true },
	],
] as const satisfies readonly (readonly [
	string,
	readonly LifeEvent[],
	object | null,
	Parameters<typeof receiptOf>[1]?,
])[]) {
	test(`${life}: its end`, async () => {
		const record = recordOf(...events);
		const { receipt, signer } = await receiptOf(record, options);
		const about = { chainId: 1, signer, transaction: record.hash };
		const { acceptedAt, refundPercent, builders, ...accepted } = receipt?.accepted.statement ?? {};
		assert.equal(acceptedAt, new Date(record.receivedAt).toISOString());
		assert.deepEqual([refundPercent, builders], [90, ["dev"]]);
		const terms = { path: "fast", mayBeDisclosed: true, refundRecipient: record.from };
		assert.deepEqual(accepted, { ...about, ...terms });
		const isMined = record.blockHash !== null && record.stage === "INCLUDED";
		const place = isMined ? { block: 7, blockHash: BLOCK_HASH } : { block: 7, blockHash: NO_BLOCK };
		const end = expected && { ...about, ...place, refundRecipient: record.from, ...expected };
		assert.deepEqual(receipt?.ended?.statement ?? null, end);
	});
}

test("unknown, denied and shown ones read the store once", async () => {
	const record = recordOf(RECEIVED, BROADCAST);
	const isArchived = true;
	for (const [one, options, isShown] of [
		[null, {}, false],
		[record, { isOwn: false }, false],
		[record, { isOwn: false, isArchived }, false],
		[record, {}, true],
		[record, { isArchived }, true],
	] as const) {
		const { receipt, reads } = await receiptOf(one, options);
		assert.deepEqual([receipt !== null, reads], [isShown, 1]);
	}
});
