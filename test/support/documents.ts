// The project's documents by their paths: the Markdown files at the top and in docs/. Who reads them and what must hold of
// them is decided elsewhere.

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The project's folder. */
export const ROOT: string = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** Where `rpc.discover` is kept. */
export const OPENRPC = "docs/openrpc.json";

/** The text of each document by its path from the root. */
export function documents(): ReadonlyMap<string, string> {
	const markdown = (folder: string) => readdirSync(join(ROOT, folder)).filter((name) => name.endsWith(".md"));
	const paths = [...markdown("."), ...markdown("docs").map((name) => `docs/${name}`)];
	return new Map(paths.map((path) => [path, readFileSync(join(ROOT, path), "utf8")]));
}

/** A JSON example with its name: `<!-- example:name -->`, an empty line or none, and a block of JSON. */
export function examplesOf(text: string): ReadonlyMap<string, unknown> {
	const found = text.matchAll(/<!-- example:(\w+) -->\n+```json\n([\s\S]*?)\n```/g);
	return new Map([...found].map(([, name = "", json = ""]) => [name, JSON.parse(json)]));
}
