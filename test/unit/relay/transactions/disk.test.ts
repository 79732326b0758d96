// Tests what is on disk of a transaction at every step of its life: what is written at once, what a
// restart reads back, what a purge deletes, and that damaged entries are refused.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { TxEvent } from "../../../../relay/domain/events.ts";
import { fold, newRecord, type TransactionRecord } from "../../../../relay/domain/record.ts";
import { ownedTransaction, type PrivateTransaction } from "../../../../relay/domain/transaction.ts";
import { KEEP_ARCHIVED_MS, TransactionDisk } from "../../../../relay/transactions/disk.ts";
import { type RecordEntry, TransactionRecords } from "../../../../relay/transactions/records.ts";
import {
	decodeRecord,
	decodeStored,
	encodeRecord,
	encodeTransaction,
} from "../../../../relay/transactions/storedFormat.ts";
import { DamagedEntries } from "../../../../shared/kv/damagedEntries.ts";
import { StoreFormatError } from "../../../../shared/kv/port.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { type Owner, withOwner, withoutWish } from "../../../../shared/ownership.ts";
import { privateTransaction, testAccount } from "../../../support/txFactory.ts";
import { UNDAMAGED } from "../../../support/undamaged.ts";
import { FakeDisk } from "../fakeDisk.ts";

function onDisk(kv = new FakeDisk()) {
	const store = new TransactionDisk({ kv, damaged: UNDAMAGED, log: silentLogger });
	return { kv, store, restart: () => onDisk(kv) };
}

/** Nothing was submitted again. */
const ENDED = () => false;

async function loaded(store: TransactionDisk): Promise<RecordEntry[]> {
	const all: RecordEntry[] = [];
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

test("submissions of every type come back as they were, in a fresh record", async () => {
	const first = onDisk();
	const options = [
		{ type: 0 as const, path: "fast" as const },
		{ type: 1 as const, path: "noreverts" as const, softCancellations: true },
		{ type: 2 as const, path: "fullprivacy" as const, refundRecipient: `0x${"11".repeat(20)}` },
		{ type: 3 as const, path: "maxbackruns" as const, referrer: 'wallet é \u{1f9ea} "\\' },
		{ type: 4 as const, path: "nochecks" as const, submitterAddress: "2001:db8::1" },
		{ type: 2 as const, to: null, data: "0x60", receivedAt: 1_234 },
	];
	const transactions = options.map((one, i) => privateTransaction({ ...one, by: testAccount(i) }));
	await Promise.all(transactions.map((one) => first.store.insert(one, recordOf(one), [], 1)));
	const again = first.restart();
	const found = await loaded(again.store);
	assert.equal(found.length, transactions.length);
	for (const transaction of transactions) {
		const stored = found.find((one) => one.record.hash === transaction.tx.hash);
		assert.deepEqual(stored?.transaction, transaction);
		assert.deepEqual(stored?.record, recordOf(transaction));
	}
});

test("a resubmitted transaction is live again with its history, and is archived again", async () => {
	const first = onDisk();
	const transaction = privateTransaction();
	const record = recordOf(transaction, SENT, EXPIRED);
	await first.store.insert(transaction, record, [], 1);
	await first.store.archive([record], 10_000);
	assert.ok(fold(record, received(20_000, 200)));
	await first.store.insert(transaction, record, [], 1);
	const again = first.restart();
	assert.deepEqual(await loaded(again.store), [{ transaction, record }]);

	// Its first end is a week ago; its second one is not.
	assert.ok(fold(record, { type: "expired", at: 30_000, block: 226 }));
	await again.store.archive([record], 40_000);
	assert.equal(await again.store.purge(10_000 + KEEP_ARCHIVED_MS + 1, ENDED), 0);
	assert.equal((await again.store.archived(record.hash))?.settledAt, 40_000);
	assert.equal(await again.store.purge(40_000 + KEEP_ARCHIVED_MS + 1, ENDED), 1);
	assert.deepEqual([...again.kv.map.keys()], []);
});

test("submitted again before its end is archived, it is there once, and its end does not come back", async () => {
	for (const [name, isCancel] of [
		["pending again", false],
		["cancelled at once", true],
	] as const) {
		const first = onDisk();
		const earlier = privateTransaction({ receivedAt: 5 });
		const record = recordOf(earlier, SENT, EXPIRED);
		await first.store.insert(earlier, recordOf(earlier), [], 1);
		await first.store.update([record], 1);
		const later = privateTransaction({ receivedAt: 20_000 });
		const now = recordOf(later, ...(isCancel ? [CANCELLED] : []));
		await first.store.insert(later, now, [], 1, record);
		const found = await loaded(first.restart().store);
		assert.deepEqual(found, isCancel ? [] : [{ transaction: later, record: now }], name);
	}
});

test("what is purged of an earlier end leaves the marks of one that is live again", async () => {
	for (const isLive of [false, true]) {
		const { store } = onDisk();
		const transaction = privateTransaction({ softCancellations: true });
		const record = recordOf(transaction, SENT, EXPIRED);
		await store.insert(transaction, record, [], 1);
		await store.archive([record], 1);
		assert.equal(await store.purge(2 + KEEP_ARCHIVED_MS, () => isLive), 1);
		const { hash, from, nonce } = transaction.tx;
		assert.equal(await store.lastSoftCancellable(from, nonce), isLive ? hash : null);
	}
});

test("a purge deletes the oldest records: a thousand, plus as many as were archived since the last one", async () => {
	const { store, kv } = onDisk();
	const template = recordOf(privateTransaction(), SENT, EXPIRED);
	const hashOf = (i: number) => `0x${i.toString(16).padStart(64, "0")}`;
	const archive = (from: number, count: number) => {
		const all = Array.from({ length: count }, (_, i) => from + i);
		return Promise.all(all.map((i) => store.archive([{ ...template, hash: hashOf(i) }], 5_000 - i)));
	};
	const now = 5_000 + KEEP_ARCHIVED_MS + 1;
	await archive(0, 1_500);
	assert.equal(await store.purge(3_500, ENDED), 0);
	await archive(1_500, 100);
	assert.equal(await store.purge(now, ENDED), 1_100);
	assert.deepEqual([await store.archived(hashOf(500)), await store.archived(hashOf(1_599))], [null, null]);
	assert.notEqual(await store.archived(hashOf(499)), null);
	assert.deepEqual([await store.purge(now, ENDED), await store.purge(now, ENDED)], [500, 0]);
	assert.deepEqual([...kv.map.keys()], []);
});

const CANCELLED: TxEvent = { type: "cancelled", at: 9_000, block: 101, builders: [] };
/** The events of a transaction, and whether any builder can have it. */
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
	["cancelled after a builder had it", [{ ...CANCELLED, builders: ["a"] }], true],
];

