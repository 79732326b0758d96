// Reads through the relay. Calls that are passed on have the node's results and errors. The relay
// itself answers -32601 to methods that are not served, and the node never receives them. While the
// node fails, a read is an error that says so, never `null` and never `[]`; the relay reports that
// it is not ready, and that it is again.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { READS } from "../../../shared/jsonrpc/reads.ts";
import { WsClient } from "../../support/clients.ts";
import { sized } from "../../support/length.ts";
import { type NodeFault, type NodeProxy, startNodeProxy } from "../../support/nodes.ts";
import { type RelayProcess, readyStatus } from "../../support/processes.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { accountOf, rawTransaction, signedTransaction, testAccount } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

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

const UNAVAILABLE = { code: -32603, message: "internal error", data: { reason: "node unavailable" } };
/**
 * The relay's own methods that ask the node. Every passed method is called with the parameters that
 * it needs.
 */
const OWN = ["eth_getTransactionCount", "eth_getTransactionByHash"];

const REFUSED: Readonly<Record<string, readonly string[]>> = {
	signing: ["eth_sign", "eth_signTransaction", "eth_signTypedData", "eth_signTypedData_v4", "personal_sign"],
	"the node's accounts": ["eth_sendTransaction", "eth_requestAccounts", "eth_coinbase"],
	mining: ["eth_mining", "eth_getWork", "eth_submitWork", "miner_start"],
	"the mempool": ["txpool_content", "txpool_inspect", "txpool_status", "eth_pendingTransactions"],
	operators: ["admin_peers", "debug_traceTransaction", "debug_traceCall", "personal_listAccounts"],
	"the engine": ["engine_newPayloadV4", "engine_forkchoiceUpdatedV3"],
	"dev chains": [
		"anvil_setBalance",
		"anvil_dropAllTransactions",
		"evm_mine",
		"evm_snapshot",
		"evm_revert",
		"hardhat_setCode",
		"erigon_getHeaderByNumber",
		"trace_call",
	],
	"names that are close": [
		"ETH_CHAINID",
		"eth_chainid",
		" eth_chainId",
		"eth_chainId ",
		"rpc_modules",
		"toString",
	],
};

let system: ProcessSystem;
let proxy: NodeProxy;
let relay: RelayProcess;
let held: string;
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
	proxy = await startNodeProxy(system.chain.url);
	// The short deadline is for the node that hangs.
	relay = await system.start({ ETH_RPC_URL: proxy.url, ACCOUNT_TIMEOUT_MS: "1000" });
	holder = system.chain.accounts[0]?.address ?? "";
	const by = accountOf(system.chain.accounts[0]?.privateKey ?? "");
	hash = await relay.client.send(`0x${rawTransaction({ by, to: ECHO, data: "0x1234" }).toString("hex")}`);
	await system.builder.waitForRequest("eth_sendBundle");
	await system.nextBlock(relay);
	await system.nextBlock(relay);
	const block = await system.chain.rpc("eth_getBlockByNumber", ["0x1", false]);
	blockHash = (block as { hash: string }).hash;
	const other = accountOf(system.chain.accounts[5]?.privateKey ?? "");
	held = await relay.client.send(`0x${rawTransaction({ by: other }).toString("hex")}`);
	await until("it is sent", async () => (await relay.client.stage(held)) === "BROADCAST");
});
after(async () => {
	await system.stop();
	await proxy.stop();
});

