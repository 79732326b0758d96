// Tests that JSON made piece by piece is what JSON.stringify makes at once, and that other work
// goes on while it is made.

import assert from "node:assert/strict";
import { test } from "node:test";
import { jsonHex, type LongJson, longJson } from "../../../../shared/jsonrpc/longJson.ts";

const bytes = (length: number): Buffer => Buffer.from(Array.from({ length }, (_, i) => i & 255));
const hex = (length: number): string => `0x${bytes(length).toString("hex")}`;
/** Lengths around those at which a value becomes long, and gets another piece. */
const LENGTHS = [0, 1, 4_095, 4_096, 32_767, 32_768, 32_769, 100_000];

async function sent(json: LongJson): Promise<string> {
	let text = "";
	for await (const piece of json) text += piece;
	return text;
}

test("a long text equals that of JSON.stringify, and its length is known before", async () => {
	const values = LENGTHS.map((length) => ({ id: 'é"', data: jsonHex(bytes(length)), and: [null, 1] }));
	const expected = JSON.stringify(LENGTHS.map((length) => ({ id: 'é"', data: hex(length), and: [null, 1] })));
	const json = longJson(values);
	assert.ok(typeof json !== "string");
	assert.equal(json.byteLength, Buffer.byteLength(expected));
	assert.equal(json.whole().toString(), expected);
	assert.equal(await sent(json), expected);
	// As anything else makes it.
	assert.equal(JSON.stringify(values), expected);
});

test("a text without long values is a string", () => {
	const value = { params: [jsonHex(bytes(4_095)), undefined, "\u2028"] };
	assert.equal(longJson(value), JSON.stringify({ params: [hex(4_095), undefined, "\u2028"] }));
});

test("other work runs while a text of two megabytes is sent", async () => {
	const json = longJson([jsonHex(bytes(1024 * 1024))]);
	assert.ok(typeof json !== "string");
	let turns = 0;
	let isOver = false;
	const count = (): void => {
		turns += 1;
		if (!isOver) setImmediate(count);
	};
	setImmediate(count);
	await sent(json);
	isOver = true;
	assert.ok(turns >= 7, `${turns} turns`);
});
