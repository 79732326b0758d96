// Methods that are not served: each is -32601 by the relay itself, over HTTP and websocket and in batches, and the
// node never hears of it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { WebSocket } from "ws";
import { type NodeProxy, startNodeProxy } from "../../support/nodeProxy.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/processSystem.ts";
import type { RelayProcess } from "../../support/relayProcess.ts";
import { until } from "../../support/until.ts";

const REFUSED: Readonly<Record<string, readonly string[]>> = {
	signing: ["eth_sign", "eth_signTransaction", "eth_signTypedData", "eth_signTypedData_v4", "personal_sign"],
	"the node's accounts": ["eth_sendTransaction", "eth_accounts", "eth_requestAccounts", "eth_coinbase"],
	mining: [
		"eth_mining",
		"eth_hashrate",
		"eth_getWork",
		"eth_submitWork",
		"eth_submitHashrate",
		"miner_start",
	],
	"filters, which live in one node": [
		"eth_newFilter",
		"eth_newBlockFilter",
		"eth_newPendingTransactionFilter",
		"eth_getFilterChanges",
		"eth_getFilterLogs",
		"eth_uninstallFilter",
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
before(async () => {
	system = await startProcessSystem();
	proxy = await startNodeProxy(system.chain.url);
	relay = await system.start({ ETH_RPC_URL: proxy.url });
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
