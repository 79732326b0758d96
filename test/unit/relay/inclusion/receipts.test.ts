// Where transactions were mined, read from a real chain; and that "not mined" is never said for "cannot tell".

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { NodeReader } from "../../../../relay/chain/nodeReader.ts";
import { receiptReader } from "../../../../relay/inclusion/receipts.ts";
import { systemClock } from "../../../../shared/clock.ts";
import { JsonRpcClient, UpstreamError, type UpstreamFault } from "../../../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { type DevChain, startDevChain } from "../../../devnet/devChain.ts";
import { type NodeFault, type NodeProxy, startNodeProxy } from "../../../support/nodes.ts";

const NEVER = `0x${"77".repeat(32)}`;
/** PUSH0 PUSH0 REVERT */
const REVERTS = "0x5f5ffd";

describe("receiptReader", () => {
	let chain: DevChain;
	let proxy: NodeProxy;
	let client: JsonRpcClient;
	const node = () => new NodeReader({ timeoutMs: 5_000 }, { client, clock: systemClock, log: silentLogger });
	const inclusions = (hashes: readonly string[], maxBlock = 1_000) =>
		receiptReader({ node: node() }).inclusions(hashes, maxBlock);
	const fails = (code: UpstreamFault) => (thrown: unknown) =>
		thrown instanceof UpstreamError && thrown.code === code;
	const latest = async () =>
		(await chain.rpc("eth_getBlockByNumber", ["latest", false])) as { number: string; hash: string };
	let nonce = 0;
	const send = async (fields: object = {}) => {
		const raw = await chain.wallet(0).signTransaction({
			chainId: chain.chainId,
			to: chain.wallet(1).address,
			nonce: nonce++,
			gasLimit: 100_000n,
			maxFeePerGas: 10n ** 10n,
			maxPriorityFeePerGas: 1n,
			...fields,
		});
		return String(await chain.rpc("eth_sendRawTransaction", [raw]));
	};

	before(async () => {
		chain = await startDevChain();
		proxy = await startNodeProxy(chain.url);
		client = new JsonRpcClient({ url: proxy.url, timeoutMs: 5_000 }, { clock: systemClock });
	});
	afterEach(() => {
		proxy.setFault(null);
		proxy.reset();
	});
	after(async () => {
		await client.close();
		await proxy.stop();
		await chain.stop();
	});

	test("tells block, place and outcome, and null for what is not mined", async () => {
		const good = await send();
		const bad = await send({ to: null, data: REVERTS });
		await chain.rpc("anvil_mine", ["0x1"]);
		const { number, hash } = await latest();
		const pending = await send();
		const block = Number(number);
		assert.deepEqual(await inclusions([bad, NEVER, good, pending, good]), [
			{ hash: bad, block, blockHash: hash, index: 1, reverted: true },
			null,
			{ hash: good, block, blockHash: hash, index: 0, reverted: false },
			null,
			{ hash: good, block, blockHash: hash, index: 0, reverted: false },
		]);
		assert.deepEqual(await inclusions([good], block - 1), [null]);
		assert.equal((await inclusions([good], block))[0]?.block, block);
	});

	test("what a reorganisation took out is not mined", async () => {
		await chain.rpc("anvil_mine", ["0x1"]);
		const snapshot = await chain.snapshot();
		const hash = await send();
		await chain.rpc("anvil_mine", ["0x1"]);
		assert.notEqual((await inclusions([hash]))[0], null);
		await chain.revert(snapshot);
		nonce -= 1;
		assert.deepEqual(await inclusions([hash]), [null]);
	});

	test("many are asked for by the hundred, and answered in their order", async () => {
		const mined: string[] = [];
		for (let i = 0; i < 20; i++) mined.push(await send());
		await chain.rpc("anvil_mine", ["0x1"]);
		proxy.reset();
		const asked = Array.from({ length: 1_050 }, (_, i) =>
			i % 50 === 7 ? (mined[Math.floor(i / 50)] ?? NEVER) : `0x${i.toString(16).padStart(64, "0")}`,
		);
		const found = await inclusions(asked);
		assert.deepEqual(
			found.map((one) => one?.hash ?? null),
			asked.map((hash) => (mined.includes(hash) ? hash : null)),
		);
		assert.equal(proxy.requests, 11);
		assert.ok(proxy.calls().every(({ batch }) => batch <= 100));
	});

	test("nothing asked, nothing sent", async () => {
		assert.deepEqual(await inclusions([]), []);
		assert.equal(proxy.requests, 0);
	});

	const receipt = {
		transactionHash: NEVER,
		blockNumber: "0x5",
		blockHash: `0x${"55".repeat(32)}`,
		transactionIndex: "0x2",
		status: "0x1",
	};
	const result = (value: unknown): NodeFault => ({ kind: "result", result: value });
	const faults: readonly [string, NodeFault, UpstreamFault][] = [
		["refuses (indexing)", { kind: "error", code: -32000, message: "indexing" }, "notJsonRpc"],
		["answers HTML", { kind: "html", status: 502 }, "httpStatus"],
		["closes connections", { kind: "destroy" }, "unreachable"],
		["answers half", { kind: "truncated" }, "notJsonRpc"],
		["answers text", result("0x1"), "notJsonRpc"],
		["answers false", result(false), "notJsonRpc"],
		["answers another's receipt", result({ ...receipt, transactionHash: receipt.blockHash }), "notJsonRpc"],
		["leaves out the block", result({ ...receipt, blockNumber: undefined }), "notJsonRpc"],
		["numbers blocks by numbers", result({ ...receipt, blockNumber: 5 }), "notJsonRpc"],
		["leaves out the place", result({ ...receipt, transactionIndex: undefined }), "notJsonRpc"],
		["shortens the block's hash", result({ ...receipt, blockHash: "0x55" }), "notJsonRpc"],
	];
	for (const [name, fault, code] of faults) {
		test(`a node that ${name}: an error, not "not mined"`, async () => {
			proxy.setFault(fault);
			await assert.rejects(inclusions([NEVER]), fails(code));
		});
	}

	test("one that can't be told spoils them all", async () => {
		const hashes = Array.from({ length: 500 }, (_, i) => `0x${i.toString(16).padStart(64, "0")}`);
		proxy.setFault({ kind: "error", code: -32000, message: "no" }, { times: 1 });
		await assert.rejects(inclusions(hashes), fails("notJsonRpc"));
	});

	test("a receipt of a pending transaction is none; one from before Byzantium has no status", async () => {
		proxy.setFault(result({ ...receipt, blockNumber: null, blockHash: null, transactionIndex: null }));
		assert.deepEqual(await inclusions([NEVER]), [null]);
		proxy.setFault(result({ ...receipt, status: undefined, root: receipt.blockHash }));
		assert.equal((await inclusions([NEVER]))[0]?.reverted, false);
	});
});
