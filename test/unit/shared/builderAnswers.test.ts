// Builders' answers, in words.

import assert from "node:assert/strict";
import { test } from "node:test";
import { builderAnswers } from "../../../shared/builderAnswers.ts";

/** Deliveries, each as "builder answer block", or with a kind in front of that. */
function deliveries(...texts: readonly string[]) {
	return texts.map((text) => {
		const [block = "", answer = "", builder = "", kind = "bundle"] = text.split(" ").reverse();
		return { builder, kind, answer, block: Number(block) };
	});
}

const ROWS: readonly (readonly [readonly string[], string | null])[] = [
	[[], null],
	[["a unsent 7", "cancel a accepted 7"], null],
	[["a accepted 7"], "sent to 1 builder: a accepted it for block 7"],
	[["a accepted 7", "a accepted 7"], "sent to 1 builder: a accepted it for block 7"],
	[
		["a rejected 7", "b accepted 7", "a rejected 8", "b timeout 8", "a rejected 9", "b failed 9"],
		"sent to 2 builders: a rejected it for blocks 7 to 9, b accepted it for block 7 and did not answer in time for block 8 and gave no answer for block 9",
	],
	[
		["a accepted 7", "a accepted 9", "a accepted 12"],
		"sent to 1 builder: a accepted it for 3 blocks from 7 to 12",
	],
];

test("each builder by its name, with its answers and their blocks", () => {
	for (const [texts, expected] of ROWS) assert.equal(builderAnswers(deliveries(...texts)), expected);
});
