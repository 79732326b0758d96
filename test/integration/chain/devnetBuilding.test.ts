// What the dev builder puts into a block, and in which order: by what it pays, all or nothing, nonces honoured
// across orders, public transactions last.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { BuiltBlock } from "../../devnet/blockMaker.ts";
import { CONTRACTS, type DevnetFixture, sample, startFixture, walletOf } from "../../devnet/devnetFixture.ts";

const GWEI = 1_000_000_000n;

let net: DevnetFixture;
before(async () => {
	net = await startFixture({ chain: { accounts: 20 } });
});
after(() => net.stop());

test("a bundle without a block number is for the next block, and an empty block is built", async () => {
	for (const blockNumber of [undefined, null, "0x"]) {
		const tx = await net.from(0);
		assert.deepEqual(Object.keys((await net.bundle([tx], { blockNumber })) as object), ["bundleHash"]);
		assert.deepEqual(hashes(await net.build()), [tx.hash]);
	}
	assert.deepEqual(hashes(await net.build()), []);
});

test("a bundle lands in its block only", async () => {
	const tx = await net.from(0);
	await net.bundle([tx], { blockNumber: await net.blockAfter(2) });
	assert.deepEqual(hashes(await net.build()), []);
	assert.deepEqual(hashes(await net.build()), [tx.hash]);
	const late = await net.from(0);
	await net.bundle([late], { blockNumber: await net.blockAfter(0) });
	assert.deepEqual(hashes(await net.build()), []);
	assert.equal(net.builder.bundles().at(-1)?.state, "expired");
});

test("orders are sorted by what they pay for each gas, transfers to the coinbase included", async () => {
	const cheap = await net.from(1, { tip: 2n * GWEI });
	const dear = await net.from(2, { tip: 5n * GWEI });
	const payer = await net.from(3, { to: CONTRACTS.payer, value: 10n ** 16n, tip: 0n });
	const direct = await net.from(4, {
		to: net.builder.coinbase,
		value: 10n ** 15n,
		tip: 0n,
		gasLimit: 21_000n,
	});
	await net.bundle([cheap]);
	await net.priv(dear);
	await net.bundle([payer]);
	await net.bundle([direct]);
	const block = await net.build();
	assert.deepEqual(
		hashes(block),
		[payer, direct, dear, cheap].map(({ hash }) => hash),
	);
	assert.deepEqual(
		block.orders.map(({ gain, gasUsed }) => [gain, gasUsed]),
		[
			[10n ** 16n, 27_814n],
			[10n ** 15n, 21_000n],
			[5n * GWEI * 21_000n, 21_000n],
			[2n * GWEI * 21_000n, 21_000n],
		],
	);
	assert.equal(block.coinbaseGain, 11n * 10n ** 15n + 7n * GWEI * 21_000n);
});

test("a bundle is all or nothing", async () => {
	const good = await net.from(1);
	const bad = await net.from(2, { to: CONTRACTS.refuser });
	await net.bundle([good, bad]);
	const block = await net.build();
	assert.deepEqual(hashes(block), []);
	assert.deepEqual(outcome(block), [["reverted", bad.hash]]);
});

test("of several backruns on one target the one that leaves the most is taken, those that revert are dropped, the target stays", async () => {
	const target = await net.from(1);
	// Dearer for each gas, and less in all: a plain transfer needs less gas than a call.
	const [lean, rich] = [
		await net.from(2, { to: net.builder.coinbase, value: 10n ** 16n, gasLimit: 21_000n, tip: 0n }),
		await net.from(3, { to: CONTRACTS.payer, value: 11n * 10n ** 15n, tip: 0n }),
	];
	const reverting = await net.from(4, { to: CONTRACTS.refuser });
	const refund = { refundPercent: 90, refundRecipient: walletOf("user").address };
	for (const backrun of [reverting, lean, rich])
		await net.bundle([target, backrun], { ...refund, refundTxHashes: [backrun.hash] });
	await net.bundle([target]);
	const block = await net.build();
	assert.deepEqual(hashes(block).slice(0, 2), [target.hash, rich.hash]);
	assert.equal(hashes(block).length, 3, "and its refund");

	const alone = await net.from(1);
	const failing = await net.from(4, { to: CONTRACTS.refuser });
	await net.bundle([alone, failing]);
	await net.bundle([alone]);
	assert.deepEqual(
		hashes(await net.build()),
		[alone.hash],
		"with no backrun that goes through it is there all the same",
	);
});

test("a transaction may revert where revertingTxHashes, or canRevert, says so", async () => {
	const good = await net.from(1);
	const bad = await net.from(2, { to: CONTRACTS.refuser });
	await net.bundle([good, bad], { revertingTxHashes: [bad.hash] });
	const other = await net.from(3, { to: CONTRACTS.refuser });
	const inclusion = { block: await net.blockAfter(1) };
	await net.client.call("mev_sendBundle", {
		version: "v0.1",
		inclusion,
		body: [{ tx: other.raw, canRevert: true }],
	});
	const block = await net.build();
	assert.deepEqual(new Set(hashes(block)), new Set([good.hash, bad.hash, other.hash]));
	assert.deepEqual(
		new Set(block.orders.flatMap(({ reverted }) => reverted)),
		new Set([bad.hash, other.hash]),
	);
	assert.deepEqual(await net.statuses(block), { [good.hash]: true, [bad.hash]: false, [other.hash]: false });
});

