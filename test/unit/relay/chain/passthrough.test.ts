// Reads for clients: asked once while under way, remembered where they cannot change, and what becomes of faults.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { NodeReader } from "../../../../relay/chain/nodeReader.ts";
import { Passthrough, type PassthroughOptions } from "../../../../relay/chain/passthrough.ts";
import { systemClock } from "../../../../shared/clock.ts";
import { JsonRpcClient } from "../../../../shared/jsonrpc/client.ts";
import { JsonText } from "../../../../shared/jsonrpc/envelope.ts";
import { ForeignRpcError, RpcError, type RpcErrorKind } from "../../../../shared/jsonrpc/errors.ts";
import { type LogFields, type Logger, silentLogger } from "../../../../shared/log.ts";
import { type DevChain, startDevChain } from "../../../devnet/devChain.ts";
import { caller } from "../../../support/caller.ts";
import { type NodeFault, type NodeProxy, startNodeProxy } from "../../../support/nodeProxy.ts";
import { until } from "../../../support/until.ts";

const NO_HASH = `0x${"00".repeat(32)}`;
const SECRET = "secret-of-the-node";

let chain: DevChain;
let proxy: NodeProxy;
let client: JsonRpcClient;
let head: { number: number; hash: string } | null;
let logged: string[];

function newPassthrough(options: PassthroughOptions = {}): Passthrough {
	const node = new NodeReader({ timeoutMs: 5_000 }, { client, clock: systemClock, log: silentLogger });
	const note = (message: string, fields?: LogFields) => logged.push(JSON.stringify([message, fields]));
	const log: Logger = { ...silentLogger, debug: note, info: note, warn: note, error: note };
	return new Passthrough(options, { node, head: () => head, log });
}

async function blockOf(number: number): Promise<{ hash: string; number: string }> {
	return (await chain.rpc("eth_getBlockByNumber", [hex(number), false])) as { hash: string; number: string };
}

const hex = (value: number) => `0x${value.toString(16)}`;

before(async () => {
	chain = await startDevChain();
	await chain.rpc("anvil_mine", ["0x64"]);
	proxy = await startNodeProxy(chain.url);
	client = new JsonRpcClient({ url: proxy.url, timeoutMs: 5_000 }, { clock: systemClock });
});
afterEach(() => {
	proxy.setFault(null);
	proxy.reset();
	head = { number: 100, hash: "0xhead" };
	logged = [];
});
after(async () => {
	await client.close();
	await proxy.stop();
	await chain.stop();
});
head = { number: 100, hash: "0xhead" };
logged = [];

describe("reads under way", () => {
	test("equal ones are asked once, others each", async () => {
		const passthrough = newPassthrough();
		const release = proxy.hold();
		const balances = [0, 1].flatMap((i) =>
			Array.from({ length: 50 }, () =>
				passthrough.call("eth_getBalance", [chain.accounts[i]?.address, "latest"], caller()),
			),
		);
		await until("both", () => proxy.requests === 2);
		const more = passthrough.call("eth_getBalance", [chain.accounts[0]?.address, "latest"], caller());
		const other = passthrough.call("eth_getBalance", [chain.accounts[0]?.address, "earliest"], caller());
		await until("the other", () => proxy.requests === 3);
		release();
		assert.equal(new Set(await Promise.all([...balances, more, other])).size, 1);
		assert.equal(proxy.calls().length, 3);
	});

	test("one that has ended is asked again", async () => {
		const passthrough = newPassthrough();
		for (let i = 0; i < 3; i++) assert.equal(await passthrough.call("eth_blockNumber", [], caller()), "0x64");
		assert.equal(proxy.requests, 3);
	});

	test("who has heard of a new head does not get what was asked for before it", async () => {
		const passthrough = newPassthrough();
		const release = proxy.hold();
		const before = passthrough.call("eth_blockNumber", [], caller());
		head = { number: 101, hash: "0xnext" };
		const behind = passthrough.call("eth_blockNumber", [], caller());
		await until("two", () => proxy.requests === 2);
		release();
		assert.deepEqual(await Promise.all([before, behind]), ["0x64", "0x64"]);
	});

	test("all who share one that fails are told so, and the next one asks again", async () => {
		const passthrough = newPassthrough();
		proxy.setFault({ kind: "html", status: 502 }, { times: 1 });
		const outcomes = await Promise.allSettled(
			Array.from({ length: 5 }, () => passthrough.call("eth_gasPrice", [], caller())),
		);
		assert.ok(outcomes.every(({ status }) => status === "rejected"));
		assert.equal(proxy.requests, 1);
		assert.match(String(await passthrough.call("eth_gasPrice", [], caller())), /^0x/);
	});
});

