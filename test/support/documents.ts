// The project's documents by their paths (the Markdown files at the top and in docs/), and the blocks of code in them. Who
// reads them and what must hold of them is decided elsewhere.

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

/** A block of code in a document. */
export interface Snippet {
	readonly document: string;
	/** Of its first line. */
	readonly line: number;
	/** "" where none is named. */
	readonly language: string;
	readonly text: string;
	/** Whether it is one of {@link examplesOf}. */
	readonly isExample: boolean;
}

/** Every block of code of a document, in order. */
export function snippetsOf(document: string, text: string): readonly Snippet[] {
	const found = text.matchAll(/^( *)```(\w*)\n([\s\S]*?)^ *```$/gm);
	return [...found].map(({ index, 1: indent = "", 2: language = "", 3: block = "" }) => {
		const before = text.slice(0, index);
		return {
			document,
			line: before.split("\n").length + 1,
			language,
			text: block.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
			isExample: language === "json" && /<!-- example:\w+ -->\n+$/.test(before),
		};
	});
}

/**
 * The text of the only block of `document` that begins with `start`; throws where that is not one. A test that calls
 * this says that it runs the block: test/snippets.test.ts wants such a test of every block.
 */
export function snippet(document: string, start: string): string {
	const all = snippetsOf(document, documents().get(document) ?? "");
	const [found, ...others] = all.filter(({ text }) => text.startsWith(start));
	if (found === undefined || others.length > 0)
		throw new Error(
			`${document} has ${found === undefined ? "no" : "more than one"} block that begins with ${start}`,
		);
	return found.text;
}

/** The texts of all of `document`'s blocks in `language`, which the test that calls this runs. */
export function snippets(document: string, language: string): readonly string[] {
	const all = snippetsOf(document, documents().get(document) ?? "");
	return all.filter((one) => one.language === language).map(({ text }) => text);
}

/** `text` with each placeholder in its place, in order. Throws where one is not there, or something is still left open. */
export function filled(
	text: string,
	...values: readonly (readonly [placeholder: string, value: string])[]
): string {
	const whole = values.reduce((open, [placeholder, value]) => {
		if (!open.includes(placeholder)) throw new Error(`no ${placeholder} in ${open}`);
		return open.replace(placeholder, () => value);
	}, text);
	if (/…|"(0x)?<[^"]*>"/.test(whole)) throw new Error(`there is more to fill in: ${whole}`);
	return whole;
}
