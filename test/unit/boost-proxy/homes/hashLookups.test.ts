// Look-ups by hash: one query of each client is in flight, and a flood of one client delays nobody
// else's.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { HashLookups } from "../../../../boost-proxy/homes/hashLookups.ts";
import { DeadlineError } from "../../../../shared/clock.ts";
import { RpcError } from "../../../../shared/jsonrpc/errors.ts";
import type { StoreRecord } from "../../../../shared/kv/port.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { hashOf } from "../journal/journalFixture.ts";

const [FLOODING, HONEST] = ["192.0.2.1", "192.0.2.2"];

interface Query {
	readonly hashes: readonly string[];
	readonly answer: (records: readonly StoreRecord[]) => Promise<void>;
	readonly fail: (thrown: Error) => Promise<void>;
}

/** Look-ups whose queries wait until the test answers them. */
function fixture() {
	const clock = new ManualClock();
	const queries: Query[] = [];
	const ofHashes = (hashes: readonly string[]) =>
		new Promise<readonly StoreRecord[]>((resolve, reject) =>
			queries.push({
				hashes,
				answer: (records) => nextTurn(resolve(records)),
				fail: (thrown) => nextTurn(reject(thrown)),
			}),
		);
	const lookups = new HashLookups({ accounts: { lookups: 2, ofHashes }, clock });
	const find = (n: number, client: string) => lookups.find(hashOf(n), client);
	return { clock, queries, find };
}

const recordOf = (n: number): StoreRecord => ({
	bytes: 0,
	key: `s/1/${hashOf(n)}`,
	value: Buffer.from(""),
});

test("each look-up gets the records of its own hash", async () => {
	const { queries, find } = fixture();
	const found = Promise.all([find(1, HONEST), find(2, HONEST), find(3, HONEST)]);
	await nextTurn();
	assert.deepEqual(queries[0]?.hashes, [1, 2, 3].map(hashOf), "asked in one query");
	await queries[0].answer([recordOf(3), recordOf(1)]);
	assert.deepEqual(await found, [[recordOf(1)], [], [recordOf(3)]]);
});

test("one query of a client is in flight, and it is asked for a hash once", async () => {
	const { queries, find } = fixture();
	const first = find(0, FLOODING);
	await nextTurn();
	const flood = Array.from({ length: 100 }, (_, i) => find(1 + (i % 70), FLOODING));
	await nextTurn();
	assert.equal(queries.length, 1);
	await queries[0]?.answer([]);
	assert.deepEqual([queries.length, queries[1]?.hashes.length], [2, 64]);
	await queries[1]?.answer([]);
	assert.deepEqual([queries.length, queries[2]?.hashes.length], [3, 6], "each hash once");
	await queries[2]?.answer([]);
	await Promise.all([first, ...flood]);
	assert.equal(queries.length, 3);
});

test("another client is asked for at once, however much one waits for", async () => {
	const { queries, find } = fixture();
	for (let n = 0; n < 200; n += 1) void find(n, FLOODING);
	await nextTurn();
	const found = find(1_000, HONEST);
	await nextTurn();
	assert.deepEqual(queries[1]?.hashes, [hashOf(1_000)]);
	await queries[1].answer([recordOf(1_000)]);
	assert.deepEqual(await found, [recordOf(1_000)]);
	assert.equal(queries.length, 2, "the flood still has its one query");
});

test("a client that waits for 256 is refused more, and no other is", async () => {
	const { queries, find } = fixture();
	for (let n = 0; n < 256; n += 1) void find(n, FLOODING);
	const isLimit = (thrown: unknown) => thrown instanceof RpcError && thrown.kind === "limit";
	await assert.rejects(find(256, FLOODING), isLimit);
	const again = find(255, FLOODING);
	const other = find(256, HONEST);
	await nextTurn();
	// Each answer may bring the next query.
	for (let i = 0; i < queries.length; i += 1) await queries[i]?.answer([]);
	assert.deepEqual(await Promise.all([again, other]), [[], []]);
});

test("a query that fails fails its own look-ups, and the next ones are asked", async () => {
	const { queries, find } = fixture();
	const first = find(1, HONEST);
	await nextTurn();
	const second = find(2, HONEST);
	const failed = assert.rejects(first, /no answer/);
	await queries[0]?.fail(new Error("no answer"));
	await failed;
	await queries[1]?.answer([recordOf(2)]);
	assert.deepEqual(await second, [recordOf(2)]);
});

test("a look-up ends after two seconds, in flight or not", async () => {
	const { clock, find } = fixture();
	const first = find(1, HONEST);
	await nextTurn();
	const second = find(2, HONEST);
	const both = [first, second].map((one) => assert.rejects(one, DeadlineError));
	await clock.advance(2_000);
	await Promise.all(both);
});