for (const [name, events, wasSent] of ENDS) {
	test(`what is ${name} ${wasSent ? "is kept whole until it is archived" : "leaves a short record at once"}`, async () => {
		const first = onDisk();
		const transaction = privateTransaction({ data: Buffer.alloc(100_000, 1), receivedAt: 1 });
		await first.store.insert(transaction, recordOf(transaction), [], 1);
		const record = recordOf(transaction, ...events);
		await first.store.update([record], 10_000);
		const again = first.restart();
		assert.equal((await loaded(again.store)).length, wasSent ? 1 : 0);
		const kept = await again.store.archived(record.hash);
		if (!wasSent) {
			let bytes = 0;
			for (const [key, value] of again.kv.map) bytes += key.length + value.length;
			assert.ok(bytes < 1_000, `${bytes} bytes`);
			const { hash, from, nonce, stage, settledAt } = kept ?? {};
			assert.deepEqual(
				[hash, from, nonce, stage, settledAt],
				[record.hash, record.from, "0", record.stage, 10_000],
			);
			assert.deepEqual(kept?.events, events.slice(-1));
			assert.equal(kept?.omitted, events.length);
		} else assert.equal(kept, null);
	});
}

test("a transaction that was never sent and is mined anyway is INCLUDED after a restart", async () => {
	const first = onDisk();
	const transaction = privateTransaction();
	const place = { block: 103, blockHash: "0xb", index: 0, reverted: false };
	const record = recordOf(transaction, CANCELLED);
	await first.store.insert(transaction, record, [], 1);
	assert.ok(fold(record, { type: "included", at: 9_500, ...place }));
	await first.store.update([record], 10_000);
	const again = first.restart();
	assert.equal((await again.store.archived(record.hash))?.stage, "INCLUDED");
	assert.deepEqual(await loaded(again.store), []);
});

test("a failed write is thrown, and the store is not healthy until one succeeds", async () => {
	const kv = new FakeDisk();
	const logged: string[] = [];
	const [error, info] = [
		(message: string) => logged.push(message),
		(message: string) => logged.push(message),
	];
	const store = new TransactionDisk({ kv, damaged: UNDAMAGED, log: { ...silentLogger, error, info } });
	const transaction = privateTransaction();
	assert.ok(await store.check());
	kv.broken = true;
	await assert.rejects(store.insert(transaction, recordOf(transaction), [], 1), {
		...{ kind: "internal", code: -32603 },
		message: "internal error: the store is unavailable, try again",
		data: { reason: "store unavailable" },
	});
	// The updates of a block with nothing to write touch no disk, and prove nothing.
	await store.update([], 1);
	await store.purge(1, ENDED);
	assert.ok(!(await store.check()));
	kv.broken = false;
	assert.ok(await store.check(), "its own small write finds out that the disk is back");
	assert.deepEqual(logged, ["store failed", "store can be written again"]);
});

