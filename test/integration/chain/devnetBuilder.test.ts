// The dev builder, which the tests of the relay and `npm start` rely on: what it puts into a block
// and in which order, and what it pays back behind a bundle, to the wei.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { BuiltBlock } from "../../devnet/blockMaker.ts";
import { CONTRACTS, type DevnetFixture, startFixture, walletOf } from "../../devnet/devnetFixture.ts";

const GWEI = 1_000_000_000n;
const TRANSFER_GAS = 21_000n;
const BID = 123_456_789_012_345n;

let net: DevnetFixture;
before(async () => {
	net = await startFixture({ chain: { accounts: 20 } });
});
after(() => net.stop());

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
	const low = await net.from(1, { tip: 2n * GWEI });
	const high = await net.from(2, { tip: 5n * GWEI });
	const payer = await net.from(3, { to: CONTRACTS.payer, value: 10n ** 16n, tip: 0n });
	const direct = await net.from(4, {
		to: net.builder.coinbase,
		value: 10n ** 15n,
		tip: 0n,
		gasLimit: 21_000n,
	});
	await net.bundle([low]);
	await net.priv(high);
	await net.bundle([payer]);
	await net.bundle([direct]);
	const block = await net.build();
	assert.deepEqual(
		hashes(block),
		[payer, direct, high, low].map(({ hash }) => hash),
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

test("the backrun that leaves the most follows its target; reverting backruns are dropped, and the target stays", async () => {
	const target = await net.from(1);
	// Higher for each gas, and lower in all: a plain transfer needs less gas than a call.
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

test("a droppable transaction is left out when it fails, and the rest lands", async () => {
	const target = await net.from(1);
	const backrun = await net.from(2, { to: CONTRACTS.refuser });
	await net.bundle([target, backrun], { droppingTxHashes: [backrun.hash] });
	assert.deepEqual(hashes(await net.build()), [target.hash]);
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

test("by default the last transaction's gain is shared, with the first one's sender", async () => {
	const target = await net.from(0, { tip: 3n * GWEI });
	const backrun = await net.from(1, { to: CONTRACTS.payer, value: BID, tip: 2n * GWEI });
	await net.bundle([target, backrun], { refundPercent: 90 });
	const before = await net.balance(target.from);
	const block = await net.build();
	const gain = BID + (await priorityFee(backrun.hash, block));
	const refund = (gain * 90n) / 100n;
	const [order] = block.orders;
	assert.deepEqual(
		order?.refunds.map(({ recipient, amount, skipped }) => [recipient, amount, skipped]),
		[[target.from, refund, null]],
	);
	// It is in the block, right behind the bundle, signed by the coinbase.
	const hash = order?.refunds[0]?.hash;
	assert.deepEqual(block.transactions, [target.hash, backrun.hash, hash]);
	const transfer = (await net.chain.rpc("eth_getTransactionByHash", [hash])) as Record<string, string>;
	assert.equal(transfer.from, net.builder.coinbase.toLowerCase());
	assert.equal(BigInt(transfer.value ?? 0), refund);
	const paid = await spent(target.hash);
	assert.equal(await net.balance(target.from), before - paid - 1n + refund);
	// The builder keeps the rest, less the gas of the transfer.
	const tips = gain + (await priorityFee(target.hash, block));
	assert.equal(block.coinbaseGain, tips - refund - TRANSFER_GAS * block.baseFeePerGas);
});

test("refundRecipient and refundTxHashes say who, and of what", async () => {
	const target = await net.from(0, { tip: 7n * GWEI });
	const backrun = await net.from(1, { to: CONTRACTS.payer, value: BID, tip: 0n });
	const recipient = walletOf("refund recipient").address;
	await net.bundle([target, backrun], {
		refundPercent: 99,
		refundRecipient: recipient,
		refundTxHashes: [target.hash],
	});
	const block = await net.build();
	const refund = ((await priorityFee(target.hash, block)) * 99n) / 100n;
	assert.equal(await net.balance(recipient), refund);
	assert.equal(refund, (7n * GWEI * 21_000n * 99n) / 100n);
});

test("mev_sendBundle: what the other entries bring is shared as refundConfig says", async () => {
	const target = await net.from(0, { tip: 2n * GWEI });
	const backrun = await net.from(1, { to: CONTRACTS.payer, value: BID, tip: 0n });
	const [a, b] = [walletOf("share a").address, walletOf("share b").address];
	const answer = await net.client.call("mev_sendBundle", {
		version: "v0.1",
		inclusion: { block: await net.blockAfter(1), maxBlock: await net.blockAfter(3) },
		body: [
			{ tx: target.raw, canRevert: false },
			{ tx: backrun.raw, canRevert: false },
		],
		validity: {
			refund: [{ bodyIdx: 0, percent: 80 }],
			refundConfig: [
				{ address: a, percent: 75 },
				{ address: b, percent: 25 },
			],
		},
		privacy: { hints: [], builders: ["dev"] },
	});
	assert.deepEqual(answer, { bundleHash: net.builder.bundles().at(-1)?.hash });
	await net.build();
	assert.equal(await net.balance(a), (BID * 60n) / 100n);
	assert.equal(await net.balance(b), (BID * 20n) / 100n);
});

test("a recipient with code gets more gas; one that takes no ether keeps the bundle out", async () => {
	const target = await net.from(0);
	const backrun = await net.from(1, { to: CONTRACTS.payer, value: BID, tip: 0n });
	await net.bundle([target, backrun], { refundPercent: 90, refundRecipient: CONTRACTS.wallet });
	await net.build();
	assert.equal(await net.balance(CONTRACTS.wallet), (BID * 90n) / 100n);
	const again = await net.from(0);
	const other = await net.from(1, { to: CONTRACTS.payer, value: BID, tip: 0n });
	await net.bundle([again, other], { refundPercent: 90, refundRecipient: CONTRACTS.refuser });
	const block = await net.build();
	assert.deepEqual(block.transactions, []);
	assert.deepEqual(
		block.leftOut.map(({ reason }) => reason),
		["refundFailed"],
	);
});

test("a coinbase that is short of ether skips the refund and says so", async () => {
	const balance = await net.balance(net.builder.coinbase);
	await net.chain.rpc("anvil_setBalance", [net.builder.coinbase, "0x0"]);
	const target = await net.from(0, { tip: 0n });
	const backrun = await net.from(1, { to: CONTRACTS.payer, value: 30_000n * GWEI, tip: 0n });
	await net.bundle([target, backrun], { refundPercent: 99 });
	const block = await net.build();
	assert.deepEqual(block.transactions, [target.hash, backrun.hash]);
	assert.equal(block.orders[0]?.refunds[0]?.skipped, "coinbase balance");
	assert.equal(block.coinbaseGain, 30_000n * GWEI);
	await net.chain.rpc("anvil_setBalance", [net.builder.coinbase, `0x${balance.toString(16)}`]);
});

test("refundGas makes a refund bear its own gas", async () => {
	const other = await startFixture({ builder: { refundGas: TRANSFER_GAS } });
	try {
		const target = await other.from(0);
		const backrun = await other.from(1, { to: CONTRACTS.payer, value: BID, tip: 0n });
		await other.bundle([target, backrun], { refundPercent: 90 });
		const block = await other.build();
		const amount = (BID * 90n) / 100n - TRANSFER_GAS * block.baseFeePerGas;
		assert.equal(block.orders[0]?.refunds[0]?.amount, amount);
	} finally {
		await other.stop();
	}
});

function hashes(block: BuiltBlock): readonly string[] {
	return block.transactions;
}

function outcome(block: BuiltBlock): [string, string | null][] {
	return block.leftOut.map(({ reason, at }) => [reason, at]);
}

async function priorityFee(hash: string, block: BuiltBlock): Promise<bigint> {
	const receipt = (await net.chain.rpc("eth_getTransactionReceipt", [hash])) as Record<string, string>;
	return (BigInt(receipt.effectiveGasPrice ?? 0) - block.baseFeePerGas) * BigInt(receipt.gasUsed ?? 0);
}

async function spent(hash: string): Promise<bigint> {
	const receipt = (await net.chain.rpc("eth_getTransactionReceipt", [hash])) as Record<string, string>;
	return BigInt(receipt.effectiveGasPrice ?? 0) * BigInt(receipt.gasUsed ?? 0);
}
