// The relay's page of a transaction in a real browser, state by state: what is not known, who can
// see a pending one, its times, its bids, what replaced it, and who may cancel it.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { formatEther, Wallet } from "ethers";
import type { Browser, Page } from "playwright-core";
import { type AuctionFixture, DEV_COINBASE, startAuction } from "../../support/bidder.ts";
import { EMITTER } from "../../support/biddingFixture.ts";
import { QUIET } from "../../support/boostFixture.ts";
import { fits, isSound, LOOKS, openPage, startBrowser } from "../../support/browser.ts";
import { REVERTS } from "../../support/contracts.ts";
import { GWEI } from "../../support/relayFixture.ts";

const EXPLORER = "https://explorer.example";
const HOUR_MS = 3_600_000;
const UNKNOWN = `0x${"ab".repeat(32)}`;

let browser: Browser;
let fixture: AuctionFixture;
let url: string;
before(async () => {
	browser = await startBrowser();
	fixture = await startAuction({ env: { ...QUIET.system.env, EXPLORER_URL: `${EXPLORER}/` } });
	({ url } = fixture.system.client);
});
after(async () => {
	await browser?.close();
	await fixture?.system.stop();
});

const open = (hash: string, options: Parameters<typeof openPage>[2] = {}) =>
	openPage(browser, `${url}/tx/${hash}`, options);

/** The links of the page that lead elsewhere. */
async function outside(page: Page): Promise<readonly string[]> {
	const links = (await page.evaluate("[...document.links].map(({ href }) => href)")) as string[];
	return links.filter((href) => !href.startsWith(url));
}

/** Wei that a mined transaction's sender paid for it, by the node's receipt. */
async function feeOf({ hash }: { readonly hash: string }): Promise<bigint> {
	const receipt = await fixture.system.chain.rpc("eth_getTransactionReceipt", [hash]);
	const { gasUsed, effectiveGasPrice } = receipt as Record<string, string>;
	return BigInt(gasUsed ?? 0) * BigInt(effectiveGasPrice ?? 0);
}

/** Waits until each amount, in wei, is as a wallet shows it: within its rounding. */
async function isSum(page: Page, sum: Readonly<Record<string, bigint>>): Promise<void> {
	for (const [id, wei] of Object.entries(sum)) {
		await page
			.locator(`#${id}`)
			.getByText(/^[+−]\d.* ETH$/)
			.waitFor();
		const [number = ""] = ((await page.locator(`#${id}`).textContent()) ?? "").replace("−", "-").split(" ");
		const exact = Number(formatEther(wei));
		assert.ok(Math.abs(Number(number) - exact) <= Math.abs(exact) * 1e-4, `${id}: ${number} for ${exact}`);
	}
}

/** Waits until the row of this name says so. */
async function row(page: Page, name: string, text: string | RegExp): Promise<void> {
	await page.locator(`#row-${name} dd`).filter({ hasText: text }).waitFor();
}

it("of an unknown hash it says so and what to check, and nothing of searchers and bids", async () => {
	const opened = await open(UNKNOWN);
	const { page } = opened;
	await page.getByText("Not known here", { exact: true }).waitFor();
	await page.getByText("Is it on the right network? This is chain 31337.").waitFor();
	await page.getByText(`Its RPC URL begins with ${url}.`).waitFor();
	await page.getByText("A transaction that has ended is kept for seven days.").waitFor();
	const elsewhere = page.getByText("Was it sent elsewhere, by another RPC URL or in public?");
	await elsewhere.getByRole("link", { name: "look in the explorer" }).waitFor();
	assert.deepEqual(await outside(page), [`${EXPLORER}/tx/${UNKNOWN}`]);
	for (const id of ["facts", "visibility", "cancelling", "history", "delivered"]) {
		assert.equal(await page.locator(`#${id}`).isVisible(), false, id);
	}
	await isSound(opened);
	await opened.close();
});

