// The records of transactions: what an event changes; what must be written, and what must never be written.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { TxEvent } from "../../../../relay/domain/events.ts";
import { fold, newRecord, type TransactionRecord } from "../../../../relay/domain/record.ts";
import { type RecordEntry, TransactionRecords } from "../../../../relay/transactions/records.ts";
import { type Logger, silentLogger } from "../../../../shared/log.ts";
import { privateTransaction } from "../../../support/txFactory.ts";

const ready: TxEvent = { type: "ready", at: 2, block: 101 };
const broadcast: TxEvent = { type: "broadcast", at: 3, block: 101 };
const expired: TxEvent = { type: "expired", at: 4, block: 126 };
const delivered: TxEvent = {
	...{ type: "delivered", at: 5, block: 101 },
	...{ builder: "b", kind: "bundle", answer: "accepted", ms: 1 },
};

function entry(nonce = 0): RecordEntry {
	const transaction = privateTransaction({ nonce });
	const record = newRecord(transaction);
	fold(record, { type: "received", at: 1, block: 100 });
	return { transaction, record };
}

function fixture() {
	const logged: string[] = [];
	const log: Logger = {
		...silentLogger,
		error: (message, fields) => logged.push(`${message} ${JSON.stringify(fields)}`),
	};
	const records = new TransactionRecords({ log });
	const told: [string, string][] = [];
	records.subscribe((record, _before, event) => told.push([event.type, record.stage]));
	return { records, logged, told };
}

test("an event changes its record and is told to every listener, after it was folded", () => {
	const { records, told } = fixture();
	const second: string[] = [];
	records.subscribe((record) => second.push(record.hash));
	const one = entry();
	records.open(one);
	records.emit(one.record.hash, ready);
	records.emit(one.record.hash, broadcast);
	assert.equal(records.get(one.record.hash)?.record.stage, "BROADCAST");
	assert.deepEqual(told, [
		["ready", "PENDING"],
		["broadcast", "BROADCAST"],
	]);
	assert.deepEqual(second, [one.record.hash, one.record.hash]);
	assert.deepEqual([records.size, [...records.entries()]], [1, [one]]);
});

test("events of nobody and illegal ones change nothing and are told to nobody; the latter is our fault", () => {
	const { records, told, logged } = fixture();
	const one = entry();
	records.emit(one.record.hash, ready);
	records.open(one);
	records.emit(one.record.hash, { type: "reorged", at: 2, block: 100 });
	assert.equal(one.record.stage, "PENDING");
	assert.deepEqual(told, []);
	assert.deepEqual(records.takeChanged(true, 200), []);
	assert.deepEqual(logged, [
		`illegal transition {"hash":"${one.record.hash}","stage":"PENDING","code":"reorged"}`,
	]);
});

test("what changed is taken once; deliveries alone wait for more", () => {
	const { records } = fixture();
	const [one, two] = [entry(1), entry(2)];
	records.open(one);
	records.open(two);
	records.emit(one.record.hash, broadcast);
	records.emit(two.record.hash, delivered);
	assert.deepEqual(records.takeChanged(false, 200), [one.record]);
	assert.deepEqual(records.takeChanged(false, 200), []);
	assert.deepEqual(records.takeChanged(true, 200), [two.record]);
	assert.deepEqual(records.takeChanged(true, 200), []);
	records.emit(two.record.hash, delivered);
	records.emit(two.record.hash, ready);
	assert.deepEqual(records.takeChanged(true, 200), [two.record]);
});

test("every change of stage, the start of a life and being shared must be written", () => {
	const chain: readonly TxEvent[] = [
		{ type: "queued", at: 2, block: 100, reason: "nonceGap" },
		ready,
		ready,
		{ type: "shared", at: 2 },
		{
			...{ type: "simulationFailed", at: 2, block: 101 },
			error: { code: "OUT_OF_GAS", message: "out of gas" },
		},
		{ type: "simulated", at: 2, block: 101, gasUsed: 1 },
		broadcast,
		{ type: "included", at: 2, block: 101, blockHash: "0xb", index: 0, reverted: false },
		{ type: "reorged", at: 2, block: 101 },
		expired,
	];
	const { records } = fixture();
	const one = entry();
	records.open(one);
	for (const event of chain) {
		records.emit(one.record.hash, event);
		assert.deepEqual(records.takeChanged(false, 200), [one.record], event.type);
	}
});

