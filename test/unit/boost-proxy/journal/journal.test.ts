// Open entries in the journal, in memory and over a restart: what each word changes, and the bounds.

import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { FakeDisk } from "../../relay/fakeDisk.ts";
import {
	countingReads,
	fixture,
	hashOf,
	newEntry,
	rawOf,
	reopened,
	senderOf,
	TTL_MS,
} from "./journalFixture.ts";
import { openedVerbs } from "./rowVerbs.ts";

test("an entry is there at once, under way; its promise waits for the disk", async () => {
	const { journal, disk } = await fixture();
	disk.hold = true;
	let added: boolean | null = null;
	const adding = journal.add(newEntry(1, { search: "a=1", softCancellations: true }), "relay").then((is) => {
		added = is;
	});
	const entry = journal.get(hashOf(1));
	assert.equal(entry?.underWay, true);
	assert.equal(entry?.acknowledged, true);
	assert.deepEqual(entry?.holders, ["relay"]);
	assert.equal(entry?.aliveUntil, newEntry(1).receivedAt + TTL_MS);
	assert.equal(entry?.search, "a=1");
	assert.equal(entry?.softCancellations, true);
	assert.deepEqual(await journal.raw(hashOf(1)), rawOf(1));
	assert.equal(journal.depth, 1);
	assert.equal(added, null);
	disk.finish(true);
	await adding;
	assert.equal(added, true);
	await journal.close();
});

test("an acknowledged entry costs one write, of one record", async () => {
	const { journal, disk } = await fixture();
	const before = disk.map.size;
	await journal.add(newEntry(1), "relay");
	disk.hold = true;
	await journal.settle(hashOf(1), true);
	assert.equal(disk.waiting, 0);
	assert.equal(journal.get(hashOf(1))?.underWay, false);
	assert.equal(disk.map.size, before + 1);
	await journal.close();
});

test("an entry that is open already is not added again", async () => {
	const { journal } = await fixture();
	await journal.add(newEntry(1), "relay");
	assert.equal(await journal.add(newEntry(1, { search: "other" }), "fallback"), false);
	assert.deepEqual(journal.get(hashOf(1))?.holders, ["relay"]);
	assert.equal(journal.get(hashOf(1))?.search, "");
	await journal.close();
});

test("not acknowledged: forgotten where nobody holds it, else followed, over a restart too", async () => {
	const { journal, disk } = await fixture();
	await journal.add(newEntry(1), "relay");
	await journal.notHeld(hashOf(1), "relay");
	assert.equal(journal.depth, 1, "its request is under way");
	await journal.settle(hashOf(1), false);
	assert.equal(journal.get(hashOf(1)), null);
	await journal.add(newEntry(2), "relay");
	await journal.settle(hashOf(2), false);
	assert.equal(journal.get(hashOf(2))?.acknowledged, false);
	const again = (await reopened(disk)).journal;
	assert.equal(again.depth, 1);
	assert.equal(again.get(hashOf(2))?.acknowledged, false);
	await again.notHeld(hashOf(2), "fallback");
	assert.equal(again.depth, 1, "the fallback never held it");
	await again.notHeld(hashOf(2), "relay");
	assert.equal(again.depth, 0);
	assert.equal(await again.raw(hashOf(2)), null);
	await again.close();
	await journal.close();
});

test("what was acknowledged stays so, whatever a later request came to; what was not may be later", async () => {
	const { journal, disk } = await fixture();
	for (const [n, first] of [
		[1, true],
		[2, false],
	] as const) {
		await journal.add(newEntry(n), "relay");
		await journal.settle(hashOf(n), first);
		await journal.settle(hashOf(n), !first);
		assert.equal(journal.get(hashOf(n))?.acknowledged, true);
		assert.equal((await reopened(disk)).journal.get(hashOf(n))?.acknowledged, true);
	}
	await journal.notHeld(hashOf(1), "relay");
	await journal.settle(hashOf(1), false);
	assert.deepEqual(
		journal.get(hashOf(1))?.holders,
		[],
		"an acknowledged one that nobody holds is lost, not gone",
	);
	await journal.close();
});

test("one whose request was cut off by a SIGKILL counts as acknowledged, and nobody sees to it", async () => {
	const { journal, disk } = await fixture();
	await journal.add(newEntry(1), "relay");
	const again = (await reopened(disk)).journal;
	assert.equal(again.get(hashOf(1))?.underWay, false);
	assert.equal(again.get(hashOf(1))?.acknowledged, true);
	await again.settle(hashOf(1), false);
	assert.equal(again.get(hashOf(1))?.acknowledged, true);
	await again.close();
	await journal.close();
});

