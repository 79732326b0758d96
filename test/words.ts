// Counts sentences and words that a reader has to parse twice, in comments, messages and documents. `npm run lint` runs it and
// fails if there are more than LEFT. `--list` prints each with its place. Lower LEFT with each revision.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readCommand } from "../shared/commandLine.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Matches that were left at the last revision. */
const LEFT = 30;

/** The start of a sentence: of a comment, of a list item, of a text, or behind a full stop. */
const START = String.raw`(?:^\s*(?:\/\/|\/?\*\*?|[-#|>]+)?\s*|[.!?:;] |["\x60])`;
const PATTERNS: Readonly<Record<string, RegExp>> = {
	"a sentence that begins with a relative": new RegExp(
		`${START}(?:Who|Whoever|What|Whatever|Where|Of|So long|For so long)\\b(?![^.!]*\\?)`,
		"g",
	),
	"is told": /\b(?:is|are|was|were|be|been) told\b|\btells? of\b/g,
	"dearer, dearest": /\bdear(?:er|est)?\b/g,
	"worked off": /\bwork(?:s|ed)? off\b/g,
	"is out, is well": /\b(?:is|are|was|were) (?:out|well)\b(?! of)/g,
	"the one that": /\bthe ones? (?:that|who|which)\b/g,
	"hears, is heard": /\bhears?\b|\b(?:is|been) heard\b/g,
	"hands over": /\bhand(?:s|ed|ing)? over\b/g,
	"a boost": /\b(?:a|another|two|other) boosts?\b(?! instance)/g,
};

const COMMAND = {
	name: "node --import tsx test/words.ts",
	about: ["counts awkward sentences and words in sources and documents"],
	options: { list: { type: "boolean" } },
	optionsHelp: { list: "prints each match with its place" },
} as const;

/** The text files that people read. */
function* files(): Generator<string> {
	for (const folder of ["relay", "boost-proxy", "shared", "docs"])
		for (const name of readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" }))
			if (/\.(?:ts|js|html|md)$/.test(name)) yield `${folder}/${name}`;
	yield* ["README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"];
}

const asked = readCommand(COMMAND, process.argv.slice(2));
if (asked !== null) {
	const counts = new Map<string, number>();
	for (const file of files()) {
		for (const [i, line] of readFileSync(join(ROOT, file), "utf8").split("\n").entries()) {
			for (const [name, pattern] of Object.entries(PATTERNS)) {
				const found = line.match(pattern)?.length ?? 0;
				if (found === 0) continue;
				counts.set(name, (counts.get(name) ?? 0) + found);
				if (asked.values.list === true) process.stdout.write(`${file}:${i + 1}: ${name}: ${line.trim()}\n`);
			}
		}
	}
	const total = [...counts.values()].reduce((a, b) => a + b, 0);
	for (const [name, count] of counts) process.stdout.write(`${String(count).padStart(5)} ${name}\n`);
	process.stdout.write(`${total} in all, ${LEFT} allowed\n`);
	if (total > LEFT) process.exitCode = 1;
}