it("one that was mined without us is said to be; one that comes later is found", async () => {
	const actor = await fixture.actor();
	await fixture.passBlock();
	const other = actor.sign();
	const { page, close } = await open(other.hash);
	await page.getByText("Not known here", { exact: true }).waitFor();
	await fixture.system.chain.rpc("eth_sendRawTransaction", [other.raw]);
	const block = await fixture.passBlock();
	await page.getByText("Not sent through here", { exact: true }).waitFor();
	await page.getByText(`It was sent elsewhere, and mined in block ${block}`).waitFor();
	await close();
	const own = actor.sign({ nonce: 1 });
	const later = await open(own.hash);
	await later.page.getByText("Not known here", { exact: true }).waitFor();
	await fixture.submit("/fast", own);
	await later.page.getByText("Sent to builders", { exact: true }).waitFor();
	assert.equal(await later.page.locator("#unknown").isVisible(), false);
	await later.close();
});

it("a pending one: who sees it, that its fields are hidden and why, until when it lives, and when the next block is due", async () => {
	const actor = await fixture.actor();
	await fixture.passBlock();
	const tx = actor.sign();
	await fixture.submit("/fast", tx);
	const next = (await fixture.head()) + 1;
	const opened = await open(tx.hash);
	const { page } = opened;
	const seen = page.locator("#visible");
	await seen.getByText("Builders (dev): everything, so that they can put it into a block").waitFor();
	await seen.getByText("Searchers: nothing").waitFor();
	await page.getByText("Sender, recipient and amount are not shown here while it is pending").waitFor();
	for (const id of ["row-from", "row-to", "row-nonce", "row-bids", "sum"]) {
		assert.equal(await page.locator(`#${id}`).isVisible(), false, id);
	}
	await row(page, "expires", new RegExp(`^after block ${next + 24}, in about \\d+ (seconds|minutes)$`));
	const soon = new RegExp(`^Block ${next} (in about \\d+ seconds?|was due \\d+ seconds? ago)$`);
	await page.locator("#soon").getByText(soon).waitFor();
	// An explorer that is asked about it would learn of it.
	assert.deepEqual(await outside(page), []);
	await isSound(opened);
	await opened.close();
});

it("one that has not gone out is seen by nobody, failing or waiting for its turn", async () => {
	const actor = await fixture.actor();
	const to = await fixture.placeCode(REVERTS);
	await fixture.passBlock();
	const failing = actor.sign({ to });
	const waiting = actor.sign({ nonce: 2 });
	await fixture.submit("/fast", failing, waiting);
	const opened = await open(failing.hash);
	await opened.page.getByText("Failing", { exact: true }).waitFor();
	await opened.page.getByText("Nobody yet: it has not left this service.").waitFor();
	// A failing transaction is shown whole, so that its sender sees why.
	assert.equal(await opened.page.locator("#hidden-fields").isVisible(), false);
	assert.equal(await opened.page.locator("#from").textContent(), actor.address);
	await isSound(opened);
	await opened.close();
	const queued = await open(waiting.hash);
	await queued.page.getByText("Waiting", { exact: true }).waitFor();
	await queued.page.getByText("Nobody yet: it has not left this service.").waitFor();
	await row(queued.page, "expires", "its 25 blocks are counted from when its turn comes");
	await queued.close();
});

it("bids are shown with the block; the refund stands out, and what is public leads to the explorer", async () => {
	const target = await fixture.target();
	const opened = await open(target.hash);
	const { page } = opened;
	await page
		.locator("#visible")
		.getByText("Searchers: sender, recipient, amount and call data without the signature")
		.waitFor();
	for (const value of [10n ** 16n, 10n ** 15n]) {
		const { backrun } = await fixture.offer(target, value);
		await fixture.holds(target, backrun);
		await row(page, "bids", "shown when it is mined");
	}
	const block = await fixture.system.nextBlock();
	await page.getByText(`paid to ${target.user.address}`).waitFor();
	await row(page, "bids", /^2$/);
	const { refundWei = "0" } = await fixture.status(target);
	const [fee, refund] = [await feeOf(target), BigInt(refundWei)];
	await isSum(page, { fee: -fee, refund, net: refund - fee });
	await page.getByText("you gained", { exact: true }).waitFor();
	const { to = "" } = (await fixture.status(target)).transaction;
	const expected = [`tx/${target.hash}`, `address/${target.user.address}`, `block/${block}`];
	expected.push(`address/${target.user.address}`, `address/${to}`, `address/${DEV_COINBASE}`);
	assert.deepEqual([...(await outside(page))].sort(), expected.map((path) => `${EXPLORER}/${path}`).sort());
	assert.equal(await page.locator("#row-expires").isVisible(), false);
	await isSound(opened);
	await opened.close();
	for (const [look, options] of Object.entries(LOOKS)) {
		const seen = await open(target.hash, options);
		await seen.page.getByText(`paid to ${target.user.address}`).waitFor();
		await isSound(seen);
		await fits(seen, `transaction-${look}`);
		await seen.close();
	}
});

