// The relay's pages in a real browser: the RPC URL and the wallet, and transactions followed as they happen.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { Wallet } from "ethers";
import type { Browser } from "playwright-core";
import { type AuctionFixture, startAuction } from "../../support/bidder.ts";
import { type OpenPage, openPage, startBrowser } from "../../support/browser.ts";
import { REVERTS } from "../../support/contracts.ts";

let fixture: AuctionFixture;
let browser: Browser;
let url: string;
before(async () => {
	[fixture, browser] = await Promise.all([startAuction(), startBrowser()]);
	({ url } = fixture.system.client);
});
after(async () => {
	await browser.close();
	await fixture.system.stop();
});

async function isSound({ faults, violations }: OpenPage): Promise<void> {
	assert.deepEqual(await violations(), []);
	assert.deepEqual(faults, []);
}

it("builds the RPC URL from what is chosen, and says what is wrong with it", async () => {
	const opened = await openPage(browser, `${url}/`);
	const { page } = opened;
	await page.getByText("0 seconds ago").or(page.getByText("seconds ago")).waitFor();
	const built = () => page.locator("#url").textContent();
	assert.equal(await built(), `${url}/fast`);
	await page.getByLabel("/noreverts").check();
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
	const opened = await openPage(browser, `${url}/`, { wallet, onRequest: (...one) => void asked.push(one) });
	const { page } = opened;
	await page.getByLabel("/maxbackruns").check();
	await page.getByRole("button", { name: "Add to Test Wallet" }).click();
	await page.getByText("Added.").waitFor();
	const chainId = await fixture.system.chain.rpc("eth_chainId");
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

it("can be used by the keyboard alone", async () => {
	const opened = await openPage(browser, `${url}/`);
	const { page } = opened;
	await page.keyboard.press("Tab");
	await page.keyboard.press("ArrowDown");
	assert.equal(await page.locator("#url").textContent(), `${url}/noreverts`);
	await page.getByLabel("Transaction hash").focus();
	await page.keyboard.type(`0x${"ab".repeat(32)}`);
	await page.keyboard.press("Enter");
	await page.waitForURL(`${url}/tx/0x${"ab".repeat(32)}`);
	await page.getByText("Not known here").waitFor();
	await opened.close();
});

it("follows a transaction from pending to its block and its refund", async () => {
	const target = await fixture.target();
	const opened = await openPage(browser, `${url}/tx/${target.hash}`);
	const { page } = opened;
	await page.getByText("Sent to builders", { exact: true }).waitFor();
	await page.getByText("Shown to searchers, without its signature").waitFor();
	const bidder = await fixture.bidder();
	const backrun = bidder.backrun(10n ** 16n);
	await bidder.bid(target, backrun);
	await fixture.out(target, backrun);
	await page.getByText("with a bid behind it").first().waitFor();
	const block = await fixture.system.nextBlock();
	await page.getByText("Included", { exact: true }).waitFor();
	assert.equal(await page.locator("#block").textContent(), String(block));
	await page.getByText(/^.*Refund paid: 0\.\d+ ETH$/).waitFor();
	assert.match((await page.locator("#refund").textContent()) ?? "", /^0\.\d+ ETH$/);
	assert.match((await page.locator("#builders").textContent()) ?? "", /dev took it/);
	assert.equal(await page.locator("#cancelling").isVisible(), false);
	await isSound(opened);
	await opened.close();
});

it("says why a transaction fails and what to do, and cancels it by its sender's wallet", async () => {
	const actor = await fixture.actor();
	const to = await fixture.place(REVERTS);
	await fixture.passBlock();
	const tx = actor.sign({ to, gasLimit: 100_000n });
	await fixture.submit("/fast", tx);
	const wallet = new Wallet(actor.account.keyHex);
	const opened = await openPage(browser, `${url}/tx/${tx.hash}`, { wallet });
	const { page } = opened;
	await page.getByText("Failing", { exact: true }).waitFor();
	await page.getByText("Why: execution reverted.").waitFor();
	await page
		.getByText("What you can do: wait, since it is tried again with each block, or cancel it.")
		.waitFor();
	await isSound(opened);
	await page.getByRole("button", { name: "Cancel with Test Wallet" }).click();
	await page.getByText("Cancelled", { exact: true }).waitFor();
	assert.equal(await page.locator("#cancelling").isVisible(), false);
	await isSound(opened);
	await opened.close();
});

it("one wallet does not cancel another one's transaction", async () => {
	const actor = await fixture.actor();
	await fixture.passBlock();
	const tx = actor.sign();
	await fixture.submit("/fast", tx);
	const wallet = new Wallet(`0x${"6".repeat(64)}`);
	const { page, close } = await openPage(browser, `${url}/tx/${tx.hash}`, { wallet });
	await page.getByRole("button", { name: "Cancel with Test Wallet" }).click();
	await page.getByText("Not cancelled: transaction not found or no longer pending").waitFor();
	await close();
	assert.equal((await fixture.status(tx)).stage, "BROADCAST");
});

it("what is no page is JSON, indented for a browser and as it was for everybody else", async () => {
	const accept = { accept: "text/html,application/xhtml+xml" };
	const info = await fetch(`${url}/info`, { headers: accept });
	const text = await info.text();
	assert.match(text, /^\{\n {2}"name": "leeward",\n/);
	assert.deepEqual(JSON.parse(text), await (await fetch(`${url}/info`)).json());
	const record = await fetch(`${url}/tx/0x${"1".repeat(64)}`);
	assert.equal(record.headers.get("content-type"), "application/json");
	const page = await fetch(`${url}/`, { headers: accept });
	assert.equal(page.headers.get("content-type"), "text/html; charset=utf-8");
	assert.match(
		page.headers.get("content-security-policy") ?? "",
		/default-src 'none'.*frame-ancestors 'none'/,
	);
	assert.equal((await fetch(`${url}/`)).status, 405);
	assert.equal((await fetch(`${url}/operator`, { headers: accept })).status, 404);
});
