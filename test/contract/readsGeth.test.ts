// Reads of a real go-ethereum, which the environment variable GETH names: each kind of error that
// it has reaches the client in geth's own words, and what a geth lacks that is some blocks behind
// is an error. Skipped without GETH; test/support/providerErrors.ts holds the words.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { NodeReader } from "../../relay/chain/nodeReader.ts";
import { Passthrough } from "../../relay/chain/passthrough.ts";
import { ReportedChain } from "../../relay/chain/reportedChain.ts";
import type { Block } from "../../relay/domain/chain.ts";
import { systemClock } from "../../shared/clock.ts";
import { JsonRpcClient } from "../../shared/jsonrpc/client.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import { silentLogger } from "../../shared/log.ts";
import { type GethChain, SKIP_GETH, startGeth } from "../devnet/gethChain.ts";
import { caller } from "../support/nodes.ts";

const BLOCKS = 5;
const BEHIND = 3;
const HASH = `0x${"77".repeat(32)}`;
const REVERTER = "0x00000000000000000000000000000000000badc0";
const BROKEN = "0x00000000000000000000000000000000000bad01";
const LOOP = "0x00000000000000000000000000000000000bad02";
const ALLOC = {
	// Revert with the call data; an invalid opcode; an endless loop.
	[REVERTER]: { code: "0x365f5f37365ffd", balance: "0x0" },
	[BROKEN]: { code: "0xfe", balance: "0x0" },
	[LOOP]: { code: "0x5b5f56", balance: "0x0" },
};

