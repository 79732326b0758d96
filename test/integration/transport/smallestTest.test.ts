// The test that CONTRIBUTING.md shows runs as it stands there and passes. A copy behind it that
// expects something else fails.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { ROOT, snippet } from "../../support/documents.ts";

const folder = mkdtempSync(join(tmpdir(), "leeward-test-"));
after(() => rmSync(folder, { recursive: true }));

/** Runs a test file's text by node itself, from another folder, with the loader of `npm test`. */
function run(text: string): Promise<{ readonly passed: boolean; readonly said: string }> {
	const file = join(folder, "shown.test.ts");
	writeFileSync(file, text.replaceAll("../../", `${pathToFileURL(join(ROOT, "test")).href}/`));
	const args = ["--import", "./test/loader/register.mjs", "--test", "--test-reporter=tap", file];
	// Else it would report to the runner of this test.
	const { NODE_TEST_CONTEXT: _, ...env } = process.env;
	return new Promise((resolve) => {
		execFile(process.execPath, args, { cwd: ROOT, env }, (error, said) => {
			resolve({ passed: error === null, said });
		});
	});
}

test("the smallest test of a method", async () => {
	const shown = snippet("CONTRIBUTING.md", "// The relay holds no accounts");
	const wrong = shown.slice(shown.indexOf('test("')).replace(", []), [])", ', []), ["0x"])');
	const { passed, said } = await run(`${shown}\n${wrong}`);
	assert.match(said, /^# pass 1$/m);
	assert.match(said, /^# fail 1$/m);
	assert.match(said, /^ok 1 - eth_accounts is empty$/m, said);
	assert.match(said, /^not ok 2 - eth_accounts is empty$/m, said);
	assert.equal(passed, false, said);
});
