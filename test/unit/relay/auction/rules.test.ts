// Tests the auction's rules as tables: block ranges, bundle names, and the fields of a shared transaction that searchers see.
// payments.test.ts and places.test.ts have those about payments and places.

import assert from "node:assert/strict";
import { test } from "node:test";
import { backrunName } from "../../../../relay/auction/bid.ts";
import { partialPendingTransaction } from "../../../../relay/auction/feed.ts";
import { nameOf } from "../../../../relay/auction/plainBundle.ts";
import { blockRange, bundleHash, comingOf } from "../../../../relay/domain/bundle.ts";
import { keccak256 } from "../../../../shared/ethereum/signatures.ts";
import type { DecodedTransaction } from "../../../../shared/ethereum/transaction.ts";
import { signedTransaction, type TxOptions, testAccount } from "../../../support/txFactory.ts";

/** A range, or how the refusal's message begins. */
type Expected = readonly [number, number] | string;

/** First and last as asked for at head 100. */
const RANGES: readonly (readonly [bigint | null, bigint | null, Expected])[] = [
	[null, null, [101, 101]],
	[100n, null, [101, 101]],
	[100n, 100n, [101, 101]],
	[101n, null, [101, 101]],
	[130n, null, [130, 130]],
	[130n, 160n, [130, 160]],
	[100n, 105n, [101, 105]],
	[1n, 105n, [101, 105]],
	[99n, null, "BLOCK_PAST bundle block 99 is in the past"],
	[98n, 100n, "BLOCK_PAST bundle block 100 is in the past"],
	[131n, null, "BLOCK_TOO_FAR bundle block 131 is too far ahead"],
	[2n ** 64n, null, `BLOCK_TOO_FAR bundle block ${2n ** 64n} is too far ahead`],
];

/** Asked for at head 100 and read again when the next block is so and so. */
const COMING: readonly (readonly [bigint | null, bigint | null, number, Expected])[] = [
	[null, null, 103, [103, 103]],
	[101n, null, 102, "BLOCK_PAST bundle block 101 is in the past"],
	[100n, null, 102, "BLOCK_PAST bundle block 101 is in the past"],
	[105n, null, 103, [105, 105]],
	[99n, 104n, 103, [103, 104]],
	[99n, 104n, 105, "BLOCK_PAST bundle block 104 is in the past"],
	// A reorganisation may have lowered the head.
	[105n, 107n, 100, [105, 107]],
];

const textOf = (range: ReturnType<typeof blockRange>) =>
	range.ok ? [range.first, range.last] : `${range.code} ${range.message}`;

test("a bundle is for the requested blocks that are still to come, 30 ahead at most", () => {
	for (const [first, last, expected] of RANGES) {
		assert.deepEqual(textOf(blockRange({ first, last }, 100)), expected, `${first} to ${last}`);
	}
	for (const [first, last, next, expected] of COMING) {
		const asked = { first, last };
		const range = blockRange(asked, 100);
		assert.ok(range.ok);
		assert.deepEqual(textOf(comingOf(asked, range, next)), expected, `${first} to ${last} at ${next}`);
	}
});

test("a bundle's hash is the keccak256 of its transactions' concatenated hashes", () => {
	const [a, b] = [`0x${"0a".repeat(32)}`, `0x${"b0".repeat(32)}`];
	const of = (hex: string) => `0x${Buffer.from(keccak256(Buffer.from(hex, "hex"))).toString("hex")}`;
	assert.equal(bundleHash([a, b]), of("0a".repeat(32) + "b0".repeat(32)));
	assert.equal(bundleHash([]), "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470");
});

test("a bid is named by client and target, a plain bundle by its uuid or its content, and no two names collide", () => {
	const names = [
		...[backrunName("0xt", "me"), backrunName("0xu", "me"), backrunName("0xt", "you")],
		nameOf("me", "u", ["0xb", 101, 101]),
		nameOf("you", "u", ["0xb", 101, 101]),
		nameOf("me", "0xb", []),
		nameOf("me", null, ["0xb", 101, 101]),
		nameOf("me", null, ["0xb", 102, 102]),
		nameOf("me", '["0xb",101,101]', []),
		nameOf('me","u', "u", []),
	];
	assert.equal(new Set(names).size, names.length, "names collide");
	assert.equal(nameOf("me", "u", ["0xb"]), nameOf("me", "u", ["0xc"]));
});

/** What an authorization lets an account run. */
const CODE = `0x${"de".repeat(20)}`;
/** The fields of the interface, section 2.3, in its order. */
const GIVEN = [
	...["chainId", "to", "value", "data", "accessList", "nonce", "maxPriorityFeePerGas", "maxFeePerGas"],
	...["gas", "type", "hash", "from"],
];
const PRICE = { gasPrice: "0x7", maxPriorityFeePerGas: "0x7", maxFeePerGas: "0x7" };
/** What is sent, and what is shown of it. */
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
		const more = ["gasPrice", "maxFeePerBlobGas", "blobVersionedHashes"];
		assert.deepEqual({ ...shown, ...expected }, shown, name);
		assert.deepEqual(
			Object.keys(shown).filter((field) => !more.includes(field)),
			GIVEN,
			name,
		);
		const authorities = [CODE.slice(2), testAccount(9).address.slice(2)];
		for (const secret of [...secretsOf(tx), tx.raw.toString("hex"), ...authorities])
			assert.ok(!JSON.stringify(shown).includes(secret), `${name}: a signature is shown`);
	}
});
