// All entries of a real store: in order whatever the keys are, each once whatever the sizes are, and a digest that tells
// any two stores apart.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { digestOf, entriesOf, isEmpty } from "../../../../../shared/kv/copy/entries.ts";
import { markMoved, markUnderWay } from "../../../../../shared/kv/copy/marks.ts";
import type { KeyValueStore } from "../../../../../shared/kv/port.ts";
import { type CopyScene, copyScene, type Entries, fill, someEntries } from "./copyScene.ts";

let scene: CopyScene;
before(async () => {
	scene = await copyScene();
});
after(() => scene.remove());

const MARK = { from: "lmdb", to: "postgres", at: "2026-01-01T00:00:00.000Z", copy: "one" } as const;

async function read(kv: KeyValueStore): Promise<[string, Buffer][]> {
	const all: [string, Buffer][] = [];
	for await (const [key, value] of entriesOf(kv)) all.push([key, value]);
	return all;
}

/** As the digest is documented. */
function expectedDigest(entries: Entries): string {
	const parts = [...entries]
		.sort(([x], [y]) => (x < y ? -1 : 1))
		.map(([key, value]) => {
			const lengths = Buffer.alloc(8);
			lengths.writeUInt32BE(key.length, 0);
			lengths.writeUInt32BE(value.length, 4);
			return Buffer.concat([lengths, Buffer.from(key), value]);
		});
	return createHash("sha256").update(Buffer.concat(parts)).digest("hex");
}

test("each comes once and in order, whatever the keys and sizes are", async () => {
	const key = fc.string({
		unit: fc.constantFrom("\u{1}", "\u{2}", "\u{5}", " ", "/", "a", "~"),
		minLength: 1,
		maxLength: 6,
	});
	const value = fc.constantFrom(0, 1, 3_000, 200_000).map((size) => Buffer.alloc(size, size % 251));
	const all = fc.array(fc.tuple(key, value), { maxLength: 120 });
	await fc.assert(
		fc.asyncProperty(all, async (pairs) => {
			// The port's ranges begin and end with what can be printed.
			const entries = new Map(pairs.map(([key, value]) => [`k${key}`, value]));
			await fill(scene.a, entries);
			assert.deepEqual(
				await read(scene.a),
				[...entries].sort(([x], [y]) => (x < y ? -1 : 1)),
			);
			assert.deepEqual(await digestOf(scene.a), { count: entries.size, sha256: expectedDigest(entries) });
		}),
		{ numRuns: 40 },
	);
});

test("what was handed out stays as it is, whatever is written meanwhile", async () => {
	await fill(scene.a, someEntries(1_000, "first"));
	const seen: [string, Buffer][] = [];
	for await (const entry of entriesOf(scene.a)) {
		seen.push([...entry]);
		if (seen.length % 100 === 0) await fill(scene.a, someEntries(1_000, `turn ${seen.length}`));
	}
	assert.equal(seen.length, 1_000);
	const [first, later] = [`${seen[10]?.[1]}`, `${seen[999]?.[1]}`];
	assert.deepEqual([first, /^turn \d+ 999$/.test(later)], ["first 10", true], later);
});

test("marks are no entries, and change no digest", async () => {
	await fill(scene.a, new Map());
	await scene.a.write([...markUnderWay(MARK), ...markMoved(MARK)]);
	assert.deepEqual([await isEmpty(scene.a), await read(scene.a)], [true, []]);
	await fill(scene.a, someEntries(5, "some"));
	const bare = await digestOf(scene.a);
	await scene.a.write(markMoved(MARK));
	assert.deepEqual([await digestOf(scene.a), await isEmpty(scene.a)], [bare, false]);
});

test("a byte that is in the key of one and in the value of another makes another digest", async () => {
	const digests = new Set<string>();
	const stores: readonly Entries[] = [
		new Map(),
		new Map([["ab", Buffer.from("c")]]),
		new Map([["a", Buffer.from("bc")]]),
		new Map([["abc", Buffer.alloc(0)]]),
		new Map([
			["a", Buffer.alloc(0)],
			["b", Buffer.from("c")],
		]),
		new Map([["ab", Buffer.from("c\0")]]),
	];
	for (const entries of stores) {
		await fill(scene.a, entries);
		const { count, sha256 } = await digestOf(scene.a);
		assert.deepEqual([count, sha256], [entries.size, expectedDigest(entries)]);
		digests.add(sha256);
	}
	assert.equal(digests.size, stores.length);
});
