// The pages of relay and boost in a real browser: transactions followed as they happen, the operator's page, and a failover as its
// operator and a user see it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { formatEther, hexlify, keccak256, toUtf8Bytes, Wallet } from "ethers";
import type { Browser } from "playwright-core";
import { type AuctionFixture, startAuction } from "../../support/bidder.ts";
import { type BoostFixture, QUIET, startBoostFixture } from "../../support/boostFixture.ts";
import { fits, isSound, LOOKS, type OpenPage, openPage, startBrowser } from "../../support/browser.ts";
import { REVERTS } from "../../support/contracts.ts";
import { readCsv } from "../../support/csv.ts";
import { isEdge } from "../../support/engine.ts";
import { FeedClient } from "../../support/feeds.ts";
import { ADMIN_TOKEN } from "../../support/relayClient.ts";
import { startSystem } from "../../support/systems.ts";
import { httpText, startRecordingFallback } from "../../support/upstreams.ts";

const JSON_TYPE = "content-type: application/json";

/** What GET /totals answers. */
interface Totals {
	readonly transactions: number;
	readonly refundedWei: string;
	readonly lastDay: { readonly transactions: number };
}
const OPENS_RELAY = "open the breaker of the relay";

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
		fixture = await startAuction(QUIET.system);
		({ url } = fixture.system.client);
	});
	after(() => fixture.system.stop());

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

	it("shows the refunds of an account to its wallet alone, and saves them as CSV", async () => {
		const target = await fixture.target();
		await fixture.offerOut(target, 10n ** 16n);
		await fixture.system.nextBlock();
		const { paid, block } = await fixture.event(target, "refunded");
		const wallet = new Wallet(target.user.account.keyHex);
		const signed: unknown[] = [];
		const onRequest = (method: string, params: unknown) => {
			if (method === "personal_sign") signed.push(params);
		};
		const home = await openPage(browser, `${url}/`, { wallet, onRequest });
		const { page } = home;
		const totals = (await (await fetch(`${url}/totals`)).json()) as Totals;
		const figure = (id: string, text: string) =>
			page.locator(`#total-${id}`).getByText(text, { exact: true }).waitFor();
		await figure("transactions", String(totals.transactions));
		await figure("day", String(totals.lastDay.transactions));
		const refunded = Number((await page.locator("#total-refunded").textContent())?.split(" ")[0]);
		assert.ok(Math.abs(refunded - Number(formatEther(totals.refundedWei))) < 0.001);
		assert.ok(BigInt(totals.refundedWei) >= BigInt(String(paid)));
		await page.getByRole("link", { name: "The refunds of your account" }).click();
		await page.getByRole("button", { name: "Show with Test Wallet" }).click();
		await page.getByText("1 refund since").waitFor();
		const text = (await page.locator("#text").textContent()) ?? "";
		assert.match(text, new RegExp(`^refunds of ${target.user.address} until \\d+$`));
		assert.deepEqual(signed, [[hexlify(toUtf8Bytes(keccak256(toUtf8Bytes(text)))), target.user.address]]);
		assert.equal(await page.locator("#paid").textContent(), `${formatEther(String(paid))} ETH`);
		const cells = await page.locator("#rows tr td").allTextContents();
		assert.deepEqual(cells.slice(0, 3), [
			String(block),
			`${target.hash.slice(0, 6)}…${target.hash.slice(-4)}`,
			`${formatEther(String(paid))} ETH`,
		]);
		await isSound(home);
		await fits(home, "refunds-light");
		await page.setViewportSize({ width: 390, height: 800 });
		await isSound(home);
		await fits(home, "refunds-phone");
		const [download] = await Promise.all([
			page.waitForEvent("download"),
			page.getByRole("button", { name: "Save as CSV" }).click(),
		]);
		assert.equal(download.suggestedFilename(), `refunds-${target.user.address}.csv`);
		const [columns, row] = readCsv(readFileSync(await download.path(), "utf8"));
		assert.deepEqual([row?.[columns?.indexOf("hash") ?? 0], row?.length], [target.hash, columns?.length]);
		await page.locator("#rows a").click();
		await page.getByText("Included", { exact: true }).waitFor();
		await home.close();

		const stranger = new Wallet(`0x${"8".repeat(64)}`);
		const other = await openPage(browser, `${url}/refunds/${target.user.address}`, { wallet: stranger });
		await other.page.getByRole("button", { name: "Show with Test Wallet" }).click();
		const refusal = `Not shown: expected a signature by ${target.user.address}`;
		await other.page.getByText(refusal).waitFor();
		assert.equal(await other.page.locator("#found").isVisible(), false);
		await other.close();
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
	});

	it("the operator's page shows pool, builders, node, store and searchers as they are, and nobody's transactions", async () => {
		const actor = await fixture.actor();
		await fixture.passBlock();
		const tx = actor.sign();
		await fixture.submit("/fast", tx);
		await fixture.waitUntilSent(tx);
		const feed = await FeedClient.open(url.replace("http", "ws"));
		await feed.subscribe("newHeads");
		const opened = await openPage(browser, `${url}/operator`);
		const { page } = opened;
		await logIn(opened, "a wrong one");
		await page.getByText("expected Authorization: Bearer with the token of ADMIN_TOKEN").waitFor();
		assert.equal(await page.locator("#inside").isVisible(), false);
		opened.faults.length = 0;
		await logIn(opened);
		const shown = (id: string) => page.locator(`#${id}`).textContent();
		await page.getByText("BROADCAST", { exact: false }).waitFor();
		assert.match((await shown("stages")) ?? "", /\bBROADCAST [1-9]/);
		assert.match((await shown("oldest")) ?? "", /^\d+ s$/);
		const role = isEdge ? "is an edge: it asks the core" : "is the core: it decides";
		assert.equal(await shown("role"), role);
		assert.equal(await shown("edges"), `${isEdge ? 1 : 0} connected with the core`);
		assert.match(
			(await shown("builders")) ?? "",
			/^dev(took the last one), \d+ s ago, in \d+(\.\d)? ms; 0 waiting$/,
		);
		const head = Number(await fixture.system.chain.rpc("eth_blockNumber"));
		assert.match((await shown("head")) ?? "", new RegExp(`^block ${head}, \\d+ s old$`));
		assert.match((await shown("answer")) ?? "", /^\d+(\.\d)? ms$/);
		assert.deepEqual([await shown("simulation"), await shown("writable")], ["eth_simulateV1", "yes"]);
		assert.match((await shown("write")) ?? "", /^took \d+(\.\d)? ms$/);
		assert.match((await shown("size")) ?? "", /^\d+(\.\d)? [KM]iB$/);
		assert.equal(await shown("subscriptions"), "1");
		assert.match((await shown("build")) ?? "", /^Version \d+\.\d+\.\d+, commit unknown\.$/);
		const text = (await page.content()).toLowerCase();
		for (const secret of [tx.hash, tx.raw, actor.address, "127.0.0.1"])
			assert.ok(!text.includes(secret.toLowerCase().replace(/^0x/, "")), secret);
		await isSound(opened);
		await fixture.system.nextBlock();
		await page.getByText(`block ${head + 1}, `, { exact: false }).waitFor();
		feed.ws.terminate();
		await opened.close();
	});

	it("without ADMIN_TOKEN there is no operator's page, and with it the token alone opens its data", async () => {
		const accept = { accept: "text/html" };
		assert.equal((await fetch(`${url}/operator`, { headers: accept })).status, 200);
		for (const path of ["/admin/state", "/relay/admin/state"]) {
			const answer = await fetch(`${url}${path}`);
			assert.deepEqual(
				[answer.status, answer.headers.get("www-authenticate")],
				[401, 'Bearer realm="relay"'],
			);
			const authorization = `Bearer ${ADMIN_TOKEN}`;
			assert.equal((await fetch(`${url}${path}`, { headers: { authorization } })).status, 200);
		}
		const bare = await startSystem({ env: { ADMIN_TOKEN: "" } });
		try {
			for (const path of ["/operator", "/relay/operator", "/admin/state", "/relay/admin/state"]) {
				const headers = { ...accept, authorization: "Bearer " };
				assert.equal((await fetch(`${bare.client.url}${path}`, { headers })).status, 404, path);
			}
		} finally {
			await bare.stop();
		}
	});
});

