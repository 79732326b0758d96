// What comes in: nothing, or the paths of test files. What goes out: node:test's report of all test/**/*.test.ts
// files. It does not start anything itself: Node 20 cannot glob test files, so this file lists them.

import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const asked = process.argv.slice(2);
const files =
	asked.length > 0
		? asked
		: readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })
				.filter((name) => name.endsWith(".test.ts"))
				.map((name) => join("test", name))
				.sort();

const child = spawn(process.execPath, ["--import", "tsx", "--test", "--test-concurrency=2", ...files], {
	cwd: root,
	stdio: "inherit",
});
child.on("exit", (code) => {
	process.exitCode = code ?? 1;
});
