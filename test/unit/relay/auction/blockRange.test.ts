// Tests a bundle's blocks against the interface's rules on block numbers, at head 100.

import assert from "node:assert/strict";
import { test } from "node:test";
import { blockRange, comingOf } from "../../../../relay/domain/bundle.ts";

/** First and last as asked for; the range, or how the refusal's message begins. */
const ROWS: readonly (readonly [bigint | null, bigint | null, readonly [number, number] | string])[] = [
	[null, null, [101, 101]],
	[100n, null, [101, 101]],
	[100n, 100n, [101, 101]],
	[101n, null, [101, 101]],
	[101n, 101n, [101, 101]],
	[102n, null, [102, 102]],
	[130n, null, [130, 130]],
	[130n, 160n, [130, 160]],
	[100n, 105n, [101, 105]],
	[1n, 105n, [101, 105]],
	[0n, 101n, [101, 101]],
	[99n, null, "BLOCK_PAST bundle block 99 is in the past"],
	[0n, null, "BLOCK_PAST bundle block 0 is in the past"],
	[98n, 100n, "BLOCK_PAST bundle block 100 is in the past"],
	[131n, null, "BLOCK_TOO_FAR bundle block 131 is too far ahead"],
	[131n, 140n, "BLOCK_TOO_FAR bundle block 131 is too far ahead"],
	[2n ** 64n, null, `BLOCK_TOO_FAR bundle block ${2n ** 64n} is too far ahead`],
];
for (const [first, last, expected] of ROWS) {
	test(`${first} to ${last} is ${expected}`, () => {
		const range = blockRange({ first, last }, 100);
		const told = range.ok ? [range.first, range.last] : `${range.code} ${range.message}`;
		assert.deepEqual(told, expected);
	});
}

/** Asked for at head 100 and read again when the next block is so and so. */
const COMING: readonly (readonly [
	bigint | null,
	bigint | null,
	number,
	readonly [number, number] | string,
])[] = [
	[null, null, 101, [101, 101]],
	[null, null, 103, [103, 103]],
	[101n, null, 101, [101, 101]],
	[101n, null, 102, "BLOCK_PAST bundle block 101 is in the past"],
	[100n, null, 102, "BLOCK_PAST bundle block 101 is in the past"],
	[105n, null, 103, [105, 105]],
	[99n, 104n, 103, [103, 104]],
	[99n, 104n, 104, [104, 104]],
	[99n, 104n, 105, "BLOCK_PAST bundle block 104 is in the past"],
	// A reorganisation may have lowered the head.
	[105n, 107n, 100, [105, 107]],
];
for (const [first, last, next, expected] of COMING) {
	test(`${first} to ${last}, when ${next} is the next block, is ${expected}`, () => {
		const asked = { first, last };
		const range = blockRange(asked, 100);
		assert.ok(range.ok);
		const coming = comingOf(asked, range, next);
		assert.deepEqual(coming.ok ? [coming.first, coming.last] : `${coming.code} ${coming.message}`, expected);
	});
}
