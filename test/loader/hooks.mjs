// Module hooks (https://nodejs.org/docs/latest-v20.x/api/module.html#hooks) that compile TypeScript with esbuild. The result is
// cached by the hash of the source, so that only the first process that needs a file compiles it. Types are not checked, and
// imports must have full file names. The entry points of processes are bundled with all that they import, packages included,
// since loading hundreds of files takes twice as long. So are packages of hundreds of files that the tests import: loading two
// of them took three seconds.

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
/** Files older than this are deleted before a new bundle is written: each change of a source adds 13 MB. */
const KEPT_MS = 7 * 24 * 3_600_000;
const OPTIONS = { loader: "ts", format: "esm", target: "node20", sourcemap: "inline" };
const PRODUCT = ["relay", "boost-proxy", "shared"];
/** The entry points of processes, and the folders that they import from. */
const ENTRIES = new Map([
	[urlOf("relay/main.ts"), PRODUCT],
	[urlOf("boost-proxy/main.ts"), PRODUCT],
	[urlOf("test/devnet/main.ts"), [...PRODUCT, "test/devnet", "test/support"]],
]);
/** Packages of hundreds of files each. Their bundles share common parts, such as a package that two of them import. */
const PACKAGES = [...["ethers", "viem", "viem/accounts", "viem/chains", "web3"], ...["undici", "zod"]];
const START = new URL("start.mjs", import.meta.url).href;
/** The code around a bundled entry point. */
const FUNCTION = ['(async (require, importMetaUrl) => { "use strict";', "})"];
/** Packages that load native code from their own folder. */
const NATIVE = ["lmdb", "secp256k1", "keccak"];
const BUNDLED = {
	...{ bundle: true, external: [...NATIVE, "pg-native"], platform: "node", format: "esm", target: "node20" },
	outExtension: { ".js": ".mjs" },
	// Without a source map, which each process would read at its start. Stacks show functions, and lines of the bundle.
	...{ write: false, outdir: fileURLToPath(CACHE), logLevel: "error" },
	// Packages in CommonJS expect these to exist.
	banner: {
		js: `import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url), __filename = "", __dirname = "";`,
	},
};

const WHOLE = {
	...{ ...BUNDLED, banner: {}, define: { "import.meta.url": "importMetaUrl" } },
	// A function from V8's code cache can't import modules, so dynamic imports become `require`.
	supported: { "dynamic-import": false },
};

/** Caches of {@link packagePlace}. */
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
	// A file may be loaded several times, with different queries.
	const [place] = url.split("?");
	if (!url.startsWith("file:") || !place.endsWith(".ts")) return next(url, context);
	const path = fileURLToPath(place);
	const source = ENTRIES.has(url) ? await entry(url) : await file(path);
	return { format: "module", source, shortCircuit: true };
}

function isOurs(url) {
	return url?.split("?")[0].endsWith(".ts") ?? false;
}

/** The URL of a package's bundle. All packages are bundled at once. */
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
				// esbuild does not know the names that a package in CommonJS exports.
				const names = Object.keys(await import(path)).filter((name) => /^\w+$/.test(name));
				return { contents: `export { ${names} } from "${path}";`, resolveDir: fileURLToPath(ROOT) };
			});
		},
	};
	const entryPoints = PACKAGES.map((name, i) => ({ in: name, out: `${i}` }));
	const outdir = fileURLToPath(new URL(".", packagePlace(PACKAGES[0])));
	mkdirSync(outdir, { recursive: true });
	const { outputFiles } = await build({ ...PACKED, outdir, entryPoints, plugins: [own] });
	// The packages' own files, named by numbers, come last: they import the common parts.
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
 * Code that runs a bundled entry point, see start.mjs. Missing bundles of the other entry points are built at the same time, since
 * they will be needed too.
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

/** Bundles entry points with all that they import. Our own modules keep their `import.meta.url`. */
async function bundle(places) {
	const { build } = await import("esbuild");
	const ownPlaces = {
		name: "places",
		setup(building) {
			building.onLoad({ filter: /\.ts$/ }, ({ path: file }) => {
				const own = JSON.stringify(pathToFileURL(file).href);
				return { loader: "ts", contents: readFileSync(file, "utf8").replaceAll("import.meta.url", own) };
			});
			// A function can't contain import statements.
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

/** Names, sizes and times of all files that a bundle may contain. Reading their contents in each process would take longer. */
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
	// Other processes read and write it at the same time.
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
