// Tests the watch of the public mempool: which announcements are sightings, by a polled filter and
// a manual clock, and nodes that offer none. The subscription is tested on a real chain, in
// test/integration/privacy/publicMempool.test.ts.

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { PublicPool } from "../../../../relay/inclusion/publicPool.ts";
import { UpstreamError } from "../../../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";

const [OURS, OTHER] = ["0xaa", "0xbb"];
const POLL_MS = 500;
const CONFIRM_MS = 1_000;

/** The node's next changes of the filter; null: it refuses filters. */
let changes: unknown;
/** The node's answer about a transaction. */
let found: unknown;
let isDown: boolean;
let calls: string[];
let watched: Set<string>;
let seen: (readonly [string, number])[];
let clock: ManualClock;
let pool: PublicPool;

beforeEach(async () => {
	[changes, found, isDown] = [[], { blockHash: null }, false];
	[calls, seen, watched, clock] = [[], [], new Set([OURS]), new ManualClock()];
	pool = new PublicPool(
		{ pollMs: POLL_MS, slot: { ms: 12_000 } },
		{
			node: {
				async call({ method }) {
					calls.push(method);
					if (isDown) throw new UpstreamError("unreachable");
					if (changes === null && method !== "eth_getTransactionByHash")
						return { ok: false, code: -32601, message: "no filters here" } as never;
					const results: Readonly<Record<string, () => unknown>> = {
						eth_newPendingTransactionFilter: () => "0x1",
						eth_getFilterChanges: () => changes,
						eth_getTransactionByHash: () => found,
					};
					return { ok: true, result: results[method]?.() };
				},
			},
			isWatched: (hash) => watched.has(hash),
			onSeen: (hash, at) => seen.push([hash, at]),
			...{ clock, log: silentLogger },
		},
	);
	await pool.start();
});
afterEach(() => pool.stop());

/** Polls once with these announcements. */
async function announces(...hashes: readonly unknown[]): Promise<number> {
	changes = hashes;
	await clock.advance(POLL_MS);
	changes = [];
	return clock.now();
}

test("one of ours that stays is a sighting, with the time of its announcement", async () => {
	const at = await announces(OTHER, OURS, 7, null);
	assert.deepEqual(seen, []);
	await clock.advance(CONFIRM_MS);
	assert.deepEqual(seen, [[OURS, at]]);
});

test("one that is announced again meanwhile is one sighting", async () => {
	const at = await announces(OURS);
	await announces(OURS);
	await clock.advance(2 * CONFIRM_MS);
	assert.deepEqual(seen, [[OURS, at]]);
});

test("one that a block has a moment later is none, whatever the mempool says", async () => {
	await announces(OURS);
	watched.delete(OURS);
	await clock.advance(CONFIRM_MS);
	assert.deepEqual(seen, []);
});

for (const [what, answer] of [
	["in a block", { blockHash: "0x1" }],
	["gone", null],
	["not as expected", 7],
] as const)
	test(`one that is ${what} at the node a moment later is none`, async () => {
		found = answer;
		await announces(OURS);
		await clock.advance(CONFIRM_MS);
		assert.deepEqual(seen, []);
		assert.ok(calls.includes("eth_getTransactionByHash"));
	});

test("the node is asked about ours alone", async () => {
	await announces(...Array.from({ length: 5_000 }, (_, i) => `0x${i}`));
	await clock.advance(CONFIRM_MS);
	assert.ok(!calls.includes("eth_getTransactionByHash"));
});

test("leaks are seen while the filter answers, and a node without one is rarely asked", async () => {
	await clock.advance(POLL_MS);
	assert.equal(pool.isSeen, true);
	changes = null;
	await clock.advance(POLL_MS);
	assert.equal(pool.isSeen, false);
	calls = [];
	await clock.advance(9_000);
	assert.ok(calls.length <= 1, calls.join());
	changes = [];
	await clock.advance(2_000);
	assert.equal(pool.isSeen, true);
});

test("a filter whose changes are lost once is made again at once", async () => {
	await announces();
	changes = undefined;
	await clock.advance(POLL_MS);
	const at = await announces(OURS);
	await clock.advance(CONFIRM_MS);
	assert.deepEqual(seen, [[OURS, at]]);
});

test("a node that always forgets its filters is rarely asked", async () => {
	changes = undefined;
	await clock.advance(30_000);
	assert.ok(calls.length <= 8, calls.join());
});

test("a node that is down for a while is watched again", async () => {
	isDown = true;
	await clock.advance(POLL_MS);
	assert.equal(pool.isSeen, false);
	isDown = false;
	await clock.advance(11_000);
	const at = await announces(OURS);
	await clock.advance(CONFIRM_MS);
	assert.deepEqual(seen, [[OURS, at]]);
});

test("one that a failing node does not confirm is asked about until the node answers", async () => {
	const at = await announces(OURS);
	isDown = true;
	await clock.advance(3 * CONFIRM_MS);
	assert.deepEqual(seen, []);
	isDown = false;
	await clock.advance(CONFIRM_MS);
	assert.deepEqual(seen, [[OURS, at]]);
});
