// Tests the check of free disk space: now and then, with a plain file after a failure, leaving nothing behind.

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { DiskRoom } from "../../../../shared/kv/lmdb.ts";
import { ManualClock } from "../../../support/manualClock.ts";

const folder = mkdtempSync(join(tmpdir(), "leeward-room-"));
after(() => rmSync(folder, { recursive: true, force: true }));
writeFileSync(join(folder, "data.mdb"), Buffer.alloc(5_000));

test("a disk with room takes a write, behind a failure too, and no trial is left", async () => {
	const room = new DiskRoom(folder, "data.mdb", new ManualClock());
	await room.check();
	room.failed();
	await room.check();
	assert.deepEqual(readdirSync(folder), ["data.mdb"]);
});

test("behind a failure nothing is written until a trial went through", async () => {
	const clock = new ManualClock();
	const gone = join(folder, "gone");
	const room = new DiskRoom(folder, join("gone", "data.mdb"), clock);
	await room.check();
	room.failed();
	for (let i = 0; i < 3; i++) {
		await assert.rejects(room.check(), { code: "ENOENT" });
		await clock.advance(1_000);
	}
	assert.deepEqual(readdirSync(folder), ["data.mdb"], `${gone} is not there`);
});

test("the free space is looked at again after a while, not at each write", async () => {
	const clock = new ManualClock();
	const place = mkdtempSync(join(tmpdir(), "leeward-room-"));
	const room = new DiskRoom(place, "data.mdb", clock);
	await room.check();
	rmSync(place, { recursive: true });
	await room.check();
	await clock.advance(200);
	await assert.rejects(room.check(), { code: "ENOENT" });
});
