// Runs what a process begins with, put together by hooks.mjs as one function, with what V8 compiled of it in an earlier process:
// to compile it takes a third of a relay's start.

import { createHash } from "node:crypto";
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { Script } from "node:vm";

/** What is compiled is kept when so much time has passed, in ms: by then the functions of a start have been compiled. */
const KEEP_MS = 2_000;

/** Runs the function in the file `path`, and waits for it. */
export async function start(path) {
	// V8 takes it only with the flags that it was compiled with.
	const flags = createHash("sha256")
		.update(`${process.version} ${process.execArgv} ${process.env.NODE_OPTIONS}`)
		.digest("hex")
		.slice(0, 8);
	const kept = `${path}.${flags}`;
	const cachedData = read(kept);
	const script = new Script(readFileSync(path, "utf8"), {
		...{ filename: path, importModuleDynamically: (name) => import(name) },
		...(cachedData === undefined ? {} : { cachedData }),
	});
	if (cachedData === undefined) setTimeout(() => write(kept, script.createCachedData()), KEEP_MS).unref();
	await script.runInThisContext()(createRequire(path), pathToFileURL(path).href);
}

function read(path) {
	try {
		return readFileSync(path);
	} catch {
		return undefined;
	}
}

/** A process that may not write, as in a test of a full disk, keeps nothing. */
function write(path, data) {
	const draft = `${path}.${process.pid}`;
	try {
		writeFileSync(draft, data);
		// Others read and write it at the same time.
		renameSync(draft, path);
	} catch {
		rmSync(draft, { force: true });
	}
}
