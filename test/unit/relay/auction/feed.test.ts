// Tests the fields of a shared transaction that searchers see, for each type.

import assert from "node:assert/strict";
import { test } from "node:test";
import { partialPendingTransaction } from "../../../../relay/auction/feed.ts";
import type { DecodedTransaction } from "../../../../shared/ethereum/transaction.ts";
import type { TransactionType } from "../../../../shared/ethereum/transactionFields.ts";
import { signedTransaction, type TxOptions, testAccount } from "../../../support/txFactory.ts";

/** The contract that an authorization lets an account run. */
const CODE = `0x${"de".repeat(20)}`;
/** The fields of the interface, section 2.3, in its order. */
const GIVEN = [
	...["chainId", "to", "value", "data", "accessList", "nonce", "maxPriorityFeePerGas", "maxFeePerGas"],
	...["gas", "type", "hash", "from"],
];
/** Beside those of the interface. */
const MORE: Readonly<Record<TransactionType, readonly string[]>> = {
	0: ["gasPrice"],
	1: ["gasPrice"],
	2: [],
	3: ["maxFeePerBlobGas", "blobVersionedHashes"],
	4: [],
};
const PRICE = { gasPrice: "0x7", maxPriorityFeePerGas: "0x7", maxFeePerGas: "0x7" };
/** A transaction that is sent, and the fields that are shown of it. */
const SENT: readonly (readonly [TxOptions, Record<string, unknown>])[] = [
	[
		{ type: 0, gasPrice: 7 },
		{ ...PRICE, type: "0x0", accessList: [] },
	],
	[
		{ type: 1, gasPrice: 7 },
		{ ...PRICE, type: "0x1" },
	],
	[
		{ maxFeePerGas: 2n ** 256n - 1n, maxPriorityFeePerGas: 0, nonce: 255, data: "0xA900", value: 16 },
		{
			...{ type: "0x2", maxFeePerGas: `0x${"f".repeat(64)}`, maxPriorityFeePerGas: "0x0" },
			...{ nonce: "0xff", data: "0xa900", value: "0x10", chainId: "0x7a69" },
		},
	],
	[
		{ to: null, data: "0x" },
		{ to: null, data: "0x" },
	],
	[
		{ type: 3, blobs: 2, maxFeePerBlobGas: 7 },
		{ type: "0x3", maxFeePerBlobGas: "0x7" },
	],
	[{ type: 4, authorizations: [{ by: testAccount(9), address: CODE }] }, { type: "0x4" }],
];

/** Halves of signatures as text: in hex with and without leading zeros, and in digits. */
function secretsOf(tx: DecodedTransaction): string[] {
	const halves = [tx.r, tx.s, ...tx.authorizationList.flatMap(({ r, s }) => [r, s])];
	return halves.flatMap((one) => [one.toString(16), one.toString(16).padStart(64, "0"), one.toString()]);
}

test("each type shows the interface's fields in order, and nothing of a signature", () => {
	for (const [options, expected] of SENT) {
		const tx = signedTransaction(options);
		const shown = partialPendingTransaction(tx);
		const name = JSON.stringify(expected);
		assert.deepEqual({ ...shown, ...expected }, shown, name);
		assert.deepEqual(
			Object.keys(shown).filter((field) => !MORE[tx.type].includes(field)),
			GIVEN,
			name,
		);
		for (const field of MORE[tx.type]) assert.ok(field in shown, `${name}: ${field}`);
		const authorities = [CODE.slice(2), testAccount(9).address.slice(2)];
		for (const secret of [...secretsOf(tx), tx.raw.toString("hex"), ...authorities])
			assert.ok(!JSON.stringify(shown).includes(secret), `${name}: a signature is shown`);
	}
});
