// Copies between two real stores: whatever was in the destination, and at whatever write the process ends, the same copy
// completes it, and at no moment may both stores be gone on with.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { markMoved, markUnderWay, readMarks } from "../../../../../shared/kv/copy/marks.ts";
import {
	type CopyScene,
	copyOver,
	copyScene,
	type Entries,
	endingAt,
	everything,
	fill,
	isUsable,
	type Luck,
	someEntries,
} from "./copyScene.ts";

let scene: CopyScene;
before(async () => {
	scene = await copyScene();
});
after(() => scene.remove());

const MARK = { from: "lmdb", to: "postgres", at: "2026-01-01T00:00:00.000Z", copy: "one" } as const;

/** The destination holds what the source held, without a mark; the source is marked. */
async function assertCopied(entries: Entries): Promise<void> {
	assert.deepEqual(await everything(scene.b), new Map([...entries].sort(([x], [y]) => (x < y ? -1 : 1))));
	assert.deepEqual([await isUsable(scene.a), await isUsable(scene.b)], [false, true]);
}

const key = fc.oneof(
	fc.string({ unit: fc.constantFrom("/", "0", "a", "b", "~"), minLength: 1, maxLength: 4 }),
	fc.string({ unit: fc.constantFrom(" ", "!", "x", "\u{7e}"), minLength: 490, maxLength: 500 }),
);
const value = fc.oneof(
	fc.uint8Array({ maxLength: 4 }),
	fc.constantFrom(new Uint8Array(5_000), Buffer.from([0])),
);
const entries = fc
	.array(fc.tuple(key, value), { maxLength: 60 })
	.map((pairs) => new Map(pairs.map(([key, value]) => [key, Buffer.from(value)])));

test("whatever both held, the destination holds what the source does", async () => {
	await fc.assert(
		fc.asyncProperty(entries, entries, entries, async (own, shared, others) => {
			await fill(scene.a, new Map([...own, ...shared]));
			await fill(scene.b, new Map([...others, ...shared]));
			await scene.b.write(markMoved({ ...MARK, from: "postgres", to: "lmdb" }));
			const source = new Map([...own, ...shared]);
			const destination = new Map([...others, ...shared]);
			const { counts, isSame, from, to } = await copyOver(scene.a, scene.b);
			const differs = [...source].filter(([key, value]) => destination.get(key)?.equals(value) !== true);
			const tooMuch = [...destination.keys()].filter((key) => !source.has(key));
			assert.deepEqual(counts, { read: source.size, written: differs.length, removed: tooMuch.length });
			assert.deepEqual([isSame, from.count, to], [true, source.size, from]);
			await assertCopied(source);
		}),
		{ numRuns: 20 },
	);
});

const interruption = fc.record({ writes: fc.integer({ min: 0, max: 6 }), lastIsMade: fc.boolean() });

test("ended at any write, and again, the same copy completes it; never may both be gone on with", async () => {
	const isOld = (i: number) => i % 3 !== 0;
	const source = someEntries(1_100, "new");
	await fc.assert(
		fc.asyncProperty(
			fc.array(interruption, { minLength: 1, maxLength: 4 }),
			fc.boolean(),
			async (all, isEmpty) => {
				await fill(scene.a, source);
				await fill(scene.b, isEmpty ? new Map() : someEntries(1_400, "old", isOld));
				if (!isEmpty) await scene.b.write(markMoved({ ...MARK, from: "postgres", to: "lmdb" }));
				let isDone = false;
				for (const given of all) {
					const luck: Luck = { ...given };
					isDone ||= await copyOver(endingAt(scene.a, luck), endingAt(scene.b, luck)).then(
						() => true,
						() => false,
					);
					const marks = [await readMarks(scene.a), await readMarks(scene.b)];
					const hasEntries = [...(await everything(scene.b)).keys()].some((key) => key.startsWith("p/"));
					const usable = [await isUsable(scene.a), await isUsable(scene.b)];
					assert.ok(!(usable[0] && usable[1] && hasEntries), JSON.stringify(marks));
					if (usable[1] && hasEntries) await assertCopied(source);
				}
				// Where the last write was made and its answer was lost it is done.
				const { code } = await copyOver(scene.a, scene.b).then(
					() => ({ code: null }),
					(thrown: { code?: unknown }) => thrown,
				);
				if (code !== null) assert.equal(code, "STORE_MOVED");
				else assert.equal(isDone, false);
				await assertCopied(source);
			},
		),
		{ numRuns: 20 },
	);
});

