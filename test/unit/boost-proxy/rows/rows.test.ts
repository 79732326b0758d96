// The bounds of the table of rows in number, size and age, for each client and in all, and what is
// written to disk.

import assert from "node:assert/strict";
import { test } from "node:test";
import { markAbandoned, markHeld, markNotHeld } from "../../../../boost-proxy/domain/deliveries.ts";
import type { Ending } from "../../../../boost-proxy/domain/row.ts";
import {
	diskKey,
	fixture,
	hashOf,
	newEntry,
	REORG_MS,
	rawOf,
	reopened,
	senderOf,
	TTL_MS,
} from "../journal/journalFixture.ts";

const DAY_MS = 24 * 3600 * 1000;
/** Within this time what is too much is dropped. */
const SWEEP_MS = 10_000;
const MARK = { from: senderOf(1), nonce: 1n, path: "fast", address: "192.0.2.1" } as const;

test("an acknowledged entry costs one write, of one record", async () => {
	const { journal, disk } = await fixture();
	const before = disk.map.size;
	await journal.add(newEntry(1), "relay");
	disk.hold = true;
	await journal.settle(hashOf(1), true);
	assert.equal(disk.waiting, 0);
	assert.equal(journal.get(hashOf(1))?.inProgress, false);
	assert.equal(disk.map.size, before + 1);
	await journal.close();
});

test("a row that lives on has at least half a life left, after a restart too", async () => {
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
		journal.rows.extendLife(hashOf(1));
		const left = (journal.get(hashOf(1))?.aliveUntil ?? 0) - clock.now();
		assert.ok(left > TTL_MS / 2 && left <= TTL_MS, `${left} ms left`);
	}
	assert.ok(writes >= 18 && writes <= 21, `${writes} writes in ten lives`);
	const left = ((await reopened(disk)).journal.get(hashOf(1))?.aliveUntil ?? 0) - clock.now();
	assert.ok(left >= TTL_MS / 2, `${left} ms left`);
	await journal.close();
});

test("without room nothing is kept", async () => {
	const { journal } = await fixture({ maxLive: 2 });
	await Promise.all([journal.add(newEntry(1), "relay"), journal.add(newEntry(2), "relay")]);
	assert.equal(journal.rows.exceeded(newEntry(3)), "total");
	assert.equal(await journal.add(newEntry(3), "relay"), false);
	assert.equal(journal.get(hashOf(3)), null);
	assert.deepEqual([journal.depth, journal.rows.isFull], [2, true]);
	await journal.end(hashOf(1), "mined");
	assert.equal(journal.rows.isFull, false);
	assert.equal(await journal.add(newEntry(3), "relay"), true);
	// One that comes back from the chain is never turned away.
	await journal.reopen(hashOf(1));
	assert.equal(journal.depth, 3);
	await journal.close();
});

test("one client has a sixteenth of the entries and of the bytes, by its network; others notice nothing", async () => {
	const options = { maxLive: 32, maxBytes: 16 * 10_000 };
	const { journal, disk } = await fixture(options);
	const of = (n: number, length = 120) =>
		newEntry(n, { address: `2001:db8:1:2${n}::${n}`, raw: rawOf(n, length) });
	assert.equal(await journal.add(of(1), "relay"), true);
	assert.equal(await journal.add(of(2), "relay"), true);
	assert.equal(journal.rows.exceeded(of(3)), "client");
	assert.equal(await journal.add(of(3), "relay"), false);
	assert.equal(await journal.add(newEntry(4), "relay"), true);
	// The same again needs no room; one that was not acknowledged changes hands.
	assert.equal(journal.rows.exceeded(of(2)), null);
	await journal.settle(hashOf(1), false);
	assert.equal(await journal.add(newEntry(1), "relay"), true);
	assert.equal(journal.rows.exceeded(of(3)), null);
	assert.equal(journal.rows.exceeded(of(3, 9_000)), "client", "bytes");
	await journal.end(hashOf(2), "mined");
	assert.equal(await journal.add(of(3, 8_857), "relay"), true);
	assert.equal(journal.rows.exceeded(of(5)), "client");
	// Rows that a restart finds count as before. So do rows that are opened again.
	const again = (await reopened(disk, options)).journal;
	assert.equal(again.rows.exceeded(of(5, 120)), "client");
	assert.equal(again.rows.exceeded(of(5, 119)), null);
	await again.end(hashOf(3), "mined");
	await again.reopen(hashOf(2));
	assert.equal(again.rows.exceeded(of(5, 10_000 - 512 - 632)), null);
	assert.equal(again.rows.exceeded(of(5, 10_000 - 512 - 631)), "client");
	await again.reopen(hashOf(3));
	assert.equal(again.rows.exceeded(of(5)), "client");
	await again.close();
	await journal.close();
});

