// What the README says, held against the code: its tables, its commands, and that it names no file that is not there.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { RPC_PATHS } from "../relay/ingress/methods/transactions.ts";
import { readmeTables, withTables } from "./support/readmeTables.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const readme = readFileSync(join(root, "README.md"), "utf8");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
	scripts: Record<string, string>;
	dependencies: Record<string, string>;
	devDependencies: Record<string, string>;
};

test("each table is what the code has (npm run docs writes them)", () => {
	const names = [...readme.matchAll(/<!-- table:(\w+) -->/g)].map(([, name]) => name);
	assert.deepEqual(names.sort(), Object.keys(readmeTables()).sort());
	assert.equal(readme, withTables(readme));
});

test("a changed table is noticed", () => {
	assert.notEqual(
		withTables(readme.replace("`/nochecks`", "`/nocheques`")),
		readme.replace("`/nochecks`", "`/nocheques`"),
	);
	const settings = readme.replace(/\| `TX_TTL_BLOCKS`.*\n/, "");
	assert.notEqual(withTables(settings), settings);
});

test("every npm command it names exists", () => {
	for (const [, run, plain] of readme.matchAll(/npm (?:run ([\w:]+)|(start|test)\b)/g)) {
		const name = run ?? plain ?? "";
		assert.ok(name in manifest.scripts, `npm run ${name}`);
	}
});

test("every file it names exists", () => {
	for (const [, path] of readme.matchAll(/`((?:relay|shared|test|boost-proxy)\/[\w./-]*)`/g)) {
		if (path !== undefined) assert.ok(existsSync(join(root, path)), path);
	}
});

test("every package is in its table, and no other", () => {
	const table = readme.slice(readme.indexOf("<!-- packages -->"), readme.indexOf("## Tests and figures"));
	const named = new Set([...table.matchAll(/`([@\w/-]+)`/g)].map(([, name]) => name));
	const installed = [...Object.keys(manifest.dependencies), ...Object.keys(manifest.devDependencies)];
	for (const name of installed) {
		if (!name.startsWith("@types/")) assert.ok(named.has(name), `${name} is not in the table`);
	}
});

test("every path that takes JSON-RPC is told of", () => {
	for (const path of RPC_PATHS) assert.ok(readme.includes(`\`${path}\``), path);
});
