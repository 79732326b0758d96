// What searchers see: exactly the given fields for every type, and no byte of a signature, a blob or an authorization.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { partialPendingTransaction } from "../../../../relay/auction/feed.ts";
import type { DecodedTransaction } from "../../../../shared/ethereum/transaction.ts";
import { signedTransaction, type TxOptions, testAccount } from "../../../support/txFactory.ts";

const TO = `0x${"c0".repeat(20)}`;
const ACCESS_LIST = [{ address: `0x${"aa".repeat(20)}`, storageKeys: [`0x${"11".repeat(32)}`] }];
const COMMON = {
	nonce: 255n,
	gasLimit: 300_000n,
	to: TO,
	value: 10n ** 18n,
	data: "0xA9059CBB00",
	by: testAccount(5),
};
const FEES = { maxFeePerGas: 30_000_000_000n, maxPriorityFeePerGas: 0n };

/** The fields of the interface, section 2.3, in its order. */
const GIVEN = [
	...["chainId", "to", "value", "data", "accessList", "nonce", "maxPriorityFeePerGas", "maxFeePerGas"],
	...["gas", "type", "hash", "from"],
];
const SHOWN = {
	chainId: "0x7a69",
	to: TO,
	value: "0xde0b6b3a7640000",
	data: "0xa9059cbb00",
	accessList: [],
	nonce: "0xff",
	gas: "0x493e0",
	from: testAccount(5).address,
};
const TWO_FEES = { maxPriorityFeePerGas: "0x0", maxFeePerGas: "0x6fc23ac00" };
const ONE_PRICE = {
	gasPrice: "0x6fc23ac00",
	maxPriorityFeePerGas: "0x6fc23ac00",
	maxFeePerGas: "0x6fc23ac00",
};

const CASES: readonly (readonly [string, TxOptions, Record<string, unknown>])[] = [
	["legacy", { ...COMMON, type: 0, gasPrice: 30_000_000_000n }, { ...SHOWN, ...ONE_PRICE, type: "0x0" }],
	[
		"EIP-2930",
		{ ...COMMON, type: 1, gasPrice: 30_000_000_000n, accessList: ACCESS_LIST },
		{ ...SHOWN, ...ONE_PRICE, type: "0x1", accessList: ACCESS_LIST },
	],
	[
		"EIP-1559",
		{ ...COMMON, ...FEES, accessList: ACCESS_LIST },
		{ ...SHOWN, ...TWO_FEES, type: "0x2", accessList: ACCESS_LIST },
	],
	[
		"EIP-4844",
		{ ...COMMON, ...FEES, type: 3, blobs: 2, maxFeePerBlobGas: 7n },
		{
			...SHOWN,
			...TWO_FEES,
			type: "0x3",
			maxFeePerBlobGas: "0x7",
			blobVersionedHashes: Array(2).fill(
				"0x010657f37554c781402a22917dee2f75def7ab966d7b770905398eba3c444014",
			),
		},
	],
	["EIP-7702", { ...COMMON, ...FEES, type: 4 }, { ...SHOWN, ...TWO_FEES, type: "0x4" }],
];

/** As text, in every notation in which it could stand somewhere: 32 bytes in full, and without leading zeros. */
function notations(value: bigint): string[] {
	const hex = value.toString(16);
	return [hex, hex.padStart(64, "0"), value.toString()];
}

function secretsOf(tx: DecodedTransaction): string[] {
	const authorizations = tx.authorizationList.flatMap(({ r, s }) => [r, s]);
	return [tx.r, tx.s, ...authorizations].flatMap(notations);
}

for (const [name, options, expected] of CASES) {
	describe(name, () => {
		const tx = signedTransaction(options);
		const shown = partialPendingTransaction(tx);

		test("has exactly its fields", () => {
			assert.deepEqual(shown, { ...expected, hash: tx.hash });
		});

		test("has every field of the interface, whatever the type, in the interface's order", () => {
			assert.deepEqual(
				Object.keys(shown).filter((field) => GIVEN.includes(field)),
				GIVEN,
			);
		});

		test("is JSON, and no byte of a signature or of the raw transaction is in it", () => {
			const text = JSON.stringify(shown);
			assert.deepEqual(JSON.parse(text), shown);
			const secrets = secretsOf(tx);
			assert.ok(secrets.length >= 6);
			for (const secret of secrets) assert.ok(!text.includes(secret), "a signature is shown");
			assert.ok(!text.includes(tx.raw.toString("hex")));
			for (const field of ["v", "r", "s", "yParity", "authorizationList", "sidecar", "blobs", "raw"])
				assert.ok(!(field in shown), field);
		});
	});
}

test("a creation has `to` null, and empty data is 0x", () => {
	const { to, data } = partialPendingTransaction(signedTransaction({ to: null, data: "0x" }));
	assert.deepEqual([to, data], [null, "0x"]);
	for (const type of [0, 1, 2, 4] as const) {
		assert.equal(partialPendingTransaction(signedTransaction({ type })).data, "0x");
	}
});

test("an authorization shows by nothing but the type", () => {
	const by = testAccount(9);
	const code = `0x${"de".repeat(20)}`;
	const tx = signedTransaction({ type: 4, authorizations: [{ by, address: code }] });
	const text = JSON.stringify(partialPendingTransaction(tx));
	assert.equal(tx.authorizationList.length, 1);
	assert.ok(!text.includes(code.slice(2)) && !text.includes(by.address.slice(2)));
});

test("numbers at their limits", () => {
	const max = 2n ** 256n - 1n;
	const shown = partialPendingTransaction(
		signedTransaction({ value: max, maxFeePerGas: max, nonce: 2n ** 64n - 2n }),
	);
	assert.deepEqual(
		[shown.value, shown.maxFeePerGas, shown.nonce],
		[`0x${"f".repeat(64)}`, `0x${"f".repeat(64)}`, "0xfffffffffffffffe"],
	);
});