test("holders, what is owed and who sees to it", async () => {
	const { journal, disk } = await fixture();
	await journal.add(newEntry(1, { replacesAt: ["fallback"] }), "relay");
	await journal.settle(hashOf(1), true);
	const before = journal.get(hashOf(1))?.holders;
	await journal.held(hashOf(1), "fallback");
	await journal.held(hashOf(1), "fallback");
	assert.deepEqual(before, ["relay"], "a list that was handed out stays as it was");
	assert.deepEqual(journal.get(hashOf(1))?.holders, ["relay", "fallback"]);
	await journal.notHeld(hashOf(1), "relay");
	await journal.paid(hashOf(1), "fallback");
	await journal.paid(hashOf(1), "relay");
	journal.setUnderWay(hashOf(1), true);
	assert.equal(journal.get(hashOf(1))?.underWay, true);
	const again = (await reopened(disk)).journal;
	for (const one of [journal, again]) {
		assert.deepEqual(one.get(hashOf(1))?.holders, ["fallback"]);
		assert.deepEqual(one.get(hashOf(1))?.replacesAt, []);
		assert.deepEqual(await one.raw(hashOf(1)), rawOf(1));
	}
	assert.equal(again.get(hashOf(1))?.underWay, false);
	journal.setUnderWay(hashOf(1), false);
	assert.equal(journal.get(hashOf(1))?.underWay, false);
	await again.close();
	await journal.close();
});

test("words about hashes that it does not know change nothing", async () => {
	const { journal, disk } = await fixture();
	disk.hold = true;
	const [hash] = [hashOf(9)];
	await Promise.all([
		...[journal.held(hash, "relay"), journal.notHeld(hash, "relay"), journal.paid(hash, "relay")],
		...[journal.settle(hash, true), journal.end(hash, "mined"), journal.told(hash, "relay")],
		journal.reopen(hash),
	]);
	journal.alive(hash);
	journal.setUnderWay(hash, true);
	assert.equal(disk.waiting, 0);
	assert.deepEqual([journal.get(hash), journal.ended(hash), await journal.raw(hash)], [null, null, null]);
	await journal.close();
});

test("a sender's entries are in the order of nonces, then of arrival; lists that were handed out stay", async () => {
	const { journal } = await fixture();
	const at = newEntry(0).receivedAt;
	assert.equal(journal.rows.of(senderOf(1)), journal.rows.of(senderOf(2)), "one empty list for all");
	for (const [n, nonce, later] of [
		[1, 5n, 0],
		[2, 3n, 9],
		[3, 3n, 4],
		[4, 9n, 0],
		[5, 3n, 9],
	] as const) {
		await journal.add(newEntry(n, { nonce, receivedAt: at + later }), "relay");
	}
	await journal.add(newEntry(6, { from: senderOf(2) }), "relay");
	const order = journal.of(senderOf(1));
	const hashes = [3, 2, 5, 1, 4].map(hashOf);
	assert.deepEqual(
		order.map(({ hash }) => hash),
		hashes,
	);
	await journal.end(hashOf(2), "replaced");
	assert.equal(order.length, 5);
	assert.deepEqual(
		[...journal.open()].map(({ hash }) => hash),
		[3, 5, 1, 4, 6].map(hashOf),
	);
	// What ends while they are gone through does not come any more.
	const seen: string[] = [];
	for (const { hash } of journal.open()) {
		seen.push(hash);
		if (hash === hashOf(3)) await journal.end(hashOf(5), "mined");
	}
	assert.deepEqual(seen, [3, 1, 4, 6].map(hashOf));
	for (const n of [1, 3, 4, 6]) await journal.end(hashOf(n), "dropped");
	assert.equal(journal.rows.of(senderOf(1)), journal.rows.of(senderOf(2)));
	assert.equal(journal.depth, 0);
	await journal.close();
});

test("one that lives on is given up later, and after a restart has at least half a life left", async () => {
	const { journal, disk, clock } = await fixture();
	await journal.add(newEntry(1), "relay");
	let writes = 0;
	const write = disk.write.bind(disk);
	disk.write = (changes) => {
		writes += 1;
		return write(changes);
	};
	for (let i = 0; i < 100; i += 1) {
		await clock.advance(TTL_MS / 10);
		journal.alive(hashOf(1));
		assert.equal(journal.get(hashOf(1))?.aliveUntil, clock.now() + TTL_MS);
	}
	assert.ok(writes >= 18 && writes <= 21, `${writes} writes in ten lives`);
	await journal.add(newEntry(2, { receivedAt: clock.now() + 9 }), "relay");
	journal.alive(hashOf(2));
	assert.equal(journal.get(hashOf(2))?.aliveUntil, clock.now() + 9 + TTL_MS, "never less than before");
	const left = ((await reopened(disk)).journal.get(hashOf(1))?.aliveUntil ?? 0) - clock.now();
	assert.ok(left >= TTL_MS / 2, `${left} ms left`);
	await journal.close();
});

