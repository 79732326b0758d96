// Long answers, of which the ends alone are looked at: each row is a body and what it is to the judge of reads.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	answerOf,
	answersAll,
	judgeReading,
	looksLikeAnswer,
	parsed,
} from "../../../../boost-proxy/upstream/verdict.ts";

const PAD = "x".repeat(70_000);
const LONG: readonly (readonly [string, string, boolean, string])[] = [
	["as go-ethereum writes it", `{"jsonrpc":"2.0","id":1,"result":{"a":"${PAD}"}}`, false, "answered"],
	["with the id first", `{"id":1,"jsonrpc":"2.0","result":"${PAD}"}`, false, "answered"],
	["with spaces and a line's end", `{ "jsonrpc": "2.0", "id": 1, "result": "${PAD}" }\n`, false, "answered"],
	["as Nethermind writes it", `{"jsonrpc":"2.0","result":"${PAD}","id":1}`, false, "answered"],
	["with the version last", `{"result":"${PAD}","id":1,"jsonrpc":"2.0"}`, false, "answered"],
	["in an order that takes a parser", `{"x":{},"result":"${PAD}","id":1,"y":[]}`, false, "answered"],
	["with another id", `{"jsonrpc":"2.0","id":2,"result":"${PAD}"}`, false, "notJsonRpc"],
	["with another id at the end", `{"jsonrpc":"2.0","result":"${PAD}","id":2}`, false, "notJsonRpc"],
	["with an id within the result alone", `{"result":{"a":"${PAD}","id":1}}`, false, "notJsonRpc"],
	[
		"with an error of that length",
		`{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"${PAD}"}}`,
		false,
		"answered",
	],
	[
		"with an internal error",
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"${PAD}"}}`,
		false,
		"internal",
	],
	["that breaks off", `{"jsonrpc":"2.0","id":1,"result":{"a":"${PAD}`, false, "notJsonRpc"],
	["a page", `<html>${PAD}</html>`, false, "notJsonRpc"],
	["a page for a batch", `<html>${PAD}</html>`, true, "notJsonRpc"],
	["a batch", `[{"jsonrpc":"2.0","id":1,"result":"${PAD}"}]`, true, "answered"],
	["a batch that breaks off", `[{"jsonrpc":"2.0","id":1,"result":"${PAD}"},`, true, "notJsonRpc"],
];

test("of a long answer the ends are enough", () => {
	for (const [what, text, batch, expected] of LONG) {
		const body = Buffer.from(text);
		const exchange = { kind: "answered", status: 200, retryAfterS: undefined, body } as const;
		const reading = judgeReading(exchange, { ids: [1], batch }, { name: "relay", isVerdict: () => false });
		assert.equal(reading.kind === "failed" ? reading.fault : reading.kind, expected, what);
	}
});

test("ids are found whatever their type, in both spellings, and never taken for one another", () => {
	const ids = [0, -1, 1.5, "", "1", 'a"b\\c', "é\u2028", null];
	for (const id of ids) {
		const own = JSON.stringify(id);
		const head = Buffer.from(`{"jsonrpc":"2.0","id":${own},"result":"${PAD}"}`);
		const tail = Buffer.from(`{"jsonrpc":"2.0","result":"${PAD}","id":${own}}`);
		for (const other of ids) {
			const what = JSON.stringify([id, other]);
			assert.equal(looksLikeAnswer(head, other), id === other, `${what} at the head`);
			assert.equal(looksLikeAnswer(tail, other), id === other, `${what} at the tail`);
		}
	}
});

test("an answer is one object with an id, a batch has one for each", () => {
	assert.equal(parsed(Buffer.from("{")), undefined);
	assert.deepEqual(answerOf({ id: 1, result: false }, 1), { kind: "result", id: 1, result: false });
	assert.equal(answerOf({ id: [1], result: 1 }, 1), null);
	assert.equal(answersAll([{ id: 1, result: 1 }, null, 7, "x"], [1]), true);
	assert.equal(answersAll([{ id: 1, result: 1 }], [1, 2]), false);
	assert.equal(answersAll({ 0: { id: 1, result: 1 } }, [1]), false);
});
