// The store that is two: it is one as long as both hold the same, and tells at the next read where they do not.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { SharedStore } from "../../shared/kv/port.ts";
import { BothEngines } from "../support/bothEngines.ts";
import { StorePlaces } from "../support/storeEngines.ts";

const places = new StorePlaces();
after(() => places.remove());

async function fixture(): Promise<{ both: SharedStore; each: readonly SharedStore[]; told: Error[] }> {
	const each: SharedStore[] = [];
	for (const engine of places.engines) {
		each.push((await engine.open(await engine.newPlace())) as SharedStore);
	}
	const [lmdb, postgres] = each;
	assert.ok(lmdb !== undefined && postgres !== undefined);
	const told: Error[] = [];
	return { both: new BothEngines(lmdb, postgres, (fault) => told.push(fault)), each, told };
}

const put = (key: string, value: string) => ({ key, value: Buffer.from(value) });

test("what is written is on both, and is read as on one", async () => {
	const { both, each, told } = await fixture();
	await both.write([put("a", "1"), put("b", "2"), put("c", "3")]);
	await both.write([{ key: "b", value: null }]);
	// While a write is under way the one may have it and the other not.
	const writing = both.write([put("a", "4")]);
	const read = await both.get("a");
	await writing;
	assert.match(String(read), /^[14]$/);
	for (const kv of [...each, both]) {
		const entries: string[] = [];
		for await (const [key, value] of kv.range("", "z")) entries.push(`${key}${value}`);
		assert.deepEqual(entries, ["a4", "c3"]);
	}
	assert.deepEqual([both.isHeld, told], [true, []]);
	await both.close();
});

test("where one holds what the other does not, a read of it fails and is told of", async () => {
	const { both, each, told } = await fixture();
	await both.write([put("a", "1"), put("b", "2")]);
	for (const [i, kv] of each.entries()) await kv.write([put(`only ${i}`, "x"), put("b", String(i))]);
	assert.equal(String(await both.get("a")), "1");
	for (const key of ["only 0", "only 1", "b"]) await assert.rejects(both.get(key), /do not hold the same/);
	await assert.rejects(both.range("", "z")[Symbol.asyncIterator]().next(), /do not hold the same/);
	assert.equal(told.length, 4);
	await both.close();
});
