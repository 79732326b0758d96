// A disk that fails for a while, or takes its time: nothing is forgotten, what lies there is whole at every moment and the
// newest in the end, and every promise is kept or broken, not left open.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { UPSTREAMS } from "../../../../boost-proxy/domain/request.ts";
import { ENDINGS } from "../../../../boost-proxy/domain/row.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { FakeDisk } from "../../relay/fakeDisk.ts";
import { contents, fixture, hashOf, newEntry, rawOf, reopened, senderOf, TTL_MS } from "./journalFixture.ts";
import { openedVerbs, type RowVerbs } from "./rowVerbs.ts";

const DISK = { message: "disk" };

test("what the disk refuses is kept in memory, its bytes too, and written when it can be", async () => {
	const { journal, disk, clock } = await fixture({ rawCacheBytes: 1 });
	const hashes = Array.from({ length: 250 }, (_, n) => hashOf(n));
	await journal.add(newEntry(0), "relay");
	disk.broken = true;
	await assert.rejects(journal.held(hashOf(0), "fallback"), DISK);
	await assert.rejects(journal.markEnded({ ...newEntry(1), ending: "cancelled", untold: [] }), DISK);
	for (let n = 2; n < 250; n += 1) await assert.rejects(journal.add(newEntry(n), "relay"), DISK);
	assert.equal(journal.isDurable, false);
	assert.deepEqual(await journal.raw(hashOf(2)), rawOf(2));
	assert.equal(journal.ended(hashOf(1))?.ending, "cancelled");
	await clock.advance(10_000);
	disk.broken = false;
	await clock.advance(1_000);
	assert.equal(journal.isDurable, true);
	const again = (await reopened(disk)).journal;
	assert.deepEqual(await contents(again, hashes), await contents(journal, hashes));
	for (const one of [journal, again]) await one.close();
});

for (const [first, second] of [
	[true, false],
	[false, true],
]) {
	const said = first
		? "a failed write behind a good one is done again"
		: "a good write behind a failed one counts";
	test(`${said}, and the newest state is what lies there`, async () => {
		const { journal, disk, clock } = await fixture();
		disk.hold = true;
		const writes = [journal.add(newEntry(1), "relay"), journal.end(hashOf(1), "cancelled")];
		const settled = Promise.allSettled(writes);
		disk.finish(first === true, 1);
		await clock.advance(0);
		disk.finish(second === true, 1);
		const kinds = (await settled).map(({ status }) => status === "fulfilled");
		assert.deepEqual(kinds, [first, second]);
		disk.hold = false;
		await clock.advance(1_000);
		assert.equal(journal.isDurable, true);
		assert.equal((await reopened(disk)).journal.ended(hashOf(1))?.ending, "cancelled");
		await journal.close();
	});
}

test("bytes wait for the disk within a bound, whether it fails or hangs", async () => {
	const { journal, disk, clock } = await fixture({ maxBytes: 16 * (500 + 512) });
	const add = (n: number) => journal.add(newEntry(n, { raw: rawOf(n, 500) }), "relay");
	const first = Array.from({ length: 16 }, (_, n) => n);
	disk.broken = true;
	for (const n of first) await assert.rejects(add(n), DISK);
	assert.equal(await add(16), false);
	assert.equal(journal.depth, 16);
	disk.broken = false;
	await clock.advance(1_000);
	for (const n of first) await journal.end(hashOf(n), "dropped");
	disk.hold = true;
	const hanging = first.map((n) => add(100 + n));
	assert.equal(await add(16), false);
	disk.finish(true);
	await Promise.all(hanging);
	disk.hold = false;
	await journal.end(hashOf(100), "dropped");
	assert.equal(await add(16), true);
	await journal.close();
});

test("a flood of what is forgotten at once does not pile up on a failing disk, and does no harm later", async () => {
	const { journal, disk, clock } = await fixture({ maxLive: 4, maxEnded: 4 });
	// Left behind by the time when the removal of it failed and was given up.
	await journal.add(newEntry(0), "relay");
	await journal.end(hashOf(0), "dropped");
	disk.broken = true;
	let refused = 0;
	for (let n = 1; n < 50; n += 1) {
		const added = await journal.add(newEntry(n), "relay").catch(() => true);
		if (!added) refused += 1;
		await journal.notHeld(hashOf(n), "relay").catch(() => {});
		await journal.settle(hashOf(n), false).catch(() => {});
	}
	assert.ok(refused > 30, `${refused} refused`);
	disk.broken = false;
	await clock.advance(2_000);
	assert.equal(journal.isDurable, true);
	assert.equal(await journal.add(newEntry(0), "relay"), true);
	const again = (await reopened(disk, { maxEnded: 4 })).journal;
	assert.deepEqual(
		[...again.open()].map(({ hash }) => hash),
		[hashOf(0)],
	);
	await again.close();
	await journal.close();
});

