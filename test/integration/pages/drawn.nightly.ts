// The page of a transaction, and that of an account's refunds, are drawn within a second on a CPU
// that is four times as slow as this one.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import type { Browser } from "playwright-core";
import { type AuctionFixture, startAuction } from "../../support/bidder.ts";
import { openPage, startBrowser } from "../../support/browser.ts";

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

it("draws each page within a second", async () => {
	const target = await fixture.target();
	const { backrun } = await fixture.offer(target, 10n ** 16n);
	await fixture.holds(target, backrun);
	await fixture.system.nextBlock();
	await fixture.event(target, "refunded");
	const { page, close } = await openPage(browser, `${fixture.system.client.url}/`);
	const session = await page.context().newCDPSession(page);
	await session.send("Emulation.setCPUThrottlingRate", { rate: SLOWER });
	for (const [path, drawn] of [
		[`/tx/${target.hash}`, "#net"],
		["/refunds", ".no-wallet"],
	] as const) {
		const times: number[] = [];
		for (let i = 0; i < LOADS; i++) {
			await page.goto("about:blank");
			const begun = performance.now();
			await page.goto(`${fixture.system.client.url}${path}`);
			await page.locator(drawn).filter({ hasText: /./ }).waitFor();
			times.push(performance.now() - begun);
		}
		const middle = times.sort((a, b) => a - b)[LOADS >> 1] ?? Number.POSITIVE_INFINITY;
		assert.ok(middle < MOST_MS, `${path}: ${Math.round(middle)} ms`);
	}
	await close();
});
