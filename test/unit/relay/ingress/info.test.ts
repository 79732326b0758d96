// What `GET /info` answers: exact objects.

import assert from "node:assert/strict";
import { test } from "node:test";
import { infoReport } from "../../../../relay/ingress/info.ts";

const SETTINGS = {
	FEE_RECIPIENT: undefined,
	REFUND_PERCENT: 90,
	TX_TTL_BLOCKS: 25,
	SLOT_SECONDS: 12,
	MAX_BODY_BYTES: 1_000,
	MAX_BATCH: 100,
	RATE_LIMIT_RPS: 50,
};

test("what the relay says of itself", () => {
	assert.deepEqual(infoReport(SETTINGS, "1.2.3", 31_337n, 64, true), {
		name: "leeward",
		version: "1.2.3",
		chainId: "0x7a69",
		feeRecipient: null,
		pay: "block.coinbase",
		bidding: true,
		refundPercent: 90,
		txTtlBlocks: 25,
		slotSeconds: 12,
		limits: {
			maxBodyBytes: 1_000,
			maxBatch: 100,
			rateLimitRps: 50,
			maxPendingPerSender: 64,
			maxBundleBlocksAhead: 30,
			maxBundleTransactions: 100,
			maxReplacementUuidLength: 256,
		},
	});
});

test("a shared coinbase is named; without an engine for bids it says so", () => {
	const FEE_RECIPIENT = `0x${"5a".repeat(20)}`;
	const info = infoReport({ ...SETTINGS, FEE_RECIPIENT }, "1", 1n, 64, false) as Record<string, unknown>;
	assert.deepEqual([info.feeRecipient, info.bidding], [FEE_RECIPIENT, false]);
});
