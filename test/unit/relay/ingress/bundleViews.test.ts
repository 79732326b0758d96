// A bundle's status as JSON: by how much it was outbid, and its bidder's standing.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { BundleBlockStatus, BundleRecord, Standing } from "../../../../relay/domain/bundleStatus.ts";
import { bundleBlockView, bundleView } from "../../../../relay/ingress/bundleViews.ts";

const HASH = `0x${"0a".repeat(32)}`;
const TARGET = `0x${"0b".repeat(32)}`;
const BLOCK_HASH = `0x${"0c".repeat(32)}`;
const BACKRUN = `0x${"0d".repeat(32)}`;
const AT = Date.UTC(2026, 1, 3, 4, 5, 6, 7);

const outbid: BundleBlockStatus = {
	block: 7,
	stage: "NOT_INCLUDED",
	reason: "outbid",
	bid: 10n ** 18n + 1n,
	winner: { backrun: BACKRUN, paid: 10n ** 18n + 4n },
	paid: null,
	placed: true,
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
	winner: null,
	paid: 5n,
	placed: false,
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
	simulatedAt: AT + 2,
	firstBlock: 7,
	lastBlock: 8,
	blocks: [outbid, waiting],
};

test("one whose bidder is barred, proven or spent says so", () => {
	const bar = { until: 40, bid: 10n, paid: 1n, block: 8 };
	const barred = { until: 40, bid: "10", paid: "1", block: 8 };
	const plain = bundleView(record, null) as object;
	for (const [standing, told] of [
		[
			{ bar, provenUpTo: 0n, spentUntil: null },
			{ barred, provenUpTo: "0", spentUntil: null },
		],
		[
			{ bar: null, provenUpTo: 80n, spentUntil: null },
			{ barred: null, provenUpTo: "80", spentUntil: null },
		],
		[
			{ bar: null, provenUpTo: 0n, spentUntil: 72 },
			{ barred: null, provenUpTo: "0", spentUntil: 72 },
		],
		[{ bar: null, provenUpTo: 0n, spentUntil: null }, {}],
	] as const satisfies readonly (readonly [Standing, object])[]) {
		assert.deepEqual(bundleView(record, standing), { ...plain, ...told });
	}
});

test("by how much it was outbid is what the other really paid more: nothing where it paid less, or that is not known", () => {
	for (const [paid, told] of [
		[10n ** 18n + 1n, "0"],
		[10n ** 18n, null],
		[null, null],
	] as const) {
		const winner = { backrun: BACKRUN, paid };
		const view = bundleBlockView(record, { ...outbid, winner }, null) as { outbidBy: unknown };
		assert.equal(view.outbidBy, told);
	}
});
