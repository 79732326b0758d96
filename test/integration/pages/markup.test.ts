// Markup in texts that strangers choose stays text on every page: a contract's revert reason, a
// builder's and a fallback's error, a path; and every string that a server answers to a page's
// script.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import type { Browser, Page } from "playwright-core";
import { type BoostClient, type BoostFixture, QUIET, startBoostFixture } from "../../support/boostFixture.ts";
import { logIn, type OpenPage, openPage, startBrowser } from "../../support/browser.ts";
import { errorString, revertingWith } from "../../support/contracts.ts";
import { type PlainBuilder, startPlainBuilder } from "../../support/plainBuilder.ts";
import { until } from "../../support/until.ts";
import { httpText, type RecordingFallback, startRecordingFallback } from "../../support/upstreams.ts";

const MARKUP = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;
const ERROR = JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code: -32000, message: MARKUP } });
const JSON_TYPE = ["content-type: application/json"];

let browser: Browser;
let builder: PlainBuilder;
let fallback: RecordingFallback;
let fixture: BoostFixture;
/** A boost with the recording fallback. */
let boost: BoostClient;
before(async () => {
	browser = await startBrowser();
	builder = await startPlainBuilder();
	builder.answerWith(() => ({ status: 200, body: ERROR }));
	fallback = await startRecordingFallback();
	const builders = [{ name: "dev" }, { name: "rude", url: builder.url }];
	fixture = await startBoostFixture({ ...QUIET, system: { ...QUIET.system, builders } });
	boost = await fixture.startBoost({ env: { FALLBACK_URL: fallback.url } });
});
after(async () => {
	await browser?.close();
	await fixture?.stop();
	await fallback?.stop();
	await builder?.stop();
});

/**
 * The page has no element of the markup, and its script did not run. Then the check is tried on an
 * element that is there.
 */
async function isText({ page, close }: Pick<OpenPage, "page" | "close">, name: string): Promise<void> {
	assert.deepEqual(await found(page), [0, false], name);
	await page.evaluate(`document.body.insertAdjacentHTML("beforeend", "<img src=x>")`);
	assert.deepEqual(await found(page), [1, false], `the check of ${name}`);
	await close();
}

async function found(page: Page): Promise<readonly [images: number, isOwned: boolean]> {
	return [await page.locator("img[src=x]").count(), (await page.title()) === "owned"];
}

it("shows a contract's revert reason as it is, at the relay and through boost", async () => {
	const { users } = fixture;
	const actor = await users.actor();
	const to = await users.placeCode(revertingWith(errorString(MARKUP)));
	await users.passBlock();
	const tx = actor.sign({ to });
	await users.submit("/fast", tx);
	for (const url of [fixture.system.client.url, boost.url]) {
		const opened = await openPage(browser, `${url}/tx/${tx.hash}`);
		await opened.page.getByText(`Why: execution reverted: ${MARKUP}`).waitFor();
		await isText(opened, url);
	}
});

it("shows a builder's and a fallback's error as text or not at all", async () => {
	const { users } = fixture;
	const actor = await users.actor();
	await users.passBlock();
	const tx = actor.sign();
	await users.submit("/fast", tx);
	await users.waitUntilSent(tx, { builders: ["dev"] });
	const operator = await openPage(browser, `${fixture.system.client.url}/operator`);
	await logIn(operator);
	await operator.page.getByText("rejected the last one").waitFor();
	await isText(operator, "the relay's operator's page");
	const ofTransaction = await openPage(browser, `${fixture.system.client.url}/tx/${tx.hash}`);
	await ofTransaction.page.getByText(/rude/).first().waitFor();
	await isText(ofTransaction, "the transaction's page");

	await fixture.goesOut("relay", boost);
	const held = actor.sign({ nonce: 1 });
	assert.equal(await boost.result("eth_sendRawTransaction", [held.raw]), held.hash);
	const page = { hash: held.hash, status: "FAILED", simulationError: { code: MARKUP, message: MARKUP } };
	fallback.answerWith(({ target }) =>
		target.startsWith("/tx/") ? httpText(JSON.stringify(page), "200 OK", JSON_TYPE) : undefined,
	);
	const atBoost = await openPage(browser, `${boost.url}/tx/${held.hash}`);
	await atBoost.page.getByText(MARKUP).first().waitFor();
	await isText(atBoost, "the transaction's page at boost");
	fallback.answerWith(({ calls: [call] }) =>
		call?.method === "eth_sendRawTransaction" ? httpText(ERROR, "200 OK", JSON_TYPE) : undefined,
	);
	await boost.call("eth_sendRawTransaction", [actor.sign({ nonce: 2 }).raw]);
	const boosts = await openPage(browser, `${boost.url}/operator`);
	await logIn(boosts);
	await boosts.page
		.getByText(/^relay: open/)
		.first()
		.waitFor();
	await isText(boosts, "boost's operator's page");
	await fixture.wires.relay.set(null);
	await boost.force("auto", "relay");
	await boost.isWell();
	fallback.reset();
});

it("shows a path on the page of an error as text or not at all", async () => {
	for (const url of [fixture.system.client.url, boost.url]) {
		for (const path of [`/${encodeURIComponent(MARKUP)}`, `/tx/${encodeURIComponent(MARKUP)}`]) {
			await isText(await openPage(browser, `${url}${path}`), `${url}${path}`);
		}
	}
});

it("creates no element from any string that a server answers", async () => {
	const { users } = fixture;
	const actor = await users.actor();
	await users.passBlock();
	const tx = actor.sign();
	assert.equal(await boost.result("eth_sendRawTransaction", [tx.raw]), tx.hash);
	const relay = fixture.system.client.url;
	const pages = [relay, boost.url].flatMap((url) =>
		["/", "/stats", `/tx/${tx.hash}`, "/operator"].map((path) => url + path),
	);
	const showing: string[] = [];
	for (const url of [...pages, `${boost.url}/relay/operator`]) {
		const opened = await openPage(browser, url);
		const { page } = opened;
		let changed = 0;
		await page.route(
			() => true,
			async (route) => {
				if (route.request().resourceType() !== "fetch") return route.continue();
				// It has no end. Without it the page asks for the state.
				if (route.request().url().endsWith("/admin/events")) return route.abort();
				const response = await route.fetch();
				const json = marked(await response.json());
				changed += 1;
				return route.fulfill({ response, json });
			},
		);
		await page.reload();
		if (url.endsWith("/operator")) await logIn(opened);
		// When it asks again, it has read the first answer.
		await until(`a second answer for ${url}`, () => changed > 1);
		if ((await page.getByText(MARKUP).count()) > 0) showing.push(new URL(url).pathname);
		await page.unrouteAll({ behavior: "wait" });
		await isText(opened, url);
	}
	assert.ok(showing.includes("/operator"), `it was shown at ${showing.join()}`);
});

/** The value with markup behind each of its strings. */
function marked(value: unknown): unknown {
	if (typeof value === "string") return value + MARKUP;
	if (Array.isArray(value)) return value.map(marked);
	if (typeof value !== "object" || value === null) return value;
	return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, marked(one)]));
}
