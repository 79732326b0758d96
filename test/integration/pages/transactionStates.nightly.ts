// The page of a transaction in each state, on a running relay: its verdict by word and state, the
// steps of its path, and that everybody can use it in both colour schemes, on a phone and a large
// screen.

import assert from "node:assert/strict";
import { after, afterEach, before, it } from "node:test";
import type { Browser, Page } from "playwright-core";
import { type AuctionFixture, startAuction } from "../../support/bidder.ts";
import { QUIET } from "../../support/boostFixture.ts";
import { isRightInEveryLook, type OpenPage, openPage, startBrowser } from "../../support/browser.ts";
import { REVERTS } from "../../support/contracts.ts";
import { ETHER, GWEI } from "../../support/relayFixture.ts";

const SIMULATIONS = ["eth_simulateV1"];
const TTL_BLOCKS = 6;

let browser: Browser;
let fixture: AuctionFixture;
/** One for all states. */
let opened: OpenPage;
/** Lets simulations pass again. */
let release = (): void => {};
before(async () => {
	browser = await startBrowser();
	fixture = await startAuction({
		...QUIET.system,
		proxied: true,
		builders: [{ name: "dev" }, { name: "recorder", feeRecipients: [] }],
		env: { ...QUIET.system.env, TX_TTL_BLOCKS: String(TTL_BLOCKS) },
	});
	opened = await openPage(browser, `${fixture.system.client.url}/`);
});
afterEach(() => release());
after(async () => {
	await browser?.close();
	await fixture?.system.stop();
});

type SignOptions = Parameters<Awaited<ReturnType<AuctionFixture["actor"]>>["sign"]>[0];
const HIGHER_FEES = { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI };

/** A new account's transaction, submitted. */
async function submitted(path = "/fast", options: SignOptions = {}) {
	const actor = await fixture.actor();
	await fixture.passBlock();
	const tx = actor.sign(options);
	await fixture.submit(path, tx);
	return { actor, tx };
}

/** A transaction that builders have, and its replacement. */
async function replaced(optionsOf: (address: string) => SignOptions) {
	const { actor, tx } = await submitted();
	await fixture.waitUntilSent(tx, { builders: ["dev"] });
	const next = actor.sign({ ...HIGHER_FEES, ...optionsOf(actor.address) });
	await fixture.submit("/fast", next);
	await fixture.waitUntilSent(next, { builders: ["dev"] });
	return { tx, next };
}

/** The wallet's own cancel of a transaction, mined. */
async function ownCancel() {
	const both = await replaced((address) => ({ to: address, value: 0n }));
	await fixture.system.nextBlock();
	await fixture.reaches(both.next, "INCLUDED");
	return both;
}

interface State {
	readonly name: string;
	readonly verdict: "Wait" | "Do this" | "Done" | "Lost";
	/** As the page writes it. */
	readonly state: string;
	/** The states of the steps, by the first letters of their names; "" for no path. */
	readonly steps: string;
	/** A text that the page shows, too. */
	readonly says?: string | RegExp;
	/** Brings a transaction into the state, and returns its hash. */
	readonly make: () => Promise<string>;
}

