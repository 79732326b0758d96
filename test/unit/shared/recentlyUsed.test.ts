// Which entries such a cache keeps, and that an empty one takes no memory for those that it may
// have.

import assert from "node:assert/strict";
import { it } from "node:test";
import { recentlyUsed } from "../../../shared/recentlyUsed.ts";

it("keeps the entries used last, and says which of them leave", () => {
	const left: string[] = [];
	const cache = recentlyUsed<string>(3, (value) => left.push(value));
	for (const name of ["a", "b", "c"]) cache.set(name, name.toUpperCase());
	assert.equal(cache.get("a"), "A");
	cache.set("d", "D");
	assert.deepEqual(left, ["B"]);
	assert.deepEqual([cache.size, cache.get("b"), cache.get("a")], [3, undefined, "A"]);
	cache.set("a", "other");
	cache.delete("c");
	assert.deepEqual(left, ["B", "A", "C"]);
	assert.deepEqual([...cache.keys()].sort(), ["a", "d"]);
});

it("takes memory only for what is in it", () => {
	const used = () => {
		const { heapUsed, arrayBuffers } = process.memoryUsage();
		return heapUsed + arrayBuffers;
	};
	const before = used();
	const caches = Array.from({ length: 100 }, () => recentlyUsed<string>(100_000));
	// Tables for all entries would be 240 MB.
	assert.ok(used() - before < 10_000_000, `${used() - before} bytes for ${caches.length} empty caches`);
});
