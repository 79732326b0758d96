// Tests the fees of the next block: formulas against known values and a real chain, and where the node can't tell.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import {
	BLOB_SCHEDULE,
	type BlobSchedule,
	nextBaseFee,
	nextBlobBaseFee,
	nextBlockReader,
} from "../../../../relay/chain/nextBlock.ts";
import type { Block } from "../../../../relay/domain/chain.ts";
import { readBlock } from "../../../../relay/inclusion/blockReader.ts";
import { systemClock } from "../../../../shared/clock.ts";
import { JsonRpcClient } from "../../../../shared/jsonrpc/client.ts";
import { type DevChain, startDevChain } from "../../../devnet/devChain.ts";
import { type NodeFault, type NodeProxy, startNodeProxy } from "../../../support/nodeProxy.ts";

const HEAD: Block = {
	number: 100,
	hash: `0x${"11".repeat(32)}`,
	parentHash: `0x${"22".repeat(32)}`,
	timestamp: 1_700_000_000,
	gasLimit: 60_000_000n,
	gasUsed: 30_000_000n,
	baseFee: 1_000_000_000n,
	excessBlobGas: 0n,
	blobGasUsed: 0n,
	miner: `0x${"00".repeat(20)}`,
	transactions: [],
	touched: [],
};
const CANCUN: BlobSchedule = { target: 3, max: 6, updateFraction: 3_338_477n, reserve: false };
const BLOB = 131_072n;

describe("nextBaseFee", () => {
	// The first three are go-ethereum's TestCalcBaseFee; the rest follow from EIP-1559.
	const rows: readonly [string, Partial<Block>, bigint][] = [
		["at the target it stays", { gasLimit: 20_000_000n, gasUsed: 10_000_000n }, 1_000_000_000n],
		["below it falls", { gasLimit: 20_000_000n, gasUsed: 9_000_000n }, 987_500_000n],
		["above it rises", { gasLimit: 20_000_000n, gasUsed: 11_000_000n }, 1_012_500_000n],
		["an empty block takes an eighth off", { gasUsed: 0n }, 875_000_000n],
		["a full block adds an eighth", { gasUsed: 60_000_000n }, 1_125_000_000n],
		["it rises by one wei at least", { gasUsed: 30_000_001n, baseFee: 7n }, 8n],
		["seven wei do not fall any more", { gasUsed: 0n, baseFee: 7n }, 7n],
		["eight wei fall to seven", { gasUsed: 0n, baseFee: 8n }, 7n],
		["zero rises to one", { gasUsed: 60_000_000n, baseFee: 0n }, 1n],
		["no gas limit", { gasLimit: 0n, gasUsed: 0n }, 1_000_000_000n],
	];
	for (const [name, fields, expected] of rows) {
		test(name, () => assert.equal(nextBaseFee({ ...HEAD, ...fields }), expected));
	}
});

describe("nextBlobBaseFee", () => {
	// Excess of a block that used the target: the next block's is the same. Values of go-ethereum's TestCalcBlobFee.
	const rows: readonly [bigint, bigint][] = [
		[0n, 1n],
		[2_314_057n, 1n],
		[2_314_058n, 2n],
		[10n * 1024n * 1024n, 23n],
	];
	for (const [excess, expected] of rows) {
		test(`Cancun: excess ${excess} costs ${expected} wei`, () => {
			const head = { ...HEAD, excessBlobGas: excess, blobGasUsed: 3n * BLOB };
			assert.equal(nextBlobBaseFee(head, CANCUN), expected);
		});
	}

	test("a block below the target takes the difference off the excess, to nothing at the least", () => {
		const below = { ...HEAD, excessBlobGas: 2_314_058n + BLOB, blobGasUsed: 2n * BLOB };
		assert.equal(nextBlobBaseFee(below, CANCUN), 2n);
		assert.equal(nextBlobBaseFee({ ...HEAD, excessBlobGas: BLOB, blobGasUsed: 0n }, CANCUN), 1n);
	});

	test("EIP-7918: while blobs cost less than their execution the excess never falls", () => {
		const schedule = { ...CANCUN, reserve: true };
		const head = { ...HEAD, excessBlobGas: 10n * 1024n * 1024n, blobGasUsed: 0n, baseFee: 1_000_000_000n };
		// Without blobs used, the excess stays where the floor holds, and falls by the target where it does not.
		assert.equal(nextBlobBaseFee(head, schedule), 23n);
		assert.equal(nextBlobBaseFee({ ...head, baseFee: 100n }, schedule), 20n);
		assert.equal(nextBlobBaseFee(head, CANCUN), 20n);
	});

	test("EIP-7918: under the floor the excess rises by the used blobs' share above the target", () => {
		const schedule = { ...CANCUN, reserve: true };
		// 6 blobs of at most 6, target 3: half of what was used is added, as many as by the old rule.
		const full = { ...HEAD, excessBlobGas: 2_314_058n - 3n * BLOB, blobGasUsed: 6n * BLOB };
		assert.equal(nextBlobBaseFee(full, schedule), 2n);
		const one = { ...HEAD, excessBlobGas: 2_314_058n - BLOB / 2n, blobGasUsed: BLOB };
		assert.equal(nextBlobBaseFee(one, schedule), 2n);
		assert.equal(nextBlobBaseFee({ ...one, excessBlobGas: one.excessBlobGas - 1n }, schedule), 1n);
	});

	test("the schedule that is fallen back to is mainnet's second blob-parameter fork", () => {
		assert.deepEqual(BLOB_SCHEDULE, { target: 14, max: 21, updateFraction: 11_684_671n, reserve: true });
	});
});