it("one that reverted in its block paid its fee, and one that was refunded to somebody else keeps its cost", async () => {
	const failing = await fixture.actor();
	const reverted = failing.sign({ to: await fixture.placeCode(REVERTS) });
	await fixture.passBlock();
	await fixture.submit("/nochecks", reverted);
	await fixture.waitUntilSent(reverted);
	const target = await fixture.target(`/fast?refundRecipient=0x${"fe".repeat(20)}`);
	await fixture.offerOut(target, 10n ** 16n);
	await fixture.system.nextBlock();
	const opened = await open(reverted.hash);
	await opened.page.getByText("its gas was paid").waitFor();
	const fee = await feeOf(reverted);
	await opened.page.getByText("for gas, although it reverted").waitFor();
	await isSum(opened.page, { fee: -fee, net: -fee });
	assert.equal(await opened.page.locator("#refund").textContent(), "nothing");
	await opened.close();
	const seen = await open(target.hash);
	const cost = await feeOf(target);
	await isSum(seen.page, { fee: -cost, net: -cost });
	await seen.close();
});

it("which builders have a shared one behind a hidden one is not told", async () => {
	const actor = await fixture.actor();
	await fixture.passBlock();
	const hidden = actor.sign();
	await fixture.submit("/fullprivacy", hidden);
	const shared = actor.sign({ nonce: 1, to: EMITTER });
	await fixture.submit("/maxbackruns", shared);
	await fixture.open(shared);
	const opened = await open(shared.hash);
	const seen = opened.page.locator("#visible");
	await seen.getByText("Searchers: sender, recipient, amount and call data").waitFor();
	await seen
		.getByText("Builders: everything; the page does not show which ones have it", { exact: true })
		.waitFor();
	assert.equal(await opened.page.locator("#delivered").isVisible(), false);
	await isSound(opened);
	await opened.close();
});

