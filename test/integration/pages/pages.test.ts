// The pages of relay and boost in a real browser: the RPC URL and the wallet, transactions followed as they happen, the
// operator's page, and a failover as its operator and a user see it.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { hexlify, keccak256, toUtf8Bytes, Wallet } from "ethers";
import type { Browser } from "playwright-core";
import { type AuctionFixture, startAuction } from "../../support/bidder.ts";
import { ADMIN_TOKEN, type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { fits, isSound, LOOKS, type OpenPage, openPage, startBrowser } from "../../support/browser.ts";
import { REVERTS } from "../../support/contracts.ts";
import { httpText, startRecordingFallback } from "../../support/upstreams.ts";

const JSON_TYPE = "content-type: application/json";
/** What GET /totals may answer. */
const TOTALS = {
	"/totals": {
		...{ since: "2026-01-01T00:00:00.000Z", transactions: 12_345, refundedWei: "1230000000000000000" },
		lastDay: { transactions: 1, refundedWei: "40000000000000000" },
	},
};

/** In the place of GET /totals at a server that counts none, so that its 404 is no fault of a page. */
async function totalsFor(url: string): Promise<Readonly<Record<string, unknown>>> {
	return (await fetch(`${url}/totals`)).ok ? {} : TOTALS;
}

let browser: Browser;
before(async () => {
	browser = await startBrowser();
});
after(() => browser.close());

async function logIn({ page }: Pick<OpenPage, "page">, token = ADMIN_TOKEN): Promise<void> {
	await page.getByLabel("ADMIN_TOKEN").fill(token);
	await page.getByRole("button", { name: "Open" }).click();
}

describe("the relay's", () => {
	let fixture: AuctionFixture;
	let url: string;
	before(async () => {
		fixture = await startAuction();
		({ url } = fixture.system.client);
	});
	after(() => fixture.system.stop());

	it("builds the RPC URL from what is chosen, and says what is wrong with it", async () => {
		const opened = await openPage(browser, `${url}/`, { answers: await totalsFor(url) });
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
			answers: await totalsFor(url),
			onRequest: (...one) => void asked.push(one),
		});
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

	it("says first how to add it, and what each path shows to whom; it promises no more", async () => {
		const opened = await openPage(browser, `${url}/`, { answers: await totalsFor(url) });
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
		assert.match(text, /Who sees them can act on them: a searcher could send a transaction of their own/);
		await page.getByRole("img", { name: /Your wallet sends to Leeward, which sends to builders/ }).waitFor();
		assert.equal(await page.locator("#stand-in").isVisible(), false);
		await isSound(opened);
		await opened.close();
	});

	it("shows what was protected and refunded, in all and in the last day, as GET /totals counts it", async () => {
		const opened = await openPage(browser, `${url}/`, { answers: TOTALS });
		const figure = (id: string, text: string) =>
			opened.page.locator(`#total-${id}`).getByText(text, { exact: true }).waitFor();
		await figure("transactions", "12,345");
		await figure("refunded", "1.23 ETH");
		await figure("day", "1");
		await figure("day-refunded", "transaction, 0.04 ETH refunded");
		await isSound(opened);
		await opened.close();
		const real = await fetch(`${url}/totals`);
		const { page, close } = await openPage(browser, `${url}/`);
		await page.locator("#block-age").getByText(/ ago$/).waitFor();
		if (real.ok) {
			await page
				.locator("#total-transactions")
				.getByText(/^[\d,]+$/)
				.waitFor();
			await page
				.locator("#total-refunded")
				.getByText(/^[\d.]+ ETH$/)
				.waitFor();
		} else assert.equal(await page.locator("#totals").isVisible(), false);
		await close();
	});

	it("has an icon of its own, which the browser may show", async () => {
		const icon = await fetch(`${url}/pages/icon.svg`);
		assert.deepEqual([icon.status, icon.headers.get("content-type")], [200, "image/svg+xml"]);
		for (const path of ["/", `/tx/0x${"ab".repeat(32)}`]) {
			const { page, close, faults } = await openPage(browser, `${url}${path}`, {
				answers: await totalsFor(url),
			});
			assert.equal(await page.locator("link[rel=icon]").getAttribute("href"), "/pages/icon.svg");
			assert.ok(Number(await page.evaluate("document.querySelector('.brand img').naturalWidth")) > 0);
			assert.deepEqual(faults, []);
			await close();
		}
	});

	it("can be used by the keyboard alone", async () => {
		const opened = await openPage(browser, `${url}/`, {
			wallet: new Wallet(`0x${"7".repeat(64)}`),
			answers: await totalsFor(url),
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
		const to = await fixture.placeCode(REVERTS);
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

	it("other routes are JSON, indented for browsers only", async () => {
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
		assert.equal((await fetch(`${url}/operator`, { headers: accept })).status, 404);
	});
});

describe("boost's", () => {
	let fixture: BoostFixture;
	before(async () => {
		fixture = await startBoostFixture();
	});
	after(() => fixture.stop());

	it("the operator's page is behind the token", async () => {
		const { page, close } = await openPage(browser, `${fixture.boost.url}/operator`);
		await logIn({ page }, "a wrong one");
		await page.getByText("expected Authorization: Bearer with the token of ADMIN_TOKEN").waitFor();
		assert.equal(await page.locator("#inside").isVisible(), false);
		await close();
	});

	it("the operator's and the transaction's page show a failover as it happens", async () => {
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
		await users.waitUntilSent(tx);
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

	it("the transaction's page and status tell that it was seen in a block that is gone, and go on telling it", async () => {
		const { users, boost } = fixture;
		await fixture.recovers();
		const actor = await users.actor();
		await users.passBlock();
		const tx = actor.sign();
		assert.equal(await boost.result("eth_sendRawTransaction", [tx.raw]), tx.hash);
		await users.waitUntilSent(tx);
		const opened = await openPage(browser, `${boost.url}/tx/${tx.hash}`);
		const { page } = opened;
		const block = await users.system.nextBlock();
		await page.getByText("Included", { exact: true }).waitFor();
		assert.equal(await page.locator("#exposed").isVisible(), false);
		await users.system.chain.rpc("anvil_reorg", [1, []]);
		await page.getByText("Sent to builders", { exact: true }).waitFor();
		const note = `it was seen in block ${block}, which is gone, so it is public`;
		await page.getByText(`Note: ${note}`).waitFor();
		await page.getByText("Everybody: everything, since it was in a block that is gone").waitFor();
		await page.getByText(`Public now: it was seen in block ${block}, which is gone`).waitFor();
		const said = (await (await fetch(`${boost.url}/tx/${tx.hash}`)).json()) as { exposed?: object };
		assert.deepEqual(said, await users.status(tx));
		assert.match(JSON.stringify(said.exposed), new RegExp(note));
		await users.waitUntilSent(tx);
		await users.system.nextBlock();
		await page.getByText("Included", { exact: true }).waitFor();
		await page.getByText(`Note: ${note}`).waitFor();
		await isSound(opened);
		await opened.close();
	});

	it("what a wallet signs to cancel is made by the page, whatever an upstream says to web3_sha3", async () => {
		const lie = `0x${"66".repeat(32)}`;
		const fallback = await startRecordingFallback();
		const boost = await fixture.startBoost({ env: { FALLBACK_URL: fallback.url } });
		await fixture.fails(undefined, boost);
		const actor = await fixture.users.actor();
		const tx = actor.sign();
		assert.equal(await boost.result("eth_sendRawTransaction", [tx.raw]), tx.hash);
		fallback.answerWith(({ calls: [call] }) => {
			if (call?.method !== "web3_sha3" && call?.method !== "eth_cancelTransaction") return undefined;
			const result = call.method === "web3_sha3" ? lie : true;
			return httpText(JSON.stringify({ jsonrpc: "2.0", id: call.id, result }), "200 OK", [JSON_TYPE]);
		});
		assert.equal(await boost.result("web3_sha3", ["0x00"]), lie);
		const signed: unknown[] = [];
		const onRequest = (method: string, params: unknown) => {
			if (method === "personal_sign") signed.push(params);
		};
		const wallet = new Wallet(actor.account.keyHex);
		const opened = await openPage(browser, `${boost.url}/tx/${tx.hash}`, { wallet, onRequest });
		await opened.page.getByRole("button", { name: "Cancel with Test Wallet" }).click();
		await opened.page.getByText("Cancelled", { exact: true }).waitFor();
		const body = { jsonrpc: "2.0", id: 1, method: "eth_cancelTransaction", params: [tx.hash] };
		const digest = keccak256(toUtf8Bytes(JSON.stringify(body)));
		assert.deepEqual(signed, [[hexlify(toUtf8Bytes(digest)), actor.address]]);
		await opened.close();
		await fallback.stop();
		await fixture.recovers();
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

	it("no page has a serious accessibility violation, in any colour scheme and width", async () => {
		const { boost } = fixture;
		await fixture.recovers();
		const wallet = new Wallet(`0x${"7".repeat(64)}`);
		const pages = { home: "/", operator: "/operator" };
		for (const [name, path] of Object.entries(pages)) {
			for (const [look, options] of Object.entries(LOOKS)) {
				const opened = await openPage(browser, `${boost.url}${path}`, {
					...options,
					wallet,
					answers: await totalsFor(boost.url),
				});
				const { page } = opened;
				if (name === "home") await page.getByText("the relay is well").waitFor();
				if (name === "operator") await logIn(opened);
				if (name === "operator") await page.getByText("relay: closed: it serves").first().waitFor();
				await isSound(opened);
				await fits(opened, `${name}-${look}`);
				await opened.close();
			}
		}
	});
});
