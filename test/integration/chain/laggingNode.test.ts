// A relay whose node is a load balancer, in front of two real chains of which one is three blocks
// behind: the height that clients receive does not fall. A chain that really went back comes
// through.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type DevChain, startDevChain } from "../../devnet/devChain.ts";
import { QUIET } from "../../support/boostFixture.ts";
import { FeedClient } from "../../support/feeds.ts";
import type { NodeProxy } from "../../support/nodes.ts";
import { RelayFixture } from "../../support/relayFixture.ts";
import { headOf, startSystem, type TestSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

let system: TestSystem;
let users: RelayFixture;
let balancer: NodeProxy;
let behind: DevChain;
let feed: FeedClient;
let heads: string;
before(async () => {
	system = await startSystem({ ...QUIET.system, proxied: true, chain: { slotSeconds: 1 } });
	users = new RelayFixture(system);
	balancer = system.node as NodeProxy;
	behind = await startDevChain({ slotSeconds: 1 });
	feed = await FeedClient.open(system.client.url.replace("http", "ws"));
	heads = await feed.subscribe("newHeads");
});
after(async () => {
	feed?.close();
	await system?.stop();
	await behind?.stop();
});

const hex = (number: number) => `0x${number.toString(16)}`;
const announced = () => feed.received(heads).map(({ number }) => Number(number));

/** Three blocks that the other node does not have, one with a transaction; all were announced. */
async function threeAhead(): Promise<{ readonly top: number; readonly tx: string }> {
	await behind.rpc("anvil_loadState", [await system.chain.rpc("anvil_dumpState")]);
	const tx = (await users.actor()).sign();
	await users.passBlock();
	await users.publish(tx);
	await users.passBlock();
	const top = await users.passBlock();
	await until("they are announced", () => announced().includes(top));
	assert.notEqual(await system.client.call("eth_getTransactionReceipt", [tx.hash]), null);
	assert.equal(await system.client.call("eth_blockNumber", []), hex(top));
	return { top, tx: tx.hash };
}

test("after a failover to a node that is behind, the height does not fall, and other answers are that node's", async () => {
	const { top, tx } = await threeAhead();
	balancer.setTargets(behind.url);
	for (let i = 0; i < 5; i += 1) assert.equal(await system.client.call("eth_blockNumber", []), hex(top));
	assert.equal(await system.client.call("eth_getTransactionReceipt", [tx]), null);
	// The relay itself works with the lower head after a while, but clients receive none.
	await until("the tracked head is lower", async () => (await headOf(system.client)) === top - 3);
	assert.equal(await system.client.call("eth_blockNumber", []), hex(top));
	balancer.setTargets(system.chain.url);
	await users.seesHead(top);
	assert.notEqual(await system.client.call("eth_getTransactionReceipt", [tx]), null);
	const next = await users.passBlock();
	await until("it is announced", () => announced().at(-1) === next);
	assert.deepEqual(
		announced(),
		[...new Set(announced())].sort((a, b) => a - b),
	);
});

test("of two nodes in turn the higher one counts", async (t) => {
	t.after(() => balancer.setTargets(system.chain.url));
	const { top } = await threeAhead();
	balancer.setTargets(behind.url, system.chain.url);
	for (let i = 0; i < 6; i += 1) assert.equal(await system.client.call("eth_blockNumber", []), hex(top));
});

test("a chain that went back comes through, and its new blocks are announced", async () => {
	const snapshot = await system.chain.snapshot();
	const { top } = await threeAhead();
	await system.chain.revert(snapshot);
	assert.equal(
		await system.client.call("eth_blockNumber", []),
		hex(top),
		"it may only be a node that is behind",
	);
	const isReported = async () => (await system.client.call("eth_blockNumber", [])) === hex(top - 3);
	await until("it is reported", isReported);
	assert.equal(await system.client.call("eth_getBlockByNumber", [hex(top), false]), null);
	await system.chain.rpc("anvil_setNextBlockBaseFeePerGas", ["0x77777777"]);
	const next = await users.passBlock();
	await until("it is announced", () => announced().at(-1) === next);
});

test("another branch comes through at once", async () => {
	const snapshot = await system.chain.snapshot();
	const { top } = await threeAhead();
	await system.chain.revert(snapshot);
	await system.chain.rpc("anvil_setNextBlockBaseFeePerGas", ["0x88888888"]);
	const next = await users.passBlock();
	assert.equal(next, top - 2);
	await until("it is announced", () => announced().at(-1) === next);
	assert.equal(await system.client.call("eth_blockNumber", []), hex(next));
});
