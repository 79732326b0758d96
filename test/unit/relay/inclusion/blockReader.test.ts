// Tests reading blocks from the node's JSON: each field, and what is refused.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Wallet } from "ethers";
import { Recoveries } from "../../../../relay/domain/recoveries.ts";
import { readBlock } from "../../../../relay/inclusion/blockReader.ts";
import type { PaidBlock } from "../../../../relay/inclusion/payments.ts";
import { paymentReader } from "../../../../relay/inclusion/payments.ts";
import { type RpcAnswer, UpstreamError } from "../../../../shared/jsonrpc/client.ts";

const hash = (byte: string) => `0x${byte.repeat(32)}`;
const address = (byte: string) => `0x${byte.repeat(20)}`;
const BLOCK = {
	number: "0x10",
	hash: hash("A1"),
	parentHash: hash("a0"),
	timestamp: "0x65",
	gasLimit: "0x1c9c380",
	gasUsed: "0x5208",
	baseFeePerGas: "0x7",
	excessBlobGas: "0x20000",
	blobGasUsed: "0x40000",
	miner: address("Cc"),
	transactions: [
		{ hash: hash("B1"), from: address("0A") },
		{ hash: hash("b2"), from: address("0b") },
		{ hash: hash("b3"), from: address("0a") },
	],
};
const read = (json: unknown) => readBlock(json, new Recoveries());

describe("readBlock", () => {
	test("reads every field, hex in any case as lower case", async () => {
		assert.deepEqual(await read(BLOCK), {
			number: 16,
			hash: hash("a1"),
			parentHash: hash("a0"),
			timestamp: 101,
			gasLimit: 30_000_000n,
			gasUsed: 21_000n,
			baseFee: 7n,
			excessBlobGas: 131_072n,
			blobGasUsed: 262_144n,
			miner: address("cc"),
			transactions: [
				{ hash: hash("b1"), from: address("0a") },
				{ hash: hash("b2"), from: address("0b") },
				{ hash: hash("b3"), from: address("0a") },
			],
			touched: [address("0a"), address("0b")],
		});
	});

	test("fees that a fork has yet to bring are zero", async () => {
		const { baseFeePerGas: _1, excessBlobGas: _2, blobGasUsed: _3, ...old } = BLOCK;
		const { baseFee, excessBlobGas, blobGasUsed } = await read(old);
		assert.deepEqual([baseFee, excessBlobGas, blobGasUsed], [0n, 0n, 0n]);
	});

	const without = (key: string) => ({ ...BLOCK, [key]: undefined });
	const transactions = (entry: unknown) => ({ ...BLOCK, transactions: [entry] });
	const bad: readonly [string, unknown][] = [
		["null", null],
		["no number", without("number")],
		["no hash (a pending block)", { ...BLOCK, hash: null }],
		["a short hash", { ...BLOCK, hash: "0xa1" }],
		["no parent", without("parentHash")],
		["no timestamp", without("timestamp")],
		["a base fee beyond 256 bits", { ...BLOCK, baseFeePerGas: `0x1${"0".repeat(64)}` }],
		["no miner", without("miner")],
		["no transactions", without("transactions")],
		["hashes instead of transactions", transactions(hash("b1"))],
		["a transaction without a sender", transactions({ hash: hash("b1") })],
	];
	for (const [name, json] of bad) {
		test(`refuses ${name}`, async () => {
			await assert.rejects(
				() => read(json),
				(thrown) => thrown instanceof UpstreamError && thrown.code === "notJsonRpc",
			);
		});
	}

	test("names the accounts whose EIP-7702 authorizations are in it", async () => {
		const [first, second] = [Wallet.createRandom(), Wallet.createRandom()];
		const entry = async (wallet: { authorize: typeof first.authorize }, chainId: bigint) => {
			const signed = await wallet.authorize({ chainId, nonce: 3n, address: address("dd") });
			const { yParity, r, s } = signed.signature;
			return {
				chainId: `0x${chainId.toString(16)}`,
				address: address("DD"),
				nonce: "0x3",
				yParity: `0x${yParity}`,
				r,
				s,
			};
		};
		const good = await entry(first, 1n);
		const anyChain = await entry(second, 0n);
		const { yParity, ...older } = anyChain;
		for (const [list, expected] of [
			[[good], [first]],
			// r and s as ethers has them may begin with zeros, some nodes call yParity v.
			[
				[good, anyChain],
				[first, second],
			],
			[[{ ...older, v: yParity }], [second]],
			[[{ ...good, s: hash("ff") }, anyChain], [second]],
			[[{ ...good, chainId: 1 }, null, "0x", {}, anyChain], [second]],
			[[], []],
		] as const) {
			const found = { hash: hash("b1"), from: address("0a"), authorizationList: list };
			const block = await read(transactions(found));
			const touched = expected.map((wallet) => wallet.address.toLowerCase());
			assert.deepEqual(block.touched, [address("0a"), ...touched]);
		}
		const odd = await read(
			transactions({ hash: hash("b1"), from: address("0a"), authorizationList: "no list" }),
		);
		assert.deepEqual(odd.touched, [address("0a")]);
	});
});