describe("reads of a real go-ethereum", { skip: SKIP_GETH }, () => {
	let geth: GethChain;
	let behind: GethChain;
	const stops: (() => Promise<void>)[] = [];
	before(async () => {
		const args = ["--rpc.evmtimeout", "200ms", "--rpc.gascap", "0"];
		geth = await startGeth({ alloc: ALLOC, args });
		behind = await startGeth({ alloc: ALLOC, args });
		stops.push(geth.stop, behind.stop);
		for (let i = 0; i < BLOCKS; i += 1) await geth.mine({ txs: [] });
		for (let i = 0; i < BLOCKS - BEHIND; i += 1) await behind.mine({ txs: [] });
	});
	after(async () => {
		for (const stop of stops) await stop();
	});

	const passthrough = ({ url }: GethChain, told?: ReportedChain): Passthrough => {
		const client = new JsonRpcClient({ url, timeoutMs: 5_000 }, { clock: systemClock });
		stops.push(() => client.close());
		const node = new NodeReader({ timeoutMs: 5_000 }, { client, clock: systemClock, log: silentLogger });
		return new Passthrough({}, { node, head: () => null, log: silentLogger, ...(told && { told }) });
	};
	const ask = async ({ url }: GethChain, method: string, params: readonly unknown[]) => {
		const headers = { "content-type": "application/json" };
		const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
		const response = await fetch(url, { method: "POST", headers, body });
		return (await response.json()) as { error?: { code: number; message: string; data?: unknown } };
	};

	const ERRORS: readonly (readonly [string, readonly unknown[]])[] = [
		["eth_call", [{ to: REVERTER, data: "0xdeadbeef" }, "latest"]],
		["eth_call", [{ to: BROKEN }, "latest"]],
		["eth_call", [{ to: LOOP }, "latest"]],
		["eth_call", [{ to: LOOP, gas: "0x1" }, "latest"]],
		["eth_call", [{ to: REVERTER, from: REVERTER, value: "0x1" }, "latest"]],
		["eth_call", [{ to: REVERTER, maxFeePerGas: "0x1" }, "latest"]],
		["eth_call", [{ to: REVERTER, data: "0xz" }, "latest"]],
		["eth_call", [{ to: REVERTER }, "0xffff"]],
		["eth_call", [{ to: REVERTER }, { blockHash: HASH }]],
		["eth_call", []],
		["eth_estimateGas", [{ to: REVERTER, data: "0xdeadbeef" }]],
		["eth_getBalance", [REVERTER, "0xffff"]],
		["eth_getBalance", ["0x12", "latest"]],
		["eth_getProof", [REVERTER, ["0xzz"], "latest"]],
		["eth_getStorageAt", [REVERTER, "0xzz", "latest"]],
		["eth_getBlockByNumber", ["0xzz", false]],
		["eth_getBlockByNumber", ["safe", false]],
		["eth_getLogs", [{ fromBlock: "0x2", toBlock: "0x1" }]],
		["eth_getLogs", [{ fromBlock: "0xff", toBlock: "0xffff" }]],
		["eth_getLogs", [{ blockHash: HASH }]],
		["eth_getLogs", [{ topics: [[], [], [], [], []] }]],
		["eth_getBlockReceipts", ["0xzz"]],
		["eth_feeHistory", ["0x1", "0xffff", []]],
		["eth_feeHistory", ["0x1", "latest", [2, 1]]],
		["eth_simulateV1", [{ blockStateCalls: [] }, "latest"]],
	];
	test("each error has geth's code, words and data", async () => {
		const reads = passthrough(geth);
		for (const [method, params] of ERRORS) {
			const what = `${method} ${JSON.stringify(params)}`;
			const { error } = await ask(geth, method, params);
			assert.ok(error !== undefined, what);
			const expected = { name: "ForeignRpcError", ...error };
			await assert.rejects(reads.call(method, params, caller()), expected, what);
		}
	});

	test("what a geth lacks that is behind is an error, and the height stays", async () => {
		const told = new ReportedChain({ slot: { ms: 12_000 } }, { clock: systemClock });
		const blocks: Block[] = [];
		for (let i = 0; i <= BLOCKS; i += 1) {
			const block = (await geth.rpc("eth_getBlockByNumber", [`0x${i}`, false])) as { hash: string };
			blocks.push({ number: i, hash: block.hash } as Block);
		}
		const head = blocks.at(-1) as Block;
		told.onUpdate({ head, reverted: [], applied: blocks, gap: false });
		assert.deepEqual(
			await behind.rpc("eth_getBlockByNumber", ["0x2", false]),
			await geth.rpc("eth_getBlockByNumber", ["0x2", false]),
			"they are on one chain",
		);
		const reads = passthrough(behind, told);
		assert.equal(await reads.call("eth_blockNumber", [], caller()), `0x${BLOCKS}`);
		const number = `0x${BLOCKS}`;
		for (const [method, params] of [
			["eth_getBlockByNumber", [number, false]],
			["eth_getBlockByHash", [head.hash, false]],
			["eth_getBlockReceipts", [number]],
			["eth_getBlockReceipts", [{ blockHash: head.hash }]],
			["eth_getBlockTransactionCountByNumber", [number]],
			["eth_getBlockTransactionCountByHash", [head.hash]],
			["eth_getTransactionByBlockNumberAndIndex", [number, "0x0"]],
			["eth_getTransactionByBlockHashAndIndex", [head.hash, "0x0"]],
			["eth_getLogs", [{ fromBlock: number, toBlock: number }]],
			["eth_getLogs", [{ fromBlock: "0x0", toBlock: number }]],
			["eth_getLogs", [{ fromBlock: number }]],
			["eth_getLogs", [{ blockHash: head.hash }]],
			["eth_getBalance", [REVERTER, number]],
			["eth_call", [{ to: REVERTER }, number]],
		] as const) {
			const outcome = await reads.call(method, params, caller()).catch((thrown: Error) => thrown);
			const what = `${method} ${JSON.stringify(params)}: ${JSON.stringify(outcome)}`;
			assert.ok(outcome instanceof RpcError && outcome.code === -32000, what);
			assert.match(outcome.message, /^header not found: /, what);
		}
		const own = passthrough(geth, told);
		for (const index of [
			"eth_getTransactionByBlockNumberAndIndex",
			"eth_getRawTransactionByBlockNumberAndIndex",
		]) {
			assert.ok([null, "0x"].includes((await own.call(index, [number, "0x0"], caller())) as null), index);
		}
		assert.deepEqual(await own.call("eth_getLogs", [{ fromBlock: number, toBlock: number }], caller()), []);
	});
});
