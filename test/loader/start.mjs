// Runs an entry point that hooks.mjs has bundled as one function, with V8's code cache of an earlier process: compiling takes a third
// of a relay's start.

import { createHash } from "node:crypto";
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { Script } from "node:vm";

/** When the code cache is written, in ms after the start: by then the functions of a start are compiled. */
const KEEP_MS = 2_000;

/** Runs the function in the file `path` and waits for its end. */
export async function start(path) {
	// V8 accepts a code cache only with the same flags.
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

/** Does nothing if the process can't write, as in a test of a full disk. */
function write(path, data) {
	const draft = `${path}.${process.pid}`;
	try {
		writeFileSync(draft, data);
		// Other processes read and write it at the same time.
		renameSync(draft, path);
	} catch {
		rmSync(draft, { force: true });
	}
}
