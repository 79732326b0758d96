// Tests the durable record of transactions on the real engine: every type, at every step of its life, is read back as
// it was at the next start.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { TxEvent } from "../../../../relay/domain/events.ts";
import type { StoredTransaction } from "../../../../relay/domain/ports.ts";
import { fold, newRecord, type TransactionRecord } from "../../../../relay/domain/record.ts";
import type { PrivateTransaction } from "../../../../relay/domain/transaction.ts";
import { KEEP_SETTLED_MS, TransactionDisk } from "../../../../relay/transactions/disk.ts";
import { openLmdb } from "../../../../shared/kv/lmdb.ts";
import type { KeyValueStore } from "../../../../shared/kv/port.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { privateTransaction, testAccount } from "../../../support/txFactory.ts";

const folder = mkdtempSync(join(tmpdir(), "leeward-transactions-"));
let places = 0;
after(() => rmSync(folder, { recursive: true, force: true }));

interface Fixture {
	readonly kv: KeyValueStore;
	readonly store: TransactionDisk;
	/** Closes it and opens it anew, as after a restart. */
	restart(): Promise<Fixture>;
}

async function fixture(place = join(folder, String(places++))): Promise<Fixture> {
	const kv = await openLmdb(place);
	const restart = async () => {
		await kv.close();
		return fixture(place);
	};
	return { kv, store: new TransactionDisk({ kv, log: silentLogger }), restart };
}

async function loaded({ store }: Fixture): Promise<StoredTransaction[]> {
	const all: StoredTransaction[] = [];
	for await (const one of store.load()) all.push(one);
	return all;
}

const received = (at: number, block = 100): TxEvent => ({ type: "received", at, block });
const SENT: TxEvent = { type: "broadcast", at: 8_000, block: 101 };
const EXPIRED: TxEvent = { type: "expired", at: 9_000, block: 126 };

function recordOf(transaction: PrivateTransaction, ...events: readonly TxEvent[]): TransactionRecord {
	const record = newRecord(transaction);
	for (const event of [received(transaction.receivedAt), ...events]) assert.ok(fold(record, event));
	return record;
}

async function keys(kv: KeyValueStore): Promise<string[]> {
	const all: string[] = [];
	for await (const [key] of kv.range("", "\u{7f}")) all.push(key);
	return all;
}

test("submissions of every type come back as they were, in a fresh record", async () => {
	let { store, ...rest } = await fixture();
	const options = [
		{ type: 0 as const, path: "fast" as const },
		{ type: 1 as const, path: "noreverts" as const, softCancellations: true },
		{ type: 2 as const, path: "fullprivacy" as const, refundRecipient: `0x${"11".repeat(20)}` },
		{ type: 3 as const, path: "maxbackruns" as const, referrer: 'wallet é \u{1f9ea} "\\' },
		{ type: 4 as const, path: "nochecks" as const, origin: "2001:db8::1" },
		{ type: 2 as const, to: null, data: "0x60", receivedAt: 1_234 },
	];
	const transactions = options.map((one, i) => privateTransaction({ ...one, by: testAccount(i) }));
	await Promise.all(transactions.map((one) => store.insert(one, recordOf(one), [], 1)));
	const again = await rest.restart();
	({ store } = again);
	const found = await loaded(again);
	assert.equal(found.length, transactions.length);
	for (const transaction of transactions) {
		const stored = found.find((one) => one.record.hash === transaction.tx.hash);
		assert.deepEqual(stored?.transaction, transaction);
		assert.deepEqual(stored?.record, recordOf(transaction));
	}
	await again.kv.close();
});

test("a changed record comes back changed", async () => {
	const first = await fixture();
	const transaction = privateTransaction();
	const record = recordOf(transaction);
	await first.store.insert(transaction, record, [], 1);
	for (const event of [
		{ type: "ready", at: 2, block: 101 },
		{ type: "simulated", at: 3, block: 101, gasUsed: 21_000 },
		{ type: "broadcast", at: 4, block: 101 },
		{ type: "delivered", at: 5, block: 101, builder: "b", kind: "bundle", answer: "accepted", ms: 7 },
	] as const) {
		assert.ok(fold(record, event));
	}
	await first.store.update([record], 1);
	const again = await first.restart();
	assert.deepEqual(await loaded(again), [{ transaction, record }]);
	await again.kv.close();
});

