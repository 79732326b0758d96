// Checks the documents against the code: their tables, lists, commands and links, and that each
// file that they name exists.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { test } from "node:test";
import { BOOST_SETTINGS } from "../boost-proxy/config.ts";
import { DIALECTS, TRIP_REASONS } from "../boost-proxy/domain/ports.ts";
import { RELAY_SETTINGS } from "../relay/config.ts";
import { BUNDLE_REJECTIONS } from "../relay/domain/bundle.ts";
import { BUNDLE_REASONS, BUNDLE_STAGES } from "../relay/domain/bundleStatus.ts";
import { TRANSITIONS } from "../relay/domain/record.ts";
import { REJECTION_CODES } from "../relay/domain/rejection.ts";
import { SIMULATION_ERROR_CODES } from "../relay/domain/simulation.ts";
import { RPC_PATHS } from "../relay/ingress/methods/transactions.ts";
import { STAGES } from "../shared/ethereum/statusRecord.ts";
import { RPC_ERRORS } from "../shared/jsonrpc/errors.ts";
import { MIN_FREE } from "../shared/kv/dataFolder.ts";
import { START_PORTS } from "./devnet/startLayout.ts";
import { docTables, outOfDate, withTables } from "./support/docTables.ts";
import { documents, OPENRPC, ROOT } from "./support/documents.ts";
import { messages } from "./support/messages.ts";

const texts = documents();
const all = [...texts.values()].join("\n");
interface Manifest {
	readonly scripts: Readonly<Record<string, string>>;
	readonly dependencies: Readonly<Record<string, string>>;
	readonly devDependencies: Readonly<Record<string, string>>;
}

function manifestOf(folder: string): Manifest {
	return JSON.parse(readFileSync(join(ROOT, folder, "package.json"), "utf8")) as Manifest;
}

const manifest = manifestOf(".");

function textOf(path: string): string {
	const text = texts.get(path);
	assert.ok(text !== undefined, path);
	return text;
}

test("each table that the code has is in a document, and no other", () => {
	const names = [...all.matchAll(/<!-- table:(\w+) -->/g)].map(([, name]) => name);
	assert.deepEqual(names.sort(), Object.keys(docTables()).sort());
});

/** Says in a line what to do. */
function assertWritten(...files: Parameters<typeof outOfDate>): void {
	const names = [...outOfDate(...files).keys()];
	if (names.length > 0) assert.fail(`run npm run docs, and commit what it writes: ${names.join(", ")}`);
}

test("what is generated in the documents and docs/openrpc.json is what the code has", () => {
	assertWritten();
});

test("what is out of date is named in one line, with what to run", () => {
	const operators = textOf("docs/operators.md").replace(/\| `TX_TTL_BLOCKS`.*\n/, "");
	const old: [string, string][] = [...texts, ["docs/operators.md", operators], [OPENRPC, "{}\n"]];
	assert.throws(() => assertWritten(old), {
		message: "run npm run docs, and commit what it writes: docs/operators.md, docs/openrpc.json",
	});
});

test("each setting of a port is in the operators' table", () => {
	const { ports = "" } = docTables();
	const settings = [...Object.keys(RELAY_SETTINGS), ...Object.keys(BOOST_SETTINGS)].filter((name) =>
		/PORT$/.test(name),
	);
	const starts = Object.values(START_PORTS).map(([setting]) => setting);
	for (const name of [...settings, ...starts]) assert.ok(ports.includes(`\`${name}\``), name);
});

test("the space that a volume must have is what the code demands", () => {
	assert.match(textOf("docs/operators.md"), new RegExp(`with ${MIN_FREE} of free space on its volume`));
});

test("a changed table is noticed", () => {
	const endpoints = textOf("docs/wallets.md").replace("`/nochecks`", "`/nocheques`");
	assert.notEqual(withTables(endpoints), endpoints);
	const settings = textOf("docs/operators.md").replace(/\| `TX_TTL_BLOCKS`.*\n/, "");
	assert.notEqual(withTables(settings), settings);
});

test("log lines are fragments: no article first, no full stop", () => {
	const lines = messages().filter(({ kind }) => kind === "log");
	assert.ok(lines.length > 100);
	const broken = lines.filter(({ text }) => /^(?:an?|the) |\.$/i.test(text));
	assert.deepEqual(broken, []);
});

test("the README is short", () => {
	assert.ok(textOf("README.md").trimEnd().split("\n").length <= 100);
});

