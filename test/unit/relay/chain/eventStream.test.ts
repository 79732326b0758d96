// Tests how a stream of server-sent events is cut into events: every end of a line, every place to
// be cut at, and too much.

import assert from "node:assert/strict";
import { test } from "node:test";
import { EventStreamReader } from "../../../../relay/chain/eventStream.ts";

const MAX = 64;

/** The events of `text`, as `name data`, given in pieces of `size` bytes. */
function read(text: string, size: number): readonly string[] {
	const reader = new EventStreamReader({ maxChars: MAX });
	const bytes = Buffer.from(text);
	const events: string[] = [];
	for (let at = 0; at < bytes.length; at += size) {
		for (const { name, data } of reader.push(bytes.subarray(at, at + size))) events.push(`${name} ${data}`);
	}
	return events;
}

const CASES: readonly (readonly [title: string, text: string, expected: readonly string[]])[] = [
	["one event", "event: a\ndata: 1\n\n", ["a 1"]],
	["two events", "event: a\ndata: 1\n\nevent: b\ndata: 2\n\n", ["a 1", "b 2"]],
	["an event without an end", "event: a\ndata: 1\n", []],
	["an event without a name", "data: 1\n\n", ["message 1"]],
	["a name of the event before", "event: a\ndata: 1\n\ndata: 2\n\n", ["a 1", "message 2"]],
	["an event without data", "event: a\n\ndata: 2\n\n", ["message 2"]],
	["lines of data", "data: 1\ndata:2\ndata\n\n", ["message 1\n2\n"]],
	["one blank of two", "data:  1\n\n", ["message  1"]],
	["carriage returns and line feeds", "event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", ["a 1", "message 2"]],
	["carriage returns", "event: a\rdata: 1\r\rdata: 2\r\r", ["a 1", "message 2"]],
	["a byte order mark", "\ufeffdata: 1\n\n", ["message 1"]],
	["comments", ":\n\n: alive\ndata: 1\n\n", ["message 1"]],
	["fields that are not known", "id: 7\nretry: 9\nx\ndata: 1\n\n", ["message 1"]],
	["letters of many bytes", "data: ä€🚀\n\n", ["message ä€🚀"]],
	["as much as may be", `data:${"x".repeat(MAX - 5)}\n\n`, [`message ${"x".repeat(MAX - 5)}`]],
	["one more", `data:${"x".repeat(MAX - 4)}\n\ndata: 1\n\n`, ["message 1"]],
	["much more in one line", `data:${"x".repeat(10 * MAX)}\n\ndata: 1\n\n`, ["message 1"]],
	["more in many lines", `${"data: 123\n".repeat(20)}\ndata: 1\n\n`, ["message 1"]],
	["more, and a short line", `data:${"x".repeat(2 * MAX)}\ndata: 2\n\ndata: 1\n\n`, ["message 1"]],
];

for (const [title, text, expected] of CASES) {
	test(title, () => {
		for (const size of [1, 2, 3, 7, 1_000]) assert.deepEqual(read(text, size), expected, `by ${size}`);
	});
}

test("what is left out is not kept", () => {
	const reader = new EventStreamReader({ maxChars: 1_000 });
	const before = process.memoryUsage().heapUsed;
	const piece = Buffer.alloc(64 * 1024, "x");
	for (let i = 0; i < 2_000; i += 1) assert.deepEqual(reader.push(piece), []);
	assert.ok(process.memoryUsage().heapUsed - before < 64 * 1024 * 1024);
	assert.deepEqual(reader.push(Buffer.from("\n\ndata: 1\n\n")), [{ name: "message", data: "1" }]);
});