describe("boost's", () => {
	let fixture: BoostFixture;
	before(async () => {
		fixture = await startBoostFixture(QUIET);
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
		await fixture.goesOut("relay", boost);
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
		await boost.stop();
		await fallback.stop();
		await fixture.recovers();
	});

	it("an operator forces a breaker, once the page has said what that does; by the keyboard, too", async () => {
		const operator = await openPage(browser, `${fixture.boost.url}/operator`);
		const { page } = operator;
		await logIn(operator);
		const open = page.getByRole("button", { name: OPENS_RELAY });
		const dialog = page.getByRole("dialog", { name: "Open the breaker of the relay?" });
		await open.focus();
		await page.keyboard.press("Enter");
		await dialog.waitFor();
		assert.match(
			(await dialog.textContent()) ?? "",
			/All requests go to the fallback.*until you choose auto\./s,
		);
		await isSound(operator);
		await fits(operator, "operator-asks-light");
		// What is chosen unless another is: to leave it; and the focus is back where it was.
		for (const key of ["Enter", "Escape"]) {
			await dialog.waitFor();
			await page.keyboard.press(key);
			await dialog.waitFor({ state: "hidden" });
			assert.equal(await page.locator(":focus").getAttribute("aria-label"), OPENS_RELAY, key);
			if (key === "Enter") await page.keyboard.press("Enter");
		}
		const state = async () => (await fixture.boost.status()).relay;
		assert.deepEqual([(await state()).state, (await state()).reason], ["closed", null]);
		await page.getByRole("button", { name: "open the breaker of the fallback" }).click();
		await page.getByText("while the relay is out, submissions are refused.").waitFor();
		await page.getByRole("button", { name: "Open it" }).click();
		await page.getByText("fallback: open: it is out (by an operator)").first().waitFor();
		await page.getByRole("button", { name: "auto the breaker of the fallback" }).click();
		await page.getByText("fallback: closed: it serves").first().waitFor();
		await isSound(operator);
		await page.route(/\/admin\/close/, (route) => route.fulfill({ status: 500, body: "" }));
		await page.getByRole("button", { name: "close the breaker of the relay" }).click();
		await page.getByText("All requests go to the relay, even if it is out.").waitFor();
		await page.getByRole("button", { name: "Close it" }).click();
		await page.getByText("The breaker of the relay stays as it is: HTTP 500.").waitFor();
		await page.unroute(/\/admin\/close/);
		await page.getByRole("button", { name: "auto the breaker of the relay" }).click();
		await page.getByText("stays as it is").waitFor({ state: "hidden" });
		await operator.close();
	});

	it("the relay's operator's page is reached through boost, and says that it is old while the relay is out", async () => {
		const opened = await openPage(browser, `${fixture.boost.url}/operator`);
		const { page } = opened;
		await logIn(opened);
		await page.getByRole("link", { name: "The relay's page" }).click();
		await logIn(opened);
		await page.getByText(/is (an edge: it asks the core|the core: it decides)/).waitFor();
		await isSound(opened);
		await fixture.fails();
		await page.getByText(/^What is shown is old: there is no answer/).waitFor();
		await fixture.recovers();
		await page.getByText(/^What is shown is old/).waitFor({ state: "hidden" });
		await opened.close();
	});

	it("no operator's page has a serious accessibility violation, in any colour scheme and width", async () => {
		await fixture.recovers();
		for (const [name, path, loaded] of [
			["operator", "/operator", /^relay: closed: it serves/],
			["operator-relay", "/relay/operator", /^block \d+/],
		] as const) {
			for (const [look, options] of Object.entries(LOOKS)) {
				const opened = await openPage(browser, `${fixture.boost.url}${path}`, options);
				await logIn(opened);
				await opened.page.getByText(loaded).first().waitFor();
				await isSound(opened);
				await fits(opened, `${name}-${look}`);
				await opened.close();
			}
		}
	});
});
