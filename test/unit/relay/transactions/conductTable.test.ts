// Tests the table of builders' conduct on both engines: what is final beside what may still leave
// the chain, a restart, days that are over, and an entry that is damaged.

import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import { type Conduct, noConduct } from "../../../../relay/domain/conduct.ts";
import type { TxEvent } from "../../../../relay/domain/events.ts";
import { fold, newRecord, type TransactionRecord } from "../../../../relay/domain/record.ts";
import { CONDUCT_DAYS, ConductTable } from "../../../../relay/transactions/conductTable.ts";
import type { RecordEntry } from "../../../../relay/transactions/records.ts";
import type { KeyValueStore } from "../../../../shared/kv/port.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { StorePlaces } from "../../../support/storeEngines.ts";
import { privateTransaction, testAccount } from "../../../support/txFactory.ts";
import { UNDAMAGED } from "../../../support/undamaged.ts";

const DAY_MS = 86_400_000;
const block = 7;
const places = new StorePlaces();
after(() => places.remove());

/** A transaction of a day that builder a has mined, without its whole refund, and b has refused. */
function minedRecord(nonce: number, day: number): TransactionRecord {
	const at = day * DAY_MS + 1;
	const record = newRecord({ ...privateTransaction({ nonce, by: testAccount(1) }), receivedAt: at });
	const events: TxEvent[] = [
		{ type: "delivered", at, block, builder: "a", kind: "bundle", answer: "accepted", ms: 1 },
		{ type: "delivered", at, block, builder: "b", kind: "bundle", answer: "rejected", ms: 1 },
		{ type: "included", at, block, blockHash: "0x7", index: 0, reverted: false, coinbase: "0xa" },
		{
			...{ type: "refunded", at, block, bundle: "0x1", backrun: "0x2", bid: "3", brought: "3", cost: "0" },
			...{ owed: "3", paid: "2", payer: "0xa", recipient: "0xe" },
		},
	];
	for (const event of events) assert.ok(fold(record, event));
	return record;
}

/** The rows of `count` such transactions. */
const rowsOf = (day: number, count: number): readonly Conduct[] => [
	{
		...{ ...noConduct(day, "a"), sent: count, accepted: count, mined: count, backrun: count },
		...{ shortRefunds: count, owed: 3n * BigInt(count), paid: 2n * BigInt(count) },
	},
	{ ...noConduct(day, "b"), sent: count, refused: count },
];

async function tableOn(kv: KeyValueStore, live: readonly TransactionRecord[] = []): Promise<ConductTable> {
	const entries = live.map((record): RecordEntry => ({ record, transaction: privateTransaction() }));
	const table = new ConductTable({
		...{
			kv,
			damaged: UNDAMAGED,
			records: { entries: () => entries.values(), isSettled: () => false },
			clock: new ManualClock(),
		},
		...{ builtBy: (coinbase) => (coinbase === "0xa" ? ["a"] : []), canary: null },
	});
	await table.load();
	return table;
}

async function archive(kv: KeyValueStore, table: ConductTable, records: readonly TransactionRecord[]) {
	const { changes, done } = table.settling(records);
	await kv.write(changes);
	done();
}

for (const engine of places.engines) {
	describe(`on ${engine.name}`, () => {
		it("what is in memory counts until it leaves its block, and what is final for ever", async (t) => {
			const kv = await engine.open(await engine.newPlace());
			t.after(() => kv.close());
			const live = minedRecord(1, 20);
			const table = await tableOn(kv, [live]);
			assert.deepEqual([await table.all(), table.final()], [rowsOf(20, 1), []]);
			await archive(kv, table, [minedRecord(2, 20), minedRecord(3, 21)]);
			assert.deepEqual(await table.all(), [...rowsOf(20, 2), ...rowsOf(21, 1)]);
			assert.deepEqual(table.final(), [...rowsOf(20, 1), ...rowsOf(21, 1)]);
			assert.ok(fold(live, { type: "reorged", at: 20 * DAY_MS + 2, block }));
			const [a] = await table.all();
			assert.deepEqual([a?.sent, a?.mined, a?.backrun, a?.owed], [2, 1, 1, 3n]);
		});

		it("a restart has what was final", async (t) => {
			const kv = await engine.open(await engine.newPlace());
			t.after(() => kv.close());
			const first = await tableOn(kv);
			await archive(kv, first, [minedRecord(1, 20)]);
			assert.deepEqual((await tableOn(kv)).final(), rowsOf(20, 1));
			assert.deepEqual(await (await tableOn(kv)).all(), rowsOf(20, 1));
		});

		it("a write that failed is repeated with the same sums", async (t) => {
			const kv = await engine.open(await engine.newPlace());
			t.after(() => kv.close());
			const table = await tableOn(kv);
			table.settling([minedRecord(1, 20)]);
			await archive(kv, table, [minedRecord(1, 20)]);
			assert.deepEqual((await tableOn(kv)).final(), rowsOf(20, 1));
		});

		it("days that are over are forgotten, on disk too", async (t) => {
			const kv = await engine.open(await engine.newPlace());
			t.after(() => kv.close());
			const table = await tableOn(kv);
			const day = 20 + CONDUCT_DAYS;
			await archive(kv, table, [minedRecord(1, 20), minedRecord(2, 21)]);
			await archive(kv, table, [minedRecord(3, day)]);
			for (const one of [table, await tableOn(kv)])
				assert.deepEqual(one.final(), [...rowsOf(21, 1), ...rowsOf(day, 1)]);
		});
	});
}
