// The set of hashes against JavaScript's own, with hashes that share slots, while it grows and shrinks.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { HashSet } from "../../../../boost-proxy/journal/hashSet.ts";
import { keccak256 } from "../../../../shared/ethereum/signatures.ts";
import { hashOf } from "./journalFixture.ts";

/** Those of one group differ in what does not say where they belong. */
const hash = fc.tuple(fc.nat(40), fc.nat(5)).map(([group, n]) => hashOf(group + 2 ** 32 * (n + 1)));
const step = fc.record({ hash, adds: fc.boolean() });

test("it has what was added and not deleted since", () => {
	fc.assert(
		fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
			const [set, known] = [new HashSet(), new Set<string>()];
			for (const { hash, adds } of steps) {
				if (adds) {
					set.add(hash);
					known.add(hash);
				} else {
					set.delete(hash);
					known.delete(hash);
				}
				assert.deepEqual([set.size, set.has(hash)], [known.size, adds]);
			}
			for (const { hash } of steps) assert.equal(set.has(hash), known.has(hash));
		}),
		{ numRuns: 300 },
	);
});

test("many, all of which are found, and no others", () => {
	const set = new HashSet();
	const hashes = Array.from(
		{ length: 60_000 },
		(_, n) => `0x${keccak256(Buffer.from(`${n}`)).toString("hex")}`,
	);
	const added = hashes.slice(0, 50_000);
	for (const hash of added) set.add(hash);
	for (const [n, hash] of added.entries()) if (n % 3 === 0) set.delete(hash);
	for (const [n, hash] of hashes.entries())
		assert.equal(set.has(hash), n < added.length && n % 3 > 0, `${n}`);
	for (const hash of added) set.delete(hash);
	assert.equal(set.size, 0);
});

test("what is no hash is not in it", () => {
	const set = new HashSet();
	set.add(hashOf(1));
	for (const text of ["", "0x", hashOf(1).slice(0, 65), hashOf(1).slice(1), `${hashOf(1)}0`, "latest"])
		assert.equal(set.has(text), false, text);
});
