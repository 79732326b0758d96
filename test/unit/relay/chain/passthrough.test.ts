// Reads for clients: shared while in flight, cached where they cannot change, and the errors for a
// node's faults.

import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { Passthrough, type PassthroughOptions } from "../../../../relay/chain/passthrough.ts";
import { type Clock, systemClock } from "../../../../shared/clock.ts";
import { JsonText } from "../../../../shared/jsonrpc/answers.ts";
import { RpcError, type RpcErrorKind } from "../../../../shared/jsonrpc/errors.ts";
import { type LogFields, type Logger, silentLogger } from "../../../../shared/log.ts";
import { cutterFor } from "../../../../shared/secrets.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { caller, type NodeFault } from "../../../support/nodes.ts";
import { ASK_FOR_LESS, VERDICTS } from "../../../support/providerErrors.ts";
import { until } from "../../../support/until.ts";
import { startProxiedChain } from "./nodeFixture.ts";

const NO_HASH = `0x${"00".repeat(32)}`;
/** Stands for the hash of block 99. */
const HASH_99 = "the hash of block 99";
const SOMEBODY = `0x${"5a".repeat(20)}`;
const SECRET = "secret-of-the-node";
const KEY = "topsecret";
const NODE_URL = `https://node.provider.example/v3/${KEY}`;

const { chain, proxy, reader, mine, send } = await startProxiedChain();
await mine(100);
let head: { number: number; hash: string } | null;
let logged: string[];

function newPassthrough(options: PassthroughOptions = {}, clock: Clock = systemClock): Passthrough {
	const note = (message: string, fields?: LogFields) => logged.push(JSON.stringify([message, fields]));
	const log: Logger = { ...silentLogger, debug: note, info: note, warn: note, error: note };
	const cutter = cutterFor(NODE_URL);
	return new Passthrough(options, { node: reader(), head: () => head, log, clock, cutter });
}

async function blockOf(number: number): Promise<{ hash: string; number: string }> {
	return (await chain.rpc("eth_getBlockByNumber", [hex(number), false])) as { hash: string; number: string };
}

const hex = (value: number) => `0x${value.toString(16)}`;

beforeEach(() => {
	head = { number: 100, hash: "0xhead" };
	logged = [];
});

describe("reads in flight", () => {
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

	test("a client that knows a new head does not get an answer from before it", async () => {
		const passthrough = newPassthrough();
		const release = proxy.hold();
		const before = passthrough.call("eth_blockNumber", [], caller());
		head = { number: 101, hash: "0xnext" };
		const behind = passthrough.call("eth_blockNumber", [], caller());
		await until("two", () => proxy.requests === 2);
		release();
		assert.deepEqual(await Promise.all([before, behind]), ["0x64", "0x64"]);
	});
});

describe("what is cached", () => {
	/** How often the node is asked when a client asks twice. */
	const asked = async (method: string, params: readonly unknown[], passthrough = newPassthrough()) => {
		proxy.reset();
		const first = await passthrough.call(method, params, caller());
		const second = await passthrough.call(method, params, caller());
		// The pending block has the clock's time, which may be a second later.
		if (params[0] !== "pending") assert.deepEqual(second, first);
		return proxy.requests;
	};

	/** Questions with the head's number, and how often the node is asked if a client asks twice. */
	const rows: Readonly<Record<string, readonly (readonly [string, readonly unknown[], number, number?])[]>> =
		{
			"the chain's id, for good": [
				["eth_chainId", [], 1],
				["net_version", [], 1],
			],
			"what is of a block named by its hash, once it is there": [
				["eth_getBlockByHash", [HASH_99, true], 1],
				["eth_getBlockTransactionCountByHash", [HASH_99], 1],
				["eth_getUncleCountByBlockHash", [HASH_99], 1],
				["eth_getTransactionByBlockHashAndIndex", [HASH_99, "0x0"], 2],
				["eth_getBlockByHash", [NO_HASH, true], 2],
			],
			"a block by its number, once it is 64 below the head": [
				["eth_getBlockByNumber", [hex(36), false], 1],
				["eth_getBlockByNumber", [hex(37), false], 2],
				["eth_getBlockByNumber", [hex(37), false], 1, 101],
				["eth_getBlockByNumber", [hex(36), false], 2, 0],
			],
			"never a block by a tag: it names another one tomorrow": [
				"latest",
				"finalized",
				"safe",
				"pending",
				"earliest",
			].map((tag) => ["eth_getBlockByNumber", [tag, false], 2, 10_000] as const),
			"nothing that moves": [
				["eth_blockNumber", [], 2],
				["eth_gasPrice", [], 2],
				["eth_feeHistory", ["0x1", "0x1", []], 2],
				["eth_getBalance", [SOMEBODY, "0x1"], 2],
				["eth_getCode", [SOMEBODY, "0x1"], 2],
				["eth_call", [{ to: SOMEBODY }, "0x1"], 2],
				["eth_getLogs", [{ fromBlock: "0x1", toBlock: "0x1" }], 2],
				["eth_syncing", [], 2],
			],
		};
	for (const [name, questions] of Object.entries(rows)) {
		test(name, async () => {
			const { hash } = await blockOf(99);
			for (const [method, params, times, number = 100] of questions) {
				head = number === 0 ? null : { number, hash: `0x${number}` };
				const given = params.map((one) => (one === HASH_99 ? hash : one));
				assert.equal(await asked(method, given), times, `${method} ${params[0]} at ${number}`);
			}
		});
	}

	test("a receipt, once it is 64 below the head", async () => {
		const passthrough = newPassthrough();
		const hash = await send(0, 0);
		assert.equal(await passthrough.call("eth_getTransactionReceipt", [hash], caller()), null);
		assert.equal(await asked("eth_getTransactionReceipt", [hash], passthrough), 2);
		await mine();
		assert.equal(await asked("eth_getTransactionReceipt", [hash], passthrough), 2);
		head = { number: 101 + 64, hash: "0xfar" };
		assert.equal(await asked("eth_getTransactionReceipt", [hash], passthrough), 1);
		assert.equal(await asked("eth_getTransactionReceipt", [hash], passthrough), 0);
	});
});

