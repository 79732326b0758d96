// The logs of a block by filter: the same as by looking at each, in the node's own words, whether
// it is read as text or parsed.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { logResults, Notifications } from "../../../../shared/http/notifications.ts";
import { JsonText } from "../../../../shared/jsonrpc/answers.ts";
import type { Log, LogFilter } from "../../../../shared/jsonrpc/logs.ts";
import { type LogTable, readLogs } from "../../../../shared/jsonrpc/logTable.ts";

const value = fc.constantFrom("0xa", "0xb", "0xc");
const log = fc.record({
	address: value,
	topics: fc.array(value, { maxLength: 4 }),
	data: fc.constantFrom("0x", 'a text, "] é'),
	removed: fc.constant(false),
});
const filter = fc.record({
	address: fc.array(value, { maxLength: 4 }),
	topics: fc.array(fc.array(value, { maxLength: 3 }), { maxLength: 4 }),
});

/** go-ethereum's rule. */
function isTaken({ address, topics }: LogFilter, log: Log): boolean {
	if (address.length > 0 && !address.includes(log.address)) return false;
	if (topics.length > log.topics.length) return false;
	return topics.every((wanted, i) => wanted.length === 0 || wanted.includes(log.topics[i] ?? ""));
}

function selected(table: LogTable, wanted: LogFilter, removed: boolean): unknown[] {
	const found = table.select(wanted, removed);
	const { count, bytes, text } = logResults(found);
	const texts = Array.from({ length: count }, (_, i) => text(i));
	assert.equal(Buffer.byteLength(texts.join("")), bytes);
	return texts.map((one) => JSON.parse(one));
}

test("a filter takes what it would take of the list", async () => {
	await fc.assert(
		fc.asyncProperty(
			fc.array(log),
			filter,
			fc.boolean(),
			fc.boolean(),
			async (logs, wanted, removed, asText) => {
				const table = await readLogs(asText ? new JsonText(JSON.stringify(logs, null, 1)) : logs);
				assert.ok(table !== null);
				const expected = logs.filter((one) => isTaken(wanted, one)).map((one) => ({ ...one, removed }));
				assert.deepEqual(selected(table, wanted, removed), expected);
			},
		),
	);
});

test("notifications are made one by one, and are as long as they say", async () => {
	const table = await readLogs([
		{ address: "0xa", topics: ["é"] },
		{ address: "0xa", topics: [] },
	]);
	const all = new Notifications(
		"0x1",
		logResults(table?.select({ address: [], topics: [] }, true) ?? assert.fail()),
	);
	const texts: string[] = [];
	while (all.count > 0) texts.push(all.next());
	assert.equal(Buffer.byteLength(texts.join("")), all.bytes);
	assert.deepEqual(
		texts.map((text) => JSON.parse(text).params),
		[["é"], []].map((topics) => ({ subscription: "0x1", result: { address: "0xa", topics, removed: true } })),
	);
});

const NONE: readonly unknown[] = [
	null,
	{},
	[1],
	[{ address: "0xa" }],
	[{ address: "0xa", topics: [1, 2, 3, 4, 5] }],
	...["{}", "[{]", "[", '[{"address":"0xa","topics":[]}', "[1]", '[{"address":"0xa","topics":[]}] 1'].map(
		(text) => new JsonText(text),
	),
];
for (const answer of NONE) {
	test(`${answer instanceof JsonText ? answer.text : JSON.stringify(answer)} are no logs`, async () => {
		assert.equal(await readLogs(answer), null);
	});
}
