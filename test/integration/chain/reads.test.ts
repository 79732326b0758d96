// Every read that is passed on, put to the relay and to the node: the same results, and the same errors where they
// are about the read. What the node does not know, the relay says in words of its own.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { PASSED_METHODS } from "../../../relay/chain/passthrough.ts";
import type { RelayProcess } from "../../support/processes.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { accountOf, rawTransaction } from "../../support/txFactory.ts";

/** Answers its call data, and logs it under the topic 0x…2a. */
const ECHO = "0x00000000000000000000000000000000000ec400";
const ECHO_CODE = "0x365f5f37602a365fa1365ff3";
/** Reverts with its call data. */
const REVERTER = "0x00000000000000000000000000000000000badc0";
const REVERTER_CODE = "0x365f5f37365ffd";
/** An invalid opcode. */
const BROKEN = "0x00000000000000000000000000000000000bad01";
const TOPIC = `0x${"2a".padStart(64, "0")}`;
const NOBODY = "0x000000000000000000000000000000000000dEaD";
const UNKNOWN = `0x${"77".repeat(32)}`;

let system: ProcessSystem;
let relay: RelayProcess;
let holder: string;
let hash: string;
let blockHash: string;
before(async () => {
	system = await startProcessSystem();
	for (const [address, code] of [
		[ECHO, ECHO_CODE],
		[REVERTER, REVERTER_CODE],
		[BROKEN, "0xfe"],
	]) {
		await system.chain.rpc("anvil_setCode", [address, code]);
	}
	relay = await system.start();
	holder = system.chain.accounts[0]?.address ?? "";
	const by = accountOf(system.chain.accounts[0]?.privateKey ?? "");
	hash = await relay.client.send(`0x${rawTransaction({ by, to: ECHO, data: "0x1234" }).toString("hex")}`);
	await system.builder.waitForRequest("eth_sendBundle");
	await system.nextBlock(relay);
	await system.nextBlock(relay);
	const block = await system.chain.rpc("eth_getBlockByNumber", ["0x1", false]);
	blockHash = (block as { hash: string }).hash;
});
after(() => system.stop());

/** Parameters by method; functions of what is known once the system is up. */
const READS: Readonly<Record<string, () => readonly (readonly unknown[])[]>> = {
	eth_chainId: () => [[]],
	eth_protocolVersion: () => [[]],
	eth_syncing: () => [[]],
	eth_config: () => [[]],
	eth_capabilities: () => [[]],
	eth_blockNumber: () => [[]],
	eth_gasPrice: () => [[]],
	eth_baseFee: () => [[]],
	eth_maxPriorityFeePerGas: () => [[]],
	eth_feeHistory: () => [
		["0x2", "latest", [25, 75]],
		["0x1", "0x0", []],
	],
	eth_blobBaseFee: () => [[]],
	eth_call: () => [
		[{ to: ECHO, data: "0xbeef" }, "latest"],
		[{ to: ECHO, data: "0xbeef" }, "0x0"],
		[{ to: ECHO, data: "0xbeef" }, { blockHash }],
		[{ to: NOBODY, data: "0x" }, "latest", { [NOBODY]: { code: ECHO_CODE } }],
		[{ to: REVERTER, data: "0xdeadbeef" }, "latest"],
		[{ to: REVERTER }, "latest"],
		[{ to: BROKEN }, "latest"],
		[{ to: ECHO, from: NOBODY, value: "0x1" }, "latest"],
		[{ to: ECHO, gas: "0x1" }, "latest"],
		[{ to: ECHO, data: "0xzz" }, "latest"],
		[{ to: ECHO }, "0xffff"],
	],
	eth_estimateGas: () => [
		[{ from: holder, to: ECHO, data: "0xbeef" }],
		[{ from: holder, to: NOBODY, value: "0x1" }, "latest"],
		[{ from: holder, to: REVERTER, data: "0xdeadbeef" }],
		[{ from: NOBODY, to: ECHO, value: "0x1" }],
	],
	eth_createAccessList: () => [[{ from: holder, to: ECHO, data: "0xbeef" }, "latest"]],
	eth_simulateV1: () => [
		[{ blockStateCalls: [{ calls: [{ from: holder, to: ECHO, input: "0xbeef" }] }] }, "0x1"],
		[{ blockStateCalls: [{ calls: [{ from: holder, to: REVERTER, input: "0x01" }] }] }, "0x1"],
	],
	eth_getBalance: () => [
		[holder, "latest"],
		[holder, "0x0"],
		[holder, "earliest"],
		[NOBODY, "pending"],
		[holder, "0xffff"],
		["0x1234", "latest"],
		[],
	],
	eth_getCode: () => [
		[ECHO, "latest"],
		[NOBODY, "latest"],
	],
	eth_getStorageAt: () => [
		[ECHO, "0x0", "latest"],
		[ECHO, TOPIC, "0x1"],
	],
	eth_getStorageValues: () => [[{ [ECHO]: [TOPIC] }, "latest"]],
	eth_getProof: () => [[ECHO, [TOPIC], "latest"]],
	eth_getBlockByHash: () => [
		[blockHash, false],
		[blockHash, true],
		[UNKNOWN, false],
	],
	eth_getBlockByNumber: () => [
		["latest", false],
		["latest", true],
		["0x0", false],
		["finalized", false],
		["0xffff", false],
	],
	eth_getBlockTransactionCountByHash: () => [[blockHash], [UNKNOWN]],
	eth_getBlockTransactionCountByNumber: () => [["0x1"], ["0xffff"]],
	eth_getBlockReceipts: () => [["0x1"], ["latest"], ["0xffff"]],
	eth_getUncleByBlockHashAndIndex: () => [[blockHash, "0x0"]],
	eth_getUncleByBlockNumberAndIndex: () => [["0x1", "0x0"]],
	eth_getUncleCountByBlockHash: () => [[blockHash]],
	eth_getUncleCountByBlockNumber: () => [["0x1"]],
	eth_getTransactionByBlockHashAndIndex: () => [
		[blockHash, "0x0"],
		[blockHash, "0x9"],
	],
	eth_getTransactionByBlockNumberAndIndex: () => [
		["0x1", "0x0"],
		["0xffff", "0x0"],
	],
	eth_getTransactionReceipt: () => [[hash], [UNKNOWN]],
	eth_getRawTransactionByHash: () => [[hash], [UNKNOWN]],
	eth_getRawTransactionByBlockHashAndIndex: () => [[blockHash, "0x0"]],
	eth_getRawTransactionByBlockNumberAndIndex: () => [["0x1", "0x0"]],
	eth_getLogs: () => [
		[{ fromBlock: "0x0", toBlock: "latest" }],
		[{ blockHash, topics: [TOPIC] }],
		[{ address: NOBODY, fromBlock: "0x0" }],
		[{ fromBlock: "0x2", toBlock: "0x1" }],
	],
	net_version: () => [[]],
	net_listening: () => [[]],
	net_peerCount: () => [[]],
	web3_clientVersion: () => [[]],
	web3_sha3: () => [["0x68656c6c6f"]],
};