test("a replacement and the end of what it replaced are one commit", async () => {
	const first = await fixture();
	const old = privateTransaction();
	const fresh = privateTransaction({ maxFeePerGas: 2n ** 40n, maxPriorityFeePerGas: 2n ** 40n });
	const oldRecord = recordOf(old);
	await first.store.insert(old, oldRecord, [], 1);
	assert.ok(fold(oldRecord, SENT));
	assert.ok(fold(oldRecord, { type: "replaced", at: 2, block: 100, by: fresh.tx.hash, builders: [] }));
	await first.store.insert(fresh, recordOf(fresh), [oldRecord], 1);
	const again = await first.restart();
	const stages = (await loaded(again)).map(({ record }) => [record.hash, record.stage]);
	assert.deepEqual(
		stages.sort(),
		[
			[old.tx.hash, "REPLACED"],
			[fresh.tx.hash, "PENDING"],
		].sort(),
	);
	await again.kv.close();
});

test("what is settled leaves no raw bytes behind, and its record for a week", async () => {
	const first = await fixture();
	const transaction = privateTransaction();
	const record = recordOf(transaction, SENT, EXPIRED);
	await first.store.insert(transaction, record, [], 1);
	assert.equal(await first.store.settled(record.hash), null);
	await first.store.settle([record], 10_000);
	assert.deepEqual(await first.store.settled(record.hash), { ...record, origin: null, settledAt: 10_000 });
	const again = await first.restart();
	assert.deepEqual(await loaded(again), []);
	assert.deepEqual(await again.store.settled(record.hash), { ...record, origin: null, settledAt: 10_000 });
	const raw = Buffer.from(transaction.tx.raw);
	for await (const [, value] of again.kv.range("", "\u{7f}")) assert.equal(value.indexOf(raw), -1);

	assert.equal(await again.store.purge(10_000 + KEEP_SETTLED_MS), 0);
	assert.notEqual(await again.store.settled(record.hash), null);
	assert.equal(await again.store.purge(10_000 + KEEP_SETTLED_MS + 1), 1);
	assert.equal(await again.store.settled(record.hash), null);
	assert.deepEqual(await keys(again.kv), []);
	await again.kv.close();
});

test("one that comes back after its end is live again with its past, and settles anew", async () => {
	const first = await fixture();
	const transaction = privateTransaction();
	const record = recordOf(transaction, SENT, EXPIRED);
	await first.store.insert(transaction, record, [], 1);
	await first.store.settle([record], 10_000);
	assert.ok(fold(record, received(20_000, 200)));
	await first.store.insert(transaction, record, [], 1);
	const again = await first.restart();
	assert.deepEqual(await loaded(again), [{ transaction, record }]);

	// Its first end is a week ago; its second one is not.
	assert.ok(fold(record, { type: "expired", at: 30_000, block: 226 }));
	await again.store.settle([record], 40_000);
	assert.equal(await again.store.purge(10_000 + KEEP_SETTLED_MS + 1), 0);
	assert.equal((await again.store.settled(record.hash))?.settledAt, 40_000);
	assert.equal(await again.store.purge(40_000 + KEEP_SETTLED_MS + 1), 1);
	assert.deepEqual(await keys(again.kv), []);
	await again.kv.close();
});

test("one that is live again is not forgotten with its former end", async () => {
	const first = await fixture();
	const transaction = privateTransaction();
	const record = recordOf(transaction, SENT, EXPIRED);
	await first.store.settle([record], 10_000);
	assert.ok(fold(record, received(20_000, 200)));
	await first.store.insert(transaction, record, [], 1);
	await first.store.purge(10_000 + KEEP_SETTLED_MS + 1);
	assert.deepEqual(await loaded(first), [{ transaction, record }]);
	await first.kv.close();
});

test("what is old is forgotten a bounded number at a time, the oldest first", async () => {
	const first = await fixture();
	const template = recordOf(privateTransaction(), SENT, EXPIRED);
	const records = Array.from({ length: 1_200 }, (_, i) => ({
		...template,
		hash: `0x${i.toString(16).padStart(64, "0")}`,
	}));
	await Promise.all(records.map((record, i) => first.store.settle([record], 5_000 - i)));
	const { store, kv } = await first.restart();
	const now = 5_000 + KEEP_SETTLED_MS + 1;
	assert.equal(await store.purge(now), 1_000);
	assert.notEqual(await store.settled(records[0]?.hash ?? ""), null);
	assert.equal(await store.settled(records.at(-1)?.hash ?? ""), null);
	assert.equal(await store.purge(now), 200);
	assert.equal(await store.purge(now), 0);
	assert.deepEqual(await keys(kv), []);
	await kv.close();
});

test("as many are forgotten as have come since, and a thousand more", async () => {
	const { store, kv } = await fixture();
	const template = recordOf(privateTransaction(), SENT, EXPIRED);
	const settle = async (from: number, count: number, at: number) => {
		const records = Array.from({ length: count }, (_, i) => ({
			...template,
			hash: `0x${(from + i).toString(16).padStart(64, "0")}`,
		}));
		await store.settle(records, at);
	};
	const now = 5_000 + KEEP_SETTLED_MS + 1;
	await settle(0, 1_500, 5_000);
	assert.equal(await store.purge(5_000), 0);
	await settle(1_500, 400, 5_000);
	assert.equal(await store.purge(now), 1_400);
	await kv.close();
});

