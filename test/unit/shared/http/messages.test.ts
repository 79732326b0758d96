// Requests that ask for a page.

import assert from "node:assert/strict";
import { test } from "node:test";
import { asksForPage } from "../../../../shared/http/messages.ts";

const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8";
/** The Accept header of Java's `HttpURLConnection`. */
const JAVA = "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2";
const PAGES: Readonly<Record<"page" | "json", readonly (string | undefined)[]>> = {
	page: [BROWSER, JAVA, "text/html", "Text/HTML ; charset=utf-8", "application/json;q=0.5, text/html;q=0.9"],
	json: [
		...[undefined, "", "*/*", "text/*", "application/json", "application/json, text/plain, */*", "image/png"],
		...[
			"text/html;q=0",
			"text/html; q=0.0",
			"text/html;q=0.5, application/json",
			"text/html;q=x",
			"text/htmlx",
		],
	],
};

test("a page is for those who name HTML and do not prefer JSON", () => {
	for (const accept of PAGES.page) assert.equal(asksForPage(accept), true, accept);
	for (const accept of PAGES.json) assert.equal(asksForPage(accept), false, accept);
});
