// What `npm run store` refuses, with a real LMDB and a real PostgreSQL: stores in use, with data of their own, moved or not
// there, before it has changed anything; and what it does for a database's tables.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, test } from "node:test";
import { inStore, runCommand, runWell, StoreCommands } from "../support/storeCommand.ts";
import { everything, fill, someEntries } from "../unit/shared/kv/copy/copyScene.ts";

const commands = new StoreCommands();
after(() => commands.remove());

test("a store in use is refused, on either side, before anything of the other one is copied", async () => {
	const place = await commands.newPlace();
	for (const store of ["relay", "boost"] as const) {
		await inStore("lmdb", place, store, (kv) => fill(kv, someEntries(5, store)));
	}
	for (const [engine, refusal] of [
		["lmdb", /^store: another process uses the data folder .*boost: stop it/],
		["postgres", /^store: another process uses the boost's store in the database of DATABASE_URL: stop it/],
	] as const) {
		await inStore(engine, place, "boost", async () => {
			const { code, stderr } = await runCommand(place, "copy", "lmdb", "postgres");
			assert.equal(code, 1);
			assert.match(stderr, refusal);
		});
		assert.equal((await inStore("postgres", place, "relay", everything)).size, 0);
	}
	await runWell(place, "copy", "lmdb", "postgres");
	for (const store of ["relay", "boost"] as const) {
		assert.equal(`${await inStore("postgres", place, store, (kv) => kv.get("p/000004"))}`, `${store} 4`);
	}
});

test("data of its own in the destination, a moved source and none at all are refused", async () => {
	const place = await commands.newPlace();
	const refused = async (expected: RegExp, ...args: readonly string[]) => {
		const { code, stderr } = await runCommand(place, "copy", ...args);
		assert.equal(code, 1, args.join(" "));
		assert.match(stderr, expected);
	};
	await refused(/^store: there is no store in lmdb: expected one that was used/, "lmdb", "postgres");
	await refused(/^store: there is no store in postgres: expected one/, "postgres", "lmdb", "relay");
	assert.equal(existsSync(place.dataDir), false);
	await inStore("lmdb", place, "relay", (kv) => fill(kv, someEntries(5, "mine")));
	await inStore("postgres", place, "relay", (kv) => fill(kv, someEntries(1, "theirs")));
	await refused(
		/the relay's store in postgres holds data of its own: expected an empty one/,
		"lmdb",
		"postgres",
	);
	await refused(/the relay's store in lmdb holds data of its own/, "postgres", "lmdb", "relay");
	await inStore("postgres", place, "relay", (kv) => fill(kv, new Map()));
	await runWell(place, "copy", "lmdb", "postgres");
	const moved = /the relay's store was moved to postgres: start with DATABASE_URL, or copy it back \(npm run/;
	await refused(moved, "lmdb", "postgres");
	await refused(moved, "lmdb", "postgres", "relay");
	// What came later is copied, and what has been is left alone.
	await inStore("lmdb", place, "boost", (kv) => fill(kv, someEntries(5, "boost")));
	const rest = await runWell(place, "copy", "lmdb", "postgres");
	assert.match(rest, /^nothing is copied of what has been: the relay's store was moved to postgres/m);
	assert.match(rest, /^boost: moved to postgres/m);
});

test("migrate brings a new database up to date once, and says so", async () => {
	const place = await commands.newPlace();
	assert.equal(
		await runWell(place, "migrate"),
		"the database's tables are up to date; run now: 0001_store.sql\n",
	);
	assert.equal(await runWell(place, "migrate"), "the database's tables are up to date; run now: nothing\n");
	assert.equal(existsSync(place.dataDir), false);
	const later = new URL(place.url);
	later.pathname = "/nowhere";
	const { code, stderr } = await runCommand({ ...place, url: later.toString() }, "migrate");
	assert.deepEqual(
		[code, stderr],
		[1, "store: the database of DATABASE_URL refuses (3D000): expected the name of a database that exists\n"],
	);
});
