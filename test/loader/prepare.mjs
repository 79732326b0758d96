// Compiles everything that a test run may load. Otherwise each process of the run would start its own compiler, and several would
// build the same bundle at the same time.

import { readdirSync } from "node:fs";
import { load, resolve } from "./hooks.mjs";

const ROOT = new URL("../../", import.meta.url);
const FOLDERS = ["relay", "boost-proxy", "shared", "test"];
/** Files that are compiled at the same time. */
const AT_ONCE = 8;

const urls = FOLDERS.flatMap((folder) =>
	readdirSync(new URL(folder, ROOT), { recursive: true })
		.filter((name) => name.endsWith(".ts") && !name.includes("node_modules"))
		.map((name) => new URL(`${folder}/${name}`, ROOT).href),
);
// One package and one entry point: the others are bundled with them.
await resolve("zod", { parentURL: urls[0] });
await load(new URL("relay/main.ts", ROOT).href, {});
const left = urls.values();
await Promise.all(
	Array.from({ length: AT_ONCE }, async () => {
		for (const url of left) await load(url, {});
	}),
);
