// A disk that fails or is slow: no row is lost, the records are always whole and in the end the
// newest, and every write settles.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { UPSTREAMS } from "../../../../boost-proxy/domain/request.ts";
import { cancelsPendingAt, ENDINGS, isLive } from "../../../../boost-proxy/domain/row.ts";
import type { Rows } from "../../../../boost-proxy/rows/rows.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { FakeDisk } from "../../relay/fakeDisk.ts";
import {
	contents,
	fixture,
	hashOf,
	newEntry,
	openedVerbs,
	type RowVerbs,
	rawOf,
	reopened,
	senderOf,
	TTL_MS,
} from "../journal/journalFixture.ts";

const DISK = { message: "disk" };

test("failed writes are kept in memory, bytes included, and retried", async () => {
	const { journal, disk, clock } = await fixture();
	const hashes = Array.from({ length: 250 }, (_, n) => hashOf(n));
	await journal.add(newEntry(0), "relay");
	disk.broken = true;
	await assert.rejects(journal.held(hashOf(0), "fallback"), DISK);
	await assert.rejects(journal.markEnded({ ...newEntry(1), ending: "cancelled", cancelAt: [] }), DISK);
	for (let n = 2; n < 250; n += 1) await assert.rejects(journal.add(newEntry(n), "relay"), DISK);
	assert.equal(journal.rows.isDurable, false);
	assert.deepEqual(await journal.raw(hashOf(2)), rawOf(2));
	assert.equal((await journal.ended(hashOf(1)))?.ending, "cancelled");
	await clock.advance(10_000);
	disk.broken = false;
	await clock.advance(1_000);
	assert.equal(journal.rows.isDurable, true);
	const again = (await reopened(disk)).journal;
	assert.deepEqual(await contents(again, hashes), await contents(journal, hashes));
	for (const one of [journal, again]) await one.close();
});

test("a row that the disk could not delete is deleted with the next write of its hash, whose row is another", async () => {
	const { journal, disk, clock } = await fixture();
	await journal.add(newEntry(1), "relay");
	await journal.notHeld(hashOf(1), "relay");
	disk.broken = true;
	await assert.rejects(journal.settle(hashOf(1), false), DISK);
	await assert.rejects(journal.add(newEntry(1), "relay"), DISK);
	disk.broken = false;
	await clock.advance(5_000);
	assert.equal(journal.rows.isDurable, true);
	await journal.notHeld(hashOf(1), "relay");
	await journal.settle(hashOf(1), false);
	const again = (await reopened(disk)).journal;
	assert.equal(again.get(hashOf(1)), null, "its client got an error, twice");
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
		const adding = journal.add(newEntry(1), "relay");
		await clock.advance(0);
		const settled = Promise.allSettled([adding, journal.end(hashOf(1), "cancelled")]);
		disk.finish(first === true, 1);
		await clock.advance(0);
		disk.finish(second === true, 1);
		const kinds = (await settled).map(({ status }) => status === "fulfilled");
		assert.deepEqual(kinds, [first, second]);
		disk.hold = false;
		await clock.advance(1_000);
		assert.equal(journal.rows.isDurable, true);
		assert.equal((await (await reopened(disk)).journal.ended(hashOf(1)))?.ending, "cancelled");
		await journal.close();
	});
}

