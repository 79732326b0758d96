// A test process names the test or file during which an error was thrown or a promise rejected that
// nothing caught. It ends with its runner.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
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
	const env = { ...process.env };
	// Else it writes for a runner.
	delete env.NODE_TEST_CONTEXT;
	const { stdout, status } = spawnSync(process.execPath, argsOf(FILES, folder), { encoding: "utf8", env });
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

test("a process whose test hangs ends when its runner is gone", async (t) => {
	const folder = mkdtempSync(join(tmpdir(), "leeward-test-"));
	t.after(() => rmSync(folder, { recursive: true }));
	const hangs = `
		test("hangs", async () => {
			setInterval(() => {}, 1000);
			process.stderr.write("hangs");
			await new Promise(() => {});
		});`;
	const child = spawn(process.execPath, argsOf({ hangs }, folder), {
		env: { ...process.env, NODE_TEST_CONTEXT: "child-v8" },
		stdio: ["pipe", "ignore", "pipe"],
	});
	t.after(() => child.kill("SIGKILL"));
	const exit = once(child, "exit");
	await once(child.stderr, "data");
	// The kernel does this when the runner is killed.
	child.stdin.destroy();
	assert.deepEqual(await exit, [1, null]);
});

test("a process that a test starts writes no report when it gets SIGUSR2", () => {
	const report = ["--input-type=module", "--eval", "console.log(process.report.reportOnSignal)"];
	const { stdout } = spawnSync(process.execPath, [...process.execArgv, ...report], { encoding: "utf8" });
	assert.equal(stdout, "false\n");
});

/** Arguments that run `files`, code by name, in a test process. */
function argsOf(files: Readonly<Record<string, string>>, folder: string): readonly string[] {
	const list = Object.entries(files).map(([name, code]) => ({
		name,
		url: `data:text/javascript,${encodeURIComponent(`import { after, describe, test } from "node:test"; ${code}`)}`,
	}));
	const support = (name: string) => JSON.stringify(new URL(`../../support/${name}`, import.meta.url).href);
	const code = `import ${support("asyncHook.ts")};
		const { runFiles } = await import(${support("testProcess.ts")});
		await runFiles(${JSON.stringify(list)}, ${JSON.stringify({ folder, fileMs: 60_000 })});`;
	return [...process.execArgv, "--input-type=module", "--test-reporter=tap", "--eval", code];
}