describe("what was paid in a block", () => {
	const hash = (byte: string) => `0x${byte.repeat(32)}`;
	const address = (byte: string) => `0x${byte.repeat(20)}`;
	const COINBASE = address("c0");
	const BLOCK: PaidBlock = { number: 16, timestamp: 9, coinbase: COINBASE, baseFee: 10n, transactions: [] };
	const RECEIPT = { effectiveGasPrice: "0xc", gasUsed: "0x64", status: "0x1" };
	const FRAME = { type: "CALL", from: address("11"), to: address("22"), value: "0x0" };

	/**
	 * A node with one answer for each method, and for each tracer: a result, an error where it is an
	 * Error, a fault where it is an UpstreamError.
	 */
	function fixture(answers: Readonly<Record<string, unknown>>) {
		const asked: unknown[] = [];
		const received: unknown[] = [];
		const reader = paymentReader({
			node: {
				async call({ method, params }, timeoutMs): Promise<RpcAnswer> {
					asked.push([method, params]);
					assert.ok(timeoutMs !== undefined && timeoutMs > 0);
					const { tracer = "" } = (params[1] ?? {}) as { readonly tracer?: string };
					const answer = answers[tracer] ?? answers[method];
					if (answer instanceof UpstreamError) throw answer;
					if (answer instanceof Error)
						return { ok: false, error: { code: -32_000, message: answer.message } };
					return { ok: true, result: answer };
				},
			},
			received: (frame, recipient) => {
				received.push([frame, recipient]);
				return 1_000n;
			},
		});
		return { reader, asked, received };
	}

	const block = (fields: object = {}) => ({
		...{ number: "0x10", timestamp: "0x9", miner: COINBASE, baseFeePerGas: "0xa", transactions: [] },
		...fields,
	});
	const row = (fields: object = {}) => ({
		hash: hash("aa"),
		from: address("11"),
		to: address("22"),
		value: "0x7",
		...fields,
	});

	for (const [name, answer] of [
		["an error", new Error("no state")],
		["no number", block({ number: undefined })],
		["no coinbase", block({ miner: undefined })],
		["no transactions", block({ transactions: undefined })],
		["hashes alone", block({ transactions: [hash("aa")] })],
		["a transaction without a value", block({ transactions: [row({ value: undefined })] })],
		["a node that is down", new UpstreamError("timeout")],
	] as const) {
		test(`a block with ${name} is a fault, never a block without payments`, async () => {
			await assert.rejects(fixture({ eth_getBlockByHash: answer }).reader.block(hash("bb")), UpstreamError);
		});
	}

	for (const [name, answer] of [
		["can't trace", new Error("the method debug_traceTransaction does not exist")],
		["answers a trace with a text", "0x"],
	] as const) {
		test(`a node that ${name}: its transfers are not known`, async () => {
			const { reader, received } = fixture({
				eth_getTransactionReceipt: RECEIPT,
				debug_traceTransaction: answer,
			});
			assert.deepEqual(await reader.brought(hash("aa"), BLOCK), { fees: 200n, transfers: null });
			assert.deepEqual(received, []);
		});
	}

	/** The coinbase's 40 wei, and the sender's, before it, and what the node names behind it. */
	const balances = (behind: object) => ({
		pre: { [COINBASE]: { balance: "0x28" }, [address("11")]: { balance: "0x999" } },
		post: behind,
	});
	for (const [why, calls] of [
		["are too many for the node", new Error("execution timeout")],
		["are too long an answer", new UpstreamError("tooLarge")],
		["take too long", new UpstreamError("timeout")],
	] as const) {
		for (const [name, trace, from, transfers] of [
			[
				"what the coinbase has more, less the fees",
				balances({ [COINBASE]: { balance: "0x191" } }),
				"11",
				161n,
			],
			["nothing where that is the fees", balances({ [COINBASE]: { balance: "0xf0" } }), "11", 0n],
			["nothing where the coinbase is not named", balances({}), "11", 0n],
			[
				"all of it where there was no coinbase",
				{ pre: {}, post: { [COINBASE]: { balance: "0xd2" } } },
				"11",
				10n,
			],
			// 1,200 wei of gas are its own.
			["not less for the coinbase's own gas", balances({ [COINBASE]: { balance: "0x1" } }), "c0", 961n],
			["unknown without balances", new Error("no such tracer"), "11", null],
			["unknown where they are too many too", new UpstreamError("tooLarge"), "11", null],
		] as const) {
			test(`a backrun whose calls ${why} transferred ${name}`, async () => {
				const { reader } = fixture({
					...{ eth_getTransactionReceipt: { ...RECEIPT, from: address(from) } },
					...{ callTracer: calls, prestateTracer: trace },
				});
				assert.deepEqual(await reader.brought(hash("aa"), BLOCK), { fees: 200n, transfers });
			});
		}
	}

	test("a backrun that reverted in its block transferred nothing, whatever was simulated", async () => {
		const receipt = { ...RECEIPT, status: "0x0" };
		const { reader } = fixture({
			eth_getTransactionReceipt: receipt,
			debug_traceTransaction: new Error("no traces"),
		});
		assert.deepEqual(await reader.brought(hash("aa"), BLOCK), { fees: 200n, transfers: 0n });
	});

	for (const [name, receipt, trace] of [
		["no receipt", null, FRAME],
		["a receipt without a price", { ...RECEIPT, effectiveGasPrice: undefined }, FRAME],
		["an error instead of a receipt", new Error("busy"), FRAME],
		["a node that is down", new UpstreamError("timeout"), FRAME],
		["a node that goes down before the trace", RECEIPT, new UpstreamError("timeout")],
	] as const) {
		test(`${name}: a fault, never an amount`, async () => {
			const { reader } = fixture({ eth_getTransactionReceipt: receipt, debug_traceTransaction: trace });
			await assert.rejects(reader.brought(hash("aa"), BLOCK), UpstreamError);
		});
	}
});
