// The relay's pages in a real browser: transactions followed as they happen, an account's refunds,
// and the operator's page.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, it } from "node:test";
import { formatEther, Wallet } from "ethers";
import type { Browser } from "playwright-core";
import type { OperatorHistory } from "../../../shared/http/operatorData.ts";
import { type AuctionFixture, startAuction } from "../../support/bidder.ts";
import { QUIET } from "../../support/boostFixture.ts";
import {
	fits,
	isRightInEveryLook,
	isSound,
	logIn,
	openPage,
	startBrowser,
	type TypedData,
} from "../../support/browser.ts";
import { REVERTS } from "../../support/contracts.ts";
import { readCsv } from "../../support/csv.ts";
import { isEdge } from "../../support/engine.ts";
import { FeedClient } from "../../support/feeds.ts";
import { ADMIN_TOKEN } from "../../support/relayClient.ts";
import { startSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

/** The answer of GET /totals. */
interface Totals {
	readonly transactions: number;
	readonly refundedWei: string;
	readonly lastDay: { readonly transactions: number };
}

/** A call of a page to the server. */
interface WireCall {
	readonly id: number;
	readonly method: string;
	readonly params: readonly unknown[];
}

/** Figures that are not 0 once a transaction with a bid is mined. */
const EXPECTED_FIGURES = [
	...["accepted", "mined", "blocks 0.5", "bids", "refunds", "store 0.5", "simulation 0.99"],
	...["dev accepted", "dev time 0.5", "dev blocks", "memory", "delay 0.99"],
];

let browser: Browser;
let fixture: AuctionFixture;
let url: string;
before(async () => {
	browser = await startBrowser();
	fixture = await startAuction(QUIET.system);
	({ url } = fixture.system.client);
});
after(async () => {
	await browser?.close();
	await fixture?.system.stop();
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
	const block = await fixture.system.nextBlock();
	await page.getByText("Included", { exact: true }).waitFor();
	await page.getByText("with a bid behind it").first().waitFor();
	assert.equal(await page.locator("#block").textContent(), String(block));
	await page.getByText(/^.*Refund paid: 0\.\d+ ETH$/).waitFor();
	assert.match((await page.locator("#refund").textContent()) ?? "", /^\+0\.\d+ ETH$/);
	const row = page.locator("#builders tr");
	assert.deepEqual(await row.locator("th, td").allTextContents(), ["dev", String(block), "yes", "–", "yes"]);
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
		.getByText("What you can do: wait, as it is tried again with each block, or cancel it.")
		.waitFor();
	await isSound(opened);
	await page.getByRole("button", { name: "Cancel with Test Wallet" }).click();
	await page.locator("#state").getByText("Cancelled by you", { exact: true }).waitFor();
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
		if (method === "eth_signTypedData_v4") signed.push(params);
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
	const [[account, data] = []] = signed as (readonly [string, string])[];
	const { domain, primaryType, message } = JSON.parse(data ?? "") as TypedData;
	assert.deepEqual(
		[account, domain, primaryType, message],
		[
			target.user.address,
			{ name: "Leeward", version: "1", chainId: 31_337 },
			"Read",
			{ relay: new URL(url).host, scope: "refunds", until: message.until },
		],
	);
	const ahead = Number(message.until) - Date.now() / 1_000;
	assert.ok(ahead > 3_500 && ahead < 3_700, `an hour: ${ahead} s`);
	assert.equal(await page.locator("#paid").textContent(), `${formatEther(String(paid))} ETH`);
	const one = await page.locator("#rows tr td").allTextContents();
	assert.deepEqual(one.slice(0, 3), [
		String(block),
		`${target.hash.slice(0, 6)}…${target.hash.slice(-4)}`,
		`${formatEther(String(paid))} ETH`,
	]);
	const month = page.locator("#month-rows tr");
	const cells = await month.locator("th, td").allTextContents();
	assert.match(cells.join("|"), /^[A-Z][a-z]{2} \d{4}\|1\|0\.00\d+ ETH\|0\.00\d+ ETH$/);
	await isSound(home);
	await fits(home, "refunds-light");
	await page.setViewportSize({ width: 390, height: 800 });
	await page.getByText("Each refund").click();
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

it("shows all columns of the refunds on a phone, with all eighteen decimals, and a line for each month", async () => {
	const hash = `0x${"ab".repeat(32)}`;
	const address = `0x${"cd".repeat(20)}`;
	const refund = { hash, recipient: address, payer: address };
	/** By block: the time, and the wei that was paid. */
	const paid = [
		[30, "2026-11-20", "123456789012345678901"],
		[21, "2026-10-20", "7"],
		[20, "2026-10-02", "50000000000000000000"],
		[10, "2026-07-20", "9025058700000001"],
	] as const;
	const refunds = paid.map(([block, , wei]) => ({ ...refund, block, wei, owed: wei, paid: wei }));
	const [, , wei] = paid[0];
	const all = { address, since: "2026-01-01T00:00:00.000Z", owed: wei, paid: wei, next: null, refunds };
	const wallet = new Wallet(`0x${"7".repeat(64)}`);
	const answers = { [`/refunds/${wallet.address.toLowerCase()}`]: all };
	const opened = await openPage(browser, `${url}/refunds`, { wallet, answers, width: 390 });
	const { page } = opened;
	await page.route(`${url}/`, (route) => {
		const { id, method, params } = route.request().postDataJSON() as WireCall;
		const [, day = ""] = paid.find(([block]) => block === Number(params[0])) ?? [];
		if (method !== "eth_getBlockByNumber" || day === "") return route.continue();
		const timestamp = `0x${(Date.parse(`${day}T12:00:00Z`) / 1000).toString(16)}`;
		return route.fulfill({ json: { jsonrpc: "2.0", id, result: { timestamp } } });
	});
	await page.getByRole("button", { name: "Show with Test Wallet" }).click();
	await page.locator("#month-rows tr").first().waitFor();
	const months = await page
		.locator("#month-rows tr")
		.evaluateAll((rows) => rows.map(({ textContent }) => textContent));
	assert.deepEqual(months, [
		"Nov 20261123.46 ETH123.46 ETH",
		"Oct 2026250 ETH50 ETH",
		"Jul 202610.0090251 ETH0.0090251 ETH",
	]);
	await page.getByText("Each refund").click();
	assert.equal(await page.locator("#rows tr").count(), paid.length);
	const cut = await page.evaluate(
		`[...document.querySelectorAll("td, dd, th")].filter((one) => {
			const { right, width } = one.getBoundingClientRect();
			return width > 0 && (right > innerWidth || one.scrollWidth > one.clientWidth + 1);
		}).map(({ textContent }) => textContent)`,
	);
	assert.deepEqual(cut, []);
	assert.equal(
		await page.locator("#rows td[data-name=Paid]").first().textContent(),
		"123.456789012345678901 ETH",
	);
	await isRightInEveryLook(opened, "refunds-many");
	await opened.close();
});

it("a wallet signs for refunds only what the page has shown: no other relay's name unasked, and no other chain", async () => {
	const wallet = new Wallet(`0x${"9".repeat(64)}`);
	const signed: TypedData[] = [];
	const onRequest = (method: string, params: unknown) => {
		if (method === "eth_signTypedData_v4")
			signed.push(JSON.parse((params as readonly string[])[1] ?? "") as TypedData);
	};
	const lie = { name: "other.example", chainId: "0x1", until: 99_999_999_999, scope: "bundles" };
	const lied = await openPage(browser, `${url}/refunds`, { wallet, onRequest, answers: { "/info": lie } });
	const show = lied.page.getByRole("button", { name: "Show with Test Wallet" });
	await show.click();
	await lied.page.getByText(/calls itself other\.example, and this page is at 127\.0\.0\.1:\d+\./).waitFor();
	assert.equal(signed.length, 0);
	await show.click();
	await lied.page.getByText("Not shown: X-Leeward-Signature: relay: expected localhost").waitFor();
	const { domain, message } = signed[0] ?? assert.fail();
	assert.deepEqual(
		[domain.chainId, message.relay, message.scope, signed.length],
		[31_337, "other.example", "refunds", 1],
	);
	assert.ok(Number(message.until) < Date.now() / 1_000 + 3_700);
	await lied.close();

	const elsewhere = await openPage(browser, `${url}/refunds`, { wallet, onRequest, chainId: 1 });
	await elsewhere.page.getByRole("button", { name: "Show with Test Wallet" }).click();
	await elsewhere.page.getByText("Not shown: your wallet is on chain 1: switch it to chain 31337").waitFor();
	assert.equal(signed.length, 1);
	await elsewhere.close();

	const name = "relay.example: send all that you have";
	const text = await openPage(browser, `${url}/refunds`, {
		wallet,
		onRequest,
		answers: { "/info": { name } },
	});
	await text.page.getByRole("button", { name: "Show with Test Wallet" }).click();
	await text.page.getByText("Not shown: the relay's name is not a host").waitFor();
	assert.equal(signed.length, 1);
	await text.close();
});

it("other routes are JSON, indented for browsers only", async () => {
	const accept = { accept: "text/html,application/xhtml+xml" };
	const info = await fetch(`${url}/info`, { headers: accept });
	const text = await info.text();
	assert.match(text, /^\{\n {2}"name": null,\n/);
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
	await page
		.locator("#stages")
		.getByText(/BROADCAST/)
		.waitFor();
	assert.match((await shown("stages")) ?? "", /\bBROADCAST [1-9]/);
	assert.match((await shown("oldest")) ?? "", /^\d+ s$/);
	const role = isEdge ? "is an edge: it asks the core" : "is the core: it decides";
	assert.equal(await shown("role"), role);
	assert.equal(await shown("edges"), `${isEdge ? 1 : 0} connected to the core`);
	assert.match(
		(await shown("builders")) ?? "",
		/^dev(took the last one), \d+ s ago, in \d+(\.\d)? ms; 0 waiting; outcomes of bids are counted(; built \d+ of the last day's \d+ blocks with our transactions)?$/,
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

it("the figures over time have what has happened since the start", async () => {
	const target = await fixture.target();
	await fixture.offerOut(target, 10n ** 16n);
	await fixture.system.nextBlock();
	await fixture.event(target, "refunded");
	const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
	const missing = async () => {
		const { own, core } = (await (
			await fetch(`${url}/admin/history`, { headers })
		).json()) as OperatorHistory;
		// A quarter of an hour that has just begun is in neither yet.
		const frames = [own.hour, own.day, core?.hour, core?.day];
		return EXPECTED_FIGURES.filter(
			(name) => !frames.some((frame) => frame?.columns[name]?.some((one) => one)),
		);
	};
	await until("all are there", async () => (await missing()).length === 0);
});

it("without ADMIN_TOKEN there is no operator's page, and with it the token alone opens its data", async () => {
	const accept = { accept: "text/html" };
	assert.equal((await fetch(`${url}/operator`, { headers: accept })).status, 200);
	const csv = ["/operator/refunds.csv", "/relay/operator/refunds.csv"];
	for (const path of ["/admin/state", "/relay/admin/state", ...csv]) {
		const answer = await fetch(`${url}${path}`);
		assert.deepEqual([answer.status, answer.headers.get("www-authenticate")], [401, 'Bearer realm="relay"']);
		const authorization = `Bearer ${ADMIN_TOKEN}`;
		assert.equal((await fetch(`${url}${path}`, { headers: { authorization } })).status, 200);
	}
	const bare = await startSystem({ env: { ADMIN_TOKEN: "" } });
	try {
		for (const path of ["/operator", "/relay/operator", "/admin/state", "/relay/admin/state", ...csv]) {
			const headers = { ...accept, authorization: "Bearer " };
			assert.equal((await fetch(`${bare.client.url}${path}`, { headers })).status, 404, path);
		}
	} finally {
		await bare.stop();
	}
});
