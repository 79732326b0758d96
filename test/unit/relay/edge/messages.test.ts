// Lists of calls and answers between an edge and the core: none is so large that it keeps the other
// side busy for long.

import assert from "node:assert/strict";
import { test } from "node:test";
import { listTexts } from "../../../../relay/edge/messages.ts";

const MIB = 1024 * 1024;
const message = (length: number): string => JSON.stringify("x".repeat(length - 2));

const ROWS: readonly (readonly [what: string, lengths: readonly number[], lists: readonly number[]])[] = [
	["none", [], []],
	["one", [10], [1]],
	["small ones together", [10, 20, 30], [3]],
	["up to a mebibyte", [MIB / 2, MIB / 2, 10], [2, 1]],
	["a large one alone, with what came before it before it", [10, 2 * MIB, 10, 10], [1, 1, 2]],
	["large ones one by one", [2 * MIB, 2 * MIB, 2 * MIB], [1, 1, 1]],
];

for (const [what, lengths, lists] of ROWS) {
	test(`${what}: ${lists.length} lists, in order`, () => {
		const messages = lengths.map(message);
		const texts = [...listTexts(messages)].map((text) => JSON.parse(text) as unknown[]);
		assert.deepEqual(
			texts.map(({ length }) => length),
			lists,
		);
		assert.deepEqual(
			texts.flat().map((one) => JSON.stringify(one)),
			messages,
		);
	});
}
