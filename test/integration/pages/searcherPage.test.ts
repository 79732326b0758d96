// The page of a searcher's bids in a real browser: its key alone opens it, and sees what it bid,
// what landed, what it lost to and how fast it was; each of its states, for everybody.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { formatEther, Wallet } from "ethers";
import type { Browser } from "playwright-core";
import { type BiddingFixture, backrunBy, startBidding } from "../../support/biddingFixture.ts";
import { QUIET } from "../../support/boostFixture.ts";
import { fits, isSound, openPage, startBrowser, type TypedData, WIDE_LOOKS } from "../../support/browser.ts";
import { until } from "../../support/until.ts";

type Fields = Readonly<Record<string, unknown>>;

const [WINNER, LOSER] = [`0x${"51".repeat(32)}`, `0x${"52".repeat(32)}`];
let browser: Browser;
let fixture: BiddingFixture;
let url: string;
before(async () => {
	browser = await startBrowser();
	fixture = await startBidding({ env: { ...QUIET.system.env, TRUST_PROXY: "1" } });
	url = `${fixture.system.client.url}/searcher`;
});
after(async () => {
	await browser?.close();
	await fixture?.stop();
});

/** A bid that `key` signs, once the builder has it. */
async function bid(target: string, key: string, account: number, value: bigint): Promise<void> {
	const { raw } = backrunBy(account, value);
	// A client has one slot.
	await fixture.call("eth_sendBundle", [{ txs: [target, raw] }], { key, from: `198.51.100.${account}` });
	await fixture.system.builder.waitForRequest(({ params }) => JSON.stringify(params).includes(raw));
}

it("shows a key its own bids by day and by block: landed, lost and to what, and how fast", async () => {
	const target = await fixture.target(1);
	await bid(target, WINNER, 2, 5n * 10n ** 15n);
	await bid(target, LOSER, 3, 4n * 10n ** 15n);
	const block = await fixture.system.nextBlock();
	await until("the payment is known", async () => {
		const [row] = (await fixture.call("service_bundles", [], { key: LOSER })) as readonly Fields[];
		return row !== undefined && row.paid !== null;
	});
	const signed: TypedData[] = [];
	const onRequest = (method: string, params: unknown) => {
		if (method === "eth_signTypedData_v4")
			signed.push(JSON.parse((params as readonly string[])[1] ?? "") as TypedData);
	};
	const wallet = new Wallet(LOSER);
	const opened = await openPage(browser, url, { wallet, onRequest });
	const { page } = opened;
	const row = (id: string) => page.locator(`#${id} tbody tr`).first().locator("th, td").allTextContents();
	await page.getByRole("button", { name: "Show with Test Wallet" }).click();
	await page.getByText("One day with bids of this key.").waitFor();
	const [one] = signed;
	assert.deepEqual([one?.primaryType, one?.message.scope], ["Read", "bundles"]);
	const inBlock = await row("by-block");
	assert.deepEqual(inBlock.slice(0, 5), [
		...[
			String(block),
			`${target.slice(0, 6)}…${target.slice(-4)}`,
			"0.004 ETH",
			"lost",
			"0.005 ETH by another",
		],
	]);
	assert.match(inBlock[5] ?? "", /^\d+(\.\d+)?k? ms$/);
	const day = await row("by-day");
	assert.deepEqual([day[1], day[3], day[7]], ["1", "0", "1 lost"]);
	await isSound(opened);
	assert.doesNotMatch(await page.content(), new RegExp(new Wallet(WINNER).address.slice(2), "i"));
	await opened.close();

	const winner = await openPage(browser, url, { wallet: new Wallet(WINNER) });
	await winner.page.getByRole("button", { name: "Show with Test Wallet" }).click();
	await winner.page.getByText("One day with bids of this key.").waitFor();
	assert.equal(await winner.page.locator("#landed").textContent(), "1 (100 %)");
	assert.equal(await winner.page.locator("#paid").textContent(), `${formatEther(5n * 10n ** 15n)} ETH`);
	await winner.close();
});

