// The ids of requests: which of a sender are taken, and those that are made.

import assert from "node:assert/strict";
import { test } from "node:test";
import { MessageIds, newRequestId, requestIdOf } from "../../../shared/requestId.ts";

const MADE = /^[0-9a-f]{24}$/;

const TAKEN = ["a", "9f1c.2-B_c", "0".repeat(64), "..", "550e8400-e29b-41d4-a716-446655440000"];
for (const id of TAKEN) test(`it is taken: ${id}`, () => assert.equal(requestIdOf(id), id));

const REFUSED: Readonly<Record<string, string | string[] | undefined>> = {
	none: undefined,
	"an empty one": "",
	"one that is too long": "a".repeat(65),
	"two of them, as Node joins them": "a, b",
	"a list": ["a", "b"],
	"a line end": "a\nb",
	"a line end behind it": "a\n",
	"a space": "a b",
	quotes: 'a"b',
	"what a terminal obeys": "\u001b[31m",
	"letters of others": "é",
};
for (const [name, given] of Object.entries(REFUSED))
	test(`a new one in the place of ${name}`, () => assert.match(requestIdOf(given), MADE));

test("no two are equal, also when the random bytes are fetched anew", () => {
	const ids = Array.from({ length: 2_000 }, newRequestId);
	for (const id of ids) assert.match(id, MADE);
	assert.equal(new Set(ids).size, ids.length);
});

test("those of a websocket's messages begin with that of its upgrade and are ids again, however long that is", () => {
	const short = new MessageIds("mine");
	assert.deepEqual([short.next(), short.next()], ["mine.1", "mine.2"]);
	const long = new MessageIds("x".repeat(64)).next();
	assert.equal(requestIdOf(long), `${"x".repeat(48)}.1`);
});