test("closing retries failed writes once and ends even if the disk still fails", async () => {
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

test("an outage is logged once, and so is its end, without anything of a transaction", async () => {
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
		'could not write the journal: keeping it in memory only {"fault":{"name":"Error"}}',
		"journal on disk again {}",
	];
	assert.deepEqual(told, [failed, back, failed, back]);
	await journal.close();
});

const HASHES = [0, 1, 2, 3].map(hashOf).sort();
/** So few that rows leave memory and are dropped. */
const LIMITS = { maxEnded: 3, maxRecent: 1 };

type Step = (journal: RowVerbs) => Promise<unknown> | undefined;
const n = fc.nat(HASHES.length - 1);
const by = fc.constantFrom(...UPSTREAMS);
/** Two of each nonce. */
const entryOf = (i: number) => newEntry(i, { nonce: BigInt(Math.floor(i / 2)) });
const change: fc.Arbitrary<Step> = fc.oneof(
	fc.tuple(n, by).map(
		([i, who]): Step =>
			(journal) =>
				journal.add(entryOf(i), who),
	),
	fc.tuple(n, by, fc.constantFrom("held", "notHeld", "cancelDone")).map(
		([i, who, what]): Step =>
			(journal) =>
				journal[what](hashOf(i), who),
	),
	fc.tuple(n, fc.boolean()).map(
		([i, yes]): Step =>
			(journal) =>
				journal.settle(hashOf(i), yes),
	),
	fc.tuple(n, fc.constantFrom(...ENDINGS), fc.subarray([...UPSTREAMS])).map(
		([i, ending, cancelAt]): Step =>
			(journal) =>
				journal.end(hashOf(i), ending, cancelAt),
	),
	n.map(
		(i): Step =>
			(journal) =>
				journal.reopen(hashOf(i)),
	),
);
/**
 * A change, writes that come to an end, well or not, or time that passes: then rows leave memory,
 * and old ones are dropped.
 */
const step = fc.oneof(
	{ weight: 6, arbitrary: change },
	{ weight: 2, arbitrary: fc.record({ ok: fc.boolean(), count: fc.integer({ min: 1, max: 4 }) }) },
	{ weight: 1, arbitrary: fc.record({ ms: fc.constantFrom(11_000, 130_000) }) },
);

/** The contents that a start would read from the disk now. None may be unreadable or incomplete. */
async function leftOn(disk: FakeDisk) {
	const left = new FakeDisk();
	for (const [key, value] of disk.map) left.map.set(key, value);
	const errors: string[] = [];
	const log = { ...silentLogger, error: (message: string) => errors.push(message) };
	const journal = await openedVerbs(
		{ ttlMs: TTL_MS, ...LIMITS },
		{ kv: left, clock: new ManualClock(), log },
	);
	assert.deepEqual(errors, []);
	checkIndexes(journal.rows);
	const found = await contents(journal, HASHES);
	await journal.close();
	return found;
}

/** Every list is what follows from the rows one by one. */
function checkIndexes(rows: Rows): void {
	const all = HASHES.flatMap((hash) => rows.get(hash) ?? []);
	const hashes = (some: Iterable<{ readonly hash: string }>) => [...some].map(({ hash }) => hash);
	const live = all.filter(isLive);
	assert.deepEqual([rows.liveCount, hashes(rows.allLive()).sort()], [live.length, hashes(live)]);
	assert.deepEqual(
		hashes(rows.liveOf(senderOf(1))).map((hash) => rows.get(hash)?.nonce),
		live.map(({ nonce }) => nonce).sort(),
	);
	const ended = all.filter((row) => !isLive(row));
	const pending = ended.filter((row) => cancelsPendingAt(row).length > 0);
	assert.deepEqual(hashes(rows.pendingCancels()).sort(), hashes(pending));
	const reopenable = ended.filter(({ bytes }) => bytes > 0);
	assert.deepEqual(hashes(rows.reopenable()).sort(), hashes(reopenable));
	assert.ok(reopenable.every(({ desired }) => desired === "mined" || desired === "dropped"));
}

test("records are always whole and in the end the newest; every index matches the rows", async () => {
	await fc.assert(
		fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async (steps) => {
			const { journal, disk, clock } = await fixture(LIMITS);
			disk.hold = true;
			const said: Promise<unknown>[] = [];
			for (const one of steps) {
				if (typeof one === "function") said.push(Promise.allSettled([one(journal)]));
				else if ("ms" in one) await clock.advance(one.ms);
				else {
					disk.finish(one.ok, one.count);
					await clock.advance(1);
					await leftOn(disk);
				}
				checkIndexes(journal.rows);
			}
			// The last change must have come to the disk: held writes end in their order, others at once.
			await clock.advance(0);
			disk.hold = false;
			disk.finish(true);
			await Promise.all(said);
			await clock.advance(11_000);
			assert.equal(journal.rows.isDurable, true);
			const kept = await contents(journal, HASHES);
			assert.deepEqual(await leftOn(disk), kept);
			assert.ok(kept.filter(({ ended }) => ended !== null).length <= LIMITS.maxEnded);
			await journal.close();
		}),
		{ numRuns: 200 },
	);
});
