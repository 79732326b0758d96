// Errors of the relay and of boost: pages for a browser that navigates, JSON for everybody else, with the same status and headers.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import type { Browser } from "playwright-core";
import { type BoostFixture, QUIET, startBoostFixture } from "../../support/boostFixture.ts";
import { openPage, startBrowser } from "../../support/browser.ts";
import { ADMIN_TOKEN } from "../../support/relayClient.ts";

/** What Chromium sends when it navigates. */
const NAVIGATES = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8" };

/** Path, status, the title of the page, and the words of the JSON. */
const ERRORS = [
	["/nowhere", 404, "Nothing is here", "unknown path"],
	["/fast", 405, "This address is for wallets", "expected one of POST, OPTIONS"],
	["/tx/0x12", 400, "That is not right", "expected a transaction hash of 32 bytes as 0x hex"],
	[`/tx/0x${"ab".repeat(32)}/events`, 404, "Nothing is here", "no transaction with this hash was seen here"],
] as const;

let browser: Browser;
let fixture: BoostFixture;
before(async () => {
	browser = await startBrowser();
	fixture = await startBoostFixture(QUIET);
});
after(async () => {
	await browser?.close();
	await fixture?.stop();
});

/** Checks the error of `url` in both forms. */
async function isBoth(url: string, status: number, title: string, words: string): Promise<Headers> {
	const json = await fetch(url);
	assert.deepEqual([json.status, json.headers.get("content-type")], [status, "application/json"], url);
	assert.deepEqual(await json.json(), { error: words }, url);
	const page = await fetch(url, { headers: NAVIGATES });
	assert.deepEqual(
		[page.status, page.headers.get("content-type")],
		[status, "text/html; charset=utf-8"],
		url,
	);
	const text = await page.text();
	assert.ok(text.includes(`<h1>${title}</h1>`) && text.includes(`<code>${words}</code>`), text);
	assert.match(page.headers.get("content-security-policy") ?? "", /default-src 'none'/, url);
	for (const name of ["allow", "retry-after", "x-boost-upstream"]) {
		assert.equal(page.headers.get(name), json.headers.get(name), `${url} ${name}`);
	}
	const head = await fetch(url, { method: "HEAD", headers: NAVIGATES });
	assert.deepEqual(
		[head.status, head.headers.get("content-type")],
		[status, "text/html; charset=utf-8"],
		url,
	);
	return page.headers;
}

it("an error is a page where a browser navigates, and JSON elsewhere, at the relay and at boost", async () => {
	for (const [path, status, title, words] of ERRORS) {
		for (const { url } of [fixture.system.client, fixture.boost]) {
			await isBoth(url + path, status, title, words);
		}
	}
	const denied = "expected Authorization: Bearer with the token of ADMIN_TOKEN";
	await isBoth(`${fixture.boost.url}/admin/state`, 401, "Unauthorized", denied);
	const authorization = `Bearer ${ADMIN_TOKEN}`;
	const state = await fetch(`${fixture.boost.url}/admin/state`, { headers: { ...NAVIGATES, authorization } });
	assert.deepEqual([state.status, state.headers.get("content-type")], [200, "application/json"]);
});

it("what is asked of the relay while that is out is a page that says so", async () => {
	await fixture.goesOut();
	const headers = await isBoth(
		`${fixture.boost.url}/info`,
		503,
		"Not available now",
		"no relay available: the relay is out",
	);
	assert.match(headers.get("retry-after") ?? "", /^[1-9]\d*$/);
	await fixture.comesBack();
});

it("JSON-RPC has its errors as JSON, whatever it accepts", async () => {
	for (const { url } of [fixture.system.client, fixture.boost]) {
		const headers = { ...NAVIGATES, "content-type": "application/json" };
		const answer = await fetch(`${url}/nowhere`, { method: "POST", headers, body: "{}" });
		assert.deepEqual([answer.status, answer.headers.get("content-type")], [404, "application/json"]);
		assert.equal(((await answer.json()) as { error: { code: number } }).error.code, -32600);
	}
});

it("everybody can use an error's page, and it leads to the home page", async () => {
	const { url } = fixture.system.client;
	for (const look of [{}, { dark: true }, { width: 390 }]) {
		const opened = await openPage(browser, `${url}/fast`, look);
		await opened.page.getByRole("heading", { name: "This address is for wallets" }).waitFor();
		assert.deepEqual(await opened.violations(), []);
		// That it is one is an error in the console.
		assert.deepEqual(
			opened.faults.filter((fault) => !/status of 405/.test(fault)),
			[],
		);
		await opened.page.getByRole("link", { name: "Go to the home page" }).click();
		await opened.page.waitForURL(`${url}/`);
		await opened.close();
	}
});
