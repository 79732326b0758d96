// Compiles everything that a test run may load, once: each of the run's processes would start a compiler of its own for the files
// that it is the first to need, and several would put the same whole together at the same time.

import { readdirSync } from "node:fs";
import { load, resolve } from "./hooks.mjs";

const ROOT = new URL("../../", import.meta.url);
const FOLDERS = ["relay", "boost-proxy", "shared", "test"];
/** Files at a time. */
const AT_ONCE = 8;

const urls = FOLDERS.flatMap((folder) =>
	readdirSync(new URL(folder, ROOT), { recursive: true })
		.filter((name) => name.endsWith(".ts") && !name.includes("node_modules"))
		.map((name) => new URL(`${folder}/${name}`, ROOT).href),
);
// One of the packages, and one of the files that processes begin with: the others are put together with it.
await resolve("zod", { parentURL: urls[0] });
await load(new URL("relay/main.ts", ROOT).href, {});
const left = urls.values();
await Promise.all(
	Array.from({ length: AT_ONCE }, async () => {
		for (const url of left) await load(url, {});
	}),
);
