// What comes in: the modules that node asks for (https://nodejs.org/docs/latest-v20.x/api/module.html#hooks). What goes
// out: JavaScript for those in TypeScript, by esbuild, kept by the hash of its source, so that only the first process
// that needs a file compiles it. It checks no types, and finds files by their whole name only. What processes begin with
// is put together with all that it imports, packages too: to load hundreds of files takes each process twice as long. So are
// the packages of hundreds of files that the tests themselves import: two of them took a process three seconds.

import { createHash } from "node:crypto";
import {
	existsSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	renameSync,
	rmSync,
	statSync,
	writeFileSync,
} from "node:fs";
import { isBuiltin } from "node:module";
import { basename } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const ROOT = new URL("../../", import.meta.url);
const CACHE = new URL("node_modules/.cache/leeward/", ROOT);
/** What was kept longer ago is removed when more is put together: each change of a source keeps 13 MB more. */
const KEPT_MS = 7 * 24 * 3_600_000;
const OPTIONS = { loader: "ts", format: "esm", target: "node20", sourcemap: "inline" };
const PRODUCT = ["relay", "boost-proxy", "shared"];
/** What processes begin with, and the folders of all that these import. */
const ENTRIES = new Map([
	[urlOf("relay/main.ts"), PRODUCT],
	[urlOf("boost-proxy/main.ts"), PRODUCT],
	[urlOf("test/devnet/main.ts"), [...PRODUCT, "test/devnet", "test/support"]],
]);
/** Packages of hundreds of files each. They share what they have in common, such as a package that two of them import. */
const PACKAGES = [...["ethers", "viem", "viem/accounts", "viem/chains", "web3"], ...["undici", "zod"]];
const START = new URL("start.mjs", import.meta.url).href;
/** Around what processes begin with. */
const FUNCTION = ['(async (require, importMetaUrl) => { "use strict";', "})"];
/** Those that load native code from files beside them. */
const NATIVE = ["lmdb", "secp256k1", "keccak"];
const BUNDLED = {
	...{ bundle: true, external: [...NATIVE, "pg-native"], platform: "node", format: "esm", target: "node20" },
	outExtension: { ".js": ".mjs" },
	// Without a source map, which each process would read at its start: a stack names functions, and lines of the whole.
	...{ write: false, outdir: fileURLToPath(CACHE), logLevel: "error" },
	// What packages in CommonJS expect to be there.
	banner: {
		js: `import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url), __filename = "", __dirname = "";`,
	},
};

const WHOLE = {
	...{ ...BUNDLED, banner: {}, define: { "import.meta.url": "importMetaUrl" } },
	// A function that V8 compiled in an earlier process can import nothing: what packages import later is required.
	supported: { "dynamic-import": false },
};

/** Of {@link PACKAGES}; once they are known. */
let lock = null;
let packages = null;
const PACKED = { ...BUNDLED, splitting: true };

export async function resolve(specifier, context, next) {
	const isFile = specifier.startsWith(".") && specifier.endsWith(".ts") && context.parentURL !== undefined;
	if (PACKAGES.includes(specifier) && isOurs(context.parentURL))
		return { url: await packageUrl(specifier), format: "module", shortCircuit: true };
	if (!isFile) return next(specifier, context);
	return { url: new URL(specifier, context.parentURL).href, format: "module", shortCircuit: true };
}

export async function load(url, context, next) {
	// One file may be loaded more than once, by a query of its own.
	const [place] = url.split("?");
	if (!url.startsWith("file:") || !place.endsWith(".ts")) return next(url, context);
	const path = fileURLToPath(place);
	const source = ENTRIES.has(url) ? await entry(url) : await file(path);
	return { format: "module", source, shortCircuit: true };
}

function isOurs(url) {
	return url?.split("?")[0].endsWith(".ts") ?? false;
}

/** Where the package is, put together with all that it imports. The others are put together with it. */
async function packageUrl(specifier) {
	if (!existsSync(packagePlace(specifier))) await bundlePackages();
	return packagePlace(specifier).href;
}

function packagePlace(specifier) {
	lock ??= readFileSync(new URL("package-lock.json", ROOT), "utf8");
	packages ??= placeOf([PACKED, PACKAGES], "packages", lock).href.replace(/mjs$/, "packages/");
	return new URL(`${PACKAGES.indexOf(specifier)}.mjs`, packages);
}