describe("what is remembered", () => {
	/** How often the node is asked when a client asks twice. */
	const asked = async (method: string, params: readonly unknown[], passthrough = newPassthrough()) => {
		proxy.reset();
		const first = await passthrough.call(method, params, caller());
		const second = await passthrough.call(method, params, caller());
		// The pending block has the clock's time, which may be a second later.
		if (params[0] !== "pending") assert.deepEqual(second, first);
		return proxy.requests;
	};

	test("the chain's id, for good", async () => {
		assert.equal(await asked("eth_chainId", []), 1);
		assert.equal(await asked("net_version", []), 1);
	});

	test("what is of a block named by its hash, once it is there", async () => {
		const { hash } = await blockOf(99);
		assert.equal(await asked("eth_getBlockByHash", [hash, true]), 1);
		assert.equal(await asked("eth_getBlockTransactionCountByHash", [hash]), 1);
		assert.equal(await asked("eth_getUncleCountByBlockHash", [hash]), 1);
		assert.equal(await asked("eth_getTransactionByBlockHashAndIndex", [hash, "0x0"]), 2);
		assert.equal(await asked("eth_getBlockByHash", [`0x${"77".repeat(32)}`, true]), 2);
	});

	test("parameters are told apart", async () => {
		const passthrough = newPassthrough();
		const { hash } = await blockOf(50);
		const full = await passthrough.call("eth_getBlockByHash", [hash, true], caller());
		const light = await passthrough.call("eth_getBlockByHash", [hash, false], caller());
		assert.deepEqual(full, await chain.rpc("eth_getBlockByHash", [hash, true]));
		assert.deepEqual(light, await chain.rpc("eth_getBlockByHash", [hash, false]));
		assert.equal(proxy.requests, 2);
	});

	test("a block by its number, once it is 64 below the head", async () => {
		assert.equal(await asked("eth_getBlockByNumber", [hex(36), false]), 1);
		assert.equal(await asked("eth_getBlockByNumber", [hex(37), false]), 2);
		head = { number: 101, hash: "0xnext" };
		assert.equal(await asked("eth_getBlockByNumber", [hex(37), false]), 1);
		head = null;
		assert.equal(await asked("eth_getBlockByNumber", [hex(36), false]), 2);
	});

	test("never a block by a tag: it names another one tomorrow", async () => {
		head = { number: 10_000, hash: "0xfar" };
		for (const tag of ["latest", "finalized", "safe", "pending", "earliest"]) {
			assert.equal(await asked("eth_getBlockByNumber", [tag, false]), 2, tag);
		}
	});

	test("a receipt, once it is 64 below the head", async () => {
		const raw = await chain.wallet(0).signTransaction({
			chainId: chain.chainId,
			to: chain.wallet(1).address,
			nonce: 0,
			gasLimit: 21_000n,
			maxFeePerGas: 10n ** 10n,
			maxPriorityFeePerGas: 1n,
		});
		const passthrough = newPassthrough();
		const hash = String(await chain.rpc("eth_sendRawTransaction", [raw]));
		assert.equal(await passthrough.call("eth_getTransactionReceipt", [hash], caller()), null);
		assert.equal(await asked("eth_getTransactionReceipt", [hash], passthrough), 2);
		await chain.rpc("anvil_mine", ["0x1"]);
		assert.equal(await asked("eth_getTransactionReceipt", [hash], passthrough), 2);
		head = { number: 101 + 64, hash: "0xfar" };
		assert.equal(await asked("eth_getTransactionReceipt", [hash], passthrough), 1);
		assert.equal(await asked("eth_getTransactionReceipt", [hash], passthrough), 0);
	});

	test("nothing that moves", async () => {
		const address = chain.accounts[5]?.address;
		for (const [method, params] of [
			["eth_blockNumber", []],
			["eth_gasPrice", []],
			["eth_feeHistory", ["0x1", "0x1", []]],
			["eth_getBalance", [address, "0x1"]],
			["eth_getCode", [address, "0x1"]],
			["eth_call", [{ to: address }, "0x1"]],
			["eth_getLogs", [{ fromBlock: "0x1", toBlock: "0x1" }]],
			["eth_syncing", []],
		] as const) {
			assert.equal(await asked(method, params), 2, method);
		}
	});

	test("no error", async () => {
		const passthrough = newPassthrough();
		proxy.setFault({ kind: "error", code: -32000, message: "no" }, { times: 1 });
		await assert.rejects(passthrough.call("eth_chainId", [], caller()), ForeignRpcError);
		assert.equal(await passthrough.call("eth_chainId", [], caller()), "0x7a69");
	});

	test("as much as fits, and no single answer that is too large", async () => {
		const size = JSON.stringify(await chain.rpc("eth_getBlockByNumber", ["0x1", false])).length;
		const passthrough = newPassthrough({ maxCacheBytes: 4.5 * size });
		for (let i = 1; i <= 8; i++) await passthrough.call("eth_getBlockByNumber", [hex(i), false], caller());
		proxy.reset();
		for (let i = 8; i >= 6; i--) await passthrough.call("eth_getBlockByNumber", [hex(i), false], caller());
		assert.equal(proxy.requests, 0);
		await passthrough.call("eth_getBlockByNumber", [hex(1), false], caller());
		assert.equal(proxy.requests, 1);
		const large = newPassthrough();
		const { hash } = await blockOf(2);
		proxy.setFault({ kind: "result", result: { number: "0x2", extraData: "0".repeat(3 * 1024 * 1024) } });
		assert.equal(await asked("eth_getBlockByHash", [hash, true], large), 2);
	});
});