const STATES: readonly State[] = [
	{
		name: "received",
		verdict: "Wait",
		state: "Received",
		steps: "done now todo todo todo",
		says: /^Block \d+ (in about|was due) \d+ seconds?/,
		async make() {
			release = fixture.system.node?.hold(SIMULATIONS) ?? assert.fail();
			return (await submitted()).tx.hash;
		},
	},
	{
		name: "shown",
		verdict: "Wait",
		state: "Shown to searchers",
		steps: "done now done todo todo",
		async make() {
			release = fixture.system.node?.hold(SIMULATIONS) ?? assert.fail();
			const { tx } = await submitted("/maxbackruns");
			await fixture.reaches(tx, "SHARED");
			return tx.hash;
		},
	},
	{
		name: "sent",
		verdict: "Wait",
		state: "Sent to builders",
		steps: "done done skipped done now",
		async make() {
			const { tx } = await submitted();
			await fixture.waitUntilSent(tx, { builders: ["dev"] });
			return tx.hash;
		},
	},
	{
		name: "nonce",
		verdict: "Do this",
		state: "Waiting",
		steps: "done now todo todo todo",
		says: "What you can do: send the transaction with the missing nonce",
		make: async () => (await submitted("/fast", { nonce: 3 })).tx.hash,
	},
	{
		name: "funds",
		verdict: "Do this",
		state: "Failing",
		steps: "done failed todo todo todo",
		says: "What you can do: add Ether to the sender's account, or cancel it.",
		async make() {
			const { actor, tx } = await submitted("/fast", { value: 99n * ETHER, nonce: 1 });
			await fixture.submit("/fast", actor.sign({ value: 2n * ETHER }));
			return tx.hash;
		},
	},
	{
		name: "fee",
		verdict: "Do this",
		state: "Waiting for the base fee to fall",
		steps: "done now todo todo todo",
		says: /What you can do: raise the fee cap to [\d.]+ gwei, or wait/,
		async make() {
			const actor = await fixture.actor();
			const { baseFee } = await fixture.block(await fixture.passBlock());
			const tx = actor.sign({ maxFeePerGas: (baseFee * 3n) / 4n, maxPriorityFeePerGas: 1n });
			await fixture.submit("/fast", tx);
			return tx.hash;
		},
	},
	{
		name: "failing",
		verdict: "Do this",
		state: "Failing",
		steps: "done failed todo todo todo",
		says: "Why: execution reverted.",
		make: async () => (await submitted("/fast", { to: await fixture.placeCode(REVERTS) })).tx.hash,
	},
	{
		name: "refunded",
		verdict: "Done",
		state: "Included",
		steps: "done done done done done",
		says: /^\+0\.00\d+ ETH$/,
		async make() {
			const target = await fixture.target();
			const { backrun } = await fixture.offer(target, 10n ** 16n);
			await fixture.holds(target, backrun);
			await fixture.system.nextBlock();
			await fixture.event(target, "refunded");
			return target.hash;
		},
	},
	{
		name: "mined",
		verdict: "Done",
		state: "Included",
		steps: "done done skipped done done",
		says: "no searcher paid for it",
		async make() {
			const { tx } = await submitted();
			await fixture.waitUntilSent(tx, { builders: ["dev"] });
			await fixture.system.nextBlock();
			return tx.hash;
		},
	},
	{
		name: "reverted",
		verdict: "Lost",
		state: "Reverted",
		steps: "done skipped skipped done failed",
		says: "for gas, although it reverted",
		async make() {
			const { tx } = await submitted("/nochecks", { to: await fixture.placeCode(REVERTS) });
			await fixture.waitUntilSent(tx, { builders: ["dev"] });
			await fixture.system.nextBlock();
			return tx.hash;
		},
	},
	{
		name: "cancelled",
		verdict: "Done",
		state: "Cancelled by you",
		steps: "done done skipped done done",
		says: /It cost nothing; \d of \d builders confirmed/,
		async make() {
			const { tx } = await submitted();
			await fixture.waitUntilSent(tx, { builders: ["dev"] });
			await fixture.system.client.call("eth_cancelTransaction", [tx.hash]);
			return tx.hash;
		},
	},
	{
		name: "cancelled-by-wallet",
		verdict: "Done",
		state: "Cancelled by you",
		steps: "done done skipped done done",
		says: /^Your cancel 0x[0-9a-f]{64} is in block \d+; it cost 0\.0\d+ ETH\./,
		make: async () => (await ownCancel()).tx.hash,
	},
	{
		name: "wallets-cancel",
		verdict: "Done",
		state: "Cancelled by you",
		steps: "done done skipped done done",
		says: "This was your cancel: it used up nonce 0 and did nothing else.",
		make: async () => (await ownCancel()).next.hash,
	},
	{
		name: "replaced",
		verdict: "Done",
		state: "Replaced",
		steps: "done done skipped done done",
		says: /Replaced by 0x[0-9a-f]{64}\./,
		make: async () => (await replaced(() => ({ value: 5n }))).tx.hash,
	},
	{
		name: "dropped",
		verdict: "Lost",
		state: "Dropped",
		steps: "done done skipped done failed",
		async make() {
			const { actor, tx } = await submitted();
			await fixture.publish(actor.sign({ ...HIGHER_FEES, value: 7n }));
			await fixture.passBlock();
			await fixture.reaches(tx, "DROPPED");
			return tx.hash;
		},
	},
	{
		name: "expired",
		verdict: "Lost",
		state: "Expired",
		steps: "done done skipped done failed",
		says: "What you can do: send it again",
		async make() {
			const { tx } = await submitted();
			for (let i = 0; i < TTL_BLOCKS; i++) await fixture.passBlock();
			await fixture.reaches(tx, "EXPIRED");
			return tx.hash;
		},
	},
	{
		name: "unknown",
		verdict: "Do this",
		state: "Not known here",
		steps: "",
		says: "What you can do: see below what to check.",
		make: async () => `0x${"ab".repeat(32)}`,
	},
	{
		name: "elsewhere",
		verdict: "Done",
		state: "Not sent through here",
		steps: "",
		async make() {
			const actor = await fixture.actor();
			await fixture.passBlock();
			const tx = actor.sign();
			await fixture.publish(tx);
			await fixture.passBlock();
			return tx.hash;
		},
	},
];

for (const [nth, { name, verdict, state, steps, says, make }] of STATES.entries()) {
	it(`shows at one look: ${name}`, async () => {
		const hash = await make();
		const { page } = opened;
		await page.goto(`${fixture.system.client.url}/tx/${hash}`);
		await page.locator("#state").getByText(state, { exact: true }).waitFor();
		await page.locator("#verdict").getByText(verdict, { exact: true }).waitFor();
		if (says !== undefined) await page.getByText(says).first().waitFor();
		assert.equal(await stepsOf(page), steps, name);
		await isRightInEveryLook(opened, `state-${name}`, nth);
		assert.deepEqual(opened.faults, []);
	});
}

it("loads less than 150 KB, and nothing from elsewhere", async () => {
	const { tx } = await submitted();
	await fixture.waitUntilSent(tx, { builders: ["dev"] });
	await fixture.system.nextBlock();
	await fixture.reaches(tx, "INCLUDED");
	const { url } = fixture.system.client;
	const { page, faults, close } = await openPage(browser, `${url}/`);
	for (const [path, last] of [
		[`/tx/${tx.hash}`, "#net"],
		["/refunds", ".no-wallet"],
	] as const) {
		await page.goto(`${url}${path}`);
		await page.locator(last).waitFor();
		const sizes = (await page.evaluate(
			"performance.getEntries().map(({ decodedBodySize = 0 }) => decodedBodySize)",
		)) as number[];
		const bytes = sizes.reduce((sum, size) => sum + size, 0);
		assert.ok(bytes > 10_000 && bytes < 150_000, `${path}: ${bytes} bytes`);
	}
	assert.deepEqual(faults, []);
	await close();
});

async function stepsOf(page: Page): Promise<string> {
	const classes = await page.evaluate(
		"[...document.querySelectorAll('#path li')].map(({ className }) => className).join(' ')",
	);
	return String(classes);
}
