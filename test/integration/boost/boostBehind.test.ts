// A failover of boost to a relay whose node is three blocks behind, both on real chains: clients are not told less than the relay
// told them, by call, in a batch and by subscription; and a chain that really went back comes through.

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

test("no number falls, and nothing that was told is null or []", async () => {
	const { users, system } = fixture;
	await users.passBlock();
	const feed = await FeedClient.open(`ws://127.0.0.1:${boost.port}/fast`);
	const heads = await feed.subscribe("newHeads");
	const announced = () => feed.received(heads).map(({ number }) => Number(number));
	await copyChain();
	const tx = (await users.actor()).sign();
	await users.passBlock();
	await users.publish(tx);
	const number = await users.passBlock();
	const top = await users.passBlock();
	await until("it is announced", () => announced().includes(top));
	const block = (await boost.result("eth_getBlockByNumber", [hex(number), false])) as { hash: string };
	assert.ok((await boost.result("eth_getTransactionReceipt", [tx.hash])) !== null);
	assert.equal(await boost.result("eth_blockNumber"), hex(top));

	await fixture.goesOut();
	for (let i = 0; i < 5; i += 1) {
		const { json, headers } = await boost.call("eth_blockNumber");
		assert.equal((json as WireAnswer).result, hex(top));
		assert.equal(headers["x-boost-upstream"], "fallback");
	}
	const reads = [
		["eth_getBlockByNumber", [hex(number), false]],
		["eth_getBlockByHash", [block.hash, false]],
		["eth_getBlockReceipts", [hex(number)]],
		["eth_getBlockTransactionCountByHash", [block.hash]],
		["eth_getTransactionByBlockNumberAndIndex", [hex(number), "0x0"]],
		["eth_getTransactionReceipt", [tx.hash]],
		["eth_getLogs", [{ fromBlock: hex(number), toBlock: hex(number) }]],
		["eth_getLogs", [{ blockHash: block.hash }]],
	] as const;
	const calls = reads.map(([method, params], id) => ({ jsonrpc: "2.0", id, method, params }));
	for (const call of calls) {
		const { error, result } = (await boost.post(call)).json as WireAnswer;
		assert.equal(error?.code, -32000, `${call.method} ${JSON.stringify(error ?? result)}`);
		assert.match(error.message, /^header not found: /, call.method);
	}
	const height = { jsonrpc: "2.0", id: "height", method: "eth_blockNumber", params: [] };
	const chain = { jsonrpc: "2.0", id: "chain", method: "eth_chainId", params: [] };
	const batch = (await boost.post([chain, ...calls, height])).json as readonly WireAnswer[];
	assert.equal(batch.length, calls.length + 2);
	assert.deepEqual([batch[0]?.result, batch.at(-1)?.result], [hex(system.chain.chainId), hex(top)]);
	for (const { error } of batch.slice(1, -1)) assert.ok(error !== undefined);
	const told = await feed.ask("eth_blockNumber", []);
	assert.equal(told.result, hex(top));
	assert.equal(await boost.result("eth_getTransactionReceipt", [`0x${"77".repeat(32)}`]), null);

	await fixture.comesBack();
	assert.ok((await boost.result("eth_getBlockByNumber", [hex(number), false])) !== null);
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
	await until("it is told", async () => (await boost.result("eth_blockNumber")) === hex(low));
	assert.equal(await boost.result("eth_getBlockByNumber", [hex(top), false]), null);
});