const TRANSACTION = privateTransaction({ path: "noreverts", softCancellations: true, referrer: "é" });
const BYTES = encodeTransaction(TRANSACTION, 7);
const LENGTH = BYTES.readUInt32BE(0);

/** The entry with another envelope. */
function withEnvelope(json: string): Buffer {
	const head = Buffer.alloc(4);
	head.writeUInt32BE(Buffer.byteLength(json));
	return Buffer.concat([head, Buffer.from(json), BYTES.subarray(4 + LENGTH)]);
}

function changed(fields: Readonly<Record<string, unknown>>): Buffer {
	const envelope: object = JSON.parse(BYTES.toString("utf8", 4, 4 + LENGTH));
	return withEnvelope(JSON.stringify({ ...envelope, ...fields }));
}

function read(key: string, bytes: Buffer, isChecked: boolean): PrivateTransaction {
	const stored = decodeStored(key, bytes, isChecked);
	return ownedTransaction(stored, stored.owners);
}

const DAMAGED: Readonly<Record<string, Buffer>> = {
	"no bytes": Buffer.alloc(0),
	"half a length": Buffer.from([0, 0]),
	"a length and nothing else": BYTES.subarray(0, 4),
	"a length past the end": Buffer.concat([Buffer.from("ffffffff", "hex"), BYTES.subarray(4)]),
	"a cut envelope": BYTES.subarray(0, 20),
	"no transaction": BYTES.subarray(0, 4 + LENGTH),
	"a cut transaction": BYTES.subarray(0, BYTES.length - 1),
	"trailing bytes": Buffer.concat([BYTES, Buffer.from([0])]),
	zeros: Buffer.alloc(200),
	"an envelope that is not JSON": withEnvelope("{path: secret-path}"),
	"an envelope that is null": withEnvelope("null"),
	"no owner": changed({ owners: [] }),
	"an owner that is null": changed({ owners: [null] }),
	"a path that is none": changed({ owners: [{ paths: ["slow"] }] }),
	"a path of every object": changed({ owners: [{ paths: ["toString"] }] }),
	"no path": changed({ owners: [{ paths: [] }] }),
	"no owners": changed({ owners: undefined }),
	"no sender": changed({ from: undefined }),
};
const KEY = `p/${TRANSACTION.tx.hash}`;

test("a damaged entry is refused, and the error names only its key", () => {
	const message = `the store's entry ${KEY} can't be read`;
	for (const isChecked of [true, false]) {
		assert.deepEqual(read(KEY, BYTES, isChecked), TRANSACTION);
		for (const [name, bytes] of Object.entries(DAMAGED)) {
			assert.throws(
				() => decodeStored(KEY, bytes, isChecked),
				(thrown) => thrown instanceof StoreFormatError && thrown.message === message,
				name,
			);
		}
	}
});

test("a start leaves out what is damaged, counts it, and loads the others; what has lost its record is not sent as new", async () => {
	const kv = new FakeDisk();
	const damaged = new DamagedEntries({ log: silentLogger });
	const store = new TransactionDisk({ kv, damaged, log: silentLogger });
	const stored = Array.from({ length: 3 }, (_, nonce) => privateTransaction({ nonce }));
	for (const one of stored) {
		const record = recordOf(one);
		await store.insert(one, record, [], 0);
		await store.update([record], 0);
	}
	const keyOf = (prefix: string, n: number) =>
		[...kv.map.keys()].find((key) => key.startsWith(prefix) && key.endsWith(stored[n]?.tx.hash ?? "")) ?? "";
	kv.map.set(keyOf("t/", 0), Buffer.alloc(9));
	kv.map.set(keyOf("r/", 1), Buffer.from("{"));
	const before = new Map(kv.map);
	const loaded: string[] = [];
	for await (const { record } of store.load()) loaded.push(record.hash);
	assert.deepEqual([loaded, damaged.count], [[stored[2]?.tx.hash], 2]);
	assert.deepEqual(kv.map, before, "they stay where they are");
});

/** Entries that only recovering and hashing shows to be wrong. */
const UNTRUE: Readonly<Record<string, readonly [string, Buffer]>> = {
	"another sender": [KEY, changed({ from: testAccount(7).address })],
	"another hash": [`p/0x${"ab".repeat(32)}`, BYTES],
	"another signature": [KEY, Buffer.from(BYTES).fill(1, BYTES.length - 4)],
};