test("closing tries once more what failed, waits for that, and ends on a disk that fails for good", async () => {
	for (const broken of [false, true]) {
		const { journal, disk, clock } = await fixture();
		disk.broken = true;
		await assert.rejects(journal.add(newEntry(1), "relay"), DISK);
		disk.hold = true;
		let closed = false;
		const closing = journal.close().then(() => {
			closed = true;
		});
		await clock.advance(1_000);
		assert.deepEqual([disk.waiting, closed], [1, false]);
		disk.finish(!broken);
		await closing;
		assert.equal(clock.timers, 0);
		assert.equal((await reopened(disk)).journal.depth, broken ? 0 : 1);
	}
});

test("an alarm is raised once per outage, and its end is told; nothing of a transaction is in it", async () => {
	const lines: string[] = [];
	const say = (message: string, fields?: object) => {
		lines.push(`${message} ${JSON.stringify(fields ?? {})}`);
	};
	const log = { ...silentLogger, error: say, info: say };
	const [disk, clock] = [new FakeDisk(), new ManualClock()];
	const journal = await openedVerbs({ ttlMs: TTL_MS }, { kv: disk, clock, log });
	for (let outage = 0; outage < 2; outage += 1) {
		disk.broken = true;
		for (const n of [1, 2]) {
			await assert.rejects(journal.add(newEntry(10 * outage + n, { from: senderOf(7) }), "relay"), DISK);
		}
		await clock.advance(3_000);
		disk.broken = false;
		await clock.advance(1_000);
	}
	const told = lines.map((line) => line.replace(/"at":"[^"]*"/, '"at":""').replace(',"at":""', ""));
	const [failed, back] = [
		'the journal can\'t be written: it is kept in memory alone {"fault":{"name":"Error"}}',
		"the journal is on disk again {}",
	];
	assert.deepEqual(told, [failed, back, failed, back]);
	await journal.close();
});

const HASHES = [0, 1, 2].map(hashOf);

type Word = (journal: RowVerbs) => Promise<unknown>;
const n = fc.integer({ min: 0, max: HASHES.length - 1 });
const by = fc.constantFrom(...UPSTREAMS);
const word: fc.Arbitrary<Word> = fc.oneof(
	fc.tuple(n, by).map(
		([i, who]): Word =>
			(journal) =>
				journal.add(newEntry(i), who),
	),
	fc.tuple(n, by, fc.constantFrom("held", "notHeld", "told")).map(
		([i, who, what]): Word =>
			(journal) =>
				journal[what](hashOf(i), who),
	),
	fc.tuple(n, fc.boolean()).map(
		([i, yes]): Word =>
			(journal) =>
				journal.settle(hashOf(i), yes),
	),
	fc.tuple(n, fc.constantFrom(...ENDINGS), fc.subarray([...UPSTREAMS])).map(
		([i, ending, untold]): Word =>
			(journal) =>
				journal.end(hashOf(i), ending, untold),
	),
	n.map(
		(i): Word =>
			(journal) =>
				journal.reopen(hashOf(i)),
	),
);
/** A word, or writes that come to an end, well or not. */
const step = fc.oneof(
	{ weight: 3, arbitrary: word },
	{ weight: 1, arbitrary: fc.record({ ok: fc.boolean(), count: fc.integer({ min: 1, max: 4 }) }) },
);

/** What a start on what lies there now would bring; nothing of it may be unreadable or half. */
async function leftOn(disk: FakeDisk) {
	const left = new FakeDisk();
	for (const [key, value] of disk.map) left.map.set(key, value);
	const errors: string[] = [];
	const log = { ...silentLogger, error: (message: string) => errors.push(message) };
	const journal = await openedVerbs({ ttlMs: TTL_MS }, { kv: left, clock: new ManualClock(), log });
	assert.deepEqual(errors, []);
	const left3 = await contents(journal, HASHES);
	await journal.close();
	return left3;
}

test("what lies on disk is whole at every moment, and the newest in the end", async () => {
	await fc.assert(
		fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async (steps) => {
			const { journal, disk, clock } = await fixture({ rawCacheBytes: 1 });
			disk.hold = true;
			const said: Promise<unknown>[] = [];
			for (const one of steps) {
				if (typeof one === "function") said.push(Promise.allSettled([one(journal)]));
				else {
					disk.finish(one.ok, one.count);
					await clock.advance(0);
					await leftOn(disk);
				}
			}

			disk.hold = false;
			disk.finish(true);
			await Promise.all(said);
			await clock.advance(1_000);
			assert.equal(journal.isDurable, true);
			assert.deepEqual(await leftOn(disk), await contents(journal, HASHES));
			await journal.close();
		}),
		{ numRuns: 200 },
	);
});
