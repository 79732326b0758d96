// The page of statistics in a real browser: what it says of known and unknown days, its pictures
// with their tables, each of its states, and that everybody can use it at once.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import type { Browser } from "playwright-core";
import { PAGE_HEADERS } from "../../../shared/pages/pages.ts";
import { QUIET } from "../../support/boostFixture.ts";
import { fits, isSound, openPage, startBrowser, WIDE_LOOKS } from "../../support/browser.ts";
import { COUNTED, UNKNOWN_DAYS } from "../../support/countedDays.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";

let browser: Browser;
let system: TestSystem;
let url: string;
before(async () => {
	browser = await startBrowser();
	system = await startSystem(QUIET.system);
	url = `${system.client.url}/stats`;
});
after(async () => {
	await browser?.close();
	await system?.stop();
});

/** The filled part of the first bar, and the colour behind it. */
const BAR = `(() => {
	const bar = document.querySelector("#waits svg");
	const width = (one) => one.getBoundingClientRect().width;
	return [width(bar.firstChild) / width(bar), getComputedStyle(bar).backgroundColor];
})()`;

it("sums what is known, and says what is not", async () => {
	const opened = await openPage(browser, url, { answers: COUNTED });
	const { page } = opened;
	await page.getByText("2026-08-31 to 2026-11-28, by days of UTC.").waitFor();
	const shown = (id: string) => page.locator(`#${id}`).textContent();
	const counted = COUNTED["/stats.json"].slice(UNKNOWN_DAYS);
	const all = counted.reduce((sum, { transactions }) => sum + (transactions ?? 0), 0);
	assert.equal(await shown("mined"), all.toLocaleString("en"));
	assert.match((await shown("refunded")) ?? "", /^\d+\.\d+ ETH$/);
	assert.equal(await shown("share"), "83.3 %");
	assert.match((await shown("first-block")) ?? "", /^\d\d\.\d %$/);
	assert.deepEqual(await page.locator("#builders tbody th").allTextContents(), [
		...["Titan", "BuilderNet", "another", "not known"],
	]);
	const [part, around] = (await page.evaluate(BAR)) as readonly [number, string];
	assert.ok(Math.abs(part - 0.728) < 0.01, `a bar of ${part}`);
	assert.equal(around, "rgba(0, 0, 0, 0)", "nothing is drawn behind a bar");
	assert.deepEqual(await page.locator("#waits tbody th").allTextContents(), [
		...["1", "2", "3", "4–5", "6–10", "11–25", "more than 25"],
	]);
	await page.locator("#conduct tbody tr").first().waitFor();
	assert.deepEqual(await page.locator("#conduct tbody tr").allTextContents(), [
		...["BuilderNet87.5 % 100 % ", "Titannone yetnone yet"],
	]);
	await page.locator(".chart summary").first().click();
	const table = page.locator(".chart").first().locator("tbody tr");
	await table.nth(89).waitFor();
	const rows = await table.allTextContents();
	assert.deepEqual([rows.length, rows.at(-1)], [90, "2026-08-31–"], "a day that is not known is no zero");
	await page.locator("#service summary").click();
	assert.deepEqual(await page.locator("#outages tbody tr").allTextContents(), [
		"2026-10-3102:0002:15carried by the fallback",
		"2026-10-1009:0009:30down",
		"2026-10-1007:3009:00carried by the fallback",
	]);
	assert.match((await shown("service-told")) ?? "", /99\.9 % up, 0\.1 % carried .* < 0\.1 % down/);
	await isSound(opened);
	await opened.close();
});

it("is under 150 KB with all that it loads, under the policy of all pages, from this server alone", async () => {
	const opened = await openPage(browser, "about:blank", { answers: COUNTED });
	const { page } = opened;
	const sizes: Promise<number>[] = [];
	page.on("response", (response) => sizes.push(response.body().then(({ length }) => length)));
	const response = await page.goto(url);
	await page.locator(".chart canvas").nth(3).waitFor();
	await page.locator("#grid rect").first().waitFor();
	const bytes = (await Promise.all(sizes)).reduce((sum, one) => sum + one, 0);
	assert.ok(bytes > 50_000 && bytes < 150_000, `${bytes} bytes in ${sizes.length} answers`);
	assert.equal(response?.headers()["content-security-policy"], PAGE_HEADERS["content-security-policy"]);
	await opened.close();
});

it("can be used by the keyboard alone", async () => {
	const opened = await openPage(browser, url, { answers: COUNTED });
	const { page } = opened;
	await page.locator(".chart canvas").nth(3).waitFor();
	await page.locator("#grid rect").first().waitFor();
	const reached: string[] = [];
	for (let i = 0; i < 9; i += 1) {
		await page.keyboard.press("Tab");
		const [tag, name] = (await page.evaluate(
			"[document.activeElement.tagName, document.activeElement.ariaLabel ?? document.activeElement.textContent.trim()]",
		)) as readonly [string, string];
		reached.push(`${tag} ${name}`);
		if (tag === "SUMMARY") await page.keyboard.press("Enter");
		if (tag === "SUMMARY") await page.keyboard.press("Tab");
	}
	assert.deepEqual(reached, [
		...["A Leeward", "SUMMARY Table", "SUMMARY Table", "SUMMARY Table", "SUMMARY Table"],
		...["DIV Blocks until mined", "DIV Builders", "DIV Conduct of builders", "SUMMARY Table"],
	]);
	assert.equal(await page.locator("details[open]").count(), 5);
	const labels = await page.locator("[role=img]").evaluateAll((all) => all.map((one) => one.ariaLabel ?? ""));
	assert.equal(labels.length, 5);
	for (const label of labels) assert.match(label, /The table below has/);
	await opened.close();
});

it("of a new relay nothing is known, which is no zero", async () => {
	const opened = await openPage(browser, url);
	await opened.page.getByText("Nothing is known yet: the first whole day is shown").waitFor();
	await opened.page.getByText("Not known yet: the first day is shown").waitFor();
	assert.equal(await opened.page.locator("#figures").isVisible(), false);
	await isSound(opened);
	await fits(opened, "stats-new-light");
	await opened.close();
});

it("says what is not available while the relay is down, and shows the rest", async () => {
	const opened = await openPage(browser, url, { answers: COUNTED });
	const { page } = opened;
	const error = "no relay available: the relay is down";
	await page.route("**/stats.json", (route) => route.fulfill({ status: 503, json: { error } }));
	await page.reload();
	await page.getByText(`The figures are not available: ${error}`).waitFor();
	await page
		.getByText(/From 2026-08-31 to 2026-11-28, of the quarters of an hour/)
		.first()
		.waitFor();
	assert.equal(await page.locator("#figures").isVisible(), false);
	assert.deepEqual(await opened.violations(), []);
	await fits(opened, "stats-down-light");
	await opened.close();
});

it("has no serious accessibility violation, in any colour scheme and width, and fits", async () => {
	for (const [look, options] of Object.entries(WIDE_LOOKS)) {
		const opened = await openPage(browser, url, { ...options, answers: COUNTED });
		await opened.page.locator(".chart canvas").nth(3).waitFor();
		await opened.page.locator("#grid rect").first().waitFor();
		await isSound(opened);
		await fits(opened, `stats-${look}`);
		await opened.close();
	}
});
