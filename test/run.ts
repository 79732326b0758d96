// What comes in: nothing, or the paths of test files. What goes out: the report of node:test's run of all
// test/**/*.test.ts files. Node 20 cannot glob test files, so this file lists them. A process takes over a second to
// load what most tests need, so files share some; those that measure their process or load the machine have their own.

import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { run } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { report } from "./support/report.ts";

/** Files that share a process, at most. */
const SHARED = { integration: 12, unit: 24 };
/** In processes of their own, these first, since they take the longest. */
const ALONE = [
	"test/integration/demo.test.ts",
	"test/faults/matrix.test.ts",
	"test/integration/crash.test.ts",
	"test/integration/auctionCrowd.test.ts",
	"test/integration/chainCrowd.test.ts",
	"test/integration/shutdown.test.ts",
	"test/integration/transportThroughput.test.ts",
];
/** Processes at a time: each starts more. */
const CONCURRENCY = 2;

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const asked = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "leeward-run-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

process.chdir(root);
// The processes of the tests are started as this one was: with the same loader.
const events = run({ files: asked.length > 0 ? asked : all(), concurrency: CONCURRENCY });
events.on("test:fail", () => {
	process.exitCode = 1;
});
for await (const text of report(events)) process.stdout.write(text);

/** Every test, as files to be run in a process each. */
function all(): readonly string[] {
	const shared = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })
		.filter((name) => name.endsWith(".test.ts"))
		.map((name) => join("test", name))
		.filter((file) => !ALONE.includes(file))
		.sort();
	const isUnit = (file: string) => file.startsWith(join("test", "unit"));
	return [
		...ALONE,
		...grouped(
			"integration",
			shared.filter((file) => !isUnit(file)),
		),
		...grouped("unit", shared.filter(isUnit)),
	];
}

/** Files that run some of `files` each, as suites by their names. Neighbours, which are alike, are spread. */
function grouped(kind: keyof typeof SHARED, files: readonly string[]): readonly string[] {
	const count = Math.ceil(files.length / SHARED[kind]);
	return Array.from({ length: count }, (_, group) => {
		const suites = files
			.filter((_, i) => i % count === group)
			.map((file) => [file, pathToFileURL(join(root, file)).href].map((text) => JSON.stringify(text)))
			.map(([name, url]) => `describe(${name}, async () => { await import(${url}); });\n`);
		const path = join(folder, `${kind}${group}.test.mjs`);
		writeFileSync(path, `import { describe } from "node:test";\n${suites.join("")}`);
		return path;
	});
}
