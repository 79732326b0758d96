// Tests every read served to clients, through the relay's node stage and beside it: results and errors are the
// node's.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { NodeReader } from "../../../relay/chain/nodeReader.ts";
import { PASSED_METHODS, Passthrough } from "../../../relay/chain/passthrough.ts";
import { systemClock } from "../../../shared/clock.ts";
import { JsonRpcClient } from "../../../shared/jsonrpc/client.ts";
import { ForeignRpcError, RpcError } from "../../../shared/jsonrpc/errors.ts";
import { silentLogger } from "../../../shared/log.ts";
import { ChainRpcError } from "../../devnet/chainRpc.ts";
import { type DevChain, startDevChain } from "../../devnet/devChain.ts";
import { caller } from "../../support/caller.ts";

/** Stores its input's first word in slot 0 and logs it under the topic 0xaa; before it, what returns it as code. */
const CREATION = "0x600e600a5f39600e5ff35f35805f555f5260aa60205fa100";
/** Reverts with Error("no"). */
const REVERTING = `0x62461bcd60e51b6000526020600452600260245261${"6e6f"}60f01b60445260646000fd`;
/** The INVALID opcode. */
const INVALID = "0xfe";

interface Fixture {
	readonly from: string;
	readonly contract: string;
	readonly block: string;
	readonly blockHash: string;
	readonly hash: string;
	readonly never: string;
}

type Row = readonly [method: string, params: (fixture: Fixture) => readonly unknown[]];

/** At least one of each method; of each error that a client's own read can have, one. */
const ROWS: readonly Row[] = [
	["eth_chainId", () => []],
	["eth_protocolVersion", () => []],
	["eth_syncing", () => []],
	["eth_config", () => []],
	["eth_capabilities", () => []],
	["eth_blockNumber", () => []],
	["eth_gasPrice", () => []],
	["eth_baseFee", () => []],
	["eth_maxPriorityFeePerGas", () => []],
	["eth_feeHistory", () => ["0x3", "latest", [10, 50]]],
	["eth_blobBaseFee", () => []],
	["eth_call", ({ contract, from }) => [{ from, to: contract, data: `0x${"00".repeat(31)}07` }, "latest"]],
	["eth_call", ({ contract }) => [{ to: contract }, { blockNumber: "0x1" }]],
	["eth_call", () => [{ data: REVERTING }, "latest"]],
	["eth_call", () => [{ data: INVALID }, "latest"]],
	["eth_call", ({ contract }) => [{ to: contract }, "0x9999"]],
	["eth_call", ({ contract }) => [{ to: contract, data: "0xzz" }, "latest"]],
	[
		"eth_call",
		({ contract, never }) => [{ from: never.slice(0, 42), to: contract, value: "0x1", gasPrice: "0x1" }],
	],
	["eth_estimateGas", ({ from, contract }) => [{ from, to: contract, value: "0x0" }]],
	["eth_estimateGas", () => [{ data: REVERTING }]],
	["eth_createAccessList", ({ from, contract }) => [{ from, to: contract }, "latest"]],
	[
		"eth_simulateV1",
		({ from, contract }) => [{ blockStateCalls: [{ calls: [{ from, to: contract }] }] }, "latest"],
	],
	["eth_getBalance", ({ from }) => [from, "latest"]],
	["eth_getBalance", ({ from }) => [from, "earliest"]],
	["eth_getBalance", ({ from }) => [from, "0x9999"]],
	["eth_getBalance", () => ["0x1234", "latest"]],
	["eth_getBalance", () => []],
	["eth_getCode", ({ contract }) => [contract, "latest"]],
	["eth_getStorageAt", ({ contract }) => [contract, "0x0", "latest"]],
	["eth_getStorageValues", ({ contract }) => [{ [contract]: [`0x${"0".repeat(64)}`] }, "latest"]],
	["eth_getProof", ({ contract }) => [contract, ["0x0"], "latest"]],
	["eth_getBlockByHash", ({ blockHash }) => [blockHash, true]],
	["eth_getBlockByHash", ({ blockHash }) => [blockHash, false]],
	["eth_getBlockByHash", ({ never }) => [never, false]],
	["eth_getBlockByNumber", ({ block }) => [block, true]],
	["eth_getBlockByNumber", () => ["earliest", false]],
	["eth_getBlockByNumber", () => ["finalized", false]],
	["eth_getBlockByNumber", () => ["0x9999", false]],
	["eth_getBlockTransactionCountByHash", ({ blockHash }) => [blockHash]],
	["eth_getBlockTransactionCountByNumber", ({ block }) => [block]],
	["eth_getBlockReceipts", ({ block }) => [block]],
	["eth_getUncleByBlockHashAndIndex", ({ blockHash }) => [blockHash, "0x0"]],
	["eth_getUncleByBlockNumberAndIndex", ({ block }) => [block, "0x0"]],
	["eth_getUncleCountByBlockHash", ({ blockHash }) => [blockHash]],
	["eth_getUncleCountByBlockNumber", ({ block }) => [block]],
	["eth_getTransactionByBlockHashAndIndex", ({ blockHash }) => [blockHash, "0x0"]],
	["eth_getTransactionByBlockHashAndIndex", ({ blockHash }) => [blockHash, "0x9"]],
	["eth_getTransactionByBlockNumberAndIndex", ({ block }) => [block, "0x0"]],
	["eth_getTransactionReceipt", ({ hash }) => [hash]],
	["eth_getTransactionReceipt", ({ never }) => [never]],
	["eth_getRawTransactionByHash", ({ hash }) => [hash]],
	["eth_getRawTransactionByBlockHashAndIndex", ({ blockHash }) => [blockHash, "0x0"]],
	["eth_getRawTransactionByBlockNumberAndIndex", ({ block }) => [block, "0x0"]],
	["eth_getLogs", ({ contract }) => [{ address: contract, fromBlock: "0x0", toBlock: "latest" }]],
	["eth_getLogs", ({ blockHash }) => [{ blockHash }]],
	["eth_getLogs", () => [{ fromBlock: "0x9000", toBlock: "0x9999" }]],
	["net_version", () => []],
	["net_listening", () => []],
	["net_peerCount", () => []],
	["web3_clientVersion", () => []],
	["web3_sha3", () => ["0x68656c6c6f"]],
];

