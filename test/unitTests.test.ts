// The place of unit tests: `test/unit/FOLDER/NAME.test.ts` and `NAME.ASPECT.test.ts` test
// `FOLDER/NAME.ts`, so that each file's tests are easy to find. A test of several files is a
// property, and its opening comment begins with that word.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const UNIT = "test/unit/";
/** Sources that belong to the tests themselves are in test/, without unit/. */
const OF_TESTS = /^(devnet|faults|support)\//;
const A_TEST = /^test\/unit\/(.+\/)?([^/.]+)(?:\.[^/]+)?\.test\.ts$/;

/** Why a test may not lie at `path` (from the root); null if it may. */
function misplaced(path: string, text: string): string | null {
	const [, folder = "", name] = A_TEST.exec(path) ?? [];
	if (name === undefined || /^\/\/ Propert(y|ies) of /.test(text)) return null;
	const source = (OF_TESTS.test(folder) ? "test/" : "") + folder + name;
	const isThere = [".ts", ".js"].some((ending) => existsSync(join(ROOT, source + ending)));
	return isThere ? null : `${path} tests no ${source}.ts, and is no property`;
}

const OPENING = "// What it is for.\n";
/** Made-up tests, and the file that each lacks; null: they are sound. */
const MADE_UP: readonly (readonly [path: string, text: string, lacks: string | null])[] = [
	["boost-proxy/reconcile/observeOthers.test.ts", OPENING, "boost-proxy/reconcile/observeOthers.ts"],
	["relay/domain/pipeline.test.ts", OPENING, "relay/domain/pipeline.ts"],
	["relay/domain/pipeline.owners.test.ts", OPENING, "relay/domain/pipeline.ts"],
	["pipeline.test.ts", OPENING, "pipeline.ts"],
	["devnet/rules.test.ts", OPENING, "test/devnet/rules.ts"],
	["relay/domain/lives.test.ts", "// A test of a property.\n", "relay/domain/lives.ts"],
	["relay/domain/lives.test.ts", "// Properties of random lives.\n", null],
	["relay/pipeline.test.ts", OPENING, null],
	["relay/pipeline.owners.test.ts", OPENING, null],
	["shared/pages/facts.test.ts", OPENING, null],
	["devnet/searcher/pools.test.ts", OPENING, null],
	["relay/stagesFixture.ts", OPENING, null],
];

test("a made-up test that lies elsewhere than its source is seen, and no other", () => {
	for (const [path, text, lacks] of MADE_UP) {
		const found = misplaced(UNIT + path, text);
		const expected = lacks === null ? null : `${UNIT}${path} tests no ${lacks}, and is no property`;
		assert.equal(found, expected, path);
	}
});

test("every unit test lies where its source lies", () => {
	const names = readdirSync(join(ROOT, UNIT), { recursive: true, encoding: "utf8" });
	const tests = names.filter((name) => name.endsWith(".test.ts")).map((name) => UNIT + name);
	assert.ok(tests.length > 100, "they were not found");
	const found = tests.map((path) => misplaced(path, readFileSync(join(ROOT, path), "utf8")));
	assert.deepEqual(
		found.filter((one) => one !== null),
		[],
	);
});