test("what went out behind it and what was paid must be written; that one more bid came is written with it", () => {
	const { records, told } = fixture();
	const one = entry();
	records.open(one);
	const { hash } = one.record;
	records.emit(hash, broadcast);
	records.takeChanged(false, 200);
	records.emit(hash, { type: "bid", at: 3, bundle: "0xb" });
	assert.deepEqual(records.takeChanged(false, 200), []);
	const sent = { bundle: "0xb", backrun: "0xc", bid: "5" };
	records.emit(hash, { type: "bundled", at: 3, block: 101, ...sent, builders: ["a"] });
	assert.deepEqual(records.takeChanged(false, 200), [one.record]);
	records.emit(hash, { type: "included", at: 4, block: 101, blockHash: "0xb", index: 0, reverted: false });
	records.takeChanged(false, 200);
	const amounts = { brought: "6", cost: "0", owed: "5", paid: "5", payer: "0xd", recipient: "0xe" };
	records.emit(hash, { type: "refunded", at: 5, block: 101, ...sent, ...amounts });
	assert.deepEqual(records.takeChanged(false, 200), [one.record]);
	assert.deepEqual([one.record.backruns, one.record.refund], [1, "5"]);
	assert.deepEqual(
		told.map(([type]) => type),
		["broadcast", "bid", "bundled", "included", "refunded"],
	);
});

test("what could not be written comes again", () => {
	const { records } = fixture();
	const one = entry();
	records.open(one);
	records.emit(one.record.hash, broadcast);
	const taken = records.takeChanged(false, 200);
	records.putBack(taken);
	assert.deepEqual(records.takeChanged(false, 200), taken);
});

test("what was forgotten is not written any more", () => {
	const { records } = fixture();
	const [one, two] = [entry(1), entry(2)];
	for (const each of [one, two]) records.open(each);
	records.emit(one.record.hash, broadcast);
	records.emit(two.record.hash, delivered);
	records.close(one.record);
	records.close(two.record);
	records.close(entry(3).record);
	assert.deepEqual([records.size, records.takeChanged(true, 200)], [0, []]);
});

/** Expired and admitted anew: another record of the same hash, that goes on where the old one ended. */
function anew(old: RecordEntry): RecordEntry {
	const record: TransactionRecord = structuredClone(old.record);
	assert.ok(fold(record, { type: "received", at: 9, block: 200 }));
	return { transaction: old.transaction, record };
}

test("one that is admitted anew is not written over by its former record", () => {
	const { records } = fixture();
	const old = entry();
	records.open(old);
	records.emit(old.record.hash, expired);
	records.emit(old.record.hash, delivered);
	const fresh = anew(old);
	records.open(fresh);
	records.emit(fresh.record.hash, { ...ready, block: 201 });
	assert.deepEqual(records.takeChanged(true, 200), [fresh.record]);
});

test("nor by its former record whose write failed in between", () => {
	const { records } = fixture();
	const old = entry();
	records.open(old);
	records.emit(old.record.hash, expired);
	const taken = records.takeChanged(false, 200);
	const fresh = anew(old);
	records.open(fresh);
	records.putBack(taken);
	assert.ok(!records.takeChanged(true, 200).includes(old.record));
});

test("a preview is the record as it would be, and changes nothing", () => {
	const { records, told } = fixture();
	const one = entry();
	records.open(one);
	const before = structuredClone(one.record);
	const preview = records.preview(one.record.hash, {
		type: "replaced",
		at: 2,
		block: 100,
		by: "0xc",
		builders: [],
	});
	assert.deepEqual([preview?.stage, preview?.ended, preview?.events.length], ["REPLACED", "REPLACED", 2]);
	assert.deepEqual(one.record, before);
	assert.deepEqual([told, records.takeChanged(true, 200)], [[], []]);
	assert.equal(records.preview(one.record.hash, { type: "reorged", at: 2, block: 1 }), null);
	assert.equal(records.preview("0xnobody", ready), null);
});

test("what comes is told with the stage that it had before; what a start takes up is not", () => {
	const { records } = fixture();
	const told: string[] = [];
	records.subscribe((record, before, event) => told.push(`${event.type} ${before} ${record.stage}`));
	const [one, restored] = [entry(0), entry(1)];
	records.receive(one);
	records.open(restored);
	records.emit(one.record.hash, expired);
	records.receive(anew(one));
	assert.deepEqual(told, ["received PENDING PENDING", "expired PENDING EXPIRED", "received EXPIRED PENDING"]);
	// A soft cancel comes ended.
	const cancel = entry(2);
	fold(cancel.record, { type: "cancelled", at: 2, block: 100, builders: [] });
	records.receive(cancel);
	assert.equal(told.at(-1), "cancelled PENDING CANCELLED");
});