describe("a large answer", () => {
	const result = Array.from({ length: 20_000 }, (_, i) => ({ logIndex: hex(i) }));

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
		...[401, 402, 403, 429].map((status): [string, NodeFault, string, RpcErrorKind, string] => [
			`a refusal of the operator under ${status}`,
			{ kind: "error", code: -32005, message: SECRET, status },
			"eth_getLogs",
			"internal",
			"internal error",
		]),
		[
			"an error without a code",
			{ kind: "error", code: "none" as unknown as number, message: SECRET },
			"eth_call",
			"internal",
			"internal error",
		],
		[
			"a method that it does not have",
			error(-32601),
			"eth_config",
			"methodNotFound",
			"the method eth_config does not exist/is not available",
		],
	];
	for (const [name, fault, method, kind, message] of ours) {
		test(`${name} is no answer to ${method}: ${message}, and nothing of the node's message`, async () => {
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

	test("a refusal of its operator is logged once a minute", async () => {
		proxy.setFault({ ...error(-32005), status: 429 } as NodeFault);
		const clock = new ManualClock();
		const passthrough = newPassthrough({}, clock);
		const refusals = () => logged.filter((line) => line.includes("bill and quota")).length;
		const seen: number[] = [];
		for (const ms of [0, 59_000, 1_000, 1_000]) {
			await clock.advance(ms);
			await assert.rejects(passthrough.call("eth_gasPrice", [], caller()));
			seen.push(refusals());
		}
		assert.deepEqual(seen, [1, 1, 2, 2]);
	});

	test("any error in a proper answer is the node's verdict: code, words and data are passed on", async () => {
		for (const { by, method, error, status } of [...ASK_FOR_LESS, ...VERDICTS]) {
			proxy.setFault({ kind: "error", ...error, ...(status === undefined ? {} : { status }) });
			const isLikeOurs = error.code === -32603 && error.message.startsWith("internal error");
			const expected = {
				name: "ForeignRpcError",
				code: error.code,
				// Boost must not take it for the relay's own fault.
				message: isLikeOurs ? `node: ${error.message}` : error.message,
				data: error.data,
			};
			await assert.rejects(newPassthrough().call(method, [], caller()), expected, by);
		}
	});

	test("URL, host and key of the node are cut out of its words", async () => {
		const message = `${NODE_URL} is over its limit, see https://provider.example/${KEY}`;
		proxy.setFault({ kind: "error", code: -32000, message, data: { url: NODE_URL, block: "0x12" } });
		const expected = {
			message: "[url] is over its limit, see [url]",
			data: { url: "[url]", block: "0x12" },
		};
		await assert.rejects(newPassthrough().call("eth_call", [{}], caller()), expected);
		proxy.setFault({ kind: "error", code: -32000, message: `no project ${KEY}` });
		await assert.rejects(newPassthrough().call("eth_call", [{}], caller()), { message: "no project [key]" });
	});
});
