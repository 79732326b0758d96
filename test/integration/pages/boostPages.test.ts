// Boost's pages in a real browser: what the fallback carries and what goes on when nobody answers,
// a failover as its operator and a user see it, the operator's page; and errors of relay and boost,
// which are pages for a browser that navigates and JSON for everybody else.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { Wallet } from "ethers";
import type { Browser, Page } from "playwright-core";
import { type BoostFixture, QUIET, startBoostFixture } from "../../support/boostFixture.ts";
import {
	fits,
	isRightInEveryLook,
	isSound,
	logIn,
	type OpenPage,
	openPage,
	startBrowser,
	type TypedData,
} from "../../support/browser.ts";
import { ADMIN_TOKEN, RelayClient } from "../../support/relayClient.ts";
import { until } from "../../support/until.ts";
import { httpText, startRecordingFallback } from "../../support/upstreams.ts";

const JSON_TYPE = "content-type: application/json";
const OPENS_RELAY = "open the breaker of the relay";
/** The headers of Chromium when it navigates. */
const NAVIGATES = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8" };

/** Path, status, the title of the page, and the words of the JSON. */
const ERRORS = [
	["/nowhere", 404, "Nothing is here", "unknown path"],
	["/fast", 405, "This address is for wallets", "expected one of POST, OPTIONS"],
	["/tx/0x12", 400, "That is not right", "expected a transaction hash of 32 bytes as 0x hex"],
	[
		`/tx/0x${"ab".repeat(32)}/events`,
		404,
		"Nothing is here",
		"the relay has received no transaction with this hash",
	],
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
		.getByText(/relay: open: it is down \(/)
		.first()
		.waitFor();
	const tx = actor.sign();
	assert.equal(await boost.result("eth_sendRawTransaction", [tx.raw]), tx.hash);
	const user = await openPage(browser, `${boost.url}/tx/${tx.hash}`);
	await user.page.getByText("Held", { exact: true }).waitFor();
	await user.page
		.getByText("Why: the relay is down: boost keeps it, and another relay may have it.")
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
	await isSoundInAnOutage(user);
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
	const note = `it was seen in block ${block}, which has left the chain, so it is public`;
	await page.getByText(`Note: ${note}`).waitFor();
	await page.getByText("Everybody: everything, since it was in a block that is gone").waitFor();
	await page.getByText(`Public now: it was in block ${block}, which has left the chain`).waitFor();
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

it("what a wallet signs to cancel is made by the page and readable, whatever an upstream answers", async () => {
	const fallback = await startRecordingFallback();
	const boost = await fixture.startBoost({ env: { FALLBACK_URL: fallback.url } });
	await fixture.goesOut("relay", boost);
	const actor = await fixture.users.actor();
	const tx = actor.sign();
	assert.equal(await boost.result("eth_sendRawTransaction", [tx.raw]), tx.hash);
	fallback.answerWith(({ calls: [call] }) => {
		const lies = { hash: `0x${"66".repeat(32)}`, from: `0x${"66".repeat(20)}` };
		const result = { eth_getTransactionByHash: lies, eth_cancelTransaction: true }[call?.method ?? ""];
		if (call === undefined || result === undefined) return undefined;
		return httpText(JSON.stringify({ jsonrpc: "2.0", id: call.id, result }), "200 OK", [JSON_TYPE]);
	});
	const signed: (readonly [string, TypedData])[] = [];
	const onRequest = (method: string, params: unknown) => {
		if (method === "eth_requestAccounts" || method === "eth_chainId") return;
		assert.equal(method, "eth_signTypedData_v4");
		const [account = "", data = ""] = params as readonly string[];
		signed.push([account, JSON.parse(data) as TypedData]);
	};
	const wallet = new Wallet(actor.account.keyHex);
	const opened = await openPage(browser, `${boost.url}/tx/${tx.hash}`, { wallet, onRequest });
	await opened.page.getByRole("button", { name: "Cancel with Test Wallet" }).click();
	await opened.page.getByText("Cancelled by you", { exact: true }).waitFor();
	const { types, ...rest } = signed[0]?.[1] ?? assert.fail();
	assert.deepEqual(types.Cancel, [{ name: "transaction", type: "bytes32" }]);
	const domain = { name: "Leeward", version: "1", chainId: 31_337 };
	assert.deepEqual(
		[signed.length, signed[0]?.[0], rest],
		[1, actor.address, { domain, primaryType: "Cancel", message: { transaction: tx.hash } }],
	);
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
	await fits(operator, "operator-asks-light", { fullPage: false });
	// The default button cancels, as Escape does, and the focus returns to the button that opened the
	// dialog.
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
	await page.getByText("while the relay is down, submissions are refused.").waitFor();
	await page.getByRole("button", { name: "Open it" }).click();
	await page.getByText("fallback: open: it is down (by an operator)").first().waitFor();
	await page.getByRole("button", { name: "auto the breaker of the fallback" }).click();
	await page.getByText("fallback: closed: it serves").first().waitFor();
	await isSound(operator);
	await page.route(/\/admin\/close/, (route) => route.fulfill({ status: 500, body: "" }));
	await page.getByRole("button", { name: "close the breaker of the relay" }).click();
	await page.getByText("All requests go to the relay, even if it is down.").waitFor();
	await page.getByRole("button", { name: "Close it" }).click();
	await page.getByText("The breaker of the relay stays as it is: HTTP 500.").waitFor();
	await page.unroute(/\/admin\/close/);
	await page.getByRole("button", { name: "auto the breaker of the relay" }).click();
	await page.getByText("stays as it is").waitFor({ state: "hidden" });
	await operator.close();
});

it("the relay's operator's page is reached through boost, and says that it is old while the relay is down", async () => {
	const opened = await openPage(browser, `${fixture.boost.url}/operator`);
	const { page } = opened;
	await logIn(opened);
	await page.getByRole("link", { name: "The relay's page" }).click();
	// Before its script runs, the form would leave the page.
	await page.waitForURL("**/relay/operator");
	await logIn(opened);
	await page.getByText(/is (an edge: it asks the core|the core: it decides)/).waitFor();
	await isSound(opened);
	await fixture.fails();
	await page.getByText(/^This page is out of date: there is no answer/).waitFor();
	await fixture.recovers();
	await page.getByText(/^This page is out of date/).waitFor({ state: "hidden" });
	await opened.close();
});

/**
 * A request without an answer is an error in the console. Nothing else is one, and everybody can
 * use the page.
 */
async function isSoundInAnOutage({ faults, violations }: OpenPage): Promise<void> {
	assert.deepEqual(
		faults.filter((fault) => !fault.startsWith("Failed to load resource")),
		[],
	);
	assert.deepEqual(await violations(), []);
}

/**
 * Waits until a line of the life says so, behind a time of day or, where boost does not know that,
 * a dash.
 */
async function line(page: Page, text: string): Promise<void> {
	await page
		.locator("#life li")
		.filter({ hasText: new RegExp(`^(\\d\\d:\\d\\d:\\d\\d|–)${text}$`) })
		.waitFor();
}

it("a transaction that the fallback carries says so, and its life is shown from boost's journal to its block", async () => {
	const { users, boost } = fixture;
	const actor = await users.actor();
	await users.passBlock();
	await fixture.goesOut();
	const tx = actor.sign();
	assert.equal(await boost.result("eth_sendRawTransaction", [tx.raw]), tx.hash);
	const opened = await openPage(browser, `${boost.url}/tx/${tx.hash}`);
	const { page } = opened;
	await page.getByText("Held", { exact: true }).waitFor();
	await page
		.getByText("The fallback, another private relay, carries it: its builders and its rules hold.")
		.waitFor();
	await page.getByText("The fallback, another private relay, and its builders: everything").waitFor();
	await page.getByText("Our searchers: nothing").waitFor();
	await page.locator("#verdict").getByText("Wait", { exact: true }).waitFor();
	await page
		.locator("#expires")
		.getByText(/^at about \d\d:\d\d:\d\d, in \d+ /)
		.waitFor();
	await page
		.locator("#soon")
		.getByText(/^Block \d+ /)
		.waitFor();
	await line(page, "Taken by boost, and kept on its disk");
	await line(page, "The fallback, another private relay, has taken it");
	await isSoundInAnOutage(opened);
	await isRightInEveryLook(opened, "state-fallback");
	await users.system.builder.buildBlock();
	const block = await users.head();
	await page.getByText("Included", { exact: true }).waitFor();
	await line(page, `Mined in block ${block}`);
	await line(page, "Taken by boost, and kept on its disk");
	await line(page, "The fallback, another private relay, has taken it");
	assert.equal(await page.locator("#visibility").isVisible(), false);
	await isSoundInAnOutage(opened);
	await isRightInEveryLook(opened, "state-fallback-mined", 1);
	await opened.close();
});

it("the relay that takes over again tells its own life, and that the fallback has it, too", async () => {
	const { users, boost } = fixture;
	await fixture.comesBack();
	const actor = await users.actor();
	await users.passBlock();
	await fixture.goesOut();
	const tx = actor.sign();
	assert.equal(await boost.result("eth_sendRawTransaction", [tx.raw]), tx.hash);
	await fixture.comesBack();
	await fixture.goesOut("fallback");
	await users.waitUntilSent(tx);
	const opened = await openPage(browser, `${boost.url}/tx/${tx.hash}`);
	const { page } = opened;
	await page.getByText("Sent to builders", { exact: true }).waitFor();
	await line(page, "Received");
	await line(page, "The fallback, another private relay, has taken it");
	await page.getByText("The fallback, another private relay, has it, too.").waitFor();
	await isSoundInAnOutage(opened);
	await opened.close();
	await fixture.comesBack();
});

it("what the fallback alone knows is shown as reported by it", async () => {
	const { users, boost } = fixture;
	await fixture.comesBack();
	const actor = await users.actor();
	await users.passBlock();
	await fixture.goesOut();
	const tx = actor.sign();
	await new RelayClient(fixture.fallbackUrl).send(tx.raw, "/fast");
	const opened = await openPage(browser, `${boost.url}/tx/${tx.hash}`);
	const { page } = opened;
	await page
		.getByText("The relay is down: the fallback, another private relay, knows it, and tells this.")
		.waitFor();
	await page.getByText("The fallback, another private relay, and its builders: everything").waitFor();
	await isSoundInAnOutage(opened);
	await opened.close();
});

it("when all is down the home page says that nothing can be sent, and no age stands still", async () => {
	const { boost } = fixture;
	await fixture.comesBack();
	const opened = await openPage(browser, `${boost.url}/`, { aheadMs: 0 });
	const { page } = opened;
	await page.getByText("the relay is healthy").waitFor();
	await page.locator("#block-age").getByText(/ ago$/).waitFor();
	await fixture.goesOut("fallback");
	await page.getByText("no relay could replace it now: the fallback is down").waitFor();
	await fixture.goesOut();
	await page
		.getByText("nothing can be sent now: the relay is down, and no other relay can replace it.")
		.waitFor();
	await page.getByText(/^No answer since \d\d:\d\d:\d\d\./).waitFor();
	await page.route("**/*", (route) => route.abort());
	await page.clock.fastForward(3 * 3_600_000);
	await page
		.locator("#block-age")
		.getByText(/^3 hours ago$/)
		.waitFor();
	await page
		.locator("#silence-age")
		.getByText(/^3 hours ago$/)
		.waitFor();
	await isSoundInAnOutage(opened);
	await opened.close();
	await fixture.comesBack();
});

it("the pages of a boost instance that is gone say since when there is no answer", async () => {
	const { users } = fixture;
	const boost = await fixture.startBoost();
	const actor = await users.actor();
	await users.passBlock();
	const tx = actor.sign();
	assert.equal(await boost.result("eth_sendRawTransaction", [tx.raw]), tx.hash);
	const opened = await openPage(browser, `${boost.url}/tx/${tx.hash}`);
	await opened.page.getByText("Sent to builders", { exact: true }).waitFor();
	await boost.stop();
	await opened.page.getByText(/^No answer since \d\d:\d\d:\d\d\./).waitFor();
	// Everything that was known stays.
	await opened.page.getByText("Sent to builders", { exact: true }).waitFor();
	await isSoundInAnOutage(opened);
	await opened.close();
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

it("shows an error page for a page of the relay during an outage", async () => {
	await fixture.goesOut();
	const headers = await isBoth(
		`${fixture.boost.url}/info`,
		503,
		"Not available now",
		"no relay available: the relay is down",
	);
	assert.match(headers.get("retry-after") ?? "", /^[1-9]\d*$/);
	await fixture.comesBack();
});

it("an EventSource that is opened during an outage reconnects by itself", async () => {
	const { users, system } = fixture;
	// The wires of the fixture wait for whole answers, which this one is not.
	const boost = await fixture.startBoost({ env: { RELAY_URL: system.client.url } });
	const tx = (await users.actor()).sign();
	await users.submit("/fast", tx);
	await users.waitUntilSent(tx);
	await system.nextBlock();
	await until("it is included", async () => (await system.client.stage(tx.hash)) === "INCLUDED");
	const { page, close } = await openPage(browser, `${boost.url}/`);
	await boost.force("open");
	await page.evaluate(`
		window.errors = [];
		window.types = [];
		window.source = new EventSource("/tx/${tx.hash}/events");
		source.onerror = () => errors.push(source.readyState);
		source.onmessage = ({ data }) => types.push(JSON.parse(data).type);
	`);
	// The page's policy allows no evaluation in the page itself.
	const reaches = (what: string, condition: string) =>
		until(what, async () => (await page.evaluate(condition)) === true);
	await reaches("it has reconnected, in vain", "errors.length >= 2");
	assert.deepEqual(await page.evaluate("[errors.every((state) => state === 0), types]"), [true, []]);
	await boost.force("auto");
	await reaches("it receives what there is", "types.includes('included')");
	await close();
	await boost.stop();
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
