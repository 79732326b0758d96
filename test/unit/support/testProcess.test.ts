// A test process names the test or file during which an error was thrown or a promise rejected that nothing caught.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

const LATER = "await new Promise((resolve) => setTimeout(resolve, 20));";
const FILES = {
	first: `
		test("passes", () => {});
		test("rejects", async () => { Promise.reject(new Error("rejected")); ${LATER} });
		test("throws", async () => { setTimeout(() => { throw new Error("thrown"); }, 5); ${LATER} });
		describe("nested", () => test("passes too", () => {}));`,
	second: `
		test("passes as well", () => {});
		after(async () => { Promise.reject(new Error("late")); ${LATER} });`,
};

test("an error that nothing caught fails the test that runs, or else the file", (t) => {
	const folder = mkdtempSync(join(tmpdir(), "leeward-test-"));
	t.after(() => rmSync(folder, { recursive: true }));
	const files = Object.entries(FILES).map(([name, code]) => ({
		name,
		url: `data:text/javascript,${encodeURIComponent(`import { after, describe, test } from "node:test"; ${code}`)}`,
	}));
	const support = (name: string) => JSON.stringify(new URL(`../../support/${name}`, import.meta.url).href);
	const code = `import ${support("asyncHook.ts")};
		const { runFiles } = await import(${support("testProcess.ts")});
		await runFiles(${JSON.stringify(files)}, ${JSON.stringify({ folder, fileMs: 60_000 })});`;
	const env = { ...process.env };
	// Else it writes for a runner.
	delete env.NODE_TEST_CONTEXT;
	const args = [...process.execArgv, "--input-type=module", "--test-reporter=tap", "--eval", code];
	const { stdout, status } = spawnSync(process.execPath, args, { encoding: "utf8", env });
	assert.equal(status, 1);
	const results = [...stdout.matchAll(/^ *(not ok|ok) \d+ - (.*)$/gm)].map(([, how, name]) => [how, name]);
	assert.deepEqual(results, [
		["ok", "passes"],
		["not ok", "rejects"],
		["not ok", "throws"],
		["ok", "passes too"],
		["ok", "nested"],
		["not ok", "first"],
		["ok", "passes as well"],
		["not ok", "second"],
	]);
	for (const message of ["rejected", "thrown", "late"])
		assert.match(stdout, new RegExp(`error: '${message}'`));
});
