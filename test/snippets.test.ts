// Every block of code in the documents is run or checked by a test: by one that takes it with
// `snippet(document, start)` or `snippets(document, language)`, or, where it is an example by its
// name, by that of the API reference.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { documents, ROOT, type Snippet, snippetsOf } from "./support/documents.ts";

/** Drawings, by document and first line. */
const DRAWINGS: readonly (readonly [string, string])[] = [
	["README.md", "            POST /fast "],
	["docs/architecture.md", " ingress ─▶"],
	["docs/scale.md", " wallets, searchers"],
];
/** It holds every example by its name. */
const EXAMPLES = ["docs/api.md", "test/integration/transport/apiExamples.test.ts"] as const;

/** A test's claim that it runs a block, given by its beginning, or all blocks of a language. */
interface Claim {
	readonly document: string;
	readonly of: (snippet: Snippet) => boolean;
	/** As it stands in the test. */
	readonly text: string;
}

/** The claims of a test file's text. */
function claimsOf(test: string): readonly Claim[] {
	const calls = test.matchAll(/\b(snippets?)\(\s*"([^"]+)",\s*("(?:[^"\\\n]|\\.)*"|'[^'\\\n]*'),?\s*\)/g);
	return [...calls].map(([text, name, document = "", value = ""]) => {
		const said = value.startsWith('"') ? (JSON.parse(value) as string) : value.slice(1, -1);
		const of = (one: Snippet) => (name === "snippet" ? one.text.startsWith(said) : one.language === said);
		return { document, of, text };
	});
}

/** Blocks that no claim is for, and claims, drawings among them, that are for no block. */
function unclaimed(blocks: readonly Snippet[], claims: readonly Claim[]): readonly string[] {
	const fits = (claim: Claim, block: Snippet) => claim.document === block.document && claim.of(block);
	return [
		...blocks
			.filter((block) => !claims.some((claim) => fits(claim, block)))
			.map(({ document, line, text }) => `${document}:${line} ${text.split("\n")[0]}: no test runs it`),
		...claims.filter((claim) => !blocks.some((block) => fits(claim, block))).map(({ text }) => text),
	];
}

const texts = documents();
const all = [...texts].flatMap(([path, text]) => snippetsOf(path, text));
const drawings = DRAWINGS.map(([document, start]) => ({
	document,
	of: ({ language, text }: Snippet) => language === "" && text.startsWith(start),
	text: `the drawing ${start}`,
}));

test("every block is run by a test, and every block that a test runs is there", () => {
	const tests = readdirSync(join(ROOT, "test"), { recursive: true, encoding: "utf8" })
		.filter((name) => /(?<!^snippets)\.(test|nightly)\.ts$/.test(name) && !name.includes("node_modules"))
		.map((name) => readFileSync(join(ROOT, "test", name), "utf8"));
	const blocks = all.filter(({ isExample, document }) => !(isExample && document === EXAMPLES[0]));
	assert.deepEqual(unclaimed(blocks, [...tests.flatMap(claimsOf), ...drawings]), []);
	assert.match(readFileSync(join(ROOT, EXAMPLES[1]), "utf8"), /examplesOf\(/);
});

test("each line that opens or ends a block is one of a block that was found", () => {
	for (const [path, text] of texts) {
		const fences = text.match(/^\s*(```|~~~)/gm) ?? [];
		assert.equal(fences.length, 2 * all.filter(({ document }) => document === path).length, path);
	}
});

test("a block that no test runs and a claim for none are noticed", () => {
	const blocks = snippetsOf("a.md", "# A\n```sh\nls -l\n```\n\n- b\n  ```js\n  1;\n  ```\n");
	assert.deepEqual(
		blocks.map(({ line, language, text }) => [line, language, text]),
		[
			[3, "sh", "ls -l\n"],
			[8, "js", "1;\n"],
		],
	);
	const found = (test: string) => unclaimed(blocks, claimsOf(test));
	assert.deepEqual(found(`run(snippet("a.md", 'ls -'), snippets("a.md", "js"));`), []);
	assert.deepEqual(found('snippet("a.md", "ls");'), ["a.md:8 1;: no test runs it"]);
	assert.deepEqual(found('snippets(\n"a.md",\n"sh",\n);'), ["a.md:8 1;: no test runs it"]);
	assert.deepEqual(found('snippet("a.md", "ls"); snippet("a.md", "1"); snippet("b.md", "1");'), [
		'snippet("b.md", "1")',
	]);
});
