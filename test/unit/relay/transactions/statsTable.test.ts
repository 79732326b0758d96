// The public statistics by day on both engines: what is not known, a restart, records that
// can't be written, and the days that are kept.

import assert from "node:assert/strict";
import { after, it, test } from "node:test";
import { NO_STATS } from "../../../../relay/domain/dayStats.ts";
import type { TransactionRecord } from "../../../../relay/domain/record.ts";
import { RefundTable } from "../../../../relay/transactions/refundTable.ts";
import { StatsTable } from "../../../../relay/transactions/statsTable.ts";
import { DAY_MS, dayOf } from "../../../../shared/days.ts";
import type { KeyValueStore } from "../../../../shared/kv/port.ts";
import { StorePlaces } from "../../../support/storeEngines.ts";
import { UNDAMAGED } from "../../../support/undamaged.ts";
import { FakeDisk } from "../fakeDisk.ts";
import { BEGIN, refundedRecord } from "../refundedRecord.ts";

/** The first whole day. */
const DAY = dayOf(BEGIN) + 1;
const places = new StorePlaces();
after(() => places.remove());

/** The tables of a relay that started at `now`. */
async function tablesOn(kv: KeyValueStore, now = BEGIN + 1) {
	const refunds = new RefundTable({
		kv,
		damaged: UNDAMAGED,
		records: { mined: () => [], isSettled: () => false },
	});
	const broadcaster = { builtBy: () => [] };
	const stats = new StatsTable({ kv, damaged: UNDAMAGED, refunds, broadcaster });
	await kv.write([...(await refunds.load(now)), ...(await stats.load(now))]);
	const archive = async (...records: readonly TransactionRecord[]) => {
		const settling = [refunds, stats].map((table) => table.settling(records));
		await kv.write(settling.flatMap(({ changes }) => changes));
		for (const { done } of settling) done();
	};
	/** Transactions, refunded and brought wei, and waits, of each day; null is not known. */
	const shown = (first: number, last: number) =>
		stats
			.days(first, last)
			.map(({ totals, stats: day }) => [
				totals && [totals.transactions, Number(totals.refunded)],
				day && [Number(day.brought), day.waits[0], day.unknown],
			]);
	return { stats, archive, shown };
}

const minedOn = (day: number, nonce: number) => refundedRecord(nonce, nonce, { at: day * DAY_MS + nonce });

for (const engine of places.engines) {
	it(`${engine.name}: a day counts its final records, and is the same after a restart`, async (t) => {
		const kv = await engine.open(await engine.newPlace());
		t.after(() => kv.close());
		const { archive, shown } = await tablesOn(kv);
		await archive(minedOn(DAY, 1), minedOn(DAY, 2), minedOn(DAY - 1, 3));
		await archive(minedOn(DAY + 1, 4));
		const expected = [
			[null, null],
			[
				[2, 2],
				[6, 2, 2],
			],
			[
				[1, 1],
				[3, 1, 1],
			],
			[
				[0, 0],
				[0, 0, 0],
			],
		];
		assert.deepEqual(shown(DAY - 1, DAY + 2), expected, "the day on which the count began is not known");
		const again = await tablesOn(kv, BEGIN + 9 * DAY_MS);
		assert.deepEqual(again.shown(DAY - 1, DAY + 2), expected);
	});
}

test("a store of an earlier version has totals of days that have no statistics", async () => {
	const kv = new FakeDisk();
	const { archive } = await tablesOn(kv);
	await archive(minedOn(DAY, 1));
	kv.map.delete("m/stats-since");
	const { shown } = await tablesOn(kv, (DAY + 1) * DAY_MS);
	assert.deepEqual(shown(DAY, DAY + 1), [
		[[1, 1], null],
		[
			[0, 0],
			[0, 0, 0],
		],
	]);
});

test("a record that is archived again after a write that failed counts once", async () => {
	const kv = new FakeDisk();
	const { archive, shown } = await tablesOn(kv);
	const [one, other] = [minedOn(DAY, 1), minedOn(DAY, 2)];
	kv.broken = true;
	await assert.rejects(archive(one));
	kv.broken = false;
	await archive(one, other);
	assert.deepEqual(shown(DAY, DAY), [
		[
			[2, 2],
			[6, 2, 2],
		],
	]);
});

test("a hundred days are kept, and a damaged one is not known", async () => {
	const kv = new FakeDisk();
	const { archive, stats } = await tablesOn(kv);
	for (let i = 0; i < 105; i += 1) await archive(minedOn(DAY + i, i));
	const kept = [...kv.map.keys()].filter((key) => key.startsWith("y/"));
	assert.equal(kept.length, 100);
	const [oldest] = stats.days(DAY + 4, DAY + 4);
	assert.deepEqual(oldest?.stats, NO_STATS);
	kv.map.set(kept[50] ?? "", Buffer.from("{"));
	const again = await tablesOn(kv);
	await again.archive(minedOn(DAY + 55, 200));
	const shown = again.stats.days(DAY + 55, DAY + 104);
	assert.deepEqual(
		shown.flatMap((one) => (one.stats === null ? [one.day] : [])),
		[DAY + 55],
	);
});
