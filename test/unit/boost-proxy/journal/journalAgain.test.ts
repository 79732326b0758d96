// A hash that comes again, requests that overlap, and what was mined a moment ago: in the journal, and over a restart.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { NewRow } from "../../../../boost-proxy/domain/row.ts";
import { fixture, hashOf, newEntry, REORG_MS, rawOf, reopened, senderOf, TTL_MS } from "./journalFixture.ts";

const [HASH, AT] = [hashOf(1), newEntry(1).receivedAt];
const SECOND: Partial<NewRow> = {
	...{ path: "noreverts", search: "softCancellations=true", softCancellations: true },
	...{ address: "192.0.2.9", receivedAt: AT + 7_000, replacesAt: ["relay"] },
};

test("one that was not acknowledged becomes what its client asks for the second time; who may have it stays", async () => {
	for (const acknowledged of [true, false]) {
		const { journal, disk } = await fixture();
		await journal.add(newEntry(1, { replacesAt: ["fallback"] }), "relay");
		await journal.settle(HASH, false);
		await journal.add(newEntry(2, { nonce: 1n, receivedAt: AT + 1 }), "relay");
		const before = journal.get(HASH);
		assert.equal(await journal.add(newEntry(1, SECOND), "fallback"), true);
		assert.deepEqual([before?.path, before?.acknowledged], ["fast", false], "what was handed out stays");
		assert.equal(journal.get(HASH)?.underWay, true);
		assert.equal(journal.depth, 2);
		await journal.settle(HASH, acknowledged);
		const again = (await reopened(disk)).journal;
		for (const one of [journal, again]) {
			const { raw: _, ...asked } = newEntry(1, SECOND);
			assert.deepEqual(one.get(HASH), {
				...asked,
				...{
					replacesAt: ["relay", "fallback"],
					holders: ["relay", "fallback"],
					aliveUntil: AT + 7_000 + TTL_MS,
				},
				...{ underWay: false, acknowledged, bytes: rawOf(1).length },
			});
			assert.deepEqual(await one.raw(HASH), rawOf(1));
			const order = one.of(senderOf(1)).map(({ hash }) => hash);
			assert.deepEqual(order, [hashOf(2), HASH], "the last to arrive comes last");
		}
		await again.close();
		await journal.close();
	}
});

test("the second request of one that was not acknowledged is on disk before its answer, even where there is no room", async () => {
	const { journal, disk } = await fixture({ maxLive: 1 });
	await journal.add(newEntry(1), "relay");
	await journal.settle(HASH, false);
	disk.hold = true;
	let added: boolean | null = null;
	const adding = journal.add(newEntry(1, SECOND), "relay").then((is) => {
		added = is;
	});
	assert.deepEqual([journal.get(HASH)?.path, added, disk.waiting], ["noreverts", null, 1]);
	disk.finish(true);
	await adding;
	assert.equal(added, true);
	disk.hold = false;
	assert.equal((await reopened(disk)).journal.get(HASH)?.path, "noreverts");
	await journal.close();
});

test("one that was acknowledged, or whose request is under way, stays what it is", async () => {
	const { journal } = await fixture();
	await journal.add(newEntry(1), "relay");
	assert.equal(await journal.add(newEntry(1, SECOND), "fallback"), false, "under way");
	await journal.settle(HASH, true);
	assert.equal(await journal.add(newEntry(1, SECOND), "fallback"), false, "acknowledged");
	assert.deepEqual([journal.get(HASH)?.path, journal.get(HASH)?.holders], ["fast", ["relay"]]);
	await journal.close();
});

test("it is under way as long as any request is, and as long as the one that brought it", async () => {
	const { journal } = await fixture();
	const isUnderWay = () => journal.get(HASH)?.underWay;
	await journal.add(newEntry(1), "relay");
	journal.setUnderWay(HASH, true);
	journal.setUnderWay(HASH, true);
	await journal.settle(HASH, true);
	assert.equal(isUnderWay(), true, "two cancels");
	journal.setUnderWay(HASH, false);
	assert.equal(isUnderWay(), true, "one cancel");
	journal.setUnderWay(HASH, false);
	assert.equal(isUnderWay(), false);
	journal.setUnderWay(HASH, false);
	journal.setUnderWay(HASH, true);
	assert.equal(isUnderWay(), true, "one end too many is none");
	await journal.end(HASH, "mined");
	await journal.reopen(HASH);
	assert.equal(isUnderWay(), true, "the cancel goes on");
	journal.setUnderWay(HASH, false);
	assert.equal(isUnderWay(), false);
	await journal.end(HASH, "expired");
	await journal.add(newEntry(1), "relay");
	journal.setUnderWay(HASH, true);
	journal.setUnderWay(HASH, false);
	assert.equal(isUnderWay(), true, "the request that brought it");
	await journal.close();
});

test("what was mined a moment ago is told with its end, over a restart too, until it can't come back", async () => {
	const { journal, disk, clock } = await fixture();
	for (const n of [1, 2, 3]) {
		await journal.add(newEntry(n), n === 2 ? "fallback" : "relay");
		await journal.settle(hashOf(n), true);
	}
	await journal.end(hashOf(2), "mined");
	await clock.advance(1_000);
	await journal.end(hashOf(1), "mined");
	await journal.end(hashOf(3), "cancelled");
	const again = await reopened(disk);
	for (const one of [journal, again.journal]) {
		assert.deepEqual(
			[...one.recentlyMined()].map(({ entry, endedAt }) => [entry.hash, entry.holders, endedAt]),
			[
				[hashOf(2), ["fallback"], clock.now() - 1_000],
				[hashOf(1), ["relay"], clock.now()],
			],
		);
	}
	await clock.advance(REORG_MS - 1_000);
	assert.deepEqual(
		[...journal.recentlyMined()].map(({ entry }) => entry.hash),
		[hashOf(1)],
	);
	await journal.reopen(hashOf(1));
	assert.deepEqual([...journal.recentlyMined()], []);
	await again.journal.close();
	await journal.close();
});
