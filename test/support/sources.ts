// The project's source files, and their imports.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { ROOT } from "./documents.ts";

/** The texts of all files of `folder` by their paths; one that is not built yet is not there. */
export function filesOf(folder: string): Map<string, string> {
	if (!existsSync(join(ROOT, folder))) return new Map();
	const names = readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" });
	const paths = names
		.filter((name) => name.endsWith(".ts") && !name.includes("node_modules"))
		.map((name) => posix.join(folder, name.replaceAll("\\", "/")));
	return new Map(paths.map((path) => [path, readFileSync(join(ROOT, path), "utf8")]));
}

/** An import of a file. */
export interface Imported {
	readonly from: string;
	readonly typesOnly: boolean;
}

/** Static imports and re-exports, imports for their effect, and dynamic ones. */
export function importsOf(text: string): Imported[] {
	const found: Imported[] = [];
	for (const [, what = "", from = ""] of text.matchAll(
		/^(?:import|export)\s+([^;"'`]*?)\s*from\s+"([^"]+)"/gm,
	)) {
		const named = /^\{([\s\S]*)\}$/
			.exec(what)?.[1]
			?.split(",")
			.map((one) => one.trim());
		const typesOnly =
			what.startsWith("type ") || (named?.every((one) => one === "" || one.startsWith("type ")) ?? false);
		found.push({ from, typesOnly });
	}
	for (const [, from = ""] of text.matchAll(/^import\s+"([^"]+)"/gm)) found.push({ from, typesOnly: false });
	for (const [, from = ""] of text.matchAll(/\bimport\("([^"]+)"\)/g)) found.push({ from, typesOnly: false });
	return found;
}
