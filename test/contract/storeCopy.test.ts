// `npm run store` between a real LMDB and a real PostgreSQL: all entries there and back, byte for byte; ended on its way by
// a SIGKILL, by a database that is gone and by a full disk, and completed by the same command.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { fold, newRecord } from "../../relay/domain/record.ts";
import { Transactions } from "../../relay/store/transactions.ts";
import { silentLogger } from "../../shared/log.ts";
import {
	inStore,
	launchCommand,
	launchLimited,
	runCommand,
	runWell,
	StoreCommands,
} from "../support/storeCommand.ts";
import { privateTransaction, testAccount } from "../support/txFactory.ts";
import { until } from "../support/until.ts";
import { seededRandom } from "../unit/shared/ethereum/seededRandom.ts";
import { everything, fill, isUsable } from "../unit/shared/kv/copy/copyScene.ts";

const commands = new StoreCommands();
after(() => commands.remove());

/** What both sides were said to hold. */
function digests(stdout: string): readonly string[] {
	return [...stdout.matchAll(/has (\d+ entries, SHA-256 [0-9a-f]{64})$/gm)].map(([, digest]) => digest ?? "");
}

/** 20,000 entries: keys of all lengths up to 500 bytes, values of any bytes, none and zeros too. */
function manyEntries(): Map<string, Buffer> {
	const random = seededRandom(5);
	const sizes = [0, 1, 40, 300, 1_200];
	return new Map(
		Array.from({ length: 20_000 }, (_, i) => {
			const key = `${random.pick(["p", "s", "x", "m"])}/${i}`.padEnd(i % 100 === 0 ? 500 : 1, "k");
			const size = i === 77 ? 2 * 1024 * 1024 : random.pick(sizes);
			return [key, i % 50 === 0 ? Buffer.alloc(size) : random.bytes(size)];
		}),
	);
}

/** Without caring for the order in which they were made. */
function sorted(entries: ReadonlyMap<string, Buffer>): [string, string][] {
	return [...entries]
		.sort(([x], [y]) => (x < y ? -1 : 1))
		.map(([key, value]) => [key, value.toString("base64")]);
}

const entries = manyEntries();

test("20,000 entries there and back are the same ones, byte for byte", async () => {
	const place = await commands.newPlace();
	await inStore("lmdb", place, "relay", (kv) => fill(kv, entries));
	const there = await runWell(place, "copy", "lmdb", "postgres");
	assert.match(there, /^relay: all 20000 entries looked at, 20000 written, 0 removed$/m);
	assert.match(there, /^boost: there is no store in lmdb, nothing is copied$/m);
	assert.match(there, /^relay: moved to postgres: start with DATABASE_URL$/m);
	assert.ok(there.split("\n").length < 20, there);
	assert.equal(existsSync(join(place.dataDir, "boost")), false);
	assert.deepEqual(sorted(await inStore("postgres", place, "relay", everything)), sorted(entries));
	await inStore("postgres", place, "relay", (kv) => kv.write([{ key: "m/new", value: Buffer.from("1") }]));
	const back = await runWell(place, "copy", "postgres", "lmdb", "relay");
	assert.match(back, /^relay: all 20001 entries looked at, 1 written, 0 removed$/m);
	await inStore("lmdb", place, "relay", async (kv) => {
		assert.equal(await isUsable(kv), true);
		assert.equal(`${await kv.get("m/new")}`, "1");
		await kv.write([{ key: "m/new", value: null }]);
		assert.deepEqual(sorted(await everything(kv)), sorted(entries));
	});
	for (const [a, b] of [digests(there), digests(back)]) assert.equal(a, b);
	assert.notEqual(digests(there)[0], digests(back)[0]);
	assert.equal(await inStore("postgres", place, "relay", isUsable), false);
});