test("each method that is passed on is asked for here", () => {
	assert.deepEqual(Object.keys(READS).sort(), [...PASSED_METHODS.keys()].sort());
});

test("those that the node works on for as long as it likes weigh ten in the rate limit", () => {
	const heavy = [...PASSED_METHODS].filter(([, { weight }]) => weight !== 1);
	assert.deepEqual(
		heavy.map(([method, { weight }]) => `${method} ${weight}`),
		["eth_call 10", "eth_estimateGas 10", "eth_createAccessList 10", "eth_simulateV1 10", "eth_getLogs 10"],
	);
});

/** Methods that anvil does not know: the relay's answer is then its own. */
const UNKNOWN_TO_ANVIL = new Set(["net_peerCount", "eth_baseFee", "eth_capabilities"]);

for (const [method, paramsOf] of Object.entries(READS)) {
	test(`${method} says what the node says`, async () => {
		for (const params of paramsOf()) {
			const [seen, again, said] = [
				await relay.client.ask(method, params),
				await relay.client.ask(method, params, "/nochecks"),
				await askNode(method, params),
			];
			const what = `${method} ${JSON.stringify(params)}`;
			assert.deepEqual(withoutId(seen), expected(method, said), what);
			assert.deepEqual(withoutId(again), withoutId(seen), what);
		}
	});
}

test("a batch of reads is answered in its order, errors in their places", async () => {
	const calls = [
		["eth_blockNumber", []],
		["eth_call", [{ to: REVERTER, data: "0xdeadbeef" }, "latest"]],
		["eth_getBalance", [holder, "latest"]],
		["eth_getTransactionReceipt", [UNKNOWN]],
		["eth_getCode", [ECHO, "latest"]],
	] as const;
	const body = JSON.stringify(
		calls.map(([method, params], i) => ({ jsonrpc: "2.0", id: `call ${i}`, method, params })),
	);
	const headers = { "content-type": "application/json" };
	const post = async (url: string): Promise<unknown> =>
		(await fetch(url, { method: "POST", headers, body })).json();
	assert.deepEqual(await post(relay.url), await post(system.chain.url));
});

function expected(method: string, said: WireAnswer): object {
	if (!UNKNOWN_TO_ANVIL.has(method)) {
		assert.ok(said.error === undefined || said.error.code !== -32601, `anvil does not know ${method}`);
		return withoutId(said);
	}
	const message = `the method ${method} does not exist/is not available`;
	return { jsonrpc: "2.0", error: { code: -32601, message } };
}

function withoutId({ id: _, ...answer }: WireAnswer): object {
	return answer;
}

async function askNode(method: string, params: readonly unknown[]): Promise<WireAnswer> {
	const response = await fetch(system.chain.url, {
		method: "POST",
		headers: { "content-type": "application/json" },
		body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
	});
	return (await response.json()) as WireAnswer;
}
