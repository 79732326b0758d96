// Finds sentences and words that a reader has to parse twice, in comments, messages and documents.
// Prints each line, and fails if there is any.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** The start of a sentence: of a comment, of a list item, of a text, or behind a full stop. */
const START = String.raw`(?:^\s*(?:\/\/|\/?\*\*?|[-#|>]+)?\s*|[.!?:;] |["\x60])`;
const PATTERNS: Readonly<Record<string, RegExp>> = {
	"a sentence that begins with a relative": new RegExp(
		`${START}(?:Who|Whoever|What|Whatever|Where|Of|So long|For so long)\\b(?!<| (?:to|you can) do:|[^.!]*\\?)`,
		"g",
	),
	"is told": /\b(?:is|are|was|were|be|been) told\b|\btells? of\b/g,
	"dearer, dearest": /\bdear(?:er|est)?\b/g,
	"worked off": /\bwork(?:s|ed)? off\b/g,
	"is out, is well": /\b(?:is|are|was|were) (?:out|well)\b(?! of)/g,
	"the one that": /\bthe ones? (?:that|who|which)\b/g,
	"hears, is heard": /\bhears?\b|\b(?:is|been) heard\b/g,
	"becomes of": /\b(?:becomes?|became|become) of\b/g,
	whoever: /\bwhoever\b/gi,
	"hands over": /\bhand(?:s|ed|ing)? over\b/g,
	"a boost": /\b(?:a|another|two|other) boosts?\b(?! instance)/g,
};

const TEXT = /\.(?:[cm]?[jt]s|html|md|ya?ml|toml|cfg|service|css|py|sol|sql)$/;

/** The text files that people read. */
function* files(): Generator<string> {
	for (const folder of ["relay", "boost-proxy", "shared", "docs", "test"])
		for (const name of readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" }))
			if (TEXT.test(name) && !isExcused(name)) yield `${folder}/${name}`;
	for (const name of readdirSync(ROOT)) if (TEXT.test(name)) yield name;
	yield* ["Dockerfile", ".dockerignore", ".env.example", ".ci/run", ".ci/commits"];
}

/** Other projects' files, this file, and a test that quotes a page's heading. */
function isExcused(name: string): boolean {
	return /node_modules|^words\.ts$|^integration\/pages\/homePage\.test\.ts$/.test(name);
}

let count = 0;
for (const file of files()) {
	for (const [i, line] of readFileSync(join(ROOT, file), "utf8").split("\n").entries()) {
		for (const [name, pattern] of Object.entries(PATTERNS)) {
			if (line.match(pattern) === null) continue;
			count += 1;
			process.stdout.write(`${file}:${i + 1}: ${name}: ${line.trim()}\n`);
		}
	}
}
if (count > 0) process.exitCode = 1;
