// Boost's pages in a real browser while its upstreams are out: what the fallback carries, and what goes on when nobody answers.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import type { Browser, Page } from "playwright-core";
import { type BoostFixture, QUIET, startBoostFixture } from "../../support/boostFixture.ts";
import { type OpenPage, openPage, startBrowser } from "../../support/browser.ts";
import { RelayClient } from "../../support/relayClient.ts";

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

/** What nobody answers is an error in the console; nothing else is one, and everybody can use the page. */
async function isSoundInAnOutage({ faults, violations }: OpenPage): Promise<void> {
	assert.deepEqual(
		faults.filter((fault) => !fault.startsWith("Failed to load resource")),
		[],
	);
	assert.deepEqual(await violations(), []);
}

/** Waits until a line of the life says so, behind a time of day or, where boost does not know that, a dash. */
async function line(page: Page, text: string): Promise<void> {
	await page
		.locator("#life li")
		.filter({ hasText: new RegExp(`^(\\d\\d:\\d\\d:\\d\\d|–)${text}$`) })
		.waitFor();
}

it("what the fallback carries says so, and its life is told from boost's journal to its block", async () => {
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
	await page
		.locator("#expires")
		.getByText(/^at about \d\d:\d\d:\d\d, in \d+ /)
		.waitFor();
	await page
		.locator("#soon")
		.getByText(/^\d+, /)
		.waitFor();
	await line(page, "Taken by boost, and kept on its disk");
	await line(page, "The fallback, another private relay, has taken it");
	await isSoundInAnOutage(opened);
	await users.system.builder.buildBlock();
	const block = await users.head();
	await page.getByText("Included", { exact: true }).waitFor();
	await line(page, `Mined in block ${block}`);
	await line(page, "Taken by boost, and kept on its disk");
	await line(page, "The fallback, another private relay, has taken it");
	assert.equal(await page.locator("#visibility").isVisible(), false);
	await isSoundInAnOutage(opened);
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

it("what the fallback alone knows is said to be told by it", async () => {
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
		.getByText("The relay is out: the fallback, another private relay, knows it, and tells this.")
		.waitFor();
	await page.getByText("The fallback, another private relay, and its builders: everything").waitFor();
	await isSoundInAnOutage(opened);
	await opened.close();
});

it("when all is out the home page says that nothing can be sent, and no age stands still", async () => {
	const { boost } = fixture;
	await fixture.comesBack();
	const opened = await openPage(browser, `${boost.url}/`, { aheadMs: 0 });
	const { page } = opened;
	await page.getByText("the relay is well").waitFor();
	await page.locator("#block-age").getByText(/ ago$/).waitFor();
	await fixture.goesOut("fallback");
	await fixture.goesOut();
	await page.getByText("nothing can be sent now: the relay is out, and nobody stands in.").waitFor();
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

it("a boost that is gone leaves its pages saying since when there is no answer", async () => {
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
	// What was known stays.
	await opened.page.getByText("Sent to builders", { exact: true }).waitFor();
	await isSoundInAnOutage(opened);
	await opened.close();
});