describe("nextBlockReader on a chain", () => {
	let chain: DevChain;
	let proxy: NodeProxy;
	let client: JsonRpcClient;
	const next = async (head: Block) => nextBlockReader({ slotSeconds: 12 }, { node: client })(head);
	const latest = async () => readBlock(await chain.rpc("eth_getBlockByNumber", ["latest", true]), () => null);

	before(async () => {
		chain = await startDevChain();
		proxy = await startNodeProxy(chain.url);
		client = new JsonRpcClient({ url: proxy.url, timeoutMs: 5_000 }, { clock: systemClock });
	});
	after(async () => {
		await client.close();
		await proxy.stop();
		await chain.stop();
	});

	test("tells the base fee that the next block then has, and so does the formula", async () => {
		for (let i = 0; i < 10; i++) {
			const head = await latest();
			const told = await next(head);
			// anvil gives the first block the genesis block's base fee, and says so: the node knows best.
			assert.equal(i === 0 ? head.baseFee : nextBaseFee(head), told.baseFee);
			await chain.rpc("anvil_mine", ["0x1"]);
			const block = await latest();
			assert.equal(block.baseFee, told.baseFee);
			assert.equal(block.number, told.number);
			assert.equal(told.timestamp, head.timestamp + 12);
			assert.equal(told.gasLimit, head.gasLimit);
			assert.equal(told.blobBaseFee, 1n);
		}
	});

	test("believes the node where it differs from the formula", async () => {
		const head = await latest();
		const baseFeePerGas = [head.baseFee, 5n].map((fee) => `0x${fee.toString(16)}`);
		proxy.setFault({ kind: "result", result: { baseFeePerGas, baseFeePerBlobGas: ["0x1", "0x77"] } });
		const told = await next(head);
		assert.equal(told.baseFee, 5n);
		assert.equal(told.blobBaseFee, 0x77n);
		proxy.setFault(null);
	});

	test("asks for the head by its number, once", async () => {
		const head = await latest();
		proxy.reset();
		await next(head);
		const asked = proxy.calls().map(({ method, params }) => [method, params[1]]);
		assert.deepEqual(asked, [["eth_feeHistory", `0x${head.number.toString(16)}`]]);
	});

	const own = `0x${HEAD.baseFee.toString(16)}`;
	const history = (lists: object): NodeFault => ({ kind: "result", result: lists });
	const faults: readonly [string, NodeFault][] = [
		["an error", { kind: "error", code: -32601, message: "no" }],
		["HTML", { kind: "html", status: 502 }],
		["a closed connection", { kind: "destroy" }],
		["half an answer", { kind: "truncated" }],
		["null", { kind: "result", result: null }],
		["text", { kind: "result", result: "0x1" }],
		["no lists", history({})],
		["a list that ends at the head", history({ baseFeePerGas: [own] })],
		["another block's fee", history({ baseFeePerGas: ["0x1", "0x2"], baseFeePerBlobGas: ["0x1", "0x9"] })],
		["decimals", history({ baseFeePerGas: [own, "12"] })],
		["numbers", history({ baseFeePerGas: [1_000_000_000, 12] })],
	];
	for (const [name, fault] of faults) {
		test(`${name}: falls back to both formulas`, async () => {
			proxy.setFault(fault);
			const excessBlobGas = 300n * BLOB;
			const head = { ...HEAD, gasUsed: 60_000_000n, excessBlobGas, blobGasUsed: 14n * BLOB };
			const told = await next(head);
			// An eighth up; and, as the floor of EIP-7918 holds, a third of 14 blobs on top: e^(39933269/11684671).
			assert.equal(told.baseFee, 1_125_000_000n);
			assert.equal(told.blobBaseFee, 30n);
			proxy.setFault(null);
		});
	}

	test("a history without blobs: the node's base fee, and the formula for blobs", async () => {
		for (const baseFeePerBlobGas of [undefined, [], ["0x0", "0x0"]]) {
			proxy.setFault(history({ baseFeePerGas: [own, "0x5"], baseFeePerBlobGas }));
			const told = await next({ ...HEAD, excessBlobGas: 0n });
			assert.equal(told.baseFee, 5n);
			assert.equal(told.blobBaseFee, 1n);
		}
		proxy.setFault(null);
	});

	test("a node that hangs holds up a head for a second at most", async () => {
		proxy.setFault({ kind: "hang" });
		const begun = performance.now();
		const told = await next(HEAD);
		assert.equal(told.baseFee, HEAD.baseFee);
		assert.ok(performance.now() - begun < 2_500);
		proxy.setFault(null);
	});
});
