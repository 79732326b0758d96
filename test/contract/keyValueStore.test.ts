// Contract of every engine of the key-value port: writes are all or nothing, durable when
// confirmed, in order, by one process alone, and survive a full disk. Also the store of the tests
// that writes to two engines. Servers and killed processes are real.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { type KeyValueStore, prefixRange, type SharedStore } from "../../shared/kv/port.ts";
import { BothEngines, StorePlaces } from "../support/storeEngines.ts";

const places = new StorePlaces();
after(() => places.remove());

async function rows(
	kv: KeyValueStore,
	start: string,
	end: string,
	limit?: number,
): Promise<[string, string][]> {
	const found: [string, string][] = [];
	for await (const [key, value] of kv.range(start, end, limit)) found.push([key, value.toString()]);
	return found;
}

const put = (key: string, value: string | Uint8Array) => ({ key, value: Buffer.from(value) });

for (const engine of places.engines) {
	const fresh = async (t: TestContext): Promise<KeyValueStore> => {
		const kv = await engine.open(await engine.newPlace());
		t.after(() => kv.close());
		return kv;
	};

	test(`${engine.name}: what was written is read, replaced, removed`, async (t) => {
		const kv = await fresh(t);
		assert.equal(await kv.get("a"), null);
		await kv.write([put("a", "1"), put("b", "2")]);
		assert.deepEqual([`${await kv.get("a")}`, `${await kv.get("b")}`], ["1", "2"]);
		await kv.write([put("a", "one"), { key: "b", value: null }, { key: "never", value: null }]);
		assert.deepEqual([`${await kv.get("a")}`, await kv.get("b")], ["one", null]);
		await kv.write([]);
	});

	test(`${engine.name}: changes of one key count in their order, within a write and between writes`, async (t) => {
		const kv = await fresh(t);
		await kv.write([put("a", "1"), { key: "a", value: null }, put("b", "1"), put("b", "2")]);
		assert.deepEqual([await kv.get("a"), `${await kv.get("b")}`], [null, "2"]);
		const resolved: number[] = [];
		const writes = Array.from({ length: 100 }, (_, i) =>
			kv.write([put("c", String(i)), put(`c${i}`, "x")]).then(() => resolved.push(i)),
		);
		await Promise.all(writes);
		assert.equal(`${await kv.get("c")}`, "99");
		assert.deepEqual(
			resolved,
			writes.map((_, i) => i),
		);
	});

	test(`${engine.name}: binary values up to 2 MiB, empty ones too, are theirs who got them`, async (t) => {
		const kv = await fresh(t);
		const values = [0, 1, 4_095, 4_096, 70_000, 2 * 1024 * 1024].map((size) => randomBytes(size));
		await kv.write(values.map((value, i) => ({ key: `v${i}`, value })));
		const got: Buffer[] = [];
		for await (const [, value] of kv.range("v", "w")) got.push(value);
		for (const [i, value] of values.entries()) {
			assert.ok((await kv.get(`v${i}`))?.equals(value), `value ${i}`);
		}
		// A plain Uint8Array, and one that is a window of a larger one.
		const window = new Uint8Array(Buffer.from("xxabcxx")).subarray(2, 5);
		await kv.write([{ key: "u", value: window }]);
		assert.equal(`${await kv.get("u")}`, "abc");
		// Returned values stay as they were, whatever is written afterwards.
		for (let i = 0; i < 3; i += 1) {
			await kv.write(values.map((value, n) => ({ key: `v${n}`, value: Buffer.alloc(value.length, i) })));
		}
		for (const [i, value] of values.entries()) assert.ok(got[i]?.equals(value), `range's value ${i}`);
	});

	test(`${engine.name}: it says what it takes on disk`, async (t) => {
		const kv = (await fresh(t)) as SharedStore;
		const [size, before] = [1024 * 1024, await kv.bytes()];
		for (let i = 0; i < 4; i += 1) await kv.write([put(`v${i}`, randomBytes(size))]);
		const more = (await kv.bytes()) - before;
		assert.ok(more > size && more < 8 * size, `${more} bytes more`);
	});

	test(`${engine.name}: ranges are in byte order, from start on and before end, up to a limit`, async (t) => {
		const kv = await fresh(t);
		const keys = [
			"p/",
			"p/0",
			"p/00",
			"p/0x",
			"p/1",
			"p/a",
			"p/~",
			"p0",
			"o/z",
			"q",
			"P/",
			"!",
			"p",
			"p/ ",
			"k".repeat(500),
		];
		await kv.write(keys.map((key) => put(key, key)));
		const sorted = [...keys].sort();
		const names = async (start: string, end: string, limit?: number) =>
			(await rows(kv, start, end, limit)).map(([key, value]) => {
				assert.equal(key, value);
				return key;
			});
		assert.deepEqual(await names("!", "~"), sorted);
		assert.deepEqual(
			await names(...prefixRange("p/")),
			sorted.filter((key) => key.startsWith("p/")),
		);
		assert.deepEqual(await names("p/0", "p/1"), ["p/0", "p/00", "p/0x"]);
		assert.deepEqual(await names("p/0", "p/1", 2), ["p/0", "p/00"]);
		assert.deepEqual(await names("p/1", "p/1"), []);
		assert.deepEqual(await names("z", "~"), []);
	});

	test(`${engine.name}: a range may be read while others write`, async (t) => {
		const kv = await fresh(t);
		await kv.write(Array.from({ length: 500 }, (_, i) => put(`p/${1_000 + i}`, "old")));
		const seen: string[] = [];
		for await (const [key] of kv.range(...prefixRange("p/"))) {
			seen.push(key);
			if (seen.length % 50 === 0)
				await kv.write([put(key, "new"), { key: `p/${1_000 + seen.length}`, value: null }]);
		}
		assert.deepEqual(seen, [...new Set(seen)].sort());
		assert.ok(seen.length >= 490 && seen.length <= 500, String(seen.length));
	});

	test(`${engine.name}: a write with a bad change applies none of it`, async (t) => {
		const kv = await fresh(t);
		await assert.rejects(async () =>
			kv.write([put("first", "1"), put("k".repeat(5_000), "2"), put("third", "3")]),
		);
		await kv.write([put("later", "1")]);
		assert.deepEqual(await rows(kv, "a", "z"), [["later", "1"]]);
	});

	test(`${engine.name}: closing waits for writes under way, and all of it is there again`, async () => {
		const place = await engine.newPlace();
		const kv = await engine.open(place);
		let written = 0;
		for (let i = 0; i < 50; i += 1) {
			void kv.write([put(`k${i}`, Buffer.alloc(20_000, i))]).then(() => {
				written += 1;
			});
		}
		await kv.close();
		assert.equal(written, 50);
		await assert.rejects(async () => kv.write([put("late", "1")]));
		const again = await engine.open(place);
		assert.equal((await again.get("k49"))?.length, 20_000);
		assert.equal(await again.get("late"), null);
		await again.close();
	});

	test(`${engine.name}: its place is its owner's alone, and one opener's`, async () => {
		const place = await engine.newPlace();
		const kv = await engine.open(place);
		if (engine.name === "lmdb") {
			assert.equal(statSync(place).mode & 0o077, 0);
			for (const name of readdirSync(place)) {
				assert.equal(statSync(join(place, name)).mode & 0o777, 0o600, name);
			}
		}
		await assert.rejects(engine.open(place), { code: engine.inUse.code });
		await kv.write([put("still", "mine")]);
		await kv.close();
		await (await engine.open(place)).close();
	});

	test(`${engine.name}: a second process is refused; when the first is killed right after a promise it takes over every record`, async () => {
		const place = await engine.newPlace();
		const writer = places.another(
			engine,
			`const place = ${JSON.stringify(place)};
			const kv = await open(place);
			say("open");
			await new Promise((resolve) => process.stdin.once("data", resolve));
			let written = 0;
			const work = async (n) => {
				for (let i = 0; ; i += 1) {
					await kv.write([{ key: "p/" + n + "/" + i, value: Buffer.alloc(300, n) }, { key: "s/" + n + "/" + i, value: Buffer.alloc(1) }]);
					say(n + "/" + i);
					if (++written === 2_000) process.kill(process.pid, "SIGKILL");
				}
			};
			await Promise.all(Array.from({ length: 16 }, (_, n) => work(n)));`,
		);
		assert.equal(await writer.line(), "open");
		await assert.rejects(engine.open(place), (thrown: Error & { code?: string }) => {
			assert.equal(thrown.code, engine.inUse.code);
			assert.match(thrown.message, engine.inUse.message);
			return true;
		});
		writer.child.stdin?.write("go\n");
		const told: string[] = [];
		for (let line = await writer.line(); line !== "it ended"; line = await writer.line()) told.push(line);
		assert.ok(told.length >= 1_900, `only ${told.length} were reported`);
		const kv = await engine.open(place);
		for (const id of told) assert.equal((await kv.get(`p/${id}`))?.length, 300, id);
		// All or nothing: each record has its second half, and none has only that.
		const halves = (prefix: string) => rows(kv, ...prefixRange(prefix));
		const [records, marks] = [await halves("p/"), await halves("s/")];
		assert.deepEqual(
			records.map(([key]) => key.slice(2)),
			marks.map(([key]) => key.slice(2)),
		);
		await kv.write([put("mine", "now")]);
		await kv.close();
	});
}

