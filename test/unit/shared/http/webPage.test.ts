// Which origins are web pages: a table.

import assert from "node:assert/strict";
import { test } from "node:test";
import { isWebPage } from "../../../../shared/http/callContext.ts";

const ROWS: readonly (readonly [string | null, boolean])[] = [
	[null, false],
	["", false],
	["https://app.example", true],
	["http://localhost:3000", true],
	["HTTPS://APP.EXAMPLE", true],
	[" https://app.example", true],
	["null", true],
	["null ", true],
	["nullx", false],
	["httpsx://a", false],
	["chrome-extension://nkbihfbeogaeaoehlefnkodbefgpgknn", false],
	["moz-extension://0-1", false],
];

for (const [origin, is] of ROWS) {
	test(`the origin ${JSON.stringify(origin)} is ${is ? "a web page" : "none"}`, () => {
		assert.equal(isWebPage(origin), is);
	});
}
