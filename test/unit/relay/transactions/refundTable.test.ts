// Tests the table of refunds and the totals on both engines: parts of long lists, what is final
// beside what may still leave the chain, writes that fail or are repeated, and a restart.

import assert from "node:assert/strict";
import { after, describe, it, test } from "node:test";
import type { TransactionRecord } from "../../../../relay/domain/record.ts";
import { refundRowOf } from "../../../../relay/domain/refundRow.ts";
import { TransactionDisk } from "../../../../relay/transactions/disk.ts";
import { NonceTurns } from "../../../../relay/transactions/nonceTurns.ts";
import { Pool } from "../../../../relay/transactions/pool.ts";
import { RecordKeeper } from "../../../../relay/transactions/recordKeeper.ts";
import { TransactionRecords } from "../../../../relay/transactions/records.ts";
import { PAGE_ROWS, RefundTable } from "../../../../relay/transactions/refundTable.ts";
import type { KeyValueStore } from "../../../../shared/kv/port.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { StorePlaces } from "../../../support/storeEngines.ts";
import { privateTransaction, testAccount } from "../../../support/txFactory.ts";
import { UNDAMAGED } from "../../../support/undamaged.ts";
import { FakeDisk } from "../fakeDisk.ts";
import { BEGIN, HOUR_MS, OTHER, RECIPIENT, refundedRecord } from "../refundedRecord.ts";

const NONE = { transactions: 0, refunded: 0n };
const places = new StorePlaces();
after(() => places.remove());

/** Records that were archived. */
const settled = new WeakSet<TransactionRecord>();

/** A table whose records in memory are `live`. */
async function tableOn(kv: KeyValueStore, live: readonly TransactionRecord[] = [], now = BEGIN) {
	const records = { mined: () => live, isSettled: (record: TransactionRecord) => settled.has(record) };
	const table = new RefundTable({ kv, damaged: UNDAMAGED, records });
	return { table, mark: await table.load(now) };
}

async function archive(kv: KeyValueStore, table: RefundTable, records: readonly TransactionRecord[]) {
	const { changes, done } = table.settling(records);
	await kv.write(changes);
	done();
	for (const record of records) settled.add(record);
}

async function allOf(table: RefundTable, address: string) {
	const parts: (readonly number[])[] = [];
	let toBlock: number | undefined;
	for (;;) {
		const { rows, nextToBlock } = await table.refundsOf(address, 0, toBlock);
		parts.push(rows.map(({ block }) => block));
		if (nextToBlock === null) return parts;
		toBlock = nextToBlock;
	}
}

for (const engine of places.engines) {
	describe(`on ${engine.name}`, () => {
		it("a list of a thousand comes in parts of whole blocks, the latest first, each refund once", async (t) => {
			const kv = await engine.open(await engine.newPlace());
			t.after(() => kv.close());
			const blockOf = (i: number): number => 100 + Math.floor(i / 3);
			const records = Array.from({ length: 1_100 }, (_, i) => refundedRecord(i, blockOf(i)));
			// The last ones may still leave the chain; and one that is final is late to be forgotten in
			// memory.
			const live = [...records.slice(1_000), ...records.slice(5, 6)];
			const { table } = await tableOn(kv, live);
			await archive(kv, table, records.slice(0, 1_000));
			const parts = await allOf(table, RECIPIENT);
			assert.deepEqual(
				parts.map(({ length }) => length),
				[1_001, 99],
			);
			const blocks = records.map((_, i) => blockOf(i)).reverse();
			assert.deepEqual(parts.flat(), blocks);
			assert.deepEqual((await allOf(table, testAccount(1).address)).flat(), blocks, "and its sender's");
			assert.deepEqual(await allOf(table, OTHER), [[]], "the payer gets none");
			const [from, to] = [200, 202];
			const { rows, nextToBlock } = await table.refundsOf(RECIPIENT, from, to);
			assert.deepEqual([rows.length, nextToBlock], [9, null]);
			assert.deepEqual([...new Set(rows.map(({ block }) => block))], [202, 201, 200]);
		});

		it("all refunds come once each, by recipient and latest first, from any place on", async (t) => {
			const kv = await engine.open(await engine.newPlace());
			t.after(() => kv.close());
			const records = Array.from({ length: 9 }, (_, i) =>
				refundedRecord(i, 100 + i, { recipient: i % 3 === 0 ? OTHER : RECIPIENT }),
			);
			// The last ones may still leave the chain; and one that is final is late to be forgotten in
			// memory.
			const live = [...records.slice(6), ...records.slice(2, 3)];
			const { table } = await tableOn(kv, live);
			await archive(kv, table, records.slice(0, 6));
			const from = async (place?: string) => {
				const found: (readonly [place: string, block: number])[] = [];
				for await (const [at, { block }] of table.all(place)) found.push([at, block]);
				return found;
			};
			const all = await from();
			assert.deepEqual(
				all.map(([, block]) => block),
				[106, 103, 100, 108, 107, 105, 104, 102, 101],
			);
			for (const [i, [place]] of all.entries()) assert.deepEqual(await from(place), all.slice(i));
		});

		it("a part that is just full is the last one", async (t) => {
			const kv = await engine.open(await engine.newPlace());
			t.after(() => kv.close());
			const { table } = await tableOn(kv);
			await archive(
				kv,
				table,
				Array.from({ length: PAGE_ROWS }, (_, i) => refundedRecord(i, i)),
			);
			const { rows, nextToBlock } = await table.refundsOf(RECIPIENT);
			assert.deepEqual([rows.length, nextToBlock], [PAGE_ROWS, null]);
		});

		it("rows and totals are the same after a restart, and since is when it began", async (t) => {
			const kv = await engine.open(await engine.newPlace());
			t.after(() => kv.close());
			const record = refundedRecord(0, 9, { paid: 5n, recipient: OTHER });
			const first = await tableOn(kv);
			await kv.write(first.mark);
			await archive(kv, first.table, [record]);
			const again = await tableOn(kv, [], BEGIN + HOUR_MS);
			assert.deepEqual(again.mark, []);
			assert.deepEqual(await again.table.refundsOf(OTHER), {
				rows: [refundRowOf(record)],
				nextToBlock: null,
			});
			const sums = { transactions: 1, refunded: 5n };
			assert.deepEqual(again.table.totals(BEGIN), { since: BEGIN, ...sums, lastDay: sums });
			assert.equal(again.table.since, BEGIN);
		});
	});
}

