// Records of transactions that are in a block and whose users were paid, for tests.

import assert from "node:assert/strict";
import type { TxEvent } from "../../../relay/domain/events.ts";
import { fold, newRecord } from "../../../relay/domain/record.ts";
import { privateTransaction, testAccount } from "../../support/txFactory.ts";

export const HOUR_MS = 3_600_000;
/** When they are seen unless said otherwise, in ms: a full hour. */
export const BEGIN = 480_000 * HOUR_MS;
/** The recipient of the payment unless said otherwise. */
export const RECIPIENT = `0x${"fe".repeat(20)}`;
/** The payer. */
export const OTHER = `0x${"fd".repeat(20)}`;

/**
 * The record of a transaction with nonce `nonce` in `block`, for which `paid` wei were paid; seen
 * `at`, in ms.
 */
export function refundedRecord(
	nonce: number,
	block: number,
	{ paid = 1n, recipient = RECIPIENT, at = BEGIN } = {},
) {
	const record = newRecord(privateTransaction({ nonce, by: testAccount(1) }));
	const events: TxEvent[] = [
		{ type: "included", at, block, blockHash: `0x${block.toString(16)}`, index: 0, reverted: false },
		{
			...{ type: "refunded", at, block, bundle: "0x1", backrun: "0x2", bid: "3", brought: "3", cost: "0" },
			...{ owed: "2", paid: String(paid), payer: OTHER, recipient },
		},
	];
	for (const event of events) assert.ok(fold(record, event));
	return record;
}