const CANCELLED: TxEvent = { type: "cancelled", at: 9_000, block: 101, builders: [] };
/** What it went through, and whether any builder can have it. */
const ENDS: readonly (readonly [string, readonly TxEvent[], boolean])[] = [
	["cancelled at once", [CANCELLED], false],
	["expired behind a gap", [{ type: "queued", at: 2, block: 100, reason: "nonceGap" }, EXPIRED], false],
	[
		"held until it expired",
		[
			{
				...{ type: "simulationFailed", at: 2, block: 101 },
				error: { code: "EXECUTION_REVERTED", message: "m".repeat(5_000), data: `0x${"00".repeat(5_000)}` },
			},
			EXPIRED,
		],
		false,
	],
	["sent and expired", [SENT, EXPIRED], true],
	["cancelled where a builder was told", [{ ...CANCELLED, builders: ["a"] }], true],
];

for (const [name, events, wasSent] of ENDS) {
	test(`what is ${name} ${wasSent ? "is kept whole until it is settled" : "leaves a short record at once"}`, async () => {
		const first = await fixture();
		const transaction = privateTransaction({ data: Buffer.alloc(100_000, 1) });
		await first.store.insert(transaction, recordOf(transaction), [], 1);
		const record = recordOf(transaction, ...events);
		await first.store.update([record], 10_000);
		const again = await first.restart();
		assert.equal((await loaded(again)).length, wasSent ? 1 : 0);
		const kept = await again.store.settled(record.hash);
		if (!wasSent) {
			let bytes = 0;
			for await (const [key, value] of again.kv.range("", "\u{7f}")) bytes += key.length + value.length;
			assert.ok(bytes < 1_000, `${bytes} bytes`);
			const { hash, from, nonce, stage, settledAt } = kept ?? {};
			assert.deepEqual(
				[hash, from, nonce, stage, settledAt],
				[record.hash, record.from, "0", record.stage, 10_000],
			);
			assert.deepEqual(kept?.events, events.slice(-1));
			assert.equal(kept?.omitted, events.length);
		} else assert.equal(kept, null);
		await again.kv.close();
	});
}

test("what was never sent and is mined all the same is told so behind a restart", async () => {
	const first = await fixture();
	const transaction = privateTransaction();
	const place = { block: 103, blockHash: "0xb", index: 0, reverted: false };
	const record = recordOf(transaction, CANCELLED);
	await first.store.insert(transaction, record, [], 1);
	assert.ok(fold(record, { type: "included", at: 9_500, ...place }));
	await first.store.update([record], 10_000);
	const again = await first.restart();
	assert.equal((await again.store.settled(record.hash))?.stage, "INCLUDED");
	assert.deepEqual(await loaded(again), []);
	await again.kv.close();
});

test("a failed write is thrown, and the store is not healthy until one succeeds", async () => {
	const { kv } = await fixture();
	let broken = true;
	const writes: number[] = [];
	const logged: string[] = [];
	const store = new TransactionDisk({
		kv: {
			...kv,
			write: (changes) => {
				writes.push(changes.length);
				return broken ? Promise.reject(Object.assign(new Error("disk"), { code: "EIO" })) : kv.write(changes);
			},
		},
		log: {
			...silentLogger,
			error: (message, fields) => logged.push(`${message} ${JSON.stringify(fields?.fault)}`),
			info: (message) => logged.push(message),
		},
	});
	const transaction = privateTransaction();
	assert.ok(await store.check());
	await assert.rejects(store.insert(transaction, recordOf(transaction), [], 1), {
		...{ kind: "internal", code: -32603 },
		message: "internal error: nothing can be stored now, try again",
		data: { reason: "store unavailable" },
	});
	assert.ok(!(await store.check()));
	// What each block does where there is nothing to write touches no disk, and proves nothing.
	await store.update([], 1);
	await store.settle([], 1);
	await store.purge(1);
	assert.deepEqual(writes, [1, 1]);
	assert.ok(!(await store.check()), "an empty write made it healthy");
	broken = false;
	assert.ok(await store.check(), "its own small write finds out that the disk is back");
	await store.insert(transaction, recordOf(transaction), [], 1);
	assert.ok(await store.check());
	assert.equal(logged.length, 2);
	assert.match(logged[0] ?? "", /^the store fails \{.*"code":"EIO"/);
	assert.equal(logged[1], "the store is written again");
	await kv.close();
});
