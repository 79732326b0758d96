// What comes in: the modules that node asks for (https://nodejs.org/docs/latest-v20.x/api/module.html#hooks). What goes
// out: JavaScript for those in TypeScript, by esbuild, kept by the hash of its source, so that only the first process
// that needs a file compiles it. It checks no types, and finds files by their whole name only.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const CACHE = new URL("../../node_modules/.cache/leeward/", import.meta.url);
const OPTIONS = { loader: "ts", format: "esm", target: "node20", sourcemap: "inline" };

export async function resolve(specifier, context, next) {
	const isFile = specifier.startsWith(".") && specifier.endsWith(".ts") && context.parentURL !== undefined;
	if (!isFile) return next(specifier, context);
	return { url: new URL(specifier, context.parentURL).href, format: "module", shortCircuit: true };
}

export async function load(url, context, next) {
	// One file may be loaded more than once, by a query of its own.
	const [place] = url.split("?");
	if (!url.startsWith("file:") || !place.endsWith(".ts")) return next(url, context);
	const path = fileURLToPath(place);
	const source = readFileSync(path, "utf8");
	return {
		format: "module",
		source: kept(path, source) ?? (await compiled(path, source)),
		shortCircuit: true,
	};
}

function kept(path, source) {
	try {
		return readFileSync(placeOf(path, source), "utf8");
	} catch {
		return null;
	}
}

async function compiled(path, source) {
	const { transform } = await import("esbuild");
	const { code } = await transform(source, { ...OPTIONS, sourcefile: path });
	const place = placeOf(path, source);
	const draft = new URL(`${process.pid}.draft`, CACHE);
	mkdirSync(CACHE, { recursive: true });
	writeFileSync(draft, code);
	// Others read and write it at the same time.
	renameSync(draft, place);
	return code;
}

/** The path is in the source map. */
function placeOf(path, source) {
	const hash = createHash("sha256").update(JSON.stringify(OPTIONS)).update(path).update("\0").update(source);
	return new URL(`${hash.digest("hex")}.mjs`, CACHE);
}
