// A store is this format's, or empty, or refused as it is.

import assert from "node:assert/strict";
import { test } from "node:test";
import { checkFormat, hasFormat } from "../../../../shared/kv/format.ts";
import { FakeDisk } from "../../relay/fakeDisk.ts";

test("marks an empty store, once", async () => {
	const disk = new FakeDisk();
	assert.equal(await hasFormat(disk), false);
	for (const _ of [1, 2]) await checkFormat(disk);
	assert.equal(await hasFormat(disk), true);
	assert.equal(disk.map.size, 1);
});

for (const [name, key, value, kept] of [
	["of another format", "m/format", "4", "format 4"],
	["without a mark", "p/0x12", "", "format without a mark"],
] as const) {
	test(`refuses a store ${name}, and leaves it as it is`, async () => {
		const disk = new FakeDisk();
		disk.map.set(key, Buffer.from(value));
		await assert.rejects(checkFormat(disk), {
			code: "OTHER_FORMAT",
			message: `the store was written by another version (${kept}, expected 5): drain it with that version, or set DATA_DIR or DATABASE_URL to another one`,
		});
		assert.deepEqual([...disk.map.keys()], [key]);
	});
}
