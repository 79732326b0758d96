// What the dev builder puts into a block, and in which order: by what it pays, all or nothing, nonces honoured
// across orders, public transactions last.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Wallet } from "ethers";
import type { BuiltBlock } from "../devnet/blockMaker.ts";
import {
	CONTRACTS,
	type DevnetFixture,
	type Sample,
	type SampleFields,
	sample,
	startFixture,
	walletOf,
} from "../devnet/devnetFixture.ts";

const GWEI = 1_000_000_000n;

let net: DevnetFixture;
before(async () => {
	net = await startFixture({ chain: { accounts: 20 } });
});
after(() => net.stop());

test("a bundle without a block number is for the next block, and an empty block is built", async () => {
	for (const blockNumber of [undefined, null, "0x"]) {
		const tx = await from(0);
		assert.deepEqual(Object.keys((await bundle([tx], { blockNumber })) as object), ["bundleHash"]);
		assert.deepEqual(hashes(await build()), [tx.hash]);
	}
	assert.deepEqual(hashes(await build()), []);
});

test("a bundle lands in its block only", async () => {
	const tx = await from(0);
	await bundle([tx], { blockNumber: await blockAfter(2) });
	assert.deepEqual(hashes(await build()), []);
	assert.deepEqual(hashes(await build()), [tx.hash]);
	const late = await from(0);
	await bundle([late], { blockNumber: await blockAfter(0) });
	assert.deepEqual(hashes(await build()), []);
	assert.equal(net.builder.bundles().at(-1)?.state, "expired");
});

test("orders are sorted by what they pay for each gas, transfers to the coinbase included", async () => {
	const cheap = await from(1, { tip: 2n * GWEI });
	const dear = await from(2, { tip: 5n * GWEI });
	const payer = await from(3, { to: CONTRACTS.payer, value: 10n ** 16n, tip: 0n });
	const direct = await from(4, { to: net.builder.coinbase, value: 10n ** 15n, tip: 0n, gasLimit: 21_000n });
	await bundle([cheap]);
	await priv(dear);
	await bundle([payer]);
	await bundle([direct]);
	const block = await build();
	assert.deepEqual(
		hashes(block),
		[payer, direct, dear, cheap].map(({ hash }) => hash),
	);
	assert.deepEqual(
		block.orders.map(({ gain, gasUsed }) => [gain, gasUsed]),
		[
			[10n ** 16n, 27_815n],
			[10n ** 15n, 21_000n],
			[5n * GWEI * 21_000n, 21_000n],
			[2n * GWEI * 21_000n, 21_000n],
		],
	);
	assert.equal(block.coinbaseGain, 11n * 10n ** 15n + 7n * GWEI * 21_000n);
});

test("a bundle is all or nothing", async () => {
	const good = await from(1);
	const bad = await from(2, { to: CONTRACTS.refuser });
	await bundle([good, bad]);
	const block = await build();
	assert.deepEqual(hashes(block), []);
	assert.deepEqual(outcome(block), [["reverted", bad.hash]]);
});

test("a transaction may revert where revertingTxHashes, or canRevert, says so", async () => {
	const good = await from(1);
	const bad = await from(2, { to: CONTRACTS.refuser });
	await bundle([good, bad], { revertingTxHashes: [bad.hash] });
	const other = await from(3, { to: CONTRACTS.refuser });
	const inclusion = { block: await blockAfter(1) };
	await net.client.call("mev_sendBundle", {
		version: "v0.1",
		inclusion,
		body: [{ tx: other.raw, canRevert: true }],
	});
	const block = await build();
	assert.deepEqual(new Set(hashes(block)), new Set([good.hash, bad.hash, other.hash]));
	assert.deepEqual(
		new Set(block.orders.flatMap(({ reverted }) => reverted)),
		new Set([bad.hash, other.hash]),
	);
	assert.deepEqual(await statuses(block), { [good.hash]: "0x1", [bad.hash]: "0x0", [other.hash]: "0x0" });
});

test("a droppable transaction is left out when it fails, and the rest lands", async () => {
	const target = await from(1);
	const backrun = await from(2, { to: CONTRACTS.refuser });
	await bundle([target, backrun], { droppingTxHashes: [backrun.hash] });
	assert.deepEqual(hashes(await build()), [target.hash]);
});

test("a private transaction is mined as reverted", async () => {
	const tx = await from(1, { to: CONTRACTS.refuser });
	assert.equal(await priv(tx), tx.hash);
	const block = await build();
	assert.deepEqual(await statuses(block), { [tx.hash]: "0x0" });
	assert.equal(net.builder.orders().at(-1)?.landed?.number, block.number);
});

test("nonces are honoured across orders, whatever they pay", async () => {
	const first = await from(1, { tip: GWEI });
	const second = await from(1, { tip: 9n * GWEI, nonce: (await nonce(net.chain.wallet(1))) + 1 });
	const third = await from(1, { tip: 5n * GWEI, nonce: (await nonce(net.chain.wallet(1))) + 2 });
	const stranger = await from(2, { tip: 3n * GWEI });
	for (const tx of [third, second]) await bundle([tx]);
	await priv(first);
	await bundle([stranger]);
	assert.deepEqual(
		hashes(await build()),
		[stranger, first, second, third].map(({ hash }) => hash),
	);
});

