// Which answers become the page of an error, and what of an operator's or a client's words may
// stand in a page.

import assert from "node:assert/strict";
import { test } from "node:test";
import { KEEP_ARCHIVED_MS } from "../../../../relay/transactions/disk.ts";
import { jsonAnswer } from "../../../../shared/http/messages.ts";
import { createPages } from "../../../../shared/pages/pages.ts";

const pages = createPages("relay", [], null, `https://explorer.example/a"b<c`, true);

test("an error has its status, its words escaped, and its headers", () => {
	const answer = jsonAnswer(503, { error: 'no <relay> & "more"' }, { "retry-after": "7", vary: "x" });
	const { status, body, contentType, headers } = pages.error(answer);
	assert.deepEqual([status, contentType], [503, "text/html; charset=utf-8"]);
	assert.match(String(body), /<h1>Not available now<\/h1>/);
	assert.match(String(body), /no &#60;relay&#62; &#38; &#34;more&#34;/);
	assert.deepEqual([headers?.["retry-after"], headers?.vary], ["7", "x"]);
	assert.match(headers?.["content-security-policy"] ?? "", /^default-src 'none'/);
	assert.match(String(pages.error(jsonAnswer(502, { error: "x" })).body), /<h1>Bad Gateway<\/h1>/);
});

test("what is no error in words stays as it is", () => {
	for (const answer of [
		jsonAnswer(503, { ready: false, checks: {} }),
		{ status: 404, body: null },
		{ status: 500, body: "text", contentType: "text/plain" },
	]) {
		assert.equal(pages.error(answer), answer);
	}
});

test("the explorer's URL is escaped", () => {
	const { body } = pages.find(`/tx/0x${"1".repeat(64)}`) ?? assert.fail();
	assert.match(String(body), /data-explorer="https:\/\/explorer\.example\/a&#34;b&#60;c"/);
});

test("how long records are kept is said as it is", () => {
	assert.equal(KEEP_ARCHIVED_MS, 7 * 24 * 3600 * 1000);
	assert.match(
		String(pages.find(`/tx/0x${"1".repeat(64)}`)?.body),
		/A transaction that has ended is kept for seven days/,
	);
});