test("bytes come from disk", async () => {
	const { journal } = await fixture();
	for (let n = 0; n < 10; n += 1) await journal.add(newEntry(n, { raw: rawOf(n, 1_000) }), "relay");
	for (let n = 9; n >= 0; n -= 1) assert.deepEqual(await journal.raw(hashOf(n)), rawOf(n, 1_000));
	// One that ends while it is read is not there any more.
	const reading = journal.raw(hashOf(9));
	await journal.end(hashOf(9), "dropped");
	assert.equal(await reading, null);
	await journal.close();
});

test("ended rows keep no bytes, but those that the chain ended while they can be reopened", async () => {
	const { journal, disk, clock } = await fixture();
	const births = (of = disk) => [...of.map.keys()].filter((key) => key.startsWith("b/"));
	for (const [n, ending] of (
		["mined", "mined", "replaced", "cancelled", "expired", "dropped", "dropped"] as const
	).entries()) {
		await journal.add(newEntry(n), "relay");
		if (n === 6) journal.rows.change(hashOf(n), (row) => markAbandoned(row, "relay"));
		await journal.end(hashOf(n), ending);
		assert.equal(await journal.raw(hashOf(n)), null);
	}
	assert.deepEqual(
		births(),
		[0, 1, 5].map((n) => diskKey("b/", n, n + 1)),
	);
	const again = await reopened(disk);
	await again.journal.reopen(hashOf(1));
	assert.deepEqual(await again.journal.raw(hashOf(1)), rawOf(1));
	await clock.advance(REORG_MS + 10_000);
	assert.deepEqual(births(), []);
	await journal.reopen(hashOf(0));
	assert.equal(journal.get(hashOf(0)), null, "it is mined for good");
	// A journal that is opened later than that drops the bytes too.
	await again.clock.advance(REORG_MS + 10_000);
	assert.deepEqual(births(again.disk), [diskKey("b/", 1, 2)]);
	for (const one of [journal, again.journal]) await one.close();
});

test("ended ones are forgotten after a week, on disk too, a bounded number at a time", async () => {
	const { journal, disk, clock } = await fixture({ maxEnded: 5_000 });
	const kept = () => [...disk.map.keys()].filter((key) => key.startsWith("e/")).length;
	for (let n = 0; n < 2_500; n += 1) {
		await journal.markEnded({ ...MARK, hash: hashOf(n), ending: "cancelled", cancelAt: [] });
	}
	clock.set(3 * DAY_MS);
	await journal.markEnded({ ...MARK, hash: hashOf(9_999), ending: "expired", cancelAt: [] });
	clock.set(4 * DAY_MS - 2 * SWEEP_MS);
	await clock.advance(2 * SWEEP_MS - 1);
	assert.equal(kept(), 2_501);
	await clock.advance(1);
	assert.equal(kept(), 1_501);
	await clock.advance(2_000);
	assert.equal(kept(), 1);
	assert.equal(await journal.ended(hashOf(1)), null);
	assert.equal((await journal.ended(hashOf(9_999)))?.ending, "expired");
	clock.set(3 * DAY_MS);
	await clock.advance(SWEEP_MS);
	assert.deepEqual([...disk.map.keys()], ["m/format"]);
	assert.equal(clock.timers, 0);
	await journal.close();
});

