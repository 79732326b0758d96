// The pages of transactions, refunds, searchers and statistics, and those of the operators, are
// drawn within a second on a CPU that is four times as slow as this one.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import type { Browser, Page } from "playwright-core";
import { type AuctionFixture, startAuction } from "../../support/bidder.ts";
import { QUIET, startBoostFixture } from "../../support/boostFixture.ts";
import { logIn, openPage, startBrowser } from "../../support/browser.ts";
import { COUNTED } from "../../support/countedDays.ts";
import { playedBoost, playedRelay } from "../../support/playedHistory.ts";

const SLOWER = 4;
const MOST_MS = 1_000;
const LOADS = 5;

let browser: Browser;
let fixture: AuctionFixture;
before(async () => {
	browser = await startBrowser();
	fixture = await startAuction();
});
after(async () => {
	await browser?.close();
	await fixture?.system.stop();
});

/** The page loads within a second at the median. `ready` resolves once it is drawn. */
async function isFast(page: Page, url: string, ready: () => Promise<unknown>): Promise<void> {
	const session = await page.context().newCDPSession(page);
	await session.send("Emulation.setCPUThrottlingRate", { rate: SLOWER });
	const times: number[] = [];
	for (let i = 0; i < LOADS; i++) {
		await page.goto("about:blank");
		const begun = performance.now();
		await page.goto(url);
		await ready();
		times.push(performance.now() - begun);
	}
	await session.send("Emulation.setCPUThrottlingRate", { rate: 1 });
	const middle = times.sort((a, b) => a - b)[LOADS >> 1] ?? Number.POSITIVE_INFINITY;
	assert.ok(middle < MOST_MS, `${url}: ${Math.round(middle)} ms`);
}

it("draws each page for users", async () => {
	const target = await fixture.target();
	const { backrun } = await fixture.offer(target, 10n ** 16n);
	await fixture.holds(target, backrun);
	await fixture.system.nextBlock();
	await fixture.event(target, "refunded");
	const { url } = fixture.system.client;
	const { page, close } = await openPage(browser, `${url}/`, { answers: COUNTED });
	const has = (selector: string) => () => page.locator(selector).filter({ hasText: /./ }).waitFor();
	await isFast(page, `${url}/tx/${target.hash}`, has("#net"));
	await isFast(page, `${url}/refunds`, has(".no-wallet"));
	await isFast(page, `${url}/searcher`, has(".no-wallet"));
	await isFast(page, `${url}/stats`, async () => {
		await page.locator(".chart canvas").nth(3).waitFor();
		await page.locator("#grid rect").first().waitFor({ state: "attached" });
	});
	await close();
});

it("draws each page for operators", async (t) => {
	const boosted = await startBoostFixture(QUIET);
	t.after(() => boosted.stop());
	const now = Date.now();
	const answers = {
		"/admin/history": await playedBoost(now),
		"/relay/admin/history": await playedRelay(now),
	};
	for (const path of ["/operator", "/relay/operator"]) {
		const opened = await openPage(browser, `${boosted.boost.url}${path}`, { answers });
		const { page } = opened;
		await logIn(opened);
		const drawn = () => page.locator("canvas").first().waitFor();
		// From then on the tab keeps the token.
		await drawn();
		await isFast(page, `${boosted.boost.url}${path}`, drawn);
		await opened.close();
	}
});