for (const [from, to] of [
	["lmdb", "postgres"],
	["postgres", "lmdb"],
] as const) {
	test(`killed in the middle of ${from} to ${to}, neither is taken for the other, and the same command completes it`, async () => {
		const place = await commands.newPlace();
		await inStore(from, place, "boost", (kv) => fill(kv, entries));
		const first = launchCommand(place, "copy", from, to, "boost");
		await until("it is on its way", () => /^boost: \d+ entries looked at/m.test(first.stdout));
		const { signal } = await first.kill();
		assert.equal(signal, "SIGKILL");
		assert.equal(await inStore(from, place, "boost", isUsable), true);
		await inStore(to, place, "boost", async (kv) => {
			const { size } = await everything(kv);
			assert.ok(size > 100 && size < entries.size, `${size} entries: not in the middle`);
			assert.equal(await isUsable(kv), false);
		});
		// What is half is no source.
		const wrong = await runCommand(place, "copy", to, from, "boost");
		assert.equal(wrong.code, 1);
		assert.match(wrong.stderr, new RegExp(`not copied whole: run the copy again .*copy ${from} ${to} boost`));
		const again = await runWell(place, "copy", from, to);
		const [, written] = /all 20000 entries looked at, (\d+) written/.exec(again) ?? [];
		assert.ok(Number(written) > 0 && Number(written) < 20_000, `${written} were written`);
		assert.deepEqual(sorted(await inStore(to, place, "boost", everything)), sorted(entries));
		assert.equal(await inStore(from, place, "boost", isUsable), false);
	});
}

test("PostgreSQL killed in the middle ends it with a clear line, and the next run completes it", async () => {
	const place = await commands.newPlace();
	await inStore("lmdb", place, "relay", (kv) => fill(kv, entries));
	const first = launchCommand(place, "copy", "lmdb", "postgres");
	await until("it is on its way", () => /^relay: \d+ entries looked at/m.test(first.stdout));
	await (await commands.server()).kill();
	try {
		const { code, stdout, stderr } = await first.ended(30_000);
		assert.equal(code, 1);
		assert.match(stderr, /^store: the database of DATABASE_URL does not answer \([\w ]+\)\n$/);
		assert.match(stdout, /^relay: not copied whole; the same command completes it$/m);
	} finally {
		await (await commands.server()).start();
	}
	const again = await runWell(place, "copy", "lmdb", "postgres");
	assert.equal(new Set(digests(again)).size, 1);
	assert.deepEqual(sorted(await inStore("postgres", place, "relay", everything)), sorted(entries));
});

test("a disk that is full ends it with a clear line, and the next run completes it", async () => {
	const place = await commands.newPlace();
	await inStore("postgres", place, "relay", (kv) => fill(kv, entries));
	const { code, stdout, stderr } = await launchLimited(place, 4_000, "copy", "postgres", "lmdb").ended(
		60_000,
	);
	assert.equal(code, 1, stdout);
	// LMDB says something of its own before.
	assert.match(stderr, /^store: the folder of DATA_DIR can't be written: expected room on its disk$/m);
	assert.match(stdout, /^relay: not copied whole; the same command completes it$/m);
	assert.equal(await inStore("lmdb", place, "relay", isUsable), false);
	await runWell(place, "copy", "postgres", "lmdb");
	assert.deepEqual(sorted(await inStore("lmdb", place, "relay", everything)), sorted(entries));
});

test("the relay's own store is read from the other side as it was written", async () => {
	const place = await commands.newPlace();
	const pending = [0, 1, 2, 3, 4].map((type) =>
		privateTransaction({ type: type as 0 | 1 | 2 | 3 | 4, by: testAccount(type), referrer: "wallet é" }),
	);
	const ended = privateTransaction({ by: testAccount(9) });
	const record = newRecord(ended);
	fold(record, { type: "received", at: 1, block: 100 });
	fold(record, { type: "expired", at: 2, block: 126 });
	await inStore("lmdb", place, "relay", async (kv) => {
		const store = new Transactions({ kv, log: silentLogger });
		for (const one of pending) await store.insert(one, newRecord(one), [], 1);
		await store.insert(ended, newRecord(ended), [], 1);
		await store.settle([record], 3_000);
	});
	await runWell(place, "copy", "lmdb", "postgres", "relay");
	await inStore("postgres", place, "relay", async (kv) => {
		const store = new Transactions({ kv, log: silentLogger });
		const loaded = new Map<string, unknown>();
		for await (const { transaction } of store.load()) loaded.set(transaction.tx.hash, transaction);
		assert.deepEqual(loaded, new Map(pending.map((one) => [one.tx.hash, one] as const).sort()));
		assert.equal((await store.settled(ended.tx.hash))?.stage, "EXPIRED");
		assert.equal((await store.expiredHolder(record.from, 0n))?.hash, ended.tx.hash);
	});
});
