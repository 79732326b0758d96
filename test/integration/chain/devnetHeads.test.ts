// What others see of a build on the watched chain: one new head for each, no reorganisation, and nothing private in
// the pool outside a burst. And what the builder does when the chain itself is turned back.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ZeroHash } from "ethers";
import WebSocket from "ws";
import { CONTRACTS, type DevnetFixture, startFixture } from "../../devnet/devnetFixture.ts";

interface Head {
	readonly number: string;
	readonly hash: string;
	readonly parentHash: string;
}

let net: DevnetFixture;
let socket: WebSocket;
const heads: Head[] = [];
/** Called at each head. */
let woken = (): void => {};

before(async () => {
	net = await startFixture({ chain: { accounts: 30 } });
	socket = new WebSocket(net.chain.wsUrl);
	await new Promise((resolve) => socket.once("open", resolve));
	const subscribed = new Promise((resolve) => socket.once("message", resolve));
	socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params: ["newHeads"] }));
	await subscribed;
	socket.on("message", (data) => {
		const { params } = JSON.parse(String(data)) as { params?: { result: Head } };
		if (params !== undefined) heads.push(params.result);
		woken();
	});
});
after(async () => {
	socket.terminate();
	await net.stop();
});

test("each build is one new head on its parent, however much was tried", async () => {
	const built = [await net.build()];
	// Bids that exclude each other, fail, are refunded and dropped: many trials.
	for (let round = 0; round < 3; round++) {
		await net.chain.rpc("anvil_setStorageAt", [CONTRACTS.once, "0x0", ZeroHash]);
		const target = await net.from(0);
		for (let bidder = 1; bidder <= 4; bidder++) {
			const value = BigInt(bidder) * 10n ** 15n;
			const backrun = await net.from(bidder, { to: CONTRACTS.once, value, tip: 0n });
			await net.bundle([target, backrun], { refundPercent: 90 });
		}
		const failing = await net.from(5, { to: CONTRACTS.refuser });
		await net.bundle([await net.from(6), failing], { droppingTxHashes: [failing.hash] });
		await net.bundle([failing]);
		const block = await net.build();
		assert.deepEqual(
			block.orders.map((order) => order.hashes.length),
			[2, 1],
		);
		built.push(block);
	}
	await headsUntil(built.at(-1)?.hash);
	assert.deepEqual(
		heads.map(({ hash }) => hash),
		built.map(({ hash }) => hash),
	);
	assert.deepEqual(
		heads.map(({ number }) => Number(number)),
		built.map((_, i) => i + 1),
	);
	for (const [i, head] of heads.slice(1).entries()) assert.equal(head.parentHash, heads[i]?.hash);
});

test("outside a burst nothing private is in the pool, and a burst waits", async () => {
	const transactions = [];
	for (let account = 0; account < 25; account++) {
		const tx = await net.from(account);
		await net.bundle([tx]);
		transactions.push(tx.hash);
	}
	const count = net.builder.burstCount;
	let building: Promise<unknown> = Promise.resolve();
	await net.builder.outsideBurst(async () => {
		building = net.builder.buildBlock();
		for (let look = 0; look < 10; look++) {
			assert.equal(net.builder.burst, false);
			assert.deepEqual(await net.chain.rpc("txpool_status"), { pending: "0x0", queued: "0x0" });
		}
		assert.equal(net.builder.burstCount, count);
	});
	const looking = net.builder.outsideBurst(() => net.chain.rpc("txpool_status"));
	await building;
	assert.deepEqual(await looking, { pending: "0x0", queued: "0x0" });
	assert.equal(net.builder.burstCount, count + 1);
	assert.deepEqual(new Set(net.builder.blocks().at(-1)?.transactions), new Set(transactions));
});

test("what a reorganisation takes out of the chain is built again", async () => {
	const snapshot = await net.chain.snapshot();
	const priv = await net.from(7);
	const bundle = await net.from(8);
	await net.priv(priv);
	await net.bundle([bundle]);
	const first = await net.build();
	assert.deepEqual(new Set(first.transactions), new Set([priv.hash, bundle.hash]));
	await net.chain.revert(snapshot);
	const again = await net.build();
	assert.deepEqual(new Set(again.transactions), new Set([priv.hash, bundle.hash]));
	assert.equal(again.number, first.number);
	assert.equal(net.builder.orders().at(-1)?.landed?.hash, again.hash);
	assert.deepEqual((await net.build()).transactions, []);
});

test("blocks and cheat codes of others are taken into account", async () => {
	await net.chain.rpc("evm_mine");
	const poor = await net.from(9);
	await net.bundle([poor]);
	await net.chain.rpc("anvil_setBalance", [poor.from, "0x0"]);
	const without = await net.build();
	assert.deepEqual(without.transactions, []);
	assert.deepEqual(
		without.leftOut.map(({ reason }) => reason),
		["invalid"],
	);
	await net.chain.rpc("anvil_setBalance", [poor.from, "0xde0b6b3a7640000"]);
	await net.chain.rpc("anvil_setNextBlockBaseFeePerGas", ["0x12a05f200"]);
	await net.bundle([poor]);
	const block = await net.build();
	assert.deepEqual(block.transactions, [poor.hash]);
	assert.equal(block.baseFeePerGas, 5_000_000_000n);
});

test("a head that moves while a block is chosen is built on", async () => {
	const tx = await net.from(10);
	await net.bundle([tx], { blockNumber: await net.blockAfter(2) });
	// The burst waits behind this, the block having been chosen for the old head or not.
	let building: Promise<{ readonly transactions: readonly string[] }> | undefined;
	await net.builder.outsideBurst(async () => {
		building = net.builder.buildBlock();
		await net.chain.rpc("evm_mine");
	});
	assert.deepEqual((await building)?.transactions, [tx.hash]);
});

/** Resolves once the head with `hash` was told. */
function headsUntil(hash: string | undefined): Promise<void> {
	return new Promise((resolve) => {
		woken = () => {
			if (heads.at(-1)?.hash === hash) resolve();
		};
		woken();
	});
}
