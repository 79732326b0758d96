// The list behind BUILDERS=mainnet: that the rows are valid, few and safe, and that each says where it comes from.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { MAINNET_BUILDERS } from "../../../../relay/broadcast/mainnet.ts";
import { type BuilderRow, parseBuilders } from "../../../../relay/domain/builder.ts";

const SOURCE = readFileSync(new URL("../../../../relay/broadcast/mainnet.ts", import.meta.url), "utf8");

function parsedRows(): readonly BuilderRow[] {
	const parsed = parseBuilders(MAINNET_BUILDERS);
	assert.ok(parsed.ok, parsed.ok ? "" : parsed.expected);
	return parsed.rows;
}

/** The comment lines that stand directly above the row of `name`. */
function commentOf(name: string): string {
	const lines = SOURCE.split("\n").map((line) => line.trim());
	const at = lines.indexOf(`name: ${JSON.stringify(name)},`);
	assert.equal(lines[at - 1], "{", `the row of ${name} begins with its name`);
	const comment: string[] = [];
	for (let line = at - 2; lines[line]?.startsWith("//") === true; line -= 1)
		comment.unshift(lines[line] ?? "");
	return comment.join("\n");
}

test("the mainnet list is valid: one to six builders, each reached by https at a host of its own, and told to forget", () => {
	const rows = parsedRows();
	assert.ok(rows.length >= 1 && rows.length <= 6, `${rows.length} rows`);
	for (const { url, cancel, name } of rows) {
		assert.equal(new URL(url).href, `https://${new URL(url).hostname}/`);
		assert.notEqual(cancel, "none", name);
	}
	assert.equal(new Set(rows.map(({ url }) => url)).size, rows.length);
	const marked = rows.filter((row) => row.fullPrivacy).length;
	assert.ok(marked >= 1 && marked < rows.length, "some may have transactions of /fullprivacy, and not all");
});

test("every mainnet row says its source and the date of its evidence", () => {
	for (const row of parsedRows()) {
		const comment = commentOf(row.name);
		const sources = [...comment.matchAll(/https:\/\/[^\s(),]+/g)].map(([address]) => new URL(address));
		assert.ok(sources.length > 0, `${row.name}: a source`);
		assert.ok(
			sources.every((source) => source.hostname !== new URL(row.url).hostname),
			`${row.name}: a source that is not the address itself`,
		);
		const [date] = /\b\d{4}-\d{2}-\d{2}\b/.exec(comment) ?? [];
		assert.ok(date !== undefined, `${row.name}: an ISO date`);
		assert.equal(new Date(`${date}T00:00:00Z`).toISOString().slice(0, 10), date, `${row.name}: a real date`);
	}
});
