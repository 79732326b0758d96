// What waits for readers, and who is ended when it is too much.

import assert from "node:assert/strict";
import { test } from "node:test";
import { UnreadBytes } from "../../../../shared/http/unreadBytes.ts";

function start(maxBytes: number, maxBytesEach = 1_000) {
	const unread = new UnreadBytes({ maxBytes, maxBytesEach });
	const ended: string[] = [];
	const reader = (name: string, address: string) =>
		unread.reader(address, {
			close: () => ended.push(`close ${name}`),
			cut: () => ended.push(`cut ${name}`),
		});
	return { unread, ended, reader };
}

test("what is written waits until it has left, once", () => {
	const { unread, reader } = start(1_000, 100);
	const a = reader("a", "192.0.2.1");
	const left = a.write(60);
	const more = a.write(60);
	assert.deepEqual([a.bytes, unread.bytes, a.isBehind], [120, 120, true]);
	left();
	left();
	assert.deepEqual([a.bytes, unread.bytes, a.isBehind], [60, 60, false]);
	a.gone();
	more();
	assert.equal(unread.bytes, 0);
});

test("over the whole, the largest reader of the client with the most is closed, and cut if it does not read", () => {
	const { unread, ended, reader } = start(1_000);
	const honest = reader("honest", "192.0.2.1");
	const many = [1, 2, 3].map((i) => reader(`${i}`, `2001:db8:0:${i}::1`));
	honest.write(400);
	for (const [i, one] of many.entries()) one.write(190 + i);
	assert.deepEqual(ended, []);
	// One /56 is one client: it has the most, though each of its readers has less.
	honest.write(100);
	assert.deepEqual(ended, ["close 3"]);
	honest.write(1);
	assert.deepEqual(ended, ["close 3", "cut 3"]);
	assert.equal(unread.bytes, 882);
	honest.write(100);
	assert.equal(ended.length, 2);
});
