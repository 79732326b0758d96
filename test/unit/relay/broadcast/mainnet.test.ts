// The list behind BUILDERS=mainnet: that the rows are valid, few and safe, and that each says where
// it comes from.

import assert from "node:assert/strict";
import { test } from "node:test";
import { MAINNET_BUILDERS } from "../../../../relay/broadcast/mainnet.ts";
import { type BuilderRow, parseBuilders } from "../../../../relay/domain/builder.ts";

function parsedRows(): readonly BuilderRow[] {
	const parsed = parseBuilders(MAINNET_BUILDERS);
	assert.ok(parsed.ok, parsed.ok ? "" : parsed.expected);
	return parsed.rows;
}

test("the mainnet list is valid: one to six builders, each by https at a host of its own, and with cancels", () => {
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