async function bundlePackages() {
	const { build } = await import("esbuild");
	const own = {
		name: "own",
		setup(building) {
			building.onResolve({ filter: /.*/ }, ({ path, kind }) =>
				kind === "entry-point" ? { path, namespace: "own" } : undefined,
			);
			building.onLoad({ filter: /.*/, namespace: "own" }, async ({ path }) => {
				// Of a package in CommonJS esbuild does not know the names.
				const names = Object.keys(await import(path)).filter((name) => /^\w+$/.test(name));
				return { contents: `export { ${names} } from "${path}";`, resolveDir: fileURLToPath(ROOT) };
			});
		},
	};
	const entryPoints = PACKAGES.map((name, i) => ({ in: name, out: `${i}` }));
	const outdir = fileURLToPath(new URL(".", packagePlace(PACKAGES[0])));
	mkdirSync(outdir, { recursive: true });
	const { outputFiles } = await build({ ...PACKED, outdir, entryPoints, plugins: [own] });
	// Last the packages themselves, by numbers: they name what they have in common.
	const isPackage = ({ path }) => Number(/^\d+\.mjs$/.test(basename(path)));
	for (const { path, text } of outputFiles.sort((a, b) => isPackage(a) - isPackage(b)))
		write(pathToFileURL(path), text);
}

async function file(path) {
	const source = readFileSync(path, "utf8");
	const kept = placeOf(OPTIONS, path, source);
	return read(kept) ?? write(kept, await compiled(path, source));
}

/**
 * Runs the file with all that it imports, see start.mjs. The others are put together with it: who starts one will start them,
 * too.
 */
async function entry(place) {
	const kept = keptEntry(place);
	if (!existsSync(kept)) await bundle([...ENTRIES.keys()].filter((one) => !existsSync(keptEntry(one))));
	return `import { start } from "${START}"; await start(${JSON.stringify(fileURLToPath(kept))});`;
}

function keptEntry(place) {
	return placeOf([WHOLE, FUNCTION], fileURLToPath(place), allSources(ENTRIES.get(place)));
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

/** Keeps each with all that it imports. Ours still know where they are. */
async function bundle(places) {
	const { build } = await import("esbuild");
	const ownPlaces = {
		name: "places",
		setup(building) {
			building.onLoad({ filter: /\.ts$/ }, ({ path: file }) => {
				const own = JSON.stringify(pathToFileURL(file).href);
				return { loader: "ts", contents: readFileSync(file, "utf8").replaceAll("import.meta.url", own) };
			});
			// A function has no imports.
			building.onResolve({ filter: /.*/ }, ({ path, kind }) =>
				kind === "import-statement" && isOutside(path) ? { path, namespace: "outside" } : undefined,
			);
			building.onLoad({ filter: /.*/, namespace: "outside" }, ({ path }) => ({
				contents: `module.exports = require("${path}");`,
			}));
		},
	};
	const entryPoints = places.map((place) => ({
		in: fileURLToPath(place),
		out: basename(keptEntry(place).href, ".mjs"),
	}));
	const { outputFiles } = await build({
		...{ ...WHOLE, entryPoints },
		plugins: [ownPlaces],
	});
	removeOld();
	for (const { path, text } of outputFiles) write(pathToFileURL(path), FUNCTION.join(`${text}\n`));
}

function isOutside(name) {
	return isBuiltin(name) || NATIVE.includes(name);
}

function removeOld() {
	mkdirSync(CACHE, { recursive: true });
	for (const name of readdirSync(CACHE)) {
		const place = new URL(name, CACHE);
		const { mtimeMs = Date.now() } = statSync(place, { throwIfNoEntry: false }) ?? {};
		if (Date.now() - mtimeMs > KEPT_MS) rmSync(place, { force: true, recursive: true });
	}
}

/** All that may be in a bundle, by name, size and time: each process asks, and to read all of it would take longer. */
function allSources(folders) {
	const names = folders.flatMap((folder) =>
		readdirSync(new URL(folder, ROOT), { recursive: true })
			.filter((name) => name.endsWith(".ts"))
			.map((name) => `${folder}/${name}`),
	);
	const all = [...names, "package-lock.json"];
	const signed = all.map((name) => {
		const { size, mtimeMs } = statSync(new URL(name, ROOT));
		return `${name} ${size} ${mtimeMs}`;
	});
	return signed.join("\0");
}

function write(place, code) {
	const draft = new URL(`${process.pid}.draft`, CACHE);
	mkdirSync(CACHE, { recursive: true });
	writeFileSync(draft, code);
	// Others read and write it at the same time.
	renameSync(draft, place);
	return code;
}

function urlOf(name) {
	return new URL(name, ROOT).href;
}

/** The path is in the source map. */
function placeOf(options, path, source) {
	const hash = createHash("sha256").update(JSON.stringify(options)).update(path).update("\0").update(source);
	return new URL(`${hash.digest("hex")}.mjs`, CACHE);
}
