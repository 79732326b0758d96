// What comes in: the modules that node asks for (https://nodejs.org/docs/latest-v20.x/api/module.html#hooks). What goes
// out: JavaScript for those in TypeScript, by esbuild, kept by the hash of its source, so that only the first process
// that needs a file compiles it. It checks no types, and finds files by their whole name only. What processes begin with
// is put together with all that it imports, packages too: to load hundreds of files takes each process twice as long.

import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";

const ROOT = new URL("../../", import.meta.url);
const CACHE = new URL("node_modules/.cache/leeward/", ROOT);
const OPTIONS = { loader: "ts", format: "esm", target: "node20", sourcemap: "inline" };
/** What processes begin with, and the folders of all that these import. */
const ENTRIES = ["relay/main.ts", "boost-proxy/main.ts"].map((entry) => new URL(entry, ROOT).href);
const FOLDERS = ["relay", "boost-proxy", "shared"];
/** Those that load native code from files beside them. */
const NATIVE = ["lmdb", "secp256k1", "keccak"];
const BUNDLED = {
	...{ bundle: true, external: [...NATIVE, "pg-native"], platform: "node", format: "esm", target: "node20" },
	...{ sourcemap: "inline", sourcesContent: false, write: false, logLevel: "error" },
	// What packages in CommonJS expect to be there.
	banner: {
		js: `import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url), __filename = "", __dirname = "";`,
	},
};

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
	const isEntry = ENTRIES.includes(url);
	const source = isEntry ? allSources() : readFileSync(path, "utf8");
	const kept = placeOf(isEntry ? BUNDLED : OPTIONS, path, source);
	return {
		format: "module",
		source: read(kept) ?? (await write(kept, isEntry ? bundled(path) : compiled(path, source))),
		shortCircuit: true,
	};
}

function read(place) {
	try {
		return readFileSync(place, "utf8");
	} catch {
		return null;
	}
}

async function compiled(path, source) {
	const { transform } = await import("esbuild");
	return (await transform(source, { ...OPTIONS, sourcefile: path })).code;
}

/** The file with all that it imports. Ours still know where they are. */
async function bundled(path) {
	const { build } = await import("esbuild");
	const places = {
		name: "places",
		setup(building) {
			building.onLoad({ filter: /\.ts$/ }, ({ path: file }) => {
				const own = JSON.stringify(pathToFileURL(file).href);
				return { loader: "ts", contents: readFileSync(file, "utf8").replaceAll("import.meta.url", own) };
			});
		},
	};
	const { outputFiles } = await build({ ...BUNDLED, entryPoints: [path], plugins: [places] });
	return outputFiles[0].text;
}

/** All that may be in a bundle, by name: what it is made of changes with any of it. */
function allSources() {
	const names = FOLDERS.flatMap((folder) =>
		readdirSync(new URL(folder, ROOT), { recursive: true })
			.filter((name) => name.endsWith(".ts"))
			.map((name) => `${folder}/${name}`),
	);
	const all = [...names, "package-lock.json"];
	return all.map((name) => `${name}\0${readFileSync(new URL(name, ROOT), "utf8")}`).join("\0");
}

async function write(place, compiling) {
	const code = await compiling;
	const draft = new URL(`${process.pid}.draft`, CACHE);
	mkdirSync(CACHE, { recursive: true });
	writeFileSync(draft, code);
	// Others read and write it at the same time.
	renameSync(draft, place);
	return code;
}

/** The path is in the source map. */
function placeOf(options, path, source) {
	const hash = createHash("sha256").update(JSON.stringify(options)).update(path).update("\0").update(source);
	return new URL(`${hash.digest("hex")}.mjs`, CACHE);
}
