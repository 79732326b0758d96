// How entries end in the journal: what is remembered of them, for how long, who is still to be told, and what comes back
// from the chain.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fixture, hashOf, newEntry, REORG_MS, rawOf, reopened, senderOf, TTL_MS } from "./journalFixture.ts";

const DAY_MS = 24 * 3600 * 1000;
const MARK = { from: senderOf(1), nonce: 1n, path: "fast", address: "192.0.2.1" } as const;

test("every end is remembered, without the bytes; the user's over a restart", async () => {
	const { journal, disk, clock } = await fixture();
	const endings = ["mined", "replaced", "cancelled", "expired", "dropped"] as const;
	for (const [i, ending] of endings.entries()) {
		await journal.add(newEntry(i, { path: "noreverts", address: "2001:db8::1" }), "relay");
		await journal.end(hashOf(i), ending, ending === "cancelled" ? ["relay", "fallback"] : []);
	}
	const again = (await reopened(disk)).journal;
	for (const one of [journal, again]) {
		assert.equal(one.depth, 0);
		for (const [i, ending] of endings.entries()) {
			assert.deepEqual(one.ended(hashOf(i)), {
				hash: hashOf(i),
				from: senderOf(1),
				nonce: BigInt(i),
				path: "noreverts",
				address: "2001:db8::1",
				ending,
				endedAt: clock.now(),
				untold: ending === "cancelled" ? ["relay", "fallback"] : [],
			});
			assert.equal(await one.raw(hashOf(i)), null);
		}
		assert.deepEqual(
			[...one.untold()].map(({ hash }) => hash),
			[hashOf(2)],
		);
	}
	// The mined one's bytes alone are there, in case its block goes.
	const births = () => [...disk.map.keys()].filter((key) => key.startsWith("b/"));
	assert.deepEqual(births(), [`b/${hashOf(0)}`]);
	await clock.advance(REORG_MS);
	assert.deepEqual(births(), []);
	await again.close();
	await journal.close();
});

test("who is to be told is told one by one", async () => {
	const { journal, disk } = await fixture();
	await journal.add(newEntry(1), "relay");
	await journal.end(hashOf(1), "cancelled", ["relay", "fallback"]);
	await journal.told(hashOf(1), "relay");
	assert.deepEqual((await reopened(disk)).journal.ended(hashOf(1))?.untold, ["fallback"]);
	assert.deepEqual([...journal.untold()], [journal.ended(hashOf(1))]);
	await journal.told(hashOf(1), "fallback");
	assert.deepEqual([...journal.untold()], []);
	assert.deepEqual([...(await reopened(disk)).journal.untold()], []);
	// It turns out that one more was given it while it was cancelled.
	await journal.held(hashOf(1), "fallback");
	assert.deepEqual(journal.ended(hashOf(1))?.untold, ["fallback"]);
	await journal.end(hashOf(1), "cancelled", ["fallback", "relay"]);
	assert.deepEqual(journal.ended(hashOf(1))?.untold, ["relay", "fallback"]);
	await journal.close();
});

test("a first word stays, but for what was given up", async () => {
	const { journal, clock } = await fixture();
	for (const [n, first, second, last] of [
		[1, "cancelled", "mined", "cancelled"],
		[2, "mined", "replaced", "mined"],
		[3, "expired", "cancelled", "cancelled"],
		[4, "dropped", "mined", "mined"],
		[5, "dropped", "expired", "expired"],
	] as const) {
		await journal.add(newEntry(n), "relay");
		await journal.end(hashOf(n), first);
		await clock.advance(1);
		await journal.end(hashOf(n), second);
		assert.equal(journal.ended(hashOf(n))?.ending, last);
	}
	await journal.close();
});

test("a mark for what was never an entry, for one that is open, and for one that has ended", async () => {
	const { journal, disk, clock } = await fixture();
	await journal.markEnded({ ...MARK, hash: hashOf(1), ending: "cancelled", untold: [] });
	await journal.add(newEntry(2), "relay");
	await journal.markEnded({ ...MARK, hash: hashOf(2), ending: "replaced", untold: ["relay"] });
	assert.equal(journal.depth, 0);
	const { endedAt } = journal.ended(hashOf(2)) ?? {};
	await clock.advance(5);
	await journal.markEnded({ ...MARK, hash: hashOf(2), ending: "replaced", untold: ["fallback"] });
	const again = (await reopened(disk)).journal;
	for (const one of [journal, again]) {
		assert.equal(one.ended(hashOf(1))?.ending, "cancelled");
		assert.deepEqual(one.ended(hashOf(2))?.untold, ["relay", "fallback"]);
		assert.equal(one.ended(hashOf(2))?.endedAt, endedAt);
	}
	await again.close();
	await journal.close();
});

test("one that has ended may come again", async () => {
	const { journal, disk } = await fixture();
	await journal.add(newEntry(1), "relay");
	await journal.end(hashOf(1), "expired");
	assert.equal(await journal.add(newEntry(1, { search: "again" }), "fallback"), true);
	const again = (await reopened(disk)).journal;
	for (const one of [journal, again]) {
		assert.equal(one.ended(hashOf(1)), null);
		assert.equal(one.get(hashOf(1))?.search, "again");
		assert.deepEqual(one.get(hashOf(1))?.holders, ["fallback"]);
		assert.deepEqual(await one.raw(hashOf(1)), rawOf(1));
	}
	await again.close();
	await journal.close();
});

