// The table's records: an owner's list, what is forgotten from it, the times of a bundle, and what
// is counted.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BundleTable, type BundleTableOptions, TABLE_LIMITS } from "../../../../relay/auction/bundleTable.ts";
import type { BundleRecord } from "../../../../relay/domain/bundleStatus.ts";
import { ManualClock } from "../../../support/manualClock.ts";

/** A table, and the changes of what it counts (`-1 SENT placed`) and reports. */
function startTable(limits: BundleTableOptions = TABLE_LIMITS) {
	const clock = new ManualClock();
	const counted: string[] = [];
	const reported: string[] = [];
	const table = new BundleTable(limits, {
		clock,
		publisher: { publish: (_topic, make) => void make() },
		view: (_record, { stage }) => void reported.push(stage),
		count: (_record, { stage, placed }, by) => void counted.push(`${by} ${stage}${placed ? " placed" : ""}`),
	});
	const open = (
		hash: string,
		owner = "me",
		client = owner,
		isSimulated = true,
		target: string | null = null,
	): BundleRecord => {
		const about = { owner, client, hash, bidder: null, target, firstBlock: 7, lastBlock: 7 };
		return table.open({ ...about, feedMs: null, receivedAt: clock.now(), isSimulated });
	};
	const list = (owner = "me") => table.bundles(owner).map(({ hash }) => hash);
	return { clock, table, open, list, counted, reported };
}

test("an owner's list has the last to arrive first, whatever changes and whatever comes again", () => {
	const { table, open, list } = startTable();
	const first = open("a");
	for (const hash of ["b", "c", "a"]) open(hash);
	open("d", "other");
	table.change(first, 7, { stage: "SENT" });
	assert.deepEqual(list(), ["c", "b", "a"]);
	assert.deepEqual(list("nobody"), []);
});

test("what is forgotten is on no list, of a client and in all", () => {
	const { table, open, list } = startTable({ maxRecords: 4, maxPerClient: 2 });
	const first = open("a", "key 1", "client");
	open("b", "key 2", "client");
	table.change(first, 7, { stage: "SENT" });
	open("c", "key 1", "client");
	assert.deepEqual([list("key 1"), list("key 2"), table.bundle("key 2", "b")], [["c", "a"], [], null]);
	for (const owner of ["x", "y", "z"]) open("d", owner);
	assert.deepEqual([list("key 1"), list("x"), list("z")], [["c"], ["d"], ["d"]]);
});

test("a bundle has the time of its arrival, and of the end of its first simulation", async () => {
	const { clock, table, open } = startTable();
	const { receivedAt } = table.enter("plain", "me", null);
	assert.equal(receivedAt, clock.now());
	const began = clock.now();
	const early = open("a", "me", "me", false);
	assert.deepEqual([early.receivedAt, early.simulatedAt], [began, null]);
	await clock.advance(5);
	open("a");
	await clock.advance(5);
	open("a");
	assert.deepEqual([early.receivedAt, early.simulatedAt], [began, began + 5]);
});

test("each status is counted once as it stands", () => {
	const { table, open, counted } = startTable();
	const record = open("a");
	const news = (change: Parameters<BundleTable["change"]>[2]) => {
		table.change(record, 7, change);
		return counted.splice(0);
	};
	assert.deepEqual(news({ stage: "ACCEPTED" }), ["1 ACCEPTED", "-1 ACCEPTED", "1 ACCEPTED"]);
	assert.deepEqual(news({ stage: "SENT", placed: true }), ["-1 ACCEPTED", "1 SENT placed"]);
	assert.deepEqual(news({ stage: "NOT_INCLUDED" }), ["-1 SENT placed", "1 NOT_INCLUDED placed"]);
	assert.deepEqual(news({ stage: "NOT_INCLUDED" }), []);
	const delivery = { at: 1, builder: "one", kind: "bundle", answer: "accepted", ms: 1 } as const;
	table.delivered(record, 7, delivery);
	assert.deepEqual(counted.splice(0), []);
	table.delivered(record, 8, delivery);
	assert.deepEqual(counted, ["1 ACCEPTED"]);
});

test("a builder's answer is reported to a bid only with the block, and to a plain bundle at once", () => {
	for (const target of ["0xT", null]) {
		const { table, open, reported } = startTable();
		const record = open("a", "me", "me", true, target);
		table.change(record, 7, { stage: "ACCEPTED" });
		reported.splice(0);
		table.delivered(record, 7, { at: 1, builder: "one", kind: "bundle", answer: "accepted", ms: 1 });
		assert.deepEqual(reported.splice(0), target === null ? ["ACCEPTED"] : []);
		table.change(record, 7, { stage: "LOST", isDisclosed: true });
		table.delivered(record, 7, { at: 1, builder: "two", kind: "bundle", answer: "accepted", ms: 1 });
		assert.deepEqual(reported, ["LOST", "LOST"]);
	}
});
