// Tests reading blocks from the node's JSON: each field, and what is refused.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Wallet } from "ethers";
import { readBlock, readBlockRef } from "../../../../relay/inclusion/blockReader.ts";
import { senderOfAuthorization } from "../../../../shared/ethereum/transaction.ts";
import { UpstreamError } from "../../../../shared/jsonrpc/client.ts";

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
const read = (json: unknown) => readBlock(json, senderOfAuthorization);

describe("readBlock", () => {
	test("reads every field, hex in any case as lower case", () => {
		assert.deepEqual(read(BLOCK), {
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

	test("fees that a fork has yet to bring are zero", () => {
		const { baseFeePerGas: _1, excessBlobGas: _2, blobGasUsed: _3, ...old } = BLOCK;
		const { baseFee, excessBlobGas, blobGasUsed } = read(old);
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
		test(`refuses ${name}`, () => {
			assert.throws(
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
			const block = read(transactions({ hash: hash("b1"), from: address("0a"), authorizationList: list }));
			const touched = expected.map((wallet) => wallet.address.toLowerCase());
			assert.deepEqual(block.touched, [address("0a"), ...touched]);
		}
		const odd = read(transactions({ hash: hash("b1"), from: address("0a"), authorizationList: "no list" }));
		assert.deepEqual(odd.touched, [address("0a")]);
	});
});

test("readBlockRef reads number and hash of a block without its transactions", () => {
	assert.deepEqual(readBlockRef({ ...BLOCK, transactions: [hash("b1")] }), { number: 16, hash: hash("a1") });
	for (const json of [null, "0x1", {}, { number: "0x1" }, { hash: hash("a1") }]) {
		assert.throws(() => readBlockRef(json), UpstreamError);
	}
});
