// A disk that fails for a while: nothing is forgotten, the newest state is what ends up there, and every promise is kept
// or broken, not left open.

import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { FakeDisk } from "../../relay/fakeDisk.ts";
import { contents, fixture, hashOf, newEntry, rawOf, reopened, senderOf, TTL_MS } from "./journalFixture.ts";
import { openedVerbs } from "./rowVerbs.ts";

const DISK = { message: "disk" };

test("what the disk refuses is kept in memory, its bytes too, and written when it can be", async () => {
	const { journal, disk, clock, faults } = await fixture({ rawCacheBytes: 1 });
	await journal.add(newEntry(1), "relay");
	assert.equal(journal.isDurable, true);
	disk.broken = true;
	await assert.rejects(journal.add(newEntry(2), "relay"), DISK);
	await assert.rejects(journal.held(hashOf(1), "fallback"), DISK);
	await assert.rejects(journal.markEnded({ ...newEntry(3), ending: "cancelled", untold: [] }), DISK);
	assert.equal(journal.isDurable, false);
	assert.equal(faults.count, 3);
	for (const n of [1, 2]) assert.deepEqual(await journal.raw(hashOf(n)), rawOf(n));
	assert.equal(journal.ended(hashOf(3))?.ending, "cancelled");
	// It tries again on its own, one of them at a time.
	await clock.advance(10_000);
	assert.equal(faults.count, 13);
	disk.broken = false;
	await clock.advance(1_000);
	assert.equal(journal.isDurable, true);
	assert.equal(clock.timers, 1, "the sweep's");
	const hashes = [1, 2, 3].map(hashOf);
	const again = (await reopened(disk)).journal;
	assert.deepEqual(await contents(again, hashes), await contents(journal, hashes));
	await again.close();
	await journal.close();
});

test("the next write that comes through brings what failed before along", async () => {
	const { journal, disk } = await fixture();
	disk.broken = true;
	for (let n = 0; n < 250; n += 1) await assert.rejects(journal.add(newEntry(n), "relay"), DISK);
	disk.broken = false;
	await journal.add(newEntry(250), "relay");
	await journal.close();
	assert.equal(journal.isDurable, true);
	assert.equal((await reopened(disk)).journal.depth, 251);
});

test("a good write behind a failed one of the same entry leaves the newest state", async () => {
	const { journal, disk, clock } = await fixture();
	disk.hold = true;
	const writes = [
		journal.add(newEntry(1), "relay"),
		journal.held(hashOf(1), "fallback"),
		journal.notHeld(hashOf(1), "relay"),
	];
	const settled = Promise.allSettled(writes);
	await clock.advance(0);
	disk.finish(false, 2);
	await clock.advance(0);
	assert.equal(journal.isDurable, false);
	assert.deepEqual(await journal.raw(hashOf(1)), rawOf(1));
	disk.finish(true, 1);
	assert.deepEqual(
		(await settled).map(({ status }) => status),
		["rejected", "rejected", "fulfilled"],
	);
	assert.equal(journal.isDurable, true);
	assert.equal(clock.timers, 0);
	const again = (await reopened(disk)).journal;
	assert.deepEqual(again.get(hashOf(1))?.holders, ["fallback"]);
	assert.deepEqual(await again.raw(hashOf(1)), rawOf(1));
	await again.close();
	disk.hold = false;
	await journal.close();
});

test("a failed write behind a good one of the same entry is done again", async () => {
	const { journal, disk, clock } = await fixture();
	disk.hold = true;
	const settled = Promise.allSettled([
		journal.add(newEntry(1), "relay"),
		journal.end(hashOf(1), "cancelled"),
	]);
	disk.finish(true, 1);
	disk.finish(false, 1);
	assert.deepEqual(
		(await settled).map(({ status }) => status),
		["fulfilled", "rejected"],
	);
	assert.equal((await reopened(disk)).journal.depth, 1);
	disk.hold = false;
	await clock.advance(1_000);
	const again = (await reopened(disk)).journal;
	assert.equal(again.depth, 0);
	assert.equal(again.ended(hashOf(1))?.ending, "cancelled");
	await again.close();
	await journal.close();
});

test("what is forgotten while the disk fails does not come back", async () => {
	const { journal, disk, clock } = await fixture();
	await journal.add(newEntry(1), "relay");
	await journal.notHeld(hashOf(1), "relay");
	disk.broken = true;
	await assert.rejects(journal.settle(hashOf(1), false), DISK);
	assert.equal(journal.depth, 0);
	disk.broken = false;
	await clock.advance(1_000);
	assert.deepEqual([...disk.map.keys()], ["m/format"]);
	// And again with the same hash, added anew before the removal came through.
	await journal.add(newEntry(1), "relay");
	await journal.end(hashOf(1), "dropped");
	disk.broken = true;
	await assert.rejects(journal.end(hashOf(1), "cancelled"), DISK);
	await assert.rejects(journal.add(newEntry(1), "relay"), DISK);
	disk.broken = false;
	await clock.advance(1_000);
	assert.equal((await reopened(disk)).journal.depth, 1);
	await journal.close();
});

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
	let writes = 0;
	const write = disk.write.bind(disk);
	disk.write = (changes) => {
		writes += 1;
		return write(changes);
	};
	await clock.advance(2_000);
	assert.ok(writes < 20, `${writes} records were still to be written`);
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

test("closing tries once more what failed, and waits for that", async () => {
	const { journal, disk, clock } = await fixture();
	disk.broken = true;
	await assert.rejects(journal.add(newEntry(1), "relay"), DISK);
	disk.broken = false;
	disk.hold = true;
	let closed = false;
	const closing = journal.close().then(() => {
		closed = true;
	});
	await clock.advance(1_000);
	assert.deepEqual([disk.waiting, closed], [1, false]);
	disk.finish(true);
	await closing;
	assert.equal(clock.timers, 0);
	assert.equal((await reopened(disk)).journal.depth, 1);
});

test("closing ends on a disk that fails for good", async () => {
	const { journal, disk, clock, faults } = await fixture();
	disk.broken = true;
	await assert.rejects(journal.add(newEntry(1), "relay"), DISK);
	await journal.close();
	assert.deepEqual([faults.count, clock.timers], [2, 0]);
	await assert.rejects(journal.held(hashOf(1), "fallback"), DISK);
	assert.equal(clock.timers, 0);
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
