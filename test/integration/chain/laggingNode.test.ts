// A relay whose node is a load balancer, in front of two real chains of which one is three blocks behind: clients are never told
// less than they were told. A chain that really went back comes through.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type DevChain, startDevChain } from "../../devnet/devChain.ts";
import { QUIET } from "../../support/boostFixture.ts";
import { FeedClient } from "../../support/feeds.ts";
import type { NodeProxy } from "../../support/nodes.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import { RelayFixture } from "../../support/relayFixture.ts";
import { headOf, startSystem, type TestSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

/** Emits one event with the first word of its input as its topic. */
const EMITS_TOPIC = "0x5f355f5fa100";
const TOPIC = `0x${"a".repeat(64)}`;

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

/** Three blocks that the other node does not have, the middle one with a transaction that has a log; all were told to clients. */
async function threeAhead() {
	await behind.rpc("anvil_loadState", [await system.chain.rpc("anvil_dumpState")]);
	const actor = await users.actor();
	const contract = await users.placeCode(EMITS_TOPIC);
	await users.passBlock();
	const tx = actor.sign({ to: contract, data: TOPIC, gasLimit: 100_000n });
	await users.publish(tx);
	const number = await users.passBlock();
	const top = await users.passBlock();
	await until("they are announced", () => announced().includes(top));
	const block = (await system.client.call("eth_getBlockByNumber", [hex(number), false])) as { hash: string };
	assert.equal(
		((await system.client.call("eth_getTransactionReceipt", [tx.hash])) as object) === null,
		false,
	);
	assert.equal(await system.client.call("eth_blockNumber", []), hex(top));
	return { top, number, hash: block.hash, tx: tx.hash, contract };
}

/** Reads of what a node that is behind does not have. */
function reads({ number, hash, tx, contract }: Awaited<ReturnType<typeof threeAhead>>) {
	const n = hex(number);
	return [
		["eth_getBlockByNumber", [n, false]],
		["eth_getBlockByHash", [hash, true]],
		["eth_getBlockReceipts", [n]],
		["eth_getBlockReceipts", [hash]],
		["eth_getBlockTransactionCountByNumber", [n]],
		["eth_getBlockTransactionCountByHash", [hash]],
		["eth_getTransactionByBlockNumberAndIndex", [n, "0x0"]],
		["eth_getTransactionByBlockHashAndIndex", [hash, "0x0"]],
		["eth_getTransactionReceipt", [tx]],
		["eth_getTransactionByHash", [tx]],
		["eth_getLogs", [{ address: contract, fromBlock: n, toBlock: n }]],
		["eth_getLogs", [{ address: contract, blockHash: hash }]],
		["eth_getLogs", [{ address: contract, fromBlock: n }]],
		["eth_getBalance", [contract, n]],
		["eth_call", [{ to: contract }, n]],
	] as const;
}

test("after a failover to a node that is behind, nothing that was told is null, [] or lower", async () => {
	const told = await threeAhead();
	balancer.setTargets(behind.url);
	for (let i = 0; i < 5; i += 1) assert.equal(await system.client.call("eth_blockNumber", []), hex(told.top));
	for (const [method, params] of reads(told)) {
		const { error, result } = await system.client.ask(method, params);
		const what = `${method} ${JSON.stringify(params)}: ${JSON.stringify(error ?? result)}`;
		assert.equal(result, undefined, what);
		assert.equal(error?.code, -32000, what);
		assert.match(error.message, /^header not found: /, what);
	}
	// The relay itself works with the lower head after a while, but clients are told of none.
	await until("the tracked head is lower", async () => (await headOf(system.client)) === told.top - 3);
	assert.equal(await system.client.call("eth_blockNumber", []), hex(told.top));
	const { error } = await system.client.ask("eth_getBlockByNumber", [hex(told.top), false]);
	assert.match(error?.message ?? "", /^header not found: the node that was asked does not have 0x/);
	balancer.setTargets(system.chain.url);
	await users.seesHead(told.top);
	for (const [method, params] of reads(told)) {
		assert.ok((await system.client.call(method, params)) !== null, method);
	}
	const next = await users.passBlock();
	await until("it is announced", () => announced().at(-1) === next);
	assert.deepEqual(
		announced(),
		[...new Set(announced())].sort((a, b) => a - b),
	);
});

test("a node that refuses the form of a block number is not taken for one that lacks the block", async (t) => {
	t.after(() => balancer.setRule(null));
	const { number, contract } = await threeAhead();
	const padded = hex(number).replace("0x", "0x0");
	const error = { code: -32602, message: "hex number with leading zero digits" };
	balancer.setRule({
		refuse: (_method, params) => (JSON.stringify(params).includes(`"${padded}"`) ? error : null),
	});
	// A storage slot may look like the number of a block.
	const slot = hex(number);
	for (const [method, params] of [
		["eth_getBalance", [contract, padded]],
		["eth_getCode", [contract, padded]],
		["eth_getStorageAt", [contract, slot, padded]],
		["eth_getProof", [contract, [slot], padded]],
		["eth_call", [{ to: contract }, padded]],
		["eth_estimateGas", [{ to: contract }, padded]],
		["eth_createAccessList", [{ to: contract }, padded]],
		["eth_simulateV1", [{ blockStateCalls: [] }, padded]],
		["eth_feeHistory", ["0x1", padded, []]],
		["eth_getBlockByNumber", [padded, false]],
		["eth_getBlockReceipts", [{ blockNumber: padded }]],
		["eth_getTransactionByBlockNumberAndIndex", [padded, "0x0"]],
		["eth_getUncleCountByBlockNumber", [padded]],
		["eth_getLogs", [{ fromBlock: padded, toBlock: hex(number) }]],
		["eth_getLogs", [{ fromBlock: padded }]],
	] as const) {
		assert.deepEqual((await system.client.ask(method, params)).error, error, method);
	}
});

test("the error names the block that is not there, wherever the read has it", async (t) => {
	t.after(() => balancer.setTargets(system.chain.url));
	const { number, hash, contract } = await threeAhead();
	balancer.setTargets(behind.url);
	for (const [method, params, block] of [
		["eth_getBalance", [contract, hex(number)], hex(number)],
		["eth_getBalance", [contract, { blockHash: hash }], hash],
		["eth_getStorageAt", [contract, "0x0", hex(number)], hex(number)],
		["eth_call", [{ to: contract }, hex(number)], hex(number)],
		["eth_getBlockReceipts", [{ blockNumber: hex(number) }], hex(number)],
		["eth_getLogs", [{ fromBlock: "0x1", toBlock: hex(number) }], hex(number)],
	] as const) {
		const { error } = await system.client.ask(method, params);
		const message = `header not found: the node that was asked does not have ${block} yet`;
		assert.deepEqual([error?.code, error?.message], [-32000, message], method);
	}
});

test("of two nodes in turn the one that has it is asked", async (t) => {
	t.after(() => balancer.setTargets(system.chain.url));
	const told = await threeAhead();
	balancer.setTargets(behind.url, system.chain.url);
	for (const [method, params] of reads(told)) {
		for (let i = 0; i < 4; i += 1) {
			const answer: WireAnswer = await system.client.ask(method, params);
			assert.ok(answer.result !== null, `${method} ${JSON.stringify(answer)}`);
		}
	}
	for (let i = 0; i < 6; i += 1) assert.equal(await system.client.call("eth_blockNumber", []), hex(told.top));
});

test("what nobody was told of is null as ever", async () => {
	const unknown = `0x${"77".repeat(32)}`;
	for (const [method, params] of [
		["eth_getBlockByNumber", ["0xffff", false]],
		["eth_getBlockByHash", [unknown, false]],
		["eth_getTransactionReceipt", [unknown]],
		["eth_getTransactionByBlockNumberAndIndex", ["0x1", "0x7"]],
	] as const) {
		assert.equal(await system.client.call(method, params), null, method);
	}
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
	const isTold = async () => (await system.client.call("eth_blockNumber", [])) === hex(top - 3);
	await until("it is told", isTold);
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
