// The test that CONTRIBUTING.md shows runs as it stands there, passes, and fails where what it expects is not so.

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

/** Runs a test file's text by node itself, from another folder. */
function run(name: string, text: string): Promise<{ readonly passed: boolean; readonly said: string }> {
	const file = join(folder, `${name}.test.ts`);
	writeFileSync(file, text.replaceAll("../../", `${pathToFileURL(join(ROOT, "test")).href}/`));
	const args = ["--import", "tsx", "--test", "--test-reporter=tap", file];
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
	const [own, other] = await Promise.all([
		run("shown", shown),
		run("other", shown.replace(", []), [])", ', []), ["0x"])')),
	]);
	assert.match(own.said, /^# pass 1$/m);
	assert.equal(own.passed, true, own.said);
	assert.match(other.said, /^# fail 1$/m);
	assert.equal(other.passed, false, other.said);
});
