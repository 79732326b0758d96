// No file imports itself by way of others, types included.

import assert from "node:assert/strict";
import { posix } from "node:path";
import { test } from "node:test";
import { filesOf, importsOf } from "./support/sources.ts";

const OPENING = "// Its purpose.\n";
const imports = (...names: readonly string[]) =>
	OPENING + names.map((name) => `import { x } from "${name}";\n`).join("");

/**
 * The files of one circle of imports, types' too, in the order in which they import each other;
 * null: there is none.
 */
function circle(files: ReadonlyMap<string, string>): readonly string[] | null {
	const sound = new Set<string>();
	const visit = (path: string, way: readonly string[]): readonly string[] | null => {
		if (way.includes(path)) return [...way.slice(way.indexOf(path)), path];
		const text = files.get(path);
		if (text === undefined || sound.has(path)) return null;
		for (const { from } of importsOf(text)) {
			const found = visit(posix.join(posix.dirname(path), from), [...way, path]);
			if (found !== null) return found;
		}
		sound.add(path);
		return null;
	};
	for (const path of files.keys()) {
		const found = visit(path, []);
		if (found !== null) return found;
	}
	return null;
}

const CIRCLES: readonly (readonly [Record<string, string>, readonly string[] | null])[] = [
	[{ "a/x.ts": imports("./y.ts"), "a/y.ts": imports("./z.ts", "zod"), "a/z.ts": OPENING }, null],
	[{ "a/x.ts": imports("./y.ts", "./z.ts"), "a/y.ts": imports("./z.ts"), "a/z.ts": OPENING }, null],
	[{ "a/x.ts": imports("../b/x.ts"), "b/y.ts": imports("../a/x.ts") }, null],
	[
		{ "a/x.ts": imports("./y.ts"), "a/y.ts": `${OPENING}import type { X } from "./x.ts";\n` },
		["a/x.ts", "a/y.ts", "a/x.ts"],
	],
	[
		{ "a/w.ts": imports("./x.ts"), "a/x.ts": imports("./b/y.ts"), "a/b/y.ts": imports("../x.ts") },
		["a/x.ts", "a/b/y.ts", "a/x.ts"],
	],
	[{ "a/x.ts": imports("./x.ts") }, ["a/x.ts", "a/x.ts"]],
];

test("circles of imports are seen, and nothing else is taken for one", () => {
	for (const [files, expected] of CIRCLES) assert.deepEqual(circle(new Map(Object.entries(files))), expected);
});

for (const folder of ["relay", "boost-proxy", "shared"]) {
	test(`no file of ${folder}/ imports itself by way of others`, () => {
		assert.equal(circle(filesOf(folder))?.join(" -> "), undefined);
	});
}