test("an order whose nonce nobody brings stays out, and lands once it is there", async () => {
	const gap = await from(1, { nonce: (await nonce(net.chain.wallet(1))) + 1 });
	await priv(gap);
	const block = await build();
	assert.deepEqual([hashes(block), outcome(block)], [[], [["nonceGap", gap.hash]]]);
	const filler = await from(1);
	await priv(filler);
	assert.deepEqual(hashes(await build()), [filler.hash, gap.hash]);
});

test("a transaction that is in several orders lands once, with the bundle that adds to it", async () => {
	const target = await from(1, { tip: 3n * GWEI });
	const backrun = await from(2, { to: CONTRACTS.payer, value: 1_000n, tip: 0n });
	await bundle([target]);
	await priv(target);
	// It pays less for each gas than the target alone, and more in all.
	await bundle([target, backrun]);
	const block = await build();
	assert.deepEqual(hashes(block), [target.hash, backrun.hash]);
	assert.deepEqual(outcome(block), [
		["duplicate", target.hash],
		["duplicate", target.hash],
	]);
});

test("of two bids for one opportunity the better lands; a bundle that fails leaves its target alone", async () => {
	const low = await from(1, { to: CONTRACTS.once, value: GWEI });
	const high = await from(2, { to: CONTRACTS.once, value: 5n * 10n ** 15n });
	await bundle([low]);
	await bundle([high]);
	const block = await build();
	assert.deepEqual([hashes(block), outcome(block)], [[high.hash], [["reverted", low.hash]]]);
	const target = await from(3);
	const failing = await from(4, { to: CONTRACTS.once, value: 10n ** 17n });
	await bundle([target, failing]);
	await bundle([target]);
	assert.deepEqual(hashes(await build()), [target.hash]);
});

test("an order that lives on what another one brings is tried behind it", async () => {
	const poor = walletOf("poor");
	const spending = await sample(poor, { tip: 50n * GWEI, gasLimit: 21_000n });
	const giving = await from(1, { to: poor.address, value: 10n ** 18n });
	await bundle([spending]);
	await bundle([giving]);
	assert.deepEqual(hashes(await build()), [giving.hash, spending.hash]);
});

test("public transactions come last and are kept when they do not fit", async () => {
	const open = await from(5, { tip: 90n * GWEI });
	const tooCheap = await from(6, { tip: 0n, maxFee: 1n });
	const queued = await from(7, { nonce: (await nonce(net.chain.wallet(7))) + 1 });
	for (const { raw } of [open, tooCheap, queued]) await net.chain.rpc("eth_sendRawTransaction", [raw]);
	const hidden = await from(1);
	await bundle([hidden]);
	const block = await build();
	assert.deepEqual(hashes(block), [hidden.hash, open.hash]);
	assert.deepEqual(block.publicTransactions, [open.hash]);
	const pool = JSON.stringify(await net.chain.rpc("txpool_content"));
	assert.ok(pool.includes(tooCheap.hash) && pool.includes(queued.hash) && !pool.includes(hidden.hash));
	await net.chain.rpc("anvil_dropAllTransactions");
});

test("timestamps are the parent's plus a slot, and bundles are held to theirs", async () => {
	const parent = await build();
	const early = await from(1);
	const late = await from(2);
	const fitting = await from(3);
	const at = parent.timestamp + 12;
	await bundle([early], { minTimestamp: at + 1 });
	await bundle([late], { maxTimestamp: at - 1 });
	await bundle([fitting], { minTimestamp: at, maxTimestamp: at });
	const block = await build();
	assert.equal(block.timestamp, at);
	assert.deepEqual(hashes(block), [fitting.hash]);
	assert.deepEqual(
		outcome(block).map(([reason]) => reason),
		["timestamp", "timestamp"],
	);
});

async function build(): Promise<BuiltBlock> {
	const block = await net.builder.buildBlock();
	assert.equal(block.asTried, true);
	return block;
}

async function from(account: number, fields: SampleFields = {}): Promise<Sample> {
	const wallet = net.chain.wallet(account);
	return sample(wallet, { nonce: await nonce(wallet), ...fields });
}

async function nonce(wallet: Wallet): Promise<number> {
	return Number(await net.chain.rpc("eth_getTransactionCount", [wallet.address, "latest"]));
}

async function blockAfter(count: number): Promise<string> {
	return `0x${(Number(await net.chain.rpc("eth_blockNumber")) + count).toString(16)}`;
}

function bundle(txs: readonly Sample[], fields: object = {}): Promise<unknown> {
	return net.client.call("eth_sendBundle", { txs: txs.map(({ raw }) => raw), ...fields });
}

function priv(tx: Sample): Promise<unknown> {
	return net.client.call("eth_sendPrivateRawTransaction", tx.raw);
}

function hashes(block: BuiltBlock): readonly string[] {
	return block.transactions;
}

function outcome(block: BuiltBlock): [string, string | null][] {
	return block.leftOut.map(({ reason, at }) => [reason, at]);
}

async function statuses(block: BuiltBlock): Promise<Record<string, string>> {
	const receipts = await net.chain.rpc("eth_getBlockReceipts", [`0x${block.number.toString(16)}`]);
	const list = receipts as { transactionHash: string; status: string }[];
	return Object.fromEntries(list.map(({ transactionHash, status }) => [transactionHash, status]));
}
