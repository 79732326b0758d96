// The home page in a real browser: the RPC URL and the wallet, what each path shows to whom, the
// totals, and that it can be used by everybody.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { Wallet } from "ethers";
import type { Browser } from "playwright-core";
import { QUIET } from "../../support/boostFixture.ts";
import { fits, isSound, LOOKS, openPage, startBrowser } from "../../support/browser.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";

/** In the place of GET /totals, of a relay that has served for long. */
const TOTALS = {
	"/totals": {
		...{ since: "2026-01-01T00:00:00.000Z", transactions: 12_345, refundedWei: "1230000000000000000" },
		lastDay: { transactions: 1, refundedWei: "40000000000000000" },
	},
};

let browser: Browser;
let system: TestSystem;
let url: string;
before(async () => {
	browser = await startBrowser();
	system = await startSystem(QUIET.system);
	({ url } = system.client);
});
after(async () => {
	await browser?.close();
	await system?.stop();
});

it("builds the RPC URL from what is chosen, and says what is wrong with it", async () => {
	const opened = await openPage(browser, `${url}/`);
	const { page } = opened;
	await page.getByText(/^\d+ seconds? ago$/).waitFor();
	const built = () => page.locator("#url").textContent();
	assert.equal(await built(), `${url}/fast`);
	await page.getByLabel("/noreverts").check();
	await page.getByText("More options").click();
	await page.getByLabel("Cancel for free").check();
	await page.getByLabel("Pay refunds to").fill(`0x${"12".repeat(20)}`);
	await page.getByLabel("Referrer").fill("my app");
	const query = `softCancellations=true&refundRecipient=0x${"12".repeat(20)}&referrer=my+app`;
	assert.equal(await built(), `${url}/noreverts?${query}`);
	await page.getByLabel("Pay refunds to").fill("0x12");
	assert.equal(
		await page.locator("#url-problem").textContent(),
		"Refunds: expected an address, 0x and 40 hex digits.",
	);
	await page.getByLabel("/nochecks").check();
	assert.equal(await page.getByLabel("Cancel for free").isVisible(), false);
	await isSound(opened);
	await opened.close();
});

it("adds the URL to a wallet, which is found by EIP-6963", async () => {
	const asked: [string, unknown][] = [];
	const wallet = new Wallet(`0x${"7".repeat(64)}`);
	const opened = await openPage(browser, `${url}/`, {
		wallet,
		onRequest: (...one) => void asked.push(one),
	});
	const { page } = opened;
	await page.getByLabel("/maxbackruns").check();
	await page.getByRole("button", { name: "Add to Test Wallet" }).click();
	await page.getByText("Added.").waitFor();
	const chainId = await system.chain.rpc("eth_chainId");
	assert.deepEqual(asked, [
		[
			"wallet_addEthereumChain",
			[
				{
					chainId,
					chainName: "Anvil (private)",
					nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
					rpcUrls: [`${url}/maxbackruns`],
				},
			],
		],
	]);
	assert.equal(await page.locator(".no-wallet").isVisible(), false);
	await isSound(opened);
	await opened.close();
});

it("says first how to add it, and what each path shows to whom; it promises no more", async () => {
	const opened = await openPage(browser, `${url}/`);
	const { page } = opened;
	await page.locator("#block-age").getByText(/ ago$/).waitFor();
	assert.deepEqual(await page.getByRole("heading", { level: 2 }).allTextContents(), [
		...["Add to your wallet", "Choose how it is sent", "Who sees what", "So far"],
		...["Follow a transaction", "Now"],
	]);
	const rows = await page.locator(".sees tbody tr").allTextContents();
	assert.equal(rows.length, 5);
	assert.match(rows[2] ?? "", /^\/fullprivacyeverything, but only chosen builders get itnothing/);
	const text = ((await page.locator("main").textContent()) ?? "").replace(/\s+/g, " ");
	assert.doesNotMatch(text, /nobody can|never be|guarante/i);
	assert.match(
		text,
		/Anybody who sees them can act on them: a searcher could send a transaction of their own/,
	);
	await page.getByRole("img", { name: /Your wallet sends to Leeward, which sends to builders/ }).waitFor();
	assert.equal(await page.locator("#stand-in").isVisible(), false);
	await isSound(opened);
	await opened.close();
});

it("shows what was protected and refunded, in all and in the last day", async () => {
	const opened = await openPage(browser, `${url}/`, { answers: TOTALS });
	const figure = (id: string, text: string) =>
		opened.page.locator(`#total-${id}`).getByText(text, { exact: true }).waitFor();
	await figure("transactions", "12,345");
	await figure("refunded", "1.23 ETH");
	await figure("day", "1");
	await figure("day-refunded", "transaction, 0.04 ETH refunded");
	await isSound(opened);
	await opened.close();
});

it("has an icon of its own, which the browser may show", async () => {
	const icon = await fetch(`${url}/pages/icon.svg`);
	assert.deepEqual([icon.status, icon.headers.get("content-type")], [200, "image/svg+xml"]);
	for (const path of ["/", `/tx/0x${"ab".repeat(32)}`]) {
		const { page, close, faults } = await openPage(browser, `${url}${path}`, {});
		assert.equal(await page.locator("link[rel=icon]").getAttribute("href"), "/pages/icon.svg");
		assert.ok(Number(await page.evaluate("document.querySelector('.brand img').naturalWidth")) > 0);
		assert.deepEqual(faults, []);
		await close();
	}
});

it("can be used by the keyboard alone", async () => {
	const opened = await openPage(browser, `${url}/`, {
		wallet: new Wallet(`0x${"7".repeat(64)}`),
	});
	const { page } = opened;
	const focused = () => page.evaluate("document.activeElement.textContent.trim()");
	const reached = [];
	for (let i = 0; i < 3; i++) {
		await page.keyboard.press("Tab");
		reached.push(await focused());
	}
	assert.deepEqual(reached, ["Leeward", "Add to Test Wallet", "Copy"]);
	await page.keyboard.press("Tab");
	await page.keyboard.press("ArrowDown");
	assert.equal(await page.locator("#url").textContent(), `${url}/noreverts`);
	await page.keyboard.press("Tab");
	await page.keyboard.press("Enter");
	await page.keyboard.press("Tab");
	await page.keyboard.press("Space");
	assert.equal(await page.locator("#url").textContent(), `${url}/noreverts?softCancellations=true`);
	await page.getByLabel("Transaction hash").focus();
	await page.keyboard.type(`0x${"ab".repeat(32)}`);
	await page.keyboard.press("Enter");
	await page.waitForURL(`${url}/tx/0x${"ab".repeat(32)}`);
	await page.getByText("Not known here").waitFor();
	await opened.close();
});

it("has no serious accessibility violation, in any colour scheme and width, and fits", async () => {
	const wallet = new Wallet(`0x${"7".repeat(64)}`);
	for (const [look, options] of Object.entries(LOOKS)) {
		const opened = await openPage(browser, `${url}/`, { ...options, wallet });
		await opened.page.getByText("the relay answers").waitFor();
		await opened.page.locator("#totals").waitFor();
		await isSound(opened);
		await opened.page.getByText("More options").click();
		await isSound(opened);
		await opened.page.getByText("More options").click();
		await fits(opened, `home-${look}`);
		await opened.page.getByRole("link", { name: "The refunds of your account" }).click();
		await opened.page.getByRole("button", { name: "Show with Test Wallet" }).waitFor();
		await isSound(opened);
		await opened.close();
	}
});
