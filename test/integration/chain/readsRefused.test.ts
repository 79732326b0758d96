// Methods that are not served: each is -32601 by the relay itself, and the node never hears of it. And reads while the
// node fails: an error that says so, never `null` and never `[]`, which would be lies about the
// chain. The relay says that it is not ready, and that it is again; what it holds itself it goes on telling.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { WebSocket } from "ws";
import { PASSED_METHODS } from "../../../relay/chain/passthrough.ts";
import { type NodeFault, type NodeProxy, startNodeProxy } from "../../support/nodes.ts";
import { type RelayProcess, readyStatus } from "../../support/processes.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { accountOf, rawTransaction, signedTransaction, testAccount } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

const NOBODY = "0x000000000000000000000000000000000000dead";
const UNAVAILABLE = { code: -32603, message: "internal error", data: { reason: "node unavailable" } };
/** Of the relay's own methods those that ask the node; the passed ones are all asked with what they need. */
const OWN = ["eth_getTransactionCount", "eth_getTransactionByHash"];

const REFUSED: Readonly<Record<string, readonly string[]>> = {
	signing: ["eth_sign", "eth_signTransaction", "eth_signTypedData", "eth_signTypedData_v4", "personal_sign"],
	"the node's accounts": ["eth_sendTransaction", "eth_requestAccounts", "eth_coinbase"],
	mining: [
		"eth_mining",
		"eth_hashrate",
		"eth_getWork",
		"eth_submitWork",
		"eth_submitHashrate",
		"miner_start",
	],
	"the mempool": ["txpool_content", "txpool_inspect", "txpool_status", "eth_pendingTransactions"],
	operators: [
		"admin_peers",
		"admin_addPeer",
		"debug_traceTransaction",
		"debug_traceCall",
		"personal_listAccounts",
	],
	"the engine": ["engine_newPayloadV4", "engine_forkchoiceUpdatedV3"],
	"dev chains": [
		"anvil_setBalance",
		"anvil_dropAllTransactions",
		"evm_mine",
		"evm_snapshot",
		"evm_revert",
		"hardhat_setCode",
		"ots_getApiLevel",
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
before(async () => {
	system = await startProcessSystem();
	proxy = await startNodeProxy(system.chain.url);
	relay = await system.start({ ETH_RPC_URL: proxy.url });
	const by = accountOf(system.chain.accounts[0]?.privateKey ?? "");
	held = await relay.client.send(`0x${rawTransaction({ by }).toString("hex")}`);
	await until("it is out", async () => (await relay.client.stage(held)) === "BROADCAST");
});
after(async () => {
	await system.stop();
	await proxy.stop();
});

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
		assert.deepEqual(await overWebsocket(JSON.stringify(calls)), expected);
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

test("the node has heard of none of them", () => {
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
	["fails inside", { kind: "error", code: -32603, message: "database is closed" }],
];
for (const [what, fault] of FAULTS) {
	test(`a node that ${what}: every read says that it is unavailable`, async () => {
		proxy.setFault(fault);
		try {
			for (const [method, params] of questions()) {
				const { result, error } = await relay.client.ask(method, params);
				assert.equal(result, undefined, method);
				// Of code that was run some nodes say -32603 where others say that it failed: those are passed on.
				if (fault.kind === "error" && PASSED_METHODS.get(method)?.executes) assert.equal(error?.code, -32603);
				else assert.deepEqual(error, UNAVAILABLE, method);
			}
		} finally {
			proxy.setFault(null);
		}
		await until("it is ready again", async () => (await readyStatus(relay.url)) === 200);
	});
}

test("a node that hangs: not ready until it answers, and a read that waited has its answer", async () => {
	const release = proxy.hold();
	await until("it is not ready", async () => (await readyStatus(relay.url)) === 503);
	const read = relay.client.ask("eth_getBalance", [NOBODY, "latest"]);
	release();
	assert.equal((await read).result, "0x0");
	await until("it is ready again", async () => (await readyStatus(relay.url)) === 200);
});

test("while the node is away nothing is taken that could not be checked, and what is held is told", async () => {
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
	const methods = [...PASSED_METHODS].filter(([, { keep }]) => keep !== "always").map(([name]) => name);
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
	return { code: -32601, message: `the method ${method} does not exist/is not available` };
}

async function overWebsocket(text: string): Promise<unknown> {
	const socket = new WebSocket(relay.url.replace("http", "ws"));
	const answers: string[] = [];
	socket.on("message", (data) => answers.push(String(data)));
	await new Promise((resolve) => socket.once("open", resolve));
	socket.send(text);
	const [answer = ""] = await until("the answer", () => answers.length > 0 && answers);
	socket.terminate();
	return JSON.parse(answer);
}