test("a mined one can be opened again for some slots, over a restart too, and then not any more", async () => {
	const { journal, disk, clock } = await fixture({ rawCacheBytes: 1 });
	for (const n of [1, 2, 3]) {
		await journal.add(newEntry(n, { search: "s", softCancellations: true }), "relay");
		await journal.settle(hashOf(n), true);
		await journal.held(hashOf(n), "fallback");
		await journal.end(hashOf(n), "mined");
	}
	await clock.advance(REORG_MS - 1);
	await journal.reopen(hashOf(1));
	const again = (await reopened(disk)).journal;
	await again.reopen(hashOf(2));
	for (const [one, n] of [
		[journal, 1],
		[again, 1],
		[again, 2],
	] as const) {
		const entry = one.get(hashOf(n));
		assert.equal(one.ended(hashOf(n)), null);
		assert.deepEqual(entry?.holders, ["relay", "fallback"]);
		assert.equal(entry?.underWay, false);
		assert.equal(entry?.search, "s");
		assert.deepEqual(await one.raw(hashOf(n)), rawOf(n));
	}
	assert.equal(journal.get(hashOf(1))?.aliveUntil, clock.now() + TTL_MS);
	await clock.advance(2);
	await journal.reopen(hashOf(3));
	assert.equal(journal.get(hashOf(3)), null);
	assert.equal(journal.ended(hashOf(3))?.ending, "mined");
	// A journal that is opened later than that drops the bytes too.
	const late = await fixture({}, disk);
	await late.clock.advance(REORG_MS + 1_000);
	assert.equal(disk.map.has(`b/${hashOf(3)}`), false);
	for (const one of [journal, again, late.journal]) await one.close();
});

test("ended ones are forgotten after a week, on disk too, a bounded number at a time", async () => {
	const { journal, disk, clock } = await fixture({ maxEnded: 5_000 });
	for (let n = 0; n < 2_500; n += 1) {
		await journal.markEnded({ ...MARK, hash: hashOf(n), ending: "cancelled", untold: [] });
	}
	await clock.advance(3 * DAY_MS);
	await journal.markEnded({ ...MARK, hash: hashOf(9_999), ending: "expired", untold: [] });
	await clock.advance(4 * DAY_MS - 1);
	assert.equal(disk.map.size, 2_502);
	await clock.advance(1);
	assert.equal(disk.map.size, 1_502);
	await clock.advance(2_000);
	assert.deepEqual([...disk.map.keys()].sort(), ["m/format", `s/${hashOf(9_999)}`]);
	assert.equal(journal.ended(hashOf(1)), null);
	assert.equal(journal.ended(hashOf(9_999))?.ending, "expired");
	await clock.advance(3 * DAY_MS);
	assert.deepEqual([...disk.map.keys()], ["m/format"]);
	assert.equal(clock.timers, 0);
	await journal.close();
});

test("more ended ones than are remembered: the oldest go first, those that their users ended last", async () => {
	const { journal, disk } = await fixture({ maxEnded: 3 });
	const left = (one: typeof journal) => [0, 1, 2, 3, 4, 5, 6].filter((n) => one.ended(hashOf(n)) !== null);
	for (const [n, ending] of [
		[0, "cancelled"],
		[1, "mined"],
		[2, "dropped"],
		[3, "replaced"],
		[4, "expired"],
	] as const) {
		await journal.add(newEntry(n), "relay");
		await journal.end(hashOf(n), ending);
	}
	assert.deepEqual(left(journal), [0, 3, 4]);
	await journal.markEnded({ ...MARK, hash: hashOf(5), ending: "cancelled", untold: ["relay"] });
	assert.deepEqual(left(journal), [0, 3, 5]);
	await journal.markEnded({ ...MARK, hash: hashOf(6), ending: "mined", untold: [] });
	assert.deepEqual(left(journal), [0, 3, 5], "no room but its own");
	assert.deepEqual(left((await reopened(disk)).journal), [0, 3, 5]);
	const less = await reopened(disk, { maxEnded: 1 });
	assert.deepEqual(left(less.journal), [5]);
	assert.deepEqual([...less.disk.map.keys()], ["m/format", `s/${hashOf(5)}`]);
	assert.deepEqual(
		[...disk.map.keys()].filter((key) => !key.startsWith("s/")),
		["m/format"],
	);
	await journal.close();
});

test("what ended again is as new, and the order of the ends holds over a restart", async () => {
	const { journal, disk, clock } = await fixture({ maxEnded: 3 });
	const left = (one: typeof journal) => [1, 2, 3, 4, 5].filter((n) => one.ended(hashOf(n)) !== null);
	const end = async (n: number, ending: "dropped" | "expired" | "cancelled") => {
		await clock.advance(1);
		await journal.markEnded({ ...MARK, hash: hashOf(n), ending, untold: [] });
	};
	await end(3, "dropped");
	await end(2, "dropped");
	await end(1, "dropped");
	await end(3, "expired");
	const again = (await reopened(disk, { maxEnded: 3 })).journal;
	for (const one of [journal, again]) {
		await one.markEnded({ ...MARK, hash: hashOf(4), ending: "dropped", untold: [] });
		assert.deepEqual(left(one), [1, 3, 4]);
	}
	await end(1, "cancelled");
	await end(5, "dropped");
	assert.deepEqual(left(journal), [1, 4, 5]);
	await again.close();
	await journal.close();
});
