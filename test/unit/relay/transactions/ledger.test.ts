// The ledger: events in, records and news out; what must be written, and what must never be written.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { TxEvent } from "../../../../relay/domain/events.ts";
import { fold, newRecord, type TransactionRecord } from "../../../../relay/domain/record.ts";
import { Ledger, type LedgerEntry } from "../../../../relay/transactions/ledger.ts";
import { type Logger, silentLogger } from "../../../../shared/log.ts";
import { privateTransaction } from "../../../support/txFactory.ts";

const ready: TxEvent = { type: "ready", at: 2, block: 101 };
const broadcast: TxEvent = { type: "broadcast", at: 3, block: 101 };
const expired: TxEvent = { type: "expired", at: 4, block: 126 };
const delivered: TxEvent = {
	...{ type: "delivered", at: 5, block: 101 },
	...{ builder: "b", kind: "bundle", answer: "accepted", ms: 1 },
};

function entry(nonce = 0): LedgerEntry {
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
	const ledger = new Ledger({ log });
	const told: [string, string][] = [];
	ledger.subscribe((record, _before, event) => told.push([event.type, record.stage]));
	return { ledger, logged, told };
}

test("an event changes its record and is told to every listener, after it was folded", () => {
	const { ledger, told } = fixture();
	const second: string[] = [];
	ledger.subscribe((record) => second.push(record.hash));
	const one = entry();
	ledger.open(one);
	ledger.emit(one.record.hash, ready);
	ledger.emit(one.record.hash, broadcast);
	assert.equal(ledger.get(one.record.hash)?.record.stage, "BROADCAST");
	assert.deepEqual(told, [
		["ready", "PENDING"],
		["broadcast", "BROADCAST"],
	]);
	assert.deepEqual(second, [one.record.hash, one.record.hash]);
	assert.deepEqual([ledger.size, [...ledger.entries()]], [1, [one]]);
});

test("events of nobody and illegal ones change nothing and are told to nobody; the latter is our fault", () => {
	const { ledger, told, logged } = fixture();
	const one = entry();
	ledger.emit(one.record.hash, ready);
	ledger.open(one);
	ledger.emit(one.record.hash, { type: "reorged", at: 2, block: 100 });
	assert.equal(one.record.stage, "PENDING");
	assert.deepEqual(told, []);
	assert.deepEqual(ledger.takeChanged(true, 200), []);
	assert.deepEqual(logged, [
		`illegal transition {"hash":"${one.record.hash}","stage":"PENDING","code":"reorged"}`,
	]);
});

test("what changed is taken once; deliveries alone wait for more", () => {
	const { ledger } = fixture();
	const [one, two] = [entry(1), entry(2)];
	ledger.open(one);
	ledger.open(two);
	ledger.emit(one.record.hash, broadcast);
	ledger.emit(two.record.hash, delivered);
	assert.deepEqual(ledger.takeChanged(false, 200), [one.record]);
	assert.deepEqual(ledger.takeChanged(false, 200), []);
	assert.deepEqual(ledger.takeChanged(true, 200), [two.record]);
	assert.deepEqual(ledger.takeChanged(true, 200), []);
	ledger.emit(two.record.hash, delivered);
	ledger.emit(two.record.hash, ready);
	assert.deepEqual(ledger.takeChanged(true, 200), [two.record]);
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
	const { ledger } = fixture();
	const one = entry();
	ledger.open(one);
	for (const event of chain) {
		ledger.emit(one.record.hash, event);
		assert.deepEqual(ledger.takeChanged(false, 200), [one.record], event.type);
	}
});

test("what went out behind it and what was paid must be written; that one more bid came is written with it", () => {
	const { ledger, told } = fixture();
	const one = entry();
	ledger.open(one);
	const { hash } = one.record;
	ledger.emit(hash, broadcast);
	ledger.takeChanged(false, 200);
	ledger.emit(hash, { type: "bid", at: 3, bundle: "0xb" });
	assert.deepEqual(ledger.takeChanged(false, 200), []);
	const sent = { bundle: "0xb", backrun: "0xc", bid: "5" };
	ledger.emit(hash, { type: "bundled", at: 3, block: 101, ...sent, builders: ["a"] });
	assert.deepEqual(ledger.takeChanged(false, 200), [one.record]);
	ledger.emit(hash, { type: "included", at: 4, block: 101, blockHash: "0xb", index: 0, reverted: false });
	ledger.takeChanged(false, 200);
	const amounts = { brought: "6", cost: "0", owed: "5", paid: "5", payer: "0xd", recipient: "0xe" };
	ledger.emit(hash, { type: "refunded", at: 5, block: 101, ...sent, ...amounts });
	assert.deepEqual(ledger.takeChanged(false, 200), [one.record]);
	assert.deepEqual([one.record.backruns, one.record.refund], [1, "5"]);
	assert.deepEqual(
		told.map(([type]) => type),
		["broadcast", "bid", "bundled", "included", "refunded"],
	);
});

