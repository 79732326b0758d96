// What the dev builder pays back: behind the bundle, in the same block, from its coinbase's key, to the wei.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { BuiltBlock } from "../../devnet/blockMaker.ts";
import { CONTRACTS, type DevnetFixture, startFixture, walletOf } from "../../devnet/devnetFixture.ts";

const GWEI = 1_000_000_000n;
const TRANSFER_GAS = 21_000n;
const BID = 123_456_789_012_345n;

let net: DevnetFixture;
before(async () => {
	net = await startFixture();
});
after(() => net.stop());

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

test("several refunds in one block each stand behind their bundle", async () => {
	const bundles = [];
	for (const account of [0, 2, 4]) {
		const target = await net.from(account);
		const value = BID * BigInt(account + 1);
		const backrun = await net.from(account + 1, { to: CONTRACTS.payer, value, tip: 0n });
		await net.bundle([target, backrun], { refundPercent: 50 });
		bundles.unshift([target.hash, backrun.hash]);
	}
	const block = await net.build();
	const refunds = block.orders.map((order) => order.refunds[0]?.hash ?? "");
	assert.deepEqual(
		block.transactions,
		bundles.flatMap((hashes, i) => [...hashes, refunds[i]]),
	);
	assert.deepEqual(
		block.orders.map((order) => order.refunds[0]?.amount),
		[5n, 3n, 1n].map((factor) => (BID * factor) / 2n),
	);
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

test("mev_sendBundle without refundConfig pays the sender of the entry", async () => {
	const target = await net.from(0);
	const backrun = await net.from(1, { to: CONTRACTS.payer, value: BID, tip: 0n });
	await net.client.call("mev_sendBundle", {
		version: "v0.1",
		inclusion: { block: await net.blockAfter(1) },
		body: [{ tx: target.raw }, { tx: backrun.raw }],
		validity: { refund: [{ bodyIdx: 0, percent: 100 }] },
	});
	const block = await net.build();
	const [refund] = block.orders[0]?.refunds ?? [];
	assert.deepEqual([refund?.recipient, refund?.amount], [target.from, BID]);
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

test("a refund whose gain depends on the block is paid by what it is in the block", async () => {
	// Both want the only call that goes through; the first by pay lands, and its refund is of that block.
	const first = await net.from(0, { to: CONTRACTS.once, value: 9n * BID, tip: 0n });
	const second = await net.from(1, { to: CONTRACTS.once, value: 3n * BID, tip: 4n * GWEI });
	await net.bundle([first], { refundPercent: 50 });
	await net.bundle([second], { refundPercent: 50, revertingTxHashes: [second.hash] });
	const block = await net.build();
	const refunds = new Map(block.orders.map((order) => [order.hashes[0], order.refunds[0]?.amount]));
	assert.equal(refunds.get(first.hash), (9n * BID) / 2n);
	assert.equal(refunds.get(second.hash), (await priorityFee(second.hash, block)) / 2n);
	assert.deepEqual((await net.statuses(block))[second.hash], false);
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

async function priorityFee(hash: string, block: BuiltBlock): Promise<bigint> {
	const receipt = (await net.chain.rpc("eth_getTransactionReceipt", [hash])) as Record<string, string>;
	return (BigInt(receipt.effectiveGasPrice ?? 0) - block.baseFeePerGas) * BigInt(receipt.gasUsed ?? 0);
}

async function spent(hash: string): Promise<bigint> {
	const receipt = (await net.chain.rpc("eth_getTransactionReceipt", [hash])) as Record<string, string>;
	return BigInt(receipt.effectiveGasPrice ?? 0) * BigInt(receipt.gasUsed ?? 0);
}