test("beyond the limit the oldest ended rows are dropped first, those that their users ended last, after a restart too", async () => {
	const { journal, disk, clock } = await fixture({ maxEnded: 3 });
	const left = async (one: typeof journal) => {
		const found: number[] = [];
		for (let n = 0; n < 7; n += 1) if ((await one.ended(hashOf(n))) !== null) found.push(n);
		return found;
	};
	const end = async (one: typeof journal, n: number, ending: Ending) => {
		await clock.advance(1);
		await one.markEnded({ ...MARK, hash: hashOf(n), ending, cancelAt: [] });
	};
	for (const [n, ending] of (["cancelled", "mined", "dropped", "replaced", "expired"] as const).entries())
		await end(journal, n, ending);
	await clock.advance(SWEEP_MS);
	assert.deepEqual(await left(journal), [0, 3, 4]);
	await end(journal, 5, "cancelled");
	await clock.advance(SWEEP_MS);
	assert.deepEqual(await left(journal), [0, 3, 5]);
	await end(journal, 6, "mined");
	await clock.advance(SWEEP_MS);
	assert.deepEqual(await left(journal), [0, 3, 5], "no room but its own");
	const less = await reopened(disk, { maxEnded: 1 });
	await less.clock.advance(SWEEP_MS);
	assert.deepEqual(await left(less.journal), [5]);
	const kept = [...less.disk.map.keys()].filter((key) => /^[bse]/.test(key));
	assert.deepEqual(kept, [`e/${hashOf(5)}`]);
	for (const one of [journal, less.journal]) await one.close();
});

test("an unacknowledged row takes over the values of a second request and keeps its delivery state", async () => {
	const { journal, disk, clock } = await fixture();
	const { receivedAt } = newEntry(1);
	await journal.add(newEntry(1, { replacesAtUpstreams: ["fallback"] }), "relay");
	await journal.settle(hashOf(1), false);
	const { raw: _, ...asked } = newEntry(1, {
		...{ path: "noreverts", search: "softCancellations=true", softCancellations: true },
		...{ address: "192.0.2.9", receivedAt: receivedAt + 7_000, replacesAtUpstreams: ["relay"] },
	});
	assert.equal(await journal.add({ ...asked, raw: rawOf(1) }, "fallback"), true);
	await journal.settle(hashOf(1), true);
	const again = (await reopened(disk)).journal;
	for (const one of [journal, again]) {
		assert.deepEqual(one.get(hashOf(1)), {
			...asked,
			...{ replacesAtUpstreams: ["relay", "fallback"], holders: ["relay", "fallback"], inProgress: false },
			...{ aliveUntil: clock.now() + TTL_MS, acknowledged: true, bytes: rawOf(1).length },
		});
		await one.close();
	}
});

test("a cancel is pending at upstreams that turn out to have an ended row, but not a mined one", async () => {
	for (const [ending, cancelAt] of [
		["cancelled", ["fallback"]],
		["replaced", ["fallback"]],
		["mined", []],
	] as const) {
		const { journal } = await fixture();
		await journal.add(newEntry(1), "relay");
		await journal.end(hashOf(1), ending);
		await journal.held(hashOf(1), "fallback");
		assert.deepEqual((await journal.ended(hashOf(1)))?.cancelAt, cancelAt);
		await journal.close();
	}
});

test("expired and dropped are overwritten by another ending, others are not", async () => {
	for (const [first, later, stays] of [
		["expired", "mined", false],
		["dropped", "cancelled", false],
		["cancelled", "mined", true],
		["mined", "expired", true],
	] as const) {
		const { journal } = await fixture();
		await journal.add(newEntry(1), "relay");
		for (const ending of [first, later]) await journal.end(hashOf(1), ending);
		assert.equal((await journal.ended(hashOf(1)))?.ending, stays ? first : later, `${first}, ${later}`);
		await journal.close();
	}
});

test("since when the fallback has it is noted once, at the time when it took it", async () => {
	const { journal, clock } = await fixture();
	await journal.add(newEntry(1), "relay");
	const since = () => journal.rows.get(hashOf(1))?.notes.fallbackSince;
	assert.equal(since(), 0);
	await clock.advance(5_000);
	const taken = clock.now();
	journal.rows.changeLive(hashOf(1), (row) => markHeld(row, "fallback"));
	assert.equal(since(), taken);
	await clock.advance(5_000);
	journal.rows.changeLive(hashOf(1), (row) => markNotHeld(row, "relay"));
	assert.equal(since(), taken);
	await journal.close();
});