for (const engine of places.engines.filter(({ name }) => name === "lmdb")) {
	test(`${engine.name}: a full disk rejects the write; the process lives and keeps what it had`, async () => {
		const place = await engine.newPlace();
		const full = places.another(
			engine,
			`const place = ${JSON.stringify(place)};
			process.on("SIGXFSZ", () => {});
			const kv = await open(place);
			let kept = 0;
			let refused = 0;
			for (let i = 0; i < 12; i += 1) {
				await kv.write([{ key: "k" + i, value: Buffer.alloc(100_000, i) }]).then(() => { kept += 1; }, () => { refused += 1; });
			}
			await new Promise((resolve) => setImmediate(resolve));
			say(kept > 0 && refused > 0 ? "some" : "kept " + kept + ", refused " + refused);
			say(String((await kv.get("k0"))?.length));
			say(String(await kv.get("k11")));
			process.exit(0);`,
			["bash", "-c", 'ulimit -f 600 && exec "$@"', "limited"],
		);
		assert.deepEqual([await full.line(), await full.line(), await full.line()], ["some", "100000", "null"]);
	});
}

test("the store that is two is one as long as both hold the same, and tells at the next read where they do not", async () => {
	const each: SharedStore[] = [];
	for (const engine of places.engines) each.push((await engine.open(await engine.newPlace())) as SharedStore);
	const [lmdb, postgres] = each;
	assert.ok(lmdb !== undefined && postgres !== undefined);
	const told: Error[] = [];
	const both = new BothEngines(lmdb, postgres, (fault) => told.push(fault));
	await both.write([put("a", "1"), put("b", "2"), put("c", "3")]);
	await both.write([{ key: "c", value: null }]);
	for (const kv of [...each, both]) {
		assert.deepEqual(await rows(kv, "", "z"), [
			["a", "1"],
			["b", "2"],
		]);
	}
	assert.deepEqual([both.isHeld, told], [true, []]);
	for (const [i, kv] of each.entries()) await kv.write([put(`only ${i}`, "x"), put("b", String(i))]);
	assert.equal(String(await both.get("a")), "1");
	for (const key of ["only 0", "only 1", "b"]) await assert.rejects(both.get(key), /do not hold the same/);
	await assert.rejects(rows(both, "", "z"), /do not hold the same/);
	assert.equal(told.length, 4);
	await both.close();
});
