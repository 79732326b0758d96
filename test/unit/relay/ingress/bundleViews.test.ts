// A bundle's status as JSON: its claim, the payment, and the fields that are shown only with the
// block.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { BundleBlockStatus, BundleRecord } from "../../../../relay/domain/bundleStatus.ts";
import { blockRows, bundleBlockView } from "../../../../relay/ingress/bundleViews.ts";
import { DAY_MS, dayOf } from "../../../../shared/days.ts";

const HASH = `0x${"0a".repeat(32)}`;
const TARGET = `0x${"0b".repeat(32)}`;
const BLOCK_HASH = `0x${"0c".repeat(32)}`;
const AT = Date.UTC(2026, 1, 3, 4, 5, 6, 7);

const lost: BundleBlockStatus = {
	block: 7,
	stage: "LOST",
	reason: null,
	bid: 10n ** 18n + 1n,
	paid: 10n ** 18n + 4n,
	placed: true,
	isDisclosed: true,
	blockHash: null,
	since: AT,
	at: AT + 1000,
	deliveries: [{ at: AT, builder: "one", kind: "bundle", answer: "accepted", ms: 12.5 }],
};
const waiting: BundleBlockStatus = {
	block: 8,
	stage: "ACCEPTED",
	reason: null,
	bid: null,
	paid: 5n,
	placed: false,
	isDisclosed: false,
	blockHash: BLOCK_HASH,
	since: AT,
	at: AT,
	deliveries: [],
};
const record: BundleRecord = {
	owner: "me",
	client: "me",
	hash: HASH,
	bidder: null,
	target: TARGET,
	receivedAt: AT,
	feedMs: 40,
	simulatedAt: AT + 2,
	firstBlock: 7,
	lastBlock: 8,
	blocks: [lost, waiting],
};

const builders = [
	{ builder: "one", kind: "bundle", answer: "accepted", ms: 12.5, at: new Date(AT).toISOString() },
];

test("a bid that lost says what it claimed, what was paid instead, and which builders had it", () => {
	assert.deepEqual(bundleBlockView(record, lost), {
		...{ bundleHash: HASH, target: TARGET, blockNumber: 7, stage: "LOST", reason: null },
		...{ bid: "1000000000000000001", paid: "1000000000000000004", blockHash: null },
		...{ at: new Date(AT + 1000).toISOString(), builders },
	});
});

test("before its block it says nothing of builders", () => {
	const view = bundleBlockView(record, { ...lost, stage: "ACCEPTED", paid: null, isDisclosed: false });
	assert.deepEqual((view as { builders: unknown }).builders, []);
});

test("bundles by block: the last block first, by the day on which each began, and no more than asked for", () => {
	const status = (block: number, days: number) => ({ ...lost, block, since: AT - days * DAY_MS });
	const late = { ...record, hash: "late", feedMs: null, blocks: [status(12, 0)] };
	const early = { ...record, blocks: [status(9, 1), status(11, 0)] };
	const rows = (most: number) =>
		[...blockRows([late, early], most)].map(([day, list]) => [
			dayOf(AT) - day,
			(list as { blockNumber: number; feedToBidMs: number | null }[]).map((one) => [
				one.blockNumber,
				one.feedToBidMs,
			]),
		]);
	const first = [
		[12, null],
		[11, 40],
	];
	assert.deepEqual(rows(3), [
		[0, first],
		[1, [[9, 40]]],
	]);
	assert.deepEqual(rows(2), [[0, first]]);
	const [[row] = []] = [...blockRows([late], 1).values()];
	const {
		bundleHash: _,
		builders: _none,
		...shown
	} = bundleBlockView(late, status(12, 0)) as Record<string, unknown>;
	assert.deepEqual(row, { bundleHash: "late", feedToBidMs: null, ...shown });
});