test("a droppable transaction is left out when it fails, and the rest lands", async () => {
	const target = await net.from(1);
	const backrun = await net.from(2, { to: CONTRACTS.refuser });
	await net.bundle([target, backrun], { droppingTxHashes: [backrun.hash] });
	assert.deepEqual(hashes(await net.build()), [target.hash]);
});

test("a private transaction is mined as reverted", async () => {
	const tx = await net.from(1, { to: CONTRACTS.refuser });
	assert.equal(await net.priv(tx), tx.hash);
	const block = await net.build();
	assert.deepEqual(await net.statuses(block), { [tx.hash]: false });
	assert.equal(net.builder.orders().at(-1)?.landed?.number, block.number);
});

test("nonces are honoured across orders, whatever they pay", async () => {
	const first = await net.from(1, { tip: GWEI });
	const second = await net.from(1, {
		tip: 9n * GWEI,
		nonce: (await net.nonce(net.chain.wallet(1).address)) + 1,
	});
	const third = await net.from(1, {
		tip: 5n * GWEI,
		nonce: (await net.nonce(net.chain.wallet(1).address)) + 2,
	});
	const stranger = await net.from(2, { tip: 3n * GWEI });
	for (const tx of [third, second]) await net.bundle([tx]);
	await net.priv(first);
	await net.bundle([stranger]);
	assert.deepEqual(
		hashes(await net.build()),
		[stranger, first, second, third].map(({ hash }) => hash),
	);
});

test("an order whose nonce nobody brings stays out, and lands once it is there", async () => {
	const gap = await net.from(1, { nonce: (await net.nonce(net.chain.wallet(1).address)) + 1 });
	await net.priv(gap);
	const block = await net.build();
	assert.deepEqual([hashes(block), outcome(block)], [[], [["nonceGap", gap.hash]]]);
	const filler = await net.from(1);
	await net.priv(filler);
	assert.deepEqual(hashes(await net.build()), [filler.hash, gap.hash]);
});

test("a transaction that is in several orders lands once, with the bundle that adds to it", async () => {
	const target = await net.from(1, { tip: 3n * GWEI });
	const backrun = await net.from(2, { to: CONTRACTS.payer, value: 1_000n, tip: 0n });
	await net.bundle([target]);
	await net.priv(target);
	// It pays less for each gas than the target alone, and more in all.
	await net.bundle([target, backrun]);
	const block = await net.build();
	assert.deepEqual(hashes(block), [target.hash, backrun.hash]);
	assert.deepEqual(outcome(block), [
		["duplicate", target.hash],
		["duplicate", target.hash],
	]);
});

test("of two bids for one opportunity the better lands; a bundle that fails leaves its target alone", async () => {
	const low = await net.from(1, { to: CONTRACTS.once, value: GWEI });
	const high = await net.from(2, { to: CONTRACTS.once, value: 5n * 10n ** 15n });
	await net.bundle([low]);
	await net.bundle([high]);
	const block = await net.build();
	assert.deepEqual([hashes(block), outcome(block)], [[high.hash], [["reverted", low.hash]]]);
	const target = await net.from(3);
	const failing = await net.from(4, { to: CONTRACTS.once, value: 10n ** 17n });
	await net.bundle([target, failing]);
	await net.bundle([target]);
	assert.deepEqual(hashes(await net.build()), [target.hash]);
});

test("an order that lives on what another one brings is tried behind it", async () => {
	const poor = walletOf("poor");
	const spending = await sample(poor, { tip: 50n * GWEI, gasLimit: 21_000n });
	const giving = await net.from(1, { to: poor.address, value: 10n ** 18n });
	await net.bundle([spending]);
	await net.bundle([giving]);
	assert.deepEqual(hashes(await net.build()), [giving.hash, spending.hash]);
});

test("public transactions come last and are kept when they do not fit", async () => {
	const open = await net.from(5, { tip: 90n * GWEI });
	const tooCheap = await net.from(6, { tip: 0n, maxFee: 1n });
	const queued = await net.from(7, { nonce: (await net.nonce(net.chain.wallet(7).address)) + 1 });
	for (const { raw } of [open, tooCheap, queued]) await net.chain.rpc("eth_sendRawTransaction", [raw]);
	const hidden = await net.from(1);
	await net.bundle([hidden]);
	const block = await net.build();
	assert.deepEqual(hashes(block), [hidden.hash, open.hash]);
	assert.deepEqual(block.publicTransactions, [open.hash]);
	const pool = JSON.stringify(await net.chain.rpc("txpool_content"));
	assert.ok(pool.includes(tooCheap.hash) && pool.includes(queued.hash) && !pool.includes(hidden.hash));
	await net.chain.rpc("anvil_dropAllTransactions");
});

test("timestamps are the parent's plus a slot, and bundles are held to theirs", async () => {
	const parent = await net.build();
	const early = await net.from(1);
	const late = await net.from(2);
	const fitting = await net.from(3);
	const at = parent.timestamp + 12;
	await net.bundle([early], { minTimestamp: at + 1 });
	await net.bundle([late], { maxTimestamp: at - 1 });
	await net.bundle([fitting], { minTimestamp: at, maxTimestamp: at });
	const block = await net.build();
	assert.equal(block.timestamp, at);
	assert.deepEqual(hashes(block), [fitting.hash]);
	assert.deepEqual(
		outcome(block).map(([reason]) => reason),
		["timestamp", "timestamp"],
	);
});

function hashes(block: BuiltBlock): readonly string[] {
	return block.transactions;
}

function outcome(block: BuiltBlock): [string, string | null][] {
	return block.leftOut.map(({ reason, at }) => [reason, at]);
}