test("the last day goes by full hours; what is older stays in the sum", async () => {
	const kv = new FakeDisk();
	const live = refundedRecord(3, 30, { paid: 4n, at: BEGIN + 25 * HOUR_MS });
	const { table } = await tableOn(kv, [live]);
	const ages = [
		refundedRecord(0, 1, { at: BEGIN + HOUR_MS - 1 }),
		refundedRecord(1, 2, { paid: 2n, at: BEGIN + HOUR_MS }),
	];
	await archive(kv, table, ages);
	const day = (hours: number) => table.totals(BEGIN + hours * HOUR_MS).lastDay;
	assert.deepEqual(day(24.5), { transactions: 2, refunded: 3n }, "what is to come is not of it");
	assert.deepEqual(day(25), { transactions: 2, refunded: 6n });
	assert.deepEqual(day(26), { transactions: 1, refunded: 4n });
	assert.deepEqual(day(50), NONE);
	const { transactions, refunded } = table.totals(BEGIN + 50 * HOUR_MS);
	assert.deepEqual({ transactions, refunded }, { transactions: 3, refunded: 7n });
});

test("what could not be written counts once when it is written with more", async () => {
	const kv = new FakeDisk();
	const [one, other] = [refundedRecord(0, 1, { paid: 3n }), refundedRecord(1, 2, { paid: 4n })];
	const live = [one, other];
	const { table } = await tableOn(kv, live);
	const { changes } = table.settling([one]);
	// It reached the disk, but nobody was notified.
	await kv.write(changes);
	await archive(kv, table, [one, other]);
	live.length = 0;
	assert.equal(table.totals(BEGIN).refunded, 7n);
	assert.equal((await tableOn(kv)).table.totals(BEGIN).refunded, 7n);
	assert.equal((await table.refundsOf(RECIPIENT)).rows.length, 2);
});

test("a record that somebody works on while it is archived, and is archived again, counts once", async () => {
	const kv = new FakeDisk();
	const [clock, log, turns] = [new ManualClock(), silentLogger, new NonceTurns()];
	const records = new TransactionRecords({ log });
	const disk = new TransactionDisk({ kv, damaged: UNDAMAGED, log });
	const refunds = new RefundTable({ kv, damaged: UNDAMAGED, records });
	const keeper = new RecordKeeper({
		...{ records, disk, tables: [refunds], turns, clock, pool: new Pool({ maxBytes: 1_000 }) },
		timeToStore: () => BEGIN,
		background: { run: () => {} },
	});
	const transaction = privateTransaction({ nonce: 0, by: testAccount(1) });
	const record = refundedRecord(0, 1, { paid: 3n });
	records.add({ transaction, record });
	assert.deepEqual([...records.mined()], [record]);
	kv.hold = true;
	const archiving = keeper.archive([{ transaction, record }], () => true);
	let release = () => {};
	const work = turns.exclusively(
		{ from: record.from, nonce: record.nonce },
		() => new Promise<void>((resolve) => (release = resolve)),
	);
	kv.hold = false;
	kv.finish(true);
	await archiving;
	assert.equal(records.size, 1);
	assert.deepEqual(refunds.totals(BEGIN).refunded, 3n);
	release();
	await work;
	await keeper.archive([{ transaction, record }], () => true);
	assert.deepEqual([records.size, [...records.mined()]], [0, []]);
	assert.equal(refunds.totals(BEGIN).refunded, 3n);
	assert.equal((await refunds.refundsOf(RECIPIENT)).rows.length, 1);
});

test("a damaged entry is left out, and the others count", async () => {
	const kv = new FakeDisk();
	kv.map.set("h/000000480000", Buffer.from("{"));
	kv.map.set("h/000000480001", Buffer.from('{"transactions":1,"refunded":"7"}'));
	const { table } = await tableOn(kv);
	assert.equal(table.totals(BEGIN).refunded, 7n);
});

test("a record is among the mined ones as long as it is in a block", () => {
	const records = new TransactionRecords({ log: silentLogger });
	const record = refundedRecord(0, 1);
	records.add({ transaction: privateTransaction({ nonce: 0, by: testAccount(1) }), record });
	const included = record.events[0];
	assert.ok(included);
	assert.deepEqual([...records.mined()], [record]);
	records.emit(record.hash, { type: "reorged", at: BEGIN, block: 1 });
	assert.deepEqual([...records.mined()], []);
	records.emit(record.hash, included);
	assert.deepEqual([...records.mined()], [record]);
});
