// Bytes of the store: there and back again, and a plain refusal of everything that is not what was written.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fold, newRecord } from "../../../../relay/domain/record.ts";
import {
	decodeRecord,
	decodeStored,
	encodeRecord,
	encodeTransaction,
} from "../../../../relay/transactions/disk.ts";
import { StoreFormatError } from "../../../../shared/kv/port.ts";
import { privateTransaction } from "../../../support/txFactory.ts";

const TRANSACTION = privateTransaction({ path: "noreverts", softCancellations: true, referrer: "é" });
const BYTES = encodeTransaction(TRANSACTION, 7);
const LENGTH = BYTES.readUInt32BE(0);

test("there and back again", () => {
	assert.deepEqual(decodeStored("p/x", BYTES), { transaction: TRANSACTION, block: 7 });
});

test("what was read does not change with the engine's memory", () => {
	const memory = Buffer.from(BYTES);
	const { transaction } = decodeStored("p/x", memory);
	memory.fill(0);
	assert.deepEqual(transaction.tx.raw, TRANSACTION.tx.raw);
	assert.deepEqual(transaction.tx.data, TRANSACTION.tx.data);
});

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
	"a path that is none": changed({ path: "slow" }),
	"a path of every object": changed({ path: "toString" }),
};

for (const [name, bytes] of Object.entries(DAMAGED)) {
	test(`refuses ${name}, and tells the key alone`, () => {
		assert.throws(
			() => decodeStored("p/0xkey", bytes),
			(thrown: unknown) => {
				assert.ok(thrown instanceof StoreFormatError, `${thrown}`);
				assert.equal(thrown.code, "STORE_FORMAT");
				assert.equal(thrown.message, "the store's entry p/0xkey can't be read");
				return true;
			},
		);
	});
}

test("a record comes back with its bids and its refund, to the wei", () => {
	const record = newRecord(TRANSACTION);
	const sent = { bundle: "0xb", backrun: "0xc", bid: (2n ** 70n).toString() };
	const paid = (2n ** 69n + 1n).toString();
	const amounts = { brought: "6", cost: "0", owed: "5", paid, payer: "0xd", recipient: "0xe" };
	for (const event of [
		{ type: "received", at: 1, block: 100 },
		{ type: "broadcast", at: 1, block: 101 },
		{ type: "bid", at: 1, bundle: "0xb" },
		{ type: "bundled", at: 1, block: 101, ...sent, builders: ["a"] },
		{ type: "included", at: 1, block: 101, blockHash: "0x101", index: 0, reverted: false },
		{ type: "refunded", at: 1, block: 101, ...sent, ...amounts },
	] as const) {
		assert.ok(fold(record, event), event.type);
	}
	const back = decodeRecord("r/0xkey", encodeRecord(record));
	assert.deepEqual(back, record);
	assert.deepEqual([back.backruns, back.refund], [1, paid]);
});

test("a record of the time before there were bids has had none", () => {
	const { backruns, refund, ...old } = newRecord(TRANSACTION);
	assert.deepEqual([backruns, refund], [0, "0"]);
	const back = decodeRecord("r/0xkey", Buffer.from(JSON.stringify(old)));
	assert.deepEqual(back, newRecord(TRANSACTION));
});
