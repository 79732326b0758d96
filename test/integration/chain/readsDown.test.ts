// Reads while the node fails: an error that says so, never `null` and never `[]`, which would be lies about the
// chain. The relay says that it is not ready, and that it is again; what it holds itself it goes on telling.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { PASSED_METHODS } from "../../../relay/chain/passthrough.ts";
import { type NodeFault, type NodeProxy, startNodeProxy } from "../../support/nodeProxy.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/processSystem.ts";
import { type RelayProcess, readyStatus } from "../../support/relayProcess.ts";
import { accountOf, rawTransaction, signedTransaction, testAccount } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

const NOBODY = "0x000000000000000000000000000000000000dead";
const UNAVAILABLE = { code: -32603, message: "internal error", data: { reason: "node unavailable" } };
/** Of the relay's own methods those that ask the node; the passed ones are all asked with what they need. */
const OWN = ["eth_getTransactionCount", "eth_getTransactionByHash"];

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