test("the hash and the sender beside the bytes are believed, but for a sample", async () => {
	for (const [name, [key, bytes]] of Object.entries(UNTRUE)) {
		assert.throws(() => decodeStored(key, bytes, true), StoreFormatError, name);
		const { hash } = decodeStored(key, bytes, false).tx;
		assert.equal(hash, key.slice(2), name);
	}
	const { store, kv } = onDisk();
	const stored = Array.from({ length: 3 }, (_, nonce) => privateTransaction({ nonce }));
	for (const one of stored) await store.insert(one, recordOf(one), [], 1);
	const [first = "", second = ""] = [...kv.map.keys()].sort();
	const lie = Buffer.from(testAccount(7).address);
	const untrue = (key: string) => {
		const bytes = Buffer.from(kv.map.get(key) ?? []);
		lie.copy(bytes, bytes.indexOf(testAccount(0).address));
		return bytes;
	};
	kv.map.set(second, untrue(second));
	assert.equal((await loaded(store))[1]?.transaction.tx.from, testAccount(7).address);
	const count = (await loaded(store)).length;
	kv.map.set(first, untrue(first));
	assert.equal((await loaded(store)).length, count - 1, "the first of a sample");
});

const AT = { at: 1, block: 101 } as const;
const BID = { bundle: "0xb", backrun: "0xc", bid: (2n ** 70n).toString() };
const INCLUDED: TxEvent = { type: "included", ...AT, blockHash: "0x101", index: 0, reverted: false };
const REFUNDED: TxEvent = {
	...{ type: "refunded", ...AT, ...BID, brought: "6", cost: "0", owed: "5" },
	...{ paid: (2n ** 69n + 1n).toString(), payer: "0xd", recipient: "0xe" },
};

/**
 * A life, and whether each event of it must be on disk in a moment, or may wait for the next one
 * that must.
 */
const LIFE: readonly (readonly [TxEvent, boolean])[] = [
	[{ type: "queued", ...AT, reason: "nonceGap" }, true],
	[{ type: "ready", ...AT }, true],
	[{ type: "ready", ...AT }, true],
	[{ type: "joined", ...AT }, true],
	[{ type: "left", ...AT }, true],
	[{ type: "shared", at: 1 }, true],
	[{ type: "simulationFailed", ...AT, error: { code: "OUT_OF_GAS", message: "out of gas" } }, true],
	[{ type: "simulated", ...AT, gasUsed: 1 }, true],
	[{ type: "simulated", ...AT, gasUsed: 1 }, false],
	[{ type: "broadcast", ...AT }, true],
	[{ type: "broadcast", ...AT }, false],
	[{ type: "delivered", ...AT, builder: "b", kind: "bundle", answer: "accepted", ms: 1 }, false],
	[{ type: "delivered", ...AT, builder: "b", kind: "cancel", answer: "accepted", ms: 1 }, true],
	[{ type: "bid", at: 1, bundle: "0xb" }, false],
	[{ type: "bundled", ...AT, ...BID, builders: ["a"] }, true],
	[INCLUDED, true],
	[REFUNDED, true],
	[{ type: "reorged", ...AT }, true],
	[{ type: "cancelled", ...AT, builders: [] }, true],
];

test("changes that a restart could not find out again are written at once, others later", () => {
	const records = new TransactionRecords({ log: silentLogger });
	const record = recordOf(TRANSACTION);
	records.add({ transaction: TRANSACTION, record });
	for (const [event, atOnce] of LIFE) {
		records.emit(record.hash, event);
		assert.deepEqual(records.takeChanged(false, 200), atOnce ? [record] : [], event.type);
		assert.deepEqual(records.takeChanged(true, 200), atOnce ? [] : [record], event.type);
	}
});

test("a record is read back exactly", () => {
	const record = recordOf(TRANSACTION, SENT, { type: "bid", at: 1, bundle: "0xb" }, INCLUDED, REFUNDED);
	assert.deepEqual(decodeRecord("r/0xkey", encodeRecord(record)), record);
	assert.deepEqual(decodeRecord("r/0xkey", encodeRecord(record, true), TRANSACTION), record);
});

test("owners come back as they were, and so does what holds", async () => {
	const { store, restart } = onDisk();
	const strict = privateTransaction({ path: "fullprivacy", submitterAddress: "10.0.0.2" });
	const owners = withoutWish(
		strict.owners.reduce<readonly Owner[]>((all, one) => withOwner(all, one), TRANSACTION.owners),
		"10.0.0.2",
	);
	const transaction = ownedTransaction(TRANSACTION, owners);
	await store.insert(TRANSACTION, recordOf(TRANSACTION), [], 1);
	const record = { ...recordOf(TRANSACTION, { type: "joined", at: 3, block: 100 }), owners };
	await store.changeOwners(record, true);
	assert.deepEqual(await loaded(restart().store), [{ transaction, record }]);
	assert.deepEqual([transaction.path, owners.map((one) => one.cancelled)], ["fullprivacy", [false, true]]);
});