test("where there is no room, nothing is kept", async () => {
	const { journal } = await fixture({ maxLive: 2 });
	await Promise.all([journal.add(newEntry(1), "relay"), journal.add(newEntry(2), "relay")]);
	assert.equal(journal.refusal(newEntry(3)), "total");
	assert.equal(await journal.add(newEntry(3), "relay"), false);
	assert.equal(journal.get(hashOf(3)), null);
	assert.deepEqual([journal.depth, journal.isFull], [2, true]);
	await journal.end(hashOf(1), "mined");
	assert.equal(journal.isFull, false);
	assert.equal(await journal.add(newEntry(3), "relay"), true);
	// One that comes back from the chain is never turned away.
	await journal.reopen(hashOf(1));
	assert.equal(journal.depth, 3);
	await journal.close();
});

test("it is full where a large transaction finds no room", async () => {
	const { journal } = await fixture({ maxBytes: 16 * (128 * 1024 + 512) });
	const raw = rawOf(0, 128 * 1024);
	for (let n = 1; n <= 15; n += 1) await journal.add(newEntry(n, { raw }), "relay");
	assert.equal(journal.isFull, false);
	await journal.add(newEntry(16), "relay");
	assert.deepEqual([journal.isFull, journal.refusal(newEntry(17, { raw }))], [true, "total"]);
	assert.equal(journal.refusal(newEntry(17)), null);
	await journal.close();
});

test("one client has a sixteenth of the entries and of the bytes, by its network; others notice nothing", async () => {
	const options = { maxLive: 32, maxBytes: 16 * 10_000 };
	const { journal, disk } = await fixture(options);
	const of = (n: number, length = 120) =>
		newEntry(n, { address: `2001:db8:1:2${n}::${n}`, raw: rawOf(n, length) });
	assert.equal(await journal.add(of(1), "relay"), true);
	assert.equal(await journal.add(of(2), "relay"), true);
	assert.equal(journal.refusal(of(3)), "client");
	assert.equal(await journal.add(of(3), "relay"), false);
	assert.equal(await journal.add(newEntry(4), "relay"), true);
	// The same again needs no room; one that was not acknowledged changes hands.
	assert.equal(journal.refusal(of(2)), null);
	await journal.settle(hashOf(1), false);
	assert.equal(await journal.add(newEntry(1), "relay"), true);
	assert.equal(journal.refusal(of(3)), null);
	assert.equal(journal.refusal(of(3, 9_000)), "client", "bytes");
	await journal.end(hashOf(2), "mined");
	assert.equal(await journal.add(of(3, 8_857), "relay"), true);
	assert.equal(journal.refusal(of(5)), "client");
	// What a restart finds counts as before, what is opened again too.
	const again = (await reopened(disk, options)).journal;
	assert.equal(again.refusal(of(5, 120)), "client");
	assert.equal(again.refusal(of(5, 119)), null);
	await again.end(hashOf(3), "mined");
	await again.reopen(hashOf(2));
	assert.equal(again.refusal(of(5, 10_000 - 512 - 632)), null);
	assert.equal(again.refusal(of(5, 10_000 - 512 - 631)), "client");
	await again.reopen(hashOf(3));
	assert.equal(again.refusal(of(5)), "client");
	await again.close();
	await journal.close();
});

test("bytes that are not in memory come from disk", async () => {
	const disk = new FakeDisk();
	const { kv, reads } = countingReads(disk);
	const options = { ttlMs: TTL_MS, rawCacheBytes: 3 * (1_000 + 300) };
	const dependencies = { kv, clock: new ManualClock(), log: silentLogger };
	const journal = await openedVerbs(options, dependencies);
	const before = reads();
	for (let n = 0; n < 10; n += 1) await journal.add(newEntry(n, { raw: rawOf(n, 1_000) }), "relay");
	for (const n of [9, 8, 7]) assert.deepEqual(await journal.raw(hashOf(n)), rawOf(n, 1_000));
	assert.equal(reads() - before, 0);
	for (let n = 0; n < 7; n += 1) assert.deepEqual(await journal.raw(hashOf(n)), rawOf(n, 1_000));
	assert.equal(reads() - before, 7);
	// One that ends while it is read is not there any more.
	const reading = journal.raw(hashOf(0));
	await journal.end(hashOf(0), "dropped");
	assert.equal(await reading, null);
	await journal.close();
});