/** Parameters by method; functions of what is known once the system is up. */
const PARAMS_OF: Readonly<Record<string, () => readonly (readonly unknown[])[]>> = {
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

test("these tests call each method that is passed on", () => {
	assert.deepEqual(Object.keys(PARAMS_OF).sort(), [...READS.keys()].sort());
});

test("methods whose cost at the node is unbounded count ten in the rate limit", () => {
	const heavy = [...READS].filter(([, { weight }]) => weight !== 1);
	assert.deepEqual(
		heavy.map(([method, { weight }]) => `${method} ${weight}`),
		["eth_call 10", "eth_estimateGas 10", "eth_createAccessList 10", "eth_simulateV1 10", "eth_getLogs 10"],
	);
});

/** Methods that anvil does not know: the relay's answer is then its own. */
const UNKNOWN_TO_ANVIL = new Set(["net_peerCount", "eth_baseFee", "eth_capabilities"]);

for (const [method, paramsOf] of Object.entries(PARAMS_OF)) {
	test(`${method} returns what the node returns`, async () => {
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
	return { jsonrpc: "2.0", error: refusalOf(method) };
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

for (const [what, methods] of Object.entries(REFUSED)) {
	test(`${what}: refused one by one, in a batch and over a websocket`, async () => {
		const calls = methods.map((method, id) => ({ jsonrpc: "2.0", id, method, params: [] }));
		for (const [i, method] of methods.entries()) {
			const { error } = await relay.client.ask(method, []);
			assert.deepEqual(error, refusalOf(method), `${i} ${method}`);
		}
		const headers = { "content-type": "application/json" };
		const response = await fetch(relay.url, { method: "POST", headers, body: JSON.stringify(calls) });
		const expected = methods.map((method, id) => ({ jsonrpc: "2.0", id, error: refusalOf(method) }));
		assert.deepEqual(await response.json(), expected);
		const socket = await WsClient.open(relay.url.replace("http", "ws"));
		socket.send(calls);
		assert.deepEqual(await socket.next(), expected);
		socket.terminate();
	});
}

test("eth_sendPrivateTransaction is refused with the reason that the interface gives", async () => {
	const { error } = await relay.client.ask("eth_sendPrivateTransaction", [{ tx: "0x00" }]);
	assert.equal(error?.code, -32601);
	const words = "the method eth_sendPrivateTransaction does not exist/is not available: ";
	assert.ok(error?.message.startsWith(words), error?.message);
	assert.match(
		error?.message ?? "",
		/eth_sendRawTransaction never shares transactions in the public mempool/,
	);
});

test("none of the refused calls reached the node", () => {
	const names = new Set(Object.values(REFUSED).flat());
	assert.deepEqual(
		// The relay itself may trace what it simulates.
		proxy.calls().filter(({ method }) => names.has(method) && method !== "debug_traceCall"),
		[],
	);
	assert.ok(proxy.calls().length > 0);
});

const FAULTS: readonly (readonly [string, NodeFault])[] = [
	["closes every connection", { kind: "destroy" }],
	["answers 503 with a page", { kind: "html", status: 503 }],
	["answers half of its JSON", { kind: "truncated" }],
	["answers other questions than were asked", { kind: "wrongId" }],
	["refuses its operator", { kind: "error", code: -32002, message: "unauthorized", status: 401 }],
];
for (const [what, fault] of FAULTS.slice(0, sized(2, FAULTS.length))) {
	test(`a node that ${what}: every read says that it is unavailable`, async () => {
		proxy.setFault(fault);
		try {
			for (const [method, params] of questions()) {
				const { result, error } = await relay.client.ask(method, params);
				assert.deepEqual({ result, error }, { result: undefined, error: UNAVAILABLE }, method);
			}
		} finally {
			proxy.setFault(null);
		}
		await until("it is ready again", async () => (await readyStatus(relay.url)) === 200);
	});
}

test("a node that fails inside: every read has the node's own words", async () => {
	const error = { code: -32603, message: "database is closed" };
	proxy.setFault({ kind: "error", ...error });
	try {
		for (const [method, params] of questions()) {
			assert.deepEqual((await relay.client.ask(method, params)).error, error, method);
		}
	} finally {
		proxy.setFault(null);
	}
	await until("it is ready again", async () => (await readyStatus(relay.url)) === 200);
});

test("a node that hangs: not ready until it answers, and a read that waited has its answer", async () => {
	const release = proxy.hold();
	await until("it is not ready", async () => (await readyStatus(relay.url)) === 503);
	const read = relay.client.ask("eth_getBalance", [NOBODY, "latest"]);
	release();
	assert.equal((await read).result, "0x0");
	await until("it is ready again", async () => (await readyStatus(relay.url)) === 200);
});

test("while the node is away unchecked transactions are refused, and held ones have a status", async () => {
	proxy.setFault({ kind: "destroy" });
	const signed = signedTransaction({ by: testAccount(77) });
	const raw = `0x${Buffer.from(signed.raw).toString("hex")}`;
	const { error } = await relay.client.ask("eth_sendRawTransaction", [raw]);
	assert.deepEqual([error?.code, error?.data], [UNAVAILABLE.code, UNAVAILABLE.data]);
	assert.equal(await relay.client.stage(signed.hash), undefined);
	assert.equal(await relay.client.stage(held), "BROADCAST");
	const own = await relay.client.ask("eth_getTransactionByHash", [held]);
	assert.equal((own.result as { hash: string }).hash, held);
	proxy.setFault(null);
	await until("it is ready again", async () => (await readyStatus(relay.url)) === 200);
	const refused = await relay.client.ask("eth_sendRawTransaction", [raw]);
	assert.match(refused.error?.message ?? "", /^insufficient funds/);
});

test("a node that is killed: not ready, still alive, and every read an error", async () => {
	assert.equal(await readyStatus(relay.url), 200);
	process.kill(system.chain.pid, "SIGKILL");
	await until("it is not ready", async () => (await readyStatus(relay.url)) === 503);
	assert.equal((await fetch(`${relay.url}/livez`)).status, 200);
	for (const [method, params] of questions()) {
		const { result, error } = await relay.client.ask(method, params);
		assert.deepEqual({ result, error }, { result: undefined, error: UNAVAILABLE }, method);
	}
});

/** One of each method, of which no answer can be remembered. */
function questions(): readonly (readonly [string, readonly unknown[]])[] {
	const unseen = `0x${"77".repeat(32)}`;
	const call = [{ to: NOBODY, data: "0x" }, "latest"];
	const params: Readonly<Record<string, readonly unknown[]>> = {
		eth_feeHistory: ["0x1", "latest", []],
		eth_call: call,
		eth_estimateGas: call,
		eth_createAccessList: call,
		eth_simulateV1: [{ blockStateCalls: [] }, "latest"],
		eth_getBalance: [NOBODY, "latest"],
		eth_getCode: [NOBODY, "latest"],
		eth_getStorageAt: [NOBODY, "0x0", "latest"],
		eth_getProof: [NOBODY, [], "latest"],
		eth_getBlockByHash: [unseen, false],
		eth_getBlockByNumber: ["latest", false],
		eth_getBlockReceipts: ["latest"],
		eth_getLogs: [{ fromBlock: "0x0" }],
		web3_sha3: ["0x00"],
		eth_getTransactionCount: [NOBODY, "pending"],
	};
	const methods = [...READS].filter(([, { keep }]) => keep !== "always").map(([name]) => name);
	return [...methods, ...OWN].map((name) => {
		if (params[name] !== undefined) return [name, params[name]];
		if (name.endsWith("HashAndIndex")) return [name, [unseen, "0x0"]];
		if (name.endsWith("NumberAndIndex")) return [name, ["latest", "0x0"]];
		if (name.endsWith("ByNumber") || name.endsWith("ByBlockNumber")) return [name, ["latest"]];
		if (name.includes("Hash") || name.includes("Receipt")) return [name, [unseen]];
		return [name, []];
	});
}

function refusalOf(method: string): object {
	const hint = /^\s?eth.chainid\s?$/i.test(method) ? ": did you mean eth_chainId?" : "";
	return { code: -32601, message: `the method ${method} does not exist/is not available${hint}` };
}