test("there and back, and there again: the source of each is the destination of the next", async () => {
	await fill(scene.a, someEntries(700, "first"));
	await fill(scene.b, new Map());
	await copyOver(scene.a, scene.b);
	await scene.b.write([{ key: "p/000001", value: Buffer.from("while it was there") }]);
	await scene.b.write([{ key: "p/000002", value: null }]);
	const { counts } = await copyOver(scene.b, scene.a, { isBack: true });
	assert.deepEqual(counts, { read: 699, written: 1, removed: 1 });
	assert.deepEqual([await isUsable(scene.a), await isUsable(scene.b)], [true, false]);
	assert.equal(`${await scene.a.get("p/000001")}`, "while it was there");
	const again = await copyOver(scene.a, scene.b);
	assert.deepEqual(again.counts, { read: 699, written: 0, removed: 0 });
	assert.deepEqual([await isUsable(scene.a), await isUsable(scene.b)], [false, true]);
});

test("a destination with data of its own is refused, and nothing is changed", async () => {
	await fill(scene.a, someEntries(10, "mine"));
	await fill(scene.b, someEntries(1, "theirs"));
	const before = [await everything(scene.a), await everything(scene.b)];
	await assert.rejects(copyOver(scene.a, scene.b), {
		code: "STORE_NOT_EMPTY",
		message: /^the relay's store in postgres holds data of its own: expected an empty one, for example /,
	});
	assert.deepEqual([await everything(scene.a), await everything(scene.b)], before);
});

test("a source that was moved, or not copied whole, is refused, and nothing is changed", async () => {
	for (const [marks, code] of [
		[markMoved(MARK), "STORE_MOVED"],
		[markUnderWay(MARK), "STORE_HALF_COPIED"],
	] as const) {
		await fill(scene.a, someEntries(10, "stale"));
		await fill(scene.b, new Map());
		await scene.a.write(marks);
		const before = await everything(scene.a);
		await assert.rejects(copyOver(scene.a, scene.b), { code });
		assert.deepEqual([await everything(scene.a), (await everything(scene.b)).size], [before, 0]);
	}
});

test("a source that was moved elsewhere does not complete another copy that was interrupted", async () => {
	await fill(scene.a, someEntries(600, "first"));
	await fill(scene.b, new Map());
	await assert.rejects(copyOver(scene.a, endingAt(scene.b, { writes: 2, lastIsMade: false })));
	// To another database, where it has been since.
	await scene.a.write(markMoved(MARK));
	await assert.rejects(copyOver(scene.a, scene.b), { code: "STORE_MOVED" });
	assert.equal(await isUsable(scene.b), false);
});

test("a destination that does not keep what it was given is found out, and stays marked", async () => {
	await fill(scene.a, someEntries(600, "first"));
	await fill(scene.b, new Map());
	const forgetful = {
		...endingAt(scene.b, { writes: Number.POSITIVE_INFINITY, lastIsMade: true }),
		write: (changes: Parameters<typeof scene.b.write>[0]) =>
			scene.b.write(changes.filter(({ key }) => key !== "p/000300")),
	};
	const { isSame, from, to } = await copyOver(scene.a, forgetful);
	assert.deepEqual([isSame, from.count, to.count], [false, 600, 599]);
	assert.notEqual(from.sha256, to.sha256);
	assert.deepEqual([await isUsable(scene.a), await isUsable(scene.b)], [true, false]);
	const { counts, ...rest } = await copyOver(scene.a, scene.b);
	assert.deepEqual([counts.written, rest.isSame], [1, true]);
});

test("it tells how far it is, every 2,000 entries", async () => {
	await fill(scene.a, someEntries(6_500, "some"));
	await fill(scene.b, new Map());
	const told: number[] = [];
	await copyOver(scene.a, scene.b, { report: (read) => told.push(read) });
	assert.deepEqual(told, [2_000, 4_000, 6_000]);
});
