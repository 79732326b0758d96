// Boost's pages in a real browser: the operator's, and a transaction followed while the relay goes and comes back.
// With SCREENSHOTS=FOLDER it leaves a picture of each page there, light, dark and on a phone.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, it } from "node:test";
import type { Browser } from "playwright-core";
import { ADMIN_TOKEN, type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { type OpenPage, openPage, startBrowser } from "../../support/browser.ts";

const { SCREENSHOTS } = process.env;
const LOOKS = { light: {}, dark: { dark: true }, phone: { width: 390 } };

let fixture: BoostFixture;
let browser: Browser;
before(async () => {
	[fixture, browser] = await Promise.all([startBoostFixture(), startBrowser()]);
});
after(async () => {
	await browser.close();
	await fixture.stop();
});

async function isSound({ faults, violations }: OpenPage): Promise<void> {
	assert.deepEqual(await violations(), []);
	assert.deepEqual(faults, []);
}

async function logIn({ page }: OpenPage, token = ADMIN_TOKEN): Promise<void> {
	await page.getByLabel("ADMIN_TOKEN").fill(token);
	await page.getByRole("button", { name: "Open" }).click();
}

it("the operator's page is behind the token", async () => {
	const { page, close } = await openPage(browser, `${fixture.boost.url}/operator`);
	const opened = { page };
	await logIn(opened as OpenPage, "a wrong one");
	await page.getByText("expected Authorization: Bearer with the token of ADMIN_TOKEN").waitFor();
	assert.equal(await page.locator("#inside").isVisible(), false);
	await close();
});

it("a failover is seen as it happens, by the operator and by the user of a transaction", async () => {
	const { users, boost } = fixture;
	const operator = await openPage(browser, `${boost.url}/operator`);
	await logIn(operator);
	await operator.page.getByText("relay: closed: it serves").waitFor();
	const actor = await users.actor();
	await users.passBlock();
	await fixture.fails();
	await operator.page
		.getByText(/relay: open: it is out \(/)
		.first()
		.waitFor();
	const tx = actor.sign();
	assert.equal(await boost.result("eth_sendRawTransaction", [tx.raw]), tx.hash);
	const user = await openPage(browser, `${boost.url}/tx/${tx.hash}`);
	await user.page.getByText("Held", { exact: true }).waitFor();
	await user.page
		.getByText("Why: the relay is out: boost keeps it, and another relay may have it.")
		.waitFor();
	await fixture.recovers();
	await operator.page.getByText("relay: closed: it serves").first().waitFor();
	const states = await operator.page.locator("#history li").allTextContents();
	assert.ok(
		states.some((line) => line.includes("relay: open")),
		states.join(),
	);
	await users.sent(tx);
	await users.system.nextBlock();
	await user.page.getByText("Included", { exact: true }).waitFor();
	assert.deepEqual(await operator.violations(), []);
	assert.deepEqual(operator.faults, []);
	// What was asked of the relay while it was out is an error in the console, and nothing else is.
	assert.deepEqual(
		user.faults.filter((fault) => !fault.startsWith("Failed to load resource")),
		[],
	);
	assert.deepEqual(await user.violations(), []);
	await operator.close();
	await user.close();
});

it("an operator forces a breaker", async () => {
	const operator = await openPage(browser, `${fixture.boost.url}/operator`);
	const { page } = operator;
	await logIn(operator);
	await page.getByRole("button", { name: "open the breaker of the fallback" }).click();
	await page.getByText("fallback: open: it is out (by an operator)").first().waitFor();
	await page.getByRole("button", { name: "auto the breaker of the fallback" }).click();
	await page.getByText("fallback: closed: it serves").first().waitFor();
	await isSound(operator);
	await operator.close();
});

it("every page in every look has nothing serious against it", async () => {
	const { users, boost } = fixture;
	await fixture.recovers();
	const actor = await users.actor();
	await users.passBlock();
	const tx = actor.sign();
	assert.equal(await boost.result("eth_sendRawTransaction", [tx.raw]), tx.hash);
	await users.sent(tx);
	await users.system.nextBlock();
	const pages = { home: "/", transaction: `/tx/${tx.hash}`, operator: "/operator" };
	for (const [name, path] of Object.entries(pages)) {
		for (const [look, options] of Object.entries(LOOKS)) {
			const opened = await openPage(browser, `${boost.url}${path}`, options);
			const { page } = opened;
			if (name === "home") await page.getByText("the relay is well").waitFor();
			if (name === "transaction") await page.getByText("Included", { exact: true }).waitFor();
			if (name === "operator") await logIn(opened);
			if (name === "operator") await page.getByText("relay: closed: it serves").first().waitFor();
			await isSound(opened);
			const width = (await page.evaluate("document.documentElement.scrollWidth")) as number;
			assert.ok(width <= (page.viewportSize()?.width ?? 0), `${name} ${look} is ${width} wide`);
			if (SCREENSHOTS !== undefined)
				await page.screenshot({ path: join(SCREENSHOTS, `${name}-${look}.png`), fullPage: true });
			await opened.close();
		}
	}
});
