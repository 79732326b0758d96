// What a copy marks a store with: who would go on with a store that has moved or that is half is told what to do, and no
// key of the relay's or of boost's is taken for a mark.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import {
	isMark,
	markMoved,
	markUnderWay,
	readMarks,
	refuseIfMarked,
	unmark,
} from "../../../../../shared/kv/copy/marks.ts";
import { type CopyScene, copyScene, fill } from "./copyScene.ts";

let scene: CopyScene;
before(async () => {
	scene = await copyScene();
});
after(() => scene.remove());

const THERE = { from: "lmdb", to: "postgres", at: "2026-01-01T00:00:00.000Z", copy: "one" } as const;
const BACK = { ...THERE, from: "postgres", to: "lmdb" } as const;

test("a store without marks is anybody's, also after a copy into it has come to its end", async () => {
	await fill(scene.a, new Map());
	await refuseIfMarked(scene.a, "relay");
	await scene.a.write([...markUnderWay(THERE), ...markMoved(BACK)]);
	assert.deepEqual(await readMarks(scene.a), { underWay: THERE, moved: BACK });
	await scene.a.write(unmark());
	assert.deepEqual(await readMarks(scene.a), { underWay: null, moved: null });
	await refuseIfMarked(scene.a, "boost");
});

test("one that has moved, or is half, is refused with what to do", async () => {
	const moved = { code: "STORE_MOVED" };
	const half = { code: "STORE_HALF_COPIED" };
	await fill(scene.a, new Map());
	await scene.a.write(markMoved(THERE));
	await assert.rejects(refuseIfMarked(scene.a, "relay"), {
		...moved,
		message:
			"the relay's store was moved to postgres: start with DATABASE_URL, or copy it back (npm run store -- copy postgres lmdb relay)",
	});
	await scene.a.write(markMoved(BACK));
	await assert.rejects(refuseIfMarked(scene.a, "boost"), {
		...moved,
		message:
			"the boost's store was moved to lmdb: start without DATABASE_URL, or copy it back (npm run store -- copy lmdb postgres boost)",
	});
	await scene.a.write(markUnderWay(THERE));
	assert.deepEqual((await readMarks(scene.a)).moved, null);
	await assert.rejects(refuseIfMarked(scene.a, "relay"), {
		...half,
		message:
			"the relay's store was not copied whole: run the copy again (npm run store -- copy lmdb postgres relay)",
	});
});

test("a mark that can't be read is one", async () => {
	for (const text of ["", "null", "{", "[]", '{"to":1}']) {
		await fill(scene.a, new Map([["copy/moved", Buffer.from(text)]]));
		await assert.rejects(refuseIfMarked(scene.a, "relay"), { code: "STORE_MOVED" }, text);
		await fill(scene.a, new Map([["copy/under-way", Buffer.from(text)]]));
		await assert.rejects(refuseIfMarked(scene.a, "relay"), { code: "STORE_HALF_COPIED" }, text);
	}
});

test("no key of relay's and boost's stores begins as a mark does", () => {
	assert.equal(isMark("copy/moved"), true);
	const prefixes = ["relay/store/", "boost-proxy/journal/"].flatMap((folder) => {
		const root = new URL(`../../../../../${folder}`, import.meta.url);
		return readdirSync(root).flatMap((name) =>
			[...readFileSync(new URL(name, root), "utf8").matchAll(/"(\w+\/[\w-]*)"/g)].map(([, key]) => key ?? ""),
		);
	});
	// Submissions, records and the chain at the least.
	for (const known of ["p/", "s/", "m/chain"]) assert.ok(prefixes.includes(known), prefixes.join(" "));
	assert.deepEqual(prefixes.filter(isMark), []);
});
