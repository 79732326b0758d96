// The feed: each transaction once, behind its event; and what searchers see of it: exactly the given fields for every type,
// and no byte of a signature, a blob or an authorization.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createFeed, partialPendingTransaction } from "../../../../relay/auction/feed.ts";
import type { TxEvent } from "../../../../relay/domain/events.ts";
import type { DecodedTransaction } from "../../../../shared/ethereum/transaction.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import {
	privateTransaction,
	signedTransaction,
	type TxOptions,
	testAccount,
} from "../../../support/txFactory.ts";

test("each is taken down first and shown then, since whoever hears of it may bid at once; and shown once", () => {
	const order: unknown[] = [];
	const shared = new Set<string>();
	const feed = createFeed({
		publisher: { publish: (topic, make) => void order.push([topic, make()]) },
		events: {
			emit(hash: string, event: TxEvent) {
				shared.add(hash);
				order.push([hash, event]);
			},
		},
		isNew: (hash) => !shared.has(hash),
		clock: new ManualClock(5_000),
	});
	const [one, two] = [privateTransaction({ nonce: 1 }), privateTransaction({ nonce: 2 })];
	for (const transaction of [one, two, one, two]) feed(transaction);
	const expected = [one, two].flatMap(({ tx }) => [
		[tx.hash, { type: "shared", at: 5_000 }],
		["pendingTransactions", partialPendingTransaction(tx)],
	]);
	assert.deepEqual(order, expected);
});

const TO = `0x${"c0".repeat(20)}`;
/** What an authorization lets an account run. */
const CODE = `0x${"de".repeat(20)}`;
const MAX = 2n ** 256n - 1n;
const ALL_SET = `0x${"f".repeat(64)}`;
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
	[
		"EIP-7702",
		{ ...COMMON, ...FEES, type: 4, authorizations: [{ by: testAccount(9), address: CODE }] },
		{ ...SHOWN, ...TWO_FEES, type: "0x4" },
	],
	[
		"a creation without data",
		{ ...COMMON, ...FEES, to: null, data: "0x" },
		{ ...SHOWN, ...TWO_FEES, type: "0x2", to: null, data: "0x" },
	],
	[
		"numbers at their limits",
		{ ...COMMON, value: MAX, maxFeePerGas: MAX, maxPriorityFeePerGas: 0n, nonce: 2n ** 64n - 2n },
		{
			...SHOWN,
			...TWO_FEES,
			type: "0x2",
			value: ALL_SET,
			maxFeePerGas: ALL_SET,
			nonce: "0xfffffffffffffffe",
		},
	],
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
	test(`of ${name} the interface's fields are shown in its order, and nothing of a signature`, () => {
		const tx = signedTransaction(options);
		const shown = partialPendingTransaction(tx);
		assert.deepEqual(shown, { ...expected, hash: tx.hash });
		const fields = Object.keys(shown).filter((field) => GIVEN.includes(field));
		assert.deepEqual(fields, GIVEN);
		const text = JSON.stringify(shown);
		assert.deepEqual(JSON.parse(text), shown);
		const secrets = [
			...secretsOf(tx),
			tx.raw.toString("hex"),
			CODE.slice(2),
			testAccount(9).address.slice(2),
		];
		for (const secret of secrets) assert.ok(!text.includes(secret), "a signature is shown");
	});
}
