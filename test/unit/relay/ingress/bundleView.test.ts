// Records of bundles as JSON: exact objects.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { BundleBlockStatus, BundleRecord } from "../../../../relay/domain/bundleStatus.ts";
import { bundleBlockView, bundleView } from "../../../../relay/ingress/bundleView.ts";

const HASH = `0x${"0a".repeat(32)}`;
const TARGET = `0x${"0b".repeat(32)}`;
const BLOCK_HASH = `0x${"0c".repeat(32)}`;
const AT = Date.UTC(2026, 1, 3, 4, 5, 6, 7);

const outbid: BundleBlockStatus = {
	block: 7,
	stage: "NOT_INCLUDED",
	reason: "outbid",
	bid: 10n ** 18n + 1n,
	outbidBy: 3n,
	blockHash: null,
	at: AT + 1000,
	deliveries: [{ at: AT, builder: "one", kind: "bundle", answer: "accepted", ms: 12.5 }],
};
const waiting: BundleBlockStatus = {
	block: 8,
	stage: "ACCEPTED",
	reason: null,
	bid: null,
	outbidBy: null,
	blockHash: BLOCK_HASH,
	at: AT,
	deliveries: [],
};
const record: BundleRecord = {
	hash: HASH,
	target: TARGET,
	receivedAt: AT,
	firstBlock: 7,
	lastBlock: 8,
	blocks: [outbid, waiting],
};

const OUTBID = {
	blockNumber: 7,
	status: "NOT_INCLUDED",
	reason: "outbid",
	bid: "1000000000000000001",
	outbidBy: "3",
	blockHash: null,
	at: "2026-02-03T04:05:07.007Z",
	builders: [
		{ builder: "one", kind: "bundle", answer: "accepted", ms: 12.5, at: "2026-02-03T04:05:06.007Z" },
	],
};
const WAITING = {
	blockNumber: 8,
	status: "ACCEPTED",
	reason: null,
	bid: null,
	outbidBy: null,
	blockHash: BLOCK_HASH,
	at: "2026-02-03T04:05:06.007Z",
	builders: [],
};

test("a bundle with all its blocks, as JSON", () => {
	const view = bundleView(record);
	assert.deepEqual(view, {
		bundleHash: HASH,
		target: TARGET,
		receivedAt: "2026-02-03T04:05:06.007Z",
		blocks: [OUTBID, WAITING],
	});
	assert.deepEqual(JSON.parse(JSON.stringify(view)), view);
});

test("one block of it, as a subscriber is told", () => {
	assert.deepEqual(bundleBlockView(record, outbid), { bundleHash: HASH, target: TARGET, ...OUTBID });
	assert.deepEqual(bundleBlockView({ ...record, target: null }, waiting), {
		bundleHash: HASH,
		target: null,
		...WAITING,
	});
});
