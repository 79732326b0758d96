// What comes in: nothing, or the paths of test files. What goes out: node:test's report of all test/**/*.test.ts
// files. It does not start anything itself: Node 20 cannot glob test files, so this file lists them. Unit tests share a
// few processes, since most of their time is a process's start; every other file has one of its own.

import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** Processes for the unit tests. */
const UNIT_GROUPS = 10;

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const asked = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "leeward-run-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

const child = spawn(
	process.execPath,
	["--import", "tsx", "--test", "--test-concurrency=2", ...(asked.length > 0 ? asked : all())],
	{ cwd: root, stdio: "inherit" },
);
child.on("exit", (code) => {
	process.exitCode = code ?? 1;
});

/** Every test, as files to be run in a process each. */
function all(): readonly string[] {
	const files = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })
		.filter((name) => name.endsWith(".test.ts"))
		.map((name) => join("test", name))
		.sort();
	const isUnit = (file: string) => file.startsWith(join("test", "unit"));
	return [...grouped(files.filter(isUnit)), ...files.filter((file) => !isUnit(file))];
}

/** Files that import some of `files` each. */
function grouped(files: readonly string[]): readonly string[] {
	return Array.from({ length: UNIT_GROUPS }, (_, group) => {
		const imports = files
			.filter((_, i) => i % UNIT_GROUPS === group)
			.map((file) => `import ${JSON.stringify(pathToFileURL(join(root, file)).href)};\n`);
		const path = join(folder, `unit${group}.test.mjs`);
		writeFileSync(path, imports.join(""));
		return path;
	});
}
