// A failover of boost to a relay whose node is three blocks behind, both on real chains: the height
// that clients receive does not fall, by call, in a batch and by subscription; and a chain that
// really went back comes through.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type DevChain, startDevChain } from "../../devnet/devChain.ts";
import { type BoostClient, type BoostFixture, QUIET, startBoostFixture } from "../../support/boostFixture.ts";
import { FeedClient } from "../../support/feeds.ts";
import { figureOf, type WireAnswer } from "../../support/relayClient.ts";
import { until } from "../../support/until.ts";

let fixture: BoostFixture;
let boost: BoostClient;
let behind: DevChain;
before(async () => {
	behind = await startDevChain({ slotSeconds: 1 });
	fixture = await startBoostFixture({ ...QUIET, fallback: { ETH_RPC_URL: behind.url } });
	boost = fixture.boost;
});
after(async () => {
	await fixture?.stop();
	await behind?.stop();
});

const hex = (number: number) => `0x${number.toString(16)}`;

/** Copies the chain to the fallback's node, and waits until the fallback has seen its head. */
async function copyChain(): Promise<void> {
	const { chain } = fixture.system;
	await behind.rpc("anvil_loadState", [await chain.rpc("anvil_dumpState")]);
	const number = Number(await chain.rpc("eth_blockNumber"));
	await until(
		"the fallback sees it",
		async () => (await figureOf(fixture.fallbackUrl, "relay_head_number")) === number,
	);
}

test("the height does not fall, by call, in a batch and by subscription", async () => {
	const { users, system } = fixture;
	await users.passBlock();
	const feed = await FeedClient.open(`ws://127.0.0.1:${boost.port}/fast`);
	const heads = await feed.subscribe("newHeads");
	const announced = () => feed.received(heads).map(({ number }) => Number(number));
	await copyChain();
	const tx = (await users.actor()).sign();
	await users.passBlock();
	await users.publish(tx);
	await users.passBlock();
	const top = await users.passBlock();
	await until("it is announced", () => announced().includes(top));
	assert.notEqual(await boost.result("eth_getTransactionReceipt", [tx.hash]), null);
	assert.equal(await boost.result("eth_blockNumber"), hex(top));

	await fixture.goesOut();
	for (let i = 0; i < 5; i += 1) {
		const { json, headers } = await boost.call("eth_blockNumber");
		assert.equal((json as WireAnswer).result, hex(top));
		assert.equal(headers["x-boost-upstream"], "fallback");
	}
	const height = { jsonrpc: "2.0", id: "height", method: "eth_blockNumber", params: [] };
	const chain = { jsonrpc: "2.0", id: "chain", method: "eth_chainId", params: [] };
	const receipt = { jsonrpc: "2.0", id: "receipt", method: "eth_getTransactionReceipt", params: [tx.hash] };
	const wrong = { jsonrpc: "2.0", id: "wrong", method: "eth_getBalance", params: ["0x12", "latest"] };
	const batch = (await boost.post([chain, receipt, wrong, height])).json as readonly WireAnswer[];
	const [id, missing, refused, number] = batch;
	assert.deepEqual(
		batch.map((one) => one.id),
		["chain", "receipt", "wrong", "height"],
	);
	assert.deepEqual(
		[id?.result, missing?.result, number?.result],
		[hex(system.chain.chainId), null, hex(top)],
	);
	assert.equal(refused?.error?.code, -32602);
	const told = await feed.ask("eth_blockNumber", []);
	assert.equal(told.result, hex(top));

	await fixture.comesBack();
	assert.notEqual(await boost.result("eth_getTransactionReceipt", [tx.hash]), null);
	const next = await users.passBlock();
	await until("the next one is announced", () => announced().includes(next));
	assert.deepEqual(
		announced(),
		[...new Set(announced())].sort((a, b) => a - b),
	);
	feed.close();
});

test("a chain that went back comes through", async () => {
	const { users, system } = fixture;
	const snapshot = await system.chain.snapshot();
	const low = await users.head();
	await users.passBlock();
	const top = await users.passBlock();
	assert.equal(await boost.result("eth_blockNumber"), hex(top));
	await system.chain.revert(snapshot);
	assert.equal(await boost.result("eth_blockNumber"), hex(top));
	await until("it is reported", async () => (await boost.result("eth_blockNumber")) === hex(low));
	assert.equal(await boost.result("eth_getBlockByNumber", [hex(top), false]), null);
});