it("calls a replacement the wallet's own cancel once it is mined, and public", async () => {
	const actor = await fixture.actor();
	await fixture.passBlock();
	const first = actor.sign();
	const fees = { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
	const cancel = actor.sign({ ...fees, to: actor.address, value: 1n });
	await fixture.submit("/fast", first);
	await fixture.submit("/fast", cancel);
	await fixture.waitUntilSent(cancel);
	const { page, close } = await open(first.hash);
	const state = page.locator("#state");
	await page.getByText(`Replaced by ${cancel.hash}.`).waitFor();
	assert.equal(await state.textContent(), "Replaced");
	const block = await fixture.system.nextBlock();
	await state.getByText("Cancelled by you", { exact: true }).waitFor();
	await page.getByText(`Your cancel ${cancel.hash} is in block ${block}; it cost`).waitFor();
	// From there, the cancel's page knows that it replaced another one, and of the amount.
	await page.getByRole("link", { name: cancel.hash }).click();
	await state.getByText("Cancelled by you", { exact: true }).waitFor();
	await page.goto(`${url}/tx/${cancel.hash}`);
	await state.getByText("Included", { exact: true }).waitFor();
	await close();
});

it("one that was replaced leads to what replaced it, and that leads back for who came from there", async () => {
	const actor = await fixture.actor();
	await fixture.passBlock();
	const first = actor.sign();
	const second = actor.sign({ maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI });
	await fixture.submit("/fast", first);
	await fixture.submit("/fast", second);
	const opened = await open(first.hash);
	const { page } = opened;
	await page.getByText(`Replaced by ${second.hash}.`).waitFor();
	await isSound(opened);
	await page.getByRole("link", { name: second.hash }).click();
	await page.getByText(`It replaced ${first.hash}.`).waitFor();
	await isSound(opened);
	// The second hash alone does not reveal the first, and a made-up one is not believed.
	await page.goto(`${url}/tx/${second.hash}`);
	await page.getByText("Sent to builders", { exact: true }).waitFor();
	assert.equal(await page.locator("#linked").isVisible(), false);
	const other = (await fixture.actor()).sign();
	await fixture.passBlock();
	await fixture.submit("/fast", other);
	const asked = page.waitForResponse(`${url}/tx/${other.hash}/events`);
	await page.goto(`${url}/tx/${second.hash}?replaced=${other.hash}`);
	await asked;
	// The page draws what it received with the next answer.
	await page.waitForResponse(`${url}/tx/${second.hash}/events`);
	await page.waitForResponse(`${url}/tx/${second.hash}`);
	await page.getByText("Sent to builders", { exact: true }).waitFor();
	assert.equal(await page.locator("#linked").isVisible(), false);
	await opened.close();
});

it("a cancel by another account is refused; of several the wallet's right one is asked", async () => {
	const actor = await fixture.actor();
	await fixture.passBlock();
	const tx = actor.sign();
	await fixture.submit("/fast", tx);
	const stranger = new Wallet(`0x${"6".repeat(64)}`);
	const opened = await open(tx.hash, { wallet: stranger });
	await opened.page.getByRole("button", { name: "Cancel with Test Wallet" }).click();
	const asked = stranger.address.toLowerCase();
	await opened.page
		.getByText(`Not cancelled: only the account that sent it may cancel it, and you asked with ${asked}.`)
		.waitFor();
	const text = ((await opened.page.locator("body").textContent()) ?? "").toLowerCase();
	assert.equal(text.includes(actor.address.slice(2)), false, "anyone with the link sees the page");
	await isSound(opened);
	await opened.close();
	await fixture.reaches(tx, "BROADCAST");
	const wallet = new Wallet(actor.account.keyHex);
	const own = await open(tx.hash, { wallet, accounts: [asked, wallet.address] });
	await own.page.getByRole("button", { name: "Cancel with Test Wallet" }).click();
	await own.page.getByText("Cancelled by you", { exact: true }).waitFor();
	await own.close();
});

it("copies the hash; where the browser gives no clipboard it selects it", async () => {
	const { page, close } = await open(UNKNOWN);
	await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
	await page.getByRole("button", { name: "Copy the hash" }).click();
	await page.getByText("Copied.").waitFor();
	assert.equal(await page.evaluate("navigator.clipboard.readText()"), UNKNOWN);
	await page.evaluate("navigator.clipboard.writeText = () => Promise.reject(new Error('no'))");
	await page
		.getByRole("button", { name: "Copy the hash" })
		.or(page.getByText("Copied", { exact: true }))
		.click();
	await page.getByText("Selected: copy it with your keyboard.").waitFor();
	assert.equal(await page.evaluate("getSelection().toString()"), UNKNOWN);
	await close();
});

it("ages and times go on by the browser's clock while nobody answers, and the server's time counts where that is wrong", async () => {
	const actor = await fixture.actor();
	await fixture.passBlock();
	const tx = actor.sign();
	await fixture.submit("/fast", tx);
	await fixture.waitUntilSent(tx);
	const { page, close } = await open(tx.hash, { aheadMs: HOUR_MS });
	await page.getByText(/^Last news \d+ seconds? ago, at /).waitFor();
	await row(page, "expires", /in about/);
	assert.equal(await page.locator("#silence").isVisible(), false);
	await page.route("**/*", (route) => route.abort());
	await page.getByText("No answer since").waitFor();
	await page.clock.fastForward(10 * 60_000);
	await page.getByText(/^10 minutes ago$/).waitFor();
	await page.getByText(/^Last news 10 minutes ago, at /).waitFor();
	await page.unroute("**/*");
	await page.locator("#silence").waitFor({ state: "hidden" });
	await page.getByText(/^Last news \d+ seconds? ago, at /).waitFor();
	await close();
});
