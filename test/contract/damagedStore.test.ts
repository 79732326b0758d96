// A data.mdb with a damaged page or without its end: the store says so instead of opening with a
// part of its entries, or of ending the process; and a salvage keeps what can be read.

import assert from "node:assert/strict";
import {
	existsSync,
	mkdirSync,
	mkdtempSync,
	readdirSync,
	readFileSync,
	rmSync,
	writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { DamagedStoreError } from "../../shared/kv/damage.ts";
import { openLmdb } from "../../shared/kv/lmdb.ts";
import { salvageStore } from "../../shared/kv/salvage.ts";
import { sized } from "../support/length.ts";
import { SeededRandom } from "../support/seededRandom.ts";

const PAGE = 4_096;
const COUNT = 300;
/** One page in so many is damaged. */
const EVERY = sized(22, 1);
/** More than two pages hold. */
const LOST = 60;
const PAIR = { first: "t/", second: "r/", aside: "z/" };
const NOW = new Date("2026-11-29T10:20:30.400Z");

const root = mkdtempSync(join(tmpdir(), "leeward-damage-"));
let whole: Buffer;
/** Up to where the file has entries: some room is behind. */
let used: number;
let entries: ReadonlyMap<string, string>;
before(async () => {
	const folder = join(root, "whole");
	const kv = await openLmdb(folder);
	for (let i = 0; i < COUNT; i += 1) {
		const key = `${i < COUNT / 2 ? "r" : "t"}/${String(i % (COUNT / 2)).padStart(20, "0")}`;
		// Some values have pages of their own.
		await kv.write([{ key, value: Buffer.alloc(i % 30 === 0 ? 20_000 : 200, i) }]);
	}
	entries = await all(kv);
	await kv.close();
	whole = readFileSync(join(folder, "data.mdb"));
	used = whole.findLastIndex((byte) => byte !== 0);
});
after(() => rmSync(root, { recursive: true, force: true }));

async function all(kv: Awaited<ReturnType<typeof openLmdb>>): Promise<Map<string, string>> {
	const found = new Map<string, string>();
	for await (const [key, value] of kv.range("", "\u{7f}")) found.set(key, value.toString("base64"));
	return found;
}

/** A folder with these bytes as its data. */
function folderOf(data: Buffer): string {
	const folder = join(mkdtempSync(join(root, "x")), "relay");
	mkdirSync(folder);
	writeFileSync(join(folder, "data.mdb"), data);
	return folder;
}

/** Copies of the file, each with one page as `fill` makes it. */
function* damaged(fill: (page: Buffer, n: number) => void): Generator<readonly [number, Buffer]> {
	for (let n = 1; n < whole.length / PAGE; n += EVERY) {
		const data = Buffer.from(whole);
		fill(data.subarray(n * PAGE, (n + 1) * PAGE), n);
		yield [n, data];
	}
}

/** How many of the entries a store in `folder` has, all of them right; null: it is damaged. */
async function opened(folder: string): Promise<number | null> {
	try {
		const kv = await openLmdb(folder);
		const found = await all(kv);
		await kv.close();
		return [...found.keys()].filter((key) => entries.has(key)).length;
	} catch (thrown) {
		assert.ok(thrown instanceof DamagedStoreError, String(thrown));
		assert.match(
			thrown.message,
			/^DATA_DIR\/relay\/data\.mdb is damaged: (\d+ of (\d+|its) entries can be read|some pages are missing, or not of its last commit, as in a copy made during a write): expected a backup in its place, or npm run relay -- --salvage, which keeps what can be read$/,
		);
		return null;
	}
}

for (const [what, fill] of [
	["zeros", (page: Buffer) => page.fill(0)],
	["noise", (page: Buffer, n: number) => new SeededRandom(n).bytes(PAGE).copy(page)],
] as const) {
	test(`a page of ${what}: all entries are there, or the store is damaged and nearly all are salvaged`, async () => {
		let found = 0;
		let hopeless = 0;
		for (const [n, data] of damaged(fill)) {
			const folder = folderOf(data);
			const count = await opened(folder);
			if (count !== null) {
				assert.equal(count, COUNT, `page ${n}`);
				continue;
			}
			found += 1;
			const said = await salvageStore(folder, PAIR, NOW).catch((thrown: Error) => thrown.message);
			if (/^DATA_DIR can't be used: nothing of .* can be read: expected a backup in its place$/.test(said)) {
				hopeless += 1;
				assert.ok(readFileSync(join(folder, "data.mdb")).equals(data), "it stays where it is");
				continue;
			}
			assert.match(said, /entries are kept/);
			const kept = await opened(folder);
			const aside = Number(/and (\d+) are set aside/.exec(said)?.[1]);
			assert.ok(kept !== null && kept + aside >= COUNT - LOST, `page ${n}: ${said}`);
			assert.deepEqual(
				readFileSync(join(folder, "data.mdb.damaged-2026-11-29T102030.400Z")).equals(data),
				true,
				"the damaged file is kept",
			);
			assert.ok(!readdirSync(folder).includes("salvaged"));
		}
		assert.ok(found > hopeless);
		assert.ok(hopeless <= 2, "but for the pages that lead to all others");
	});
}

test("a file without its end is damaged", async () => {
	for (const part of sized([0.5], [0.2, 0.5, 0.8])) {
		const length = Math.floor((used * part) / PAGE) * PAGE;
		assert.equal(await opened(folderOf(Buffer.from(whole.subarray(0, length)))), null);
	}
});

test("a whole file is left as it is, and so is a folder without one", async () => {
	const empty = join(root, "none");
	assert.equal(await salvageStore(empty, PAIR, NOW), `there is no store in ${empty}: nothing is changed`);
	assert.ok(!existsSync(empty));
	const folder = folderOf(whole);
	assert.equal(
		await salvageStore(folder, PAIR, NOW),
		`the store in ${folder} is whole: ${COUNT} entries, nothing is changed`,
	);
	assert.equal(await opened(folder), COUNT);
});

test("a transaction whose state is lost is set aside", async () => {
	const first = [...entries.keys()].find((key) => key.startsWith("r/")) ?? "";
	const kv = await openLmdb(join(root, "whole"));
	await kv.write([{ key: first, value: null }]);
	// Whichever of its two descriptions the file loses, the other one is later than the loss.
	await kv.write([{ key: "m/later", value: Buffer.alloc(1) }]);
	await kv.close();
	const folder = folderOf(readFileSync(join(root, "whole", "data.mdb")));
	const data = readFileSync(join(folder, "data.mdb"));
	// The second description of the file, which lacks nothing else.
	data.fill(0, PAGE, 2 * PAGE);
	writeFileSync(join(folder, "data.mdb"), data);
	assert.match(await salvageStore(folder, PAIR, NOW), /, and 1 are set aside,/);
	const after = await openLmdb(folder);
	const keys = [...(await all(after)).keys()];
	await after.close();
	const lonely = keys.filter((key) => key.startsWith("t/") && !keys.includes(`r/${key.slice(2)}`));
	assert.deepEqual(lonely, []);
});