describe("a large answer", () => {
	const result = Array.from({ length: 20_000 }, (_, i) => ({ logIndex: hex(i) }));

	test("is passed on as the node wrote it, without being parsed", async () => {
		proxy.setFault({ kind: "result", result });
		const answer = await newPassthrough().call("eth_getLogs", [{}], caller());
		assert.ok(answer instanceof JsonText);
		assert.equal(answer.text, JSON.stringify(result));
	});

	test("is parsed where the relay itself reads it, though a client has asked for the same", async () => {
		proxy.setFault({ kind: "result", result });
		const passthrough = newPassthrough();
		const [text, own] = await Promise.all([
			passthrough.call("eth_getTransactionReceipt", [NO_HASH], caller()),
			passthrough.read("eth_getTransactionReceipt", [NO_HASH], caller()),
		]);
		assert.ok(text instanceof JsonText);
		assert.deepEqual(own, result);
	});

	test("of more than 8 MiB is refused, saying what to do", async () => {
		proxy.setFault({ kind: "result", result: `0x${"00".repeat(4 * 1024 * 1024)}` });
		await assert.rejects(newPassthrough().call("eth_call", [{}, "latest"], caller()), {
			kind: "limit",
			message: "limit exceeded: the answer has more than 8388608 bytes, ask for less at once",
		});
	});
});

describe("what goes wrong at the node", () => {
	const error = (code: number, message = SECRET): NodeFault => ({ kind: "error", code, message });
	const ours: readonly [string, NodeFault, string, RpcErrorKind, string][] = [
		["HTML under 502", { kind: "html", status: 502 }, "eth_gasPrice", "internal", "internal error"],
		["HTML under 200", { kind: "html", status: 200 }, "eth_gasPrice", "internal", "internal error"],
		["a closed connection", { kind: "destroy" }, "eth_gasPrice", "internal", "internal error"],
		["half an answer", { kind: "truncated" }, "eth_call", "internal", "internal error"],
		["another's answer", { kind: "wrongId" }, "eth_call", "internal", "internal error"],
		["an internal error", error(-32603), "eth_gasPrice", "internal", "internal error"],
		["a provider's refusal", error(-32600), "eth_call", "internal", "internal error"],
		[
			"a provider's quota",
			{ ...error(429), status: 429 } as NodeFault,
			"eth_call",
			"internal",
			"internal error",
		],
		["a code of nobody's", error(7), "eth_getLogs", "internal", "internal error"],
		["a limit", error(-32005), "eth_getLogs", "limit", "limit exceeded: the node does not answer this much"],
		[
			"a method that it does not have",
			error(-32601),
			"eth_config",
			"methodNotFound",
			"the method eth_config does not exist/is not available",
		],
	];
	for (const [name, fault, method, kind, message] of ours) {
		test(`${name} on ${method}: ${message}, and none of the node's words`, async () => {
			proxy.setFault(fault);
			await assert.rejects(newPassthrough().call(method, [], caller()), (thrown) => {
				assert.ok(thrown instanceof RpcError);
				assert.deepEqual([thrown.kind, thrown.message], [kind, message]);
				assert.deepEqual(thrown.data, kind === "internal" ? { reason: "node unavailable" } : undefined);
				assert.ok(!JSON.stringify([thrown.stack, logged]).includes(SECRET));
				return true;
			});
		});
	}

	const theirs: readonly [number, string][] = [
		[3, "eth_call"],
		[3, "eth_getBalance"],
		[-32000, "eth_getBalance"],
		[-32001, "eth_getBalance"],
		[-32003, "eth_call"],
		[-32015, "eth_call"],
		[-32602, "eth_getLogs"],
		[-32603, "eth_call"],
		[-32603, "eth_estimateGas"],
		[-32603, "eth_simulateV1"],
		[-38_013, "eth_simulateV1"],
		[4444, "eth_getBlockReceipts"],
	];
	for (const [code, method] of theirs) {
		test(`${code} on ${method} is about the read, and passed on as it is`, async () => {
			proxy.setFault(error(code, "words of the node"));
			await assert.rejects(newPassthrough().call(method, [], caller()), {
				name: "ForeignRpcError",
				code,
				message: "words of the node",
				data: undefined,
			});
		});
	}

	test("null, false, empty lists and texts are answers", async () => {
		for (const result of [null, false, [], {}, "", 0]) {
			proxy.setFault({ kind: "result", result });
			assert.deepEqual(await newPassthrough().call("eth_syncing", [], caller()), result);
		}
	});
});
