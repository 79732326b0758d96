// A full disk under LMDB.

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { DiskRoom } from "../../../../shared/kv/lmdb.ts";

// LMDB must not see a write fail: its error message overruns the heap.
test("after a failed write nothing is written until a trial write succeeds", async () => {
	const folder = mkdtempSync(join(tmpdir(), "leeward-room-"));
	const room = new DiskRoom(folder);
	await room.check();
	room.failed();
	for (let i = 0; i < 2; i++) await assert.rejects(room.check(), { code: "ENOENT" });
	assert.deepEqual(readdirSync(folder), []);
	rmSync(folder, { recursive: true });
});
