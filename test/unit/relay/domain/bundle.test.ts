// Tests a bundle's blocks and hash as tables.

import assert from "node:assert/strict";
import { test } from "node:test";
import { blockRange, bundleHash, comingOf } from "../../../../relay/domain/bundle.ts";
import { keccak256 } from "../../../../shared/ethereum/signatures.ts";

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
