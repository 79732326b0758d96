// Tests the fields of answers in CSV: a strict reader gets each back, and no spreadsheet runs one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { csvAnswer } from "../../../../relay/ingress/csv.ts";
import { readCsv } from "../../../support/csv.ts";

for (const [text, field] of [
	["plain", "plain"],
	["", ""],
	["a,b", "a,b"],
	['a "b"', 'a "b"'],
	["a\r\nb", "a\r\nb"],
	["=1+1", "'=1+1"],
	["+1", "'+1"],
	["-1", "'-1"],
	["@x", "'@x"],
	["\t=1", "'\t=1"],
	['=a,"b"', `'=a,"b"`],
] as const) {
	test(`${JSON.stringify(text)} arrives as ${JSON.stringify(field)}`, () => {
		const { body } = csvAnswer(
			"a.csv",
			[
				["one", "two"],
				[text, "x"],
			],
			{},
		);
		assert.deepEqual(readCsv(String(body)), [
			["one", "two"],
			[field, "x"],
		]);
	});
}
