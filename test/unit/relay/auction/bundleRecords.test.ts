// The records of bundles: changes in, news and records out; who may read them, and what no longer fits.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BundleRecords } from "../../../../relay/auction/bundleRecords.ts";
import type { BundleDelivery } from "../../../../relay/domain/bundleStatus.ts";
import { ManualClock } from "../../../support/manualClock.ts";

const KEY = { owner: "me", hash: "0xb" };

function scene() {
	const clock = new ManualClock(1_000);
	const told: [string, unknown][] = [];
	const records = new BundleRecords({
		clock,
		publisher: { publish: (topic, make) => void told.push([topic, make()]) },
		view: (record, status) => [record.hash, status.block, status.stage, status.reason],
	});
	return { clock, told, records };
}

const delivery = (ms: number): BundleDelivery => ({
	at: 1,
	builder: "a",
	kind: "bundle",
	answer: "accepted",
	ms,
});

test("a change is kept with its block and told to its owner's subscribers alone", async () => {
	const { records, told, clock } = scene();
	records.open(KEY, "0xt", 101, 103);
	assert.deepEqual(told, []);
	await clock.advance(5);
	records.change(KEY, 102, { stage: "BEST", reason: null, bid: 7n });
	assert.deepEqual(records.bundle("me", "0xb"), {
		...{ hash: "0xb", target: "0xt", receivedAt: 1_000, firstBlock: 101, lastBlock: 103 },
		blocks: [
			{
				...{ block: 102, stage: "BEST", reason: null, bid: 7n, outbidBy: null, blockHash: null },
				...{ at: 1_005, deliveries: [] },
			},
		],
	});
	assert.deepEqual(told, [["bundle me 0xb", ["0xb", 102, "BEST", null]]]);
	assert.equal(records.bundle("you", "0xb"), null);
});

test("what stays as it was is no news, and keeps its time", async () => {
	const { records, told, clock } = scene();
	records.open(KEY, null, 101, 101);
	records.change(KEY, 101, { stage: "ACCEPTED" });
	await clock.advance(5);
	records.change(KEY, 101, { stage: "ACCEPTED", reason: null });
	assert.deepEqual([told.length, records.status(KEY, 101)?.at], [1, 1_000]);
	records.change(KEY, 101, { stage: "ACCEPTED", reason: "outbid" });
	assert.deepEqual([told.length, records.status(KEY, 101)?.at], [2, 1_005]);
});

test("fields that a change does not name stay; blocks stand in their order", () => {
	const { records } = scene();
	records.open(KEY, null, 101, 103);
	records.change(KEY, 103, { stage: "BEST", bid: 5n });
	records.change(KEY, 101, { stage: "OUTBID" });
	records.change(KEY, 103, { stage: "NOT_INCLUDED", reason: "notChosen", outbidBy: 2n });
	const blocks = records.bundle("me", "0xb")?.blocks ?? [];
	assert.deepEqual(
		blocks.map(({ block, bid, outbidBy }) => [block, bid, outbidBy]),
		[
			[101, null, null],
			[103, 5n, 2n],
		],
	);
});

test("opened again its range grows, and what is known of it stays", () => {
	const { records } = scene();
	records.open(KEY, null, 102, 103);
	records.change(KEY, 102, { stage: "SENT" });
	records.open(KEY, null, 101, 102);
	records.open(KEY, null, 103, 105);
	const { firstBlock, lastBlock, blocks } = records.bundle("me", "0xb") ?? {};
	assert.deepEqual([firstBlock, lastBlock, blocks?.length], [101, 105, 1]);
});

test("two owners of one hash have a record each", () => {
	const { records } = scene();
	const other = { owner: "you", hash: "0xb" };
	records.open(KEY, null, 101, 101);
	records.open(other, null, 101, 101);
	records.change(KEY, 101, { stage: "SENT" });
	assert.deepEqual([records.status(KEY, 101)?.stage, records.status(other, 101)], ["SENT", undefined]);
});

test("what is not open changes nothing and is told to nobody", () => {
	const { records, told } = scene();
	records.change(KEY, 101, { stage: "SENT" });
	records.delivered(KEY, 101, delivery(1));
	assert.deepEqual([records.bundle("me", "0xb"), told], [null, []]);
});

test("deliveries and blocks are bounded: the oldest go", () => {
	const { records, told } = scene();
	records.open(KEY, null, 1, 200);
	for (let ms = 0; ms < 130; ms += 1) records.delivered(KEY, 1, delivery(ms));
	assert.equal(told.length, 130);
	const { deliveries = [] } = records.status(KEY, 1) ?? {};
	assert.deepEqual([deliveries.length, deliveries[0]?.ms, deliveries.at(-1)?.ms], [100, 30, 129]);
	for (let block = 1; block <= 100; block += 1) records.change(KEY, block, { stage: "SENT" });
	const blocks = records.bundle("me", "0xb")?.blocks ?? [];
	assert.deepEqual([blocks.length, blocks[0]?.block, blocks.at(-1)?.block], [64, 37, 100]);
});
