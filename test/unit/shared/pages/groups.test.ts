// Refunds are grouped by month with few reads of blocks, however many there are.

import assert from "node:assert/strict";
import { test } from "node:test";

// The pages' scripts have no types.
const path = "../../../../shared/pages/groups.js";
const { groups } = (await import(path)) as {
	groups<T>(items: readonly T[], keyOf: (item: T) => Promise<string>): Promise<[string, T[]][]>;
};

const ROWS: readonly (readonly [items: string, grouped: string])[] = [
	["", ""],
	["a", "a"],
	["ab", "a b"],
	["aab", "aa b"],
	["abb", "a bb"],
	["aabbbcd", "aa bbb c d"],
	["abcdefg", "a b c d e f g"],
	["aaaaaaaaab", "aaaaaaaaa b"],
];

test("each run of one key is one group, in the order of the items", async () => {
	for (const [items, grouped] of ROWS) {
		const found = await groups([...items], async (item) => item);
		assert.equal(found.map(([, run]) => run.join("")).join(" "), grouped);
		assert.ok(found.every(([key, run]) => run.every((item) => item === key)));
	}
});

test("a year of refunds takes a few reads for each month", async () => {
	const items = Array.from({ length: 12_000 }, (_, i) => Math.floor(i / 1_000));
	let reads = 0;
	const found = await groups(items, async (item) => {
		reads += 1;
		return String(item);
	});
	assert.equal(found.length, 12);
	assert.ok(reads < 12 * 25, `${reads} reads`);
});