it("shows nothing of anybody to another key, and why where it can't", async () => {
	const opened = await openPage(browser, url, { wallet: new Wallet(`0x${"53".repeat(32)}`) });
	const { page } = opened;
	await page.getByRole("button", { name: "Show with Test Wallet" }).click();
	await page.getByText("No days with bids of this key.").waitFor();
	assert.deepEqual(
		[await page.locator("#days").isVisible(), await page.locator("#blocks").isVisible()],
		[false, false],
	);
	await isSound(opened);
	await fits(opened, "searcher-none-light");
	await opened.close();
	const elsewhere = await openPage(browser, url, { wallet: new Wallet(LOSER), chainId: 1 });
	await elsewhere.page.getByRole("button", { name: "Show with Test Wallet" }).click();
	await elsewhere.page.getByText("Not shown: your wallet is on chain 1: switch it to chain 31337").waitFor();
	await elsewhere.close();
});

/** Figures of 90 days and as many bundles as the page shows, in the place of the relay's. */
const DAYS = Array.from({ length: 90 }, (_, i) => {
	const day = new Date(Date.UTC(2026, 10, 29 - i)).toISOString().slice(0, 10);
	const bids = 120 + Math.round(60 * Math.sin(i / 3));
	const landed = Math.round(bids * 0.3);
	const lost = { LOST: bids - landed - 6, NOT_PLACED: 4, reverted: 2 };
	const paid = String(BigInt(landed) * 3n * 10n ** 15n);
	const counts = { bids, bundles: 3, places: bids - 4, landed, withdrawn: 1 };
	const stages = ["INCLUDED", "LOST", "LOST", "NOT_PLACED", "TARGET_NOT_MINED"];
	const byBlock = Array.from({ length: i === 0 ? 60 : 0 }, (_, k) => {
		const stage = stages[k % stages.length];
		return {
			bundleHash: `0x${"ab".repeat(32)}`,
			target: k === 7 ? null : `0x${String(10 + k).repeat(32)}`,
			...{ blockNumber: 23_900_000 - k, stage: k === 7 ? "NOT_INCLUDED" : stage },
			...{ reason: k === 7 ? "notChosen" : null, bid: k === 7 ? null : "4100000000000000" },
			paid: { INCLUDED: "4100000000000000", LOST: k === 7 ? null : "5200000000000000" }[stage ?? ""] ?? null,
			...{ blockHash: null, at: `${day}T10:00:00.000Z`, feedToBidMs: k === 7 ? null : 80 + 17 * k },
		};
	});
	return { day, ...counts, paid, lost, feedToBidMs: 150 + Math.round(40 * Math.cos(i / 4)), byBlock };
});

it("is under 150 KB with all that it loads", async () => {
	const opened = await openPage(browser, "about:blank", { wallet: new Wallet(LOSER) });
	const { page } = opened;
	const sizes: Promise<number>[] = [];
	page.on("response", (response) => sizes.push(response.body().then(({ length }) => length)));
	await page.goto(url);
	await page.getByRole("button", { name: "Show with Test Wallet" }).click();
	await page.getByText("with bids of this key.").waitFor();
	const loaded = (await Promise.all(sizes)).reduce((sum, one) => sum + one, 0);
	const bytes = loaded + JSON.stringify(DAYS).length;
	assert.ok(bytes > 50_000 && bytes < 150_000, `${bytes} bytes in ${sizes.length} answers`);
	await opened.close();
});

it("has no serious accessibility violation, in any colour scheme and width, and fits", async () => {
	for (const [look, options] of Object.entries(WIDE_LOOKS)) {
		const opened = await openPage(browser, url, { ...options, wallet: new Wallet(LOSER) });
		const { page } = opened;
		await page.route("**/", async (route) => {
			const request = route.request();
			const isAsked = request.method() === "POST" && request.postData()?.includes("service_searcherStats");
			if (isAsked === true) await route.fulfill({ json: { jsonrpc: "2.0", id: 1, result: DAYS } });
			else await route.continue();
		});
		await isSound(opened);
		await page.getByRole("button", { name: "Show with Test Wallet" }).click();
		await page.getByText("90 days with bids of this key.").waitFor();
		await page.locator(".chart canvas").nth(2).waitFor();
		await isSound(opened);
		await fits(opened, `searcher-${look}`);
		await opened.close();
	}
	const without = await openPage(browser, url);
	await without.page.getByText("No wallet was found in this browser.").waitFor();
	await isSound(without);
	await fits(without, "searcher-start-light");
	await without.close();
});
