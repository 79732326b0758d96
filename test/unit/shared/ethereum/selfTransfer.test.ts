// What counts as a transfer to oneself, by type and content.

import assert from "node:assert/strict";
import { test } from "node:test";
import { isSelfTransfer } from "../../../../shared/ethereum/transaction.ts";
import { signedTransaction, testAccount } from "../../../support/txFactory.ts";

const BY = testAccount(3);
const SELF = { by: BY, to: BY.address };

test("a transfer to its own sender is one, whatever its value and fees", () => {
	for (const options of [{ type: 0 }, { type: 1 }, { type: 2 }, { value: 0n }, { value: 5n }] as const) {
		assert.equal(isSelfTransfer(signedTransaction({ ...SELF, ...options })), true, `${Object.keys(options)}`);
	}
});

test("data, blobs, a delegation, a creation or another receiver: it is none", () => {
	const rows = [
		{ ...SELF, data: "0x00" },
		{ ...SELF, type: 3 },
		{ ...SELF, type: 4 },
		{ by: BY, to: null },
		{ by: BY, to: testAccount(4).address },
	] as const;
	for (const options of rows) {
		assert.equal(isSelfTransfer(signedTransaction(options)), false, `${Object.keys(options)}`);
	}
});
