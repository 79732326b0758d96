// Tests that a long call says what a short one does: its parts are made while they are sent.

import assert from "node:assert/strict";
import { test } from "node:test";
import { signedCall } from "../../../../../relay/simulation/engines/nodeObjects.ts";
import { TransactionPacker } from "../../../../../relay/transactions/packedTransaction.ts";
import { entriesOf } from "../../../../../shared/ethereum/transactionFields.ts";
import { longJson } from "../../../../../shared/jsonrpc/longJson.ts";
import { signedTransaction, type TxOptions } from "../../../../support/txFactory.ts";

const word = (n: number, length: number): string => `0x${n.toString(16).padStart(2 * length, "0")}`;
const list = (entries: number, keys: (i: number) => number) =>
	Array.from({ length: entries }, (_, i) => ({
		address: word(i, 20),
		storageKeys: Array.from({ length: keys(i) }, (_, key) => word(key, 32)),
	}));

const SHAPES: Readonly<Record<string, TxOptions>> = {
	short: { accessList: list(1, () => 1), data: Buffer.alloc(10, 1) },
	"of much data": { data: Buffer.alloc(100_000, 7) },
	"with just enough entries to be long": { accessList: list(32, () => 1) },
	"with an entry more": { accessList: list(33, () => 0) },
	"with entries of no, one and more keys": { accessList: list(500, (i) => i % 4) },
	"with one entry of many keys": { accessList: list(1, () => 500) },
	"of both": { accessList: list(100, () => 3), data: Buffer.alloc(50_000, 9) },
};

for (const [name, options] of Object.entries(SHAPES))
	test(`the call of a transaction ${name}`, () => {
		const tx = signedTransaction(options);
		const { data, accessList } = tx;
		const packed = new TransactionPacker().pack(tx, undefined);
		const json = longJson({ call: signedCall(packed) });
		const text = typeof json === "string" ? json : json.whole().toString();
		if (typeof json !== "string") assert.equal(json.byteLength, text.length);
		assert.deepEqual(JSON.parse(text).call, {
			...JSON.parse(JSON.stringify(signedCall(signedTransaction({ ...options, data: Buffer.alloc(0) })))),
			input: `0x${data.toString("hex")}`,
			...(accessList.addresses === 0 ? {} : { accessList: entriesOf(accessList) }),
		});
	});