describe("reads through the relay", () => {
	let chain: DevChain;
	let client: JsonRpcClient;
	let passthrough: Passthrough;
	let fixture: Fixture;

	before(async () => {
		chain = await startDevChain();
		const wallet = chain.wallet(0);
		let nonce = 0;
		const send = async (fields: object) => {
			const raw = await wallet.signTransaction({
				chainId: chain.chainId,
				nonce: nonce++,
				gasLimit: 200_000n,
				maxFeePerGas: 10n ** 10n,
				maxPriorityFeePerGas: 1n,
				...fields,
			});
			const hash = String(await chain.rpc("eth_sendRawTransaction", [raw]));
			await chain.rpc("anvil_mine", ["0x1"]);
			return hash;
		};
		const created = await chain.rpc("eth_getTransactionReceipt", [await send({ data: CREATION })]);
		const contract = String((created as { contractAddress: string }).contractAddress);
		const hash = await send({ to: contract, data: `0x${"00".repeat(31)}2a` });
		const mined = (await chain.rpc("eth_getTransactionReceipt", [hash])) as Record<string, string>;
		await chain.rpc("anvil_mine", ["0x50"]);
		fixture = {
			from: wallet.address,
			contract,
			block: mined.blockNumber ?? "",
			blockHash: mined.blockHash ?? "",
			hash,
			never: `0x${"77".repeat(32)}`,
		};
		client = new JsonRpcClient({ url: chain.url, timeoutMs: 5_000 }, { clock: systemClock });
		const node = new NodeReader({ timeoutMs: 5_000 }, { client, clock: systemClock, log: silentLogger });
		const head = { number: 0x52, hash: fixture.blockHash };
		passthrough = new Passthrough({}, { node, head: () => head, log: silentLogger });
	});
	after(async () => {
		await client.close();
		await chain.stop();
	});

	test("the fixture has what the rows ask for", async () => {
		assert.equal(await chain.rpc("eth_getStorageAt", [fixture.contract, "0x0", "latest"]), word("2a"));
		const logs = (await chain.rpc("eth_getLogs", [{ blockHash: fixture.blockHash }])) as unknown[];
		assert.equal(logs.length, 1);
	});

	test("every method of the list has a row", () => {
		const listed = [...PASSED_METHODS.keys()];
		assert.deepEqual(
			listed.filter((method) => !ROWS.some(([name]) => name === method)),
			[],
		);
	});

	/** Twice: the second time it may be remembered. */
	for (const [i, [method, params]] of ROWS.entries()) {
		test(`${method} (row ${i}) is as the node says it`, async () => {
			for (let round = 0; round < 2; round++) {
				const own = await settle(chain.rpc(method, params(fixture)));
				const passed = await settle(passthrough.call(method, params(fixture), caller()));
				assert.deepEqual(passed, own);
			}
		});
	}

	test("reverts keep code, words and data: clients decode them", async () => {
		await assert.rejects(
			passthrough.call("eth_call", [{ data: REVERTING }, "latest"], caller()),
			(thrown) => {
				assert.ok(thrown instanceof ForeignRpcError);
				assert.equal(thrown.code, 3);
				assert.match(thrown.message, /^execution reverted/);
				assert.match(String(thrown.data), /^0x08c379a0/);
				return true;
			},
		);
	});

	const refused = [
		"eth_sendRawTransaction",
		"eth_sendTransaction",
		"eth_sendPrivateTransaction",
		"eth_getTransactionByHash",
		"eth_getTransactionCount",
		"eth_callMany",
		"eth_accounts",
		"eth_coinbase",
		"eth_mining",
		"eth_hashrate",
		"eth_getWork",
		"eth_submitWork",
		"eth_sign",
		"eth_signTransaction",
		"eth_signTypedData_v4",
		"eth_newFilter",
		"eth_newBlockFilter",
		"eth_newPendingTransactionFilter",
		"eth_getFilterChanges",
		"eth_getFilterLogs",
		"eth_uninstallFilter",
		"eth_subscribe",
		"eth_unsubscribe",
		"eth_pendingTransactions",
		"personal_sign",
		"admin_peers",
		"debug_traceCall",
		"txpool_content",
		"miner_start",
		"engine_newPayloadV4",
		"anvil_mine",
		"evm_mine",
		"hardhat_setBalance",
		"web3_x",
		"net_x",
		"ETH_CHAINID",
		"eth_chainId ",
		"__proto__",
		"constructor",
		"toString",
		"",
	];
	for (const method of refused) {
		test(`${JSON.stringify(method)} is not passed on`, async () => {
			assert.equal(passthrough.weigh(method), undefined);
			await assert.rejects(passthrough.call(method, [], caller()), {
				name: "RpcError",
				code: -32601,
				message: `the method ${method} does not exist/is not available`,
			});
		});
	}

	test("what a call weighs in the rate limit", () => {
		const heavy = [...PASSED_METHODS].filter(([, { weight }]) => weight === 10).map(([name]) => name);
		assert.deepEqual(heavy, [
			"eth_call",
			"eth_estimateGas",
			"eth_createAccessList",
			"eth_simulateV1",
			"eth_getLogs",
		]);
		assert.ok([...PASSED_METHODS.values()].every(({ weight }) => weight === 1 || weight === 10));
		assert.ok([...PASSED_METHODS.values()].every(({ timeoutMs }) => timeoutMs <= 20_000));
	});
});

type Settled = { result: unknown } | { code: number; message: string; data: unknown };

async function settle(promise: Promise<unknown>): Promise<Settled> {
	try {
		return { result: await promise };
	} catch (thrown) {
		if (thrown instanceof ForeignRpcError) {
			return { code: thrown.code, message: thrown.message, data: thrown.data };
		}
		if (thrown instanceof RpcError) return { code: thrown.code, message: "", data: undefined };
		if (!(thrown instanceof ChainRpcError)) throw thrown;
		// The dev chain's client puts the method before the node's words and the code behind them.
		const words = thrown.message.replace(/^\w+: /, "").replace(/ \(-?\d+\)$/, "");
		return { code: thrown.code, message: thrown.code === -32601 ? "" : words, data: thrown.data };
	}
}

function word(hex: string): string {
	return `0x${hex.padStart(64, "0")}`;
}