test("what could not be written comes again", () => {
	const { ledger } = fixture();
	const one = entry();
	ledger.open(one);
	ledger.emit(one.record.hash, broadcast);
	const taken = ledger.takeChanged(false, 200);
	ledger.putBack(taken);
	assert.deepEqual(ledger.takeChanged(false, 200), taken);
});

test("what was forgotten is not written any more", () => {
	const { ledger } = fixture();
	const [one, two] = [entry(1), entry(2)];
	for (const each of [one, two]) ledger.open(each);
	ledger.emit(one.record.hash, broadcast);
	ledger.emit(two.record.hash, delivered);
	ledger.close(one.record);
	ledger.close(two.record);
	ledger.close(entry(3).record);
	assert.deepEqual([ledger.size, ledger.takeChanged(true, 200)], [0, []]);
});

/** Expired and admitted anew: another record of the same hash, that goes on where the old one ended. */
function anew(old: LedgerEntry): LedgerEntry {
	const record: TransactionRecord = structuredClone(old.record);
	assert.ok(fold(record, { type: "received", at: 9, block: 200 }));
	return { transaction: old.transaction, record };
}

test("one that is admitted anew is not written over by its former record", () => {
	const { ledger } = fixture();
	const old = entry();
	ledger.open(old);
	ledger.emit(old.record.hash, expired);
	ledger.emit(old.record.hash, delivered);
	const fresh = anew(old);
	ledger.open(fresh);
	ledger.emit(fresh.record.hash, { ...ready, block: 201 });
	assert.deepEqual(ledger.takeChanged(true, 200), [fresh.record]);
});

test("nor by its former record whose write failed in between", () => {
	const { ledger } = fixture();
	const old = entry();
	ledger.open(old);
	ledger.emit(old.record.hash, expired);
	const taken = ledger.takeChanged(false, 200);
	const fresh = anew(old);
	ledger.open(fresh);
	ledger.putBack(taken);
	assert.ok(!ledger.takeChanged(true, 200).includes(old.record));
});

test("a preview is the record as it would be, and changes nothing", () => {
	const { ledger, told } = fixture();
	const one = entry();
	ledger.open(one);
	const before = structuredClone(one.record);
	const preview = ledger.preview(one.record.hash, {
		type: "replaced",
		at: 2,
		block: 100,
		by: "0xc",
		builders: [],
	});
	assert.deepEqual([preview?.stage, preview?.ended, preview?.events.length], ["REPLACED", "REPLACED", 2]);
	assert.deepEqual(one.record, before);
	assert.deepEqual([told, ledger.takeChanged(true, 200)], [[], []]);
	assert.equal(ledger.preview(one.record.hash, { type: "reorged", at: 2, block: 1 }), null);
	assert.equal(ledger.preview("0xnobody", ready), null);
});

test("what comes is told with the stage that it had before; what a start takes up is not", () => {
	const { ledger } = fixture();
	const told: string[] = [];
	ledger.subscribe((record, before, event) => told.push(`${event.type} ${before} ${record.stage}`));
	const [one, restored] = [entry(0), entry(1)];
	ledger.receive(one);
	ledger.open(restored);
	ledger.emit(one.record.hash, expired);
	ledger.receive(anew(one));
	assert.deepEqual(told, ["received PENDING PENDING", "expired PENDING EXPIRED", "received EXPIRED PENDING"]);
	// A soft cancel comes ended.
	const cancel = entry(2);
	fold(cancel.record, { type: "cancelled", at: 2, block: 100, builders: [] });
	ledger.receive(cancel);
	assert.equal(told.at(-1), "cancelled PENDING CANCELLED");
});