test("every document is linked from the README", () => {
	const linked = linksOf(textOf("README.md")).map((link) => link.replace(/#.*/, ""));
	const decisions = linksOf(textOf("docs/decisions/README.md")).map((link) => `docs/decisions/${link}`);
	for (const path of texts.keys()) {
		if (path !== "README.md") assert.ok([...linked, ...decisions].includes(path), path);
	}
});

test("every link between documents leads to a file and a heading that exist", () => {
	for (const [path, text] of texts) {
		for (const link of linksOf(text)) {
			const [file = "", anchor] = link.split("#");
			const target = file === "" ? path : normalize(join(dirname(path), file));
			assert.ok(existsSync(join(ROOT, target)), `${path}: ${link}`);
			if (anchor !== undefined) assert.ok(anchorsOf(textOf(target)).has(anchor), `${path}: ${link}`);
		}
	}
});

test("a link that leads nowhere is noticed", () => {
	assert.deepEqual(linksOf("[a](b.md#c) [d](https://e.f) `[g](h)` ![i](j.png)"), ["b.md#c", "j.png"]);
	assert.deepEqual(
		[...anchorsOf("# Who may *see* `/tx/{hash}`?\n## Boost\n```\n# no heading\n```\n## Boost\n")],
		["who-may-see-txhash", "boost", "boost-1"],
	);
});

test("every npm command they name exists", () => {
	for (const [, run, plain] of all.matchAll(/npm (?:run ([\w:]+)|(start|test)\b)/g)) {
		const name = run ?? plain ?? "";
		assert.ok(name in manifest.scripts, `npm run ${name}`);
	}
});

test("every file they name exists", () => {
	for (const [, path = ""] of all.matchAll(/`((?:relay|shared|test|boost-proxy|docs)\/[\w./-]*)`/g)) {
		assert.ok(existsSync(join(ROOT, path)), path);
	}
});

test("every package is in the table of packages, and no other", () => {
	const [, table = ""] = textOf("docs/architecture.md").split("<!-- packages -->");
	const rows = (table.split("<!-- /packages -->")[0] ?? "").split("\n").slice(3);
	const named = rows.flatMap((row) => [...(row.split("|")[1] ?? "").matchAll(/`([@\w/-]+)`/g)]);
	const { dependencies, devDependencies } = manifest;
	const apart = manifestOf("test/metamask").dependencies;
	const python = ["flashbots", "newest"].flatMap((name) => {
		const [wanted = ""] = readFileSync(join(ROOT, `test/python/${name}.txt`), "utf8").split(
			"# What these need:",
		);
		return [...wanted.matchAll(/^(\w+)==/gm)].map(([, one = ""]) => one);
	});
	const installed = [
		...[dependencies, devDependencies, apart].flatMap((packages) => Object.keys(packages)),
		...new Set(python),
	];
	assert.deepEqual(
		named.map(([, name]) => name).sort(),
		installed.filter((name) => !name.startsWith("@types/")).sort(),
	);
});

test("every kind of fallback has its column in the operators' table of dialects", () => {
	const [, section = ""] = textOf("docs/operators.md").split("### Dialects\n");
	const [head = ""] = section.match(/^\|.*$/m) ?? [];
	const columns = [...head.matchAll(/\| `(\w+)`/g)].map(([, name]) => name);
	assert.deepEqual(columns, DIALECTS);
});

test("every path that takes JSON-RPC is in the documents for wallets", () => {
	for (const path of RPC_PATHS) assert.ok(textOf("docs/wallets.md").includes(`\`${path}\``), path);
});

test("every stage, event, reason and error is in the API reference", () => {
	const api = textOf("docs/api.md");
	const names = [
		...[...STAGES, ...Object.keys(TRANSITIONS), ...SIMULATION_ERROR_CODES, ...REJECTION_CODES],
		...[...BUNDLE_STAGES, ...BUNDLE_REASONS, ...BUNDLE_REJECTIONS],
	];
	for (const name of names) assert.ok(api.includes(`\`${name}\``), name);
	for (const { code } of Object.values(RPC_ERRORS)) {
		assert.ok(api.includes(`| ${String(code).replace("-", "−")} |`), String(code));
	}
});

test("every reason that opens a breaker is in the operators' table", () => {
	const [, rest = ""] = textOf("docs/operators.md").split("### When the breaker opens\n");
	const rows = (rest.split("\n### ")[0] ?? "").split("\n").filter((line) => line.startsWith("| `"));
	const named = rows.flatMap((row) =>
		[...(row.split("|")[1] ?? "").matchAll(/`(\w+)`/g)].map(([, name]) => name),
	);
	assert.deepEqual(named.sort(), Object.keys(TRIP_REASONS).sort());
});

test("every block of JSON is JSON, as a whole or line by line", () => {
	for (const [path, text] of texts) {
		for (const [, block = ""] of text.matchAll(/```json\n([\s\S]*?)\n\s*```/g)) {
			if (isJson(block)) continue;
			for (const line of block.split("\n")) assert.ok(isJson(line), `${path}: ${line}`);
		}
	}
});

/** The targets of a document's links, those to other sites and what stands in code aside. */
function linksOf(text: string): string[] {
	const links = withoutCode(text)
		.replaceAll(/`[^`\n]*`/g, "")
		.matchAll(/\]\(([^)\s]+)\)/g);
	return [...links].map(([, link = ""]) => link).filter((link) => !/^[a-z]+:/.test(link));
}

/** The anchors of a document's headings, as GitHub makes them. */
function anchorsOf(text: string): Set<string> {
	const anchors = new Set<string>();
	for (const [, heading = ""] of withoutCode(text).matchAll(/^#+ (.+)$/gm)) {
		const slug = heading
			.toLowerCase()
			.replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
			.trim()
			.replaceAll(/\s/g, "-");
		let anchor = slug;
		for (let i = 1; anchors.has(anchor); i++) anchor = `${slug}-${i}`;
		anchors.add(anchor);
	}
	return anchors;
}

function withoutCode(text: string): string {
	return text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, "");
}

function isJson(text: string): boolean {
	try {
		JSON.parse(text);
		return true;
	} catch {
		return false;
	}
}
