// What follows from the fields of a transaction: its gas and cost, whether it is a transfer to oneself, and how it is shown.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	blobGas,
	effectiveGasPrice,
	floorDataGas,
	intrinsicGas,
	MAX_INITCODE_BYTES,
	MAX_TX_GAS,
	transactionCost,
} from "../../../../shared/ethereum/intrinsicGas.ts";
import { minedTransaction, pendingTransaction } from "../../../../shared/ethereum/rpcObjects.ts";
import { unknownStatus } from "../../../../shared/ethereum/statusRecord.ts";
import { isSelfTransfer } from "../../../../shared/ethereum/transaction.ts";
import { signedTransaction, testAccount } from "../../../support/txFactory.ts";

const TO = `0x${"11".repeat(20)}`;
const KEY = `0x${"22".repeat(32)}`;
const AUTHORIZATION = { chainId: 1n, address: TO, nonce: 0n, yParity: 0, r: 1n, s: 1n };
const CALL = { to: TO as string | null, data: Buffer.alloc(0), accessList: [], authorizationList: [] };

const GAS: readonly [string, Partial<Parameters<typeof intrinsicGas>[0]>, bigint, bigint][] = [
	["plain transfer", {}, 21_000n, 21_000n],
	["one zero byte", { data: Buffer.from([0]) }, 21_004n, 21_010n],
	["one other byte", { data: Buffer.from([1]) }, 21_016n, 21_040n],
	[
		"3 zero, 5 other bytes",
		{ data: Buffer.from([0, 1, 0, 2, 255, 0, 9, 128]) },
		21_000n + 12n + 80n,
		21_000n + 230n,
	],
	["100 other bytes", { data: Buffer.alloc(100, 7) }, 22_600n, 25_000n],
	["empty creation", { to: null }, 53_000n, 21_000n],
	["creation, 1 byte", { to: null, data: Buffer.alloc(1, 1) }, 53_000n + 16n + 2n, 21_040n],
	["creation, 32 bytes", { to: null, data: Buffer.alloc(32, 1) }, 53_000n + 512n + 2n, 22_280n],
	["creation, 33 bytes", { to: null, data: Buffer.alloc(33, 1) }, 53_000n + 528n + 4n, 22_320n],
	[
		"creation, longest",
		{ to: null, data: Buffer.alloc(MAX_INITCODE_BYTES, 1) },
		53_000n + 786_432n + 3_072n,
		21_000n + 1_966_080n,
	],
	["an address", { accessList: [{ address: TO, storageKeys: [] }] }, 23_400n, 21_000n],
	[
		"an address with two keys, one with none",
		{
			accessList: [
				{ address: TO, storageKeys: [KEY, KEY] },
				{ address: TO, storageKeys: [] },
			],
		},
		21_000n + 4_800n + 3_800n,
		21_000n,
	],
	["two authorizations", { authorizationList: [AUTHORIZATION, AUTHORIZATION] }, 71_000n, 21_000n],
];

test("gas before execution, and its floor", () => {
	for (const [name, fields, gas, floor] of GAS) {
		const tx = { ...CALL, ...fields };
		assert.equal(intrinsicGas(tx), gas, name);
		assert.equal(floorDataGas(tx), floor, name);
	}
});

test("the constants are the EIPs'", () => {
	assert.equal(MAX_INITCODE_BYTES, 49_152);
	assert.equal(MAX_TX_GAS, 2n ** 24n);
});

test("the most that a transaction can cost", () => {
	const tx = {
		gasLimit: 21_000n,
		maxFeePerGas: 10n,
		value: 5n,
		maxFeePerBlobGas: null,
		blobVersionedHashes: [],
	};
	assert.equal(transactionCost(tx), 210_005n);
	const blob = { ...tx, maxFeePerBlobGas: 3n, blobVersionedHashes: [KEY, KEY] };
	assert.equal(blobGas(blob), 262_144n);
	assert.equal(transactionCost(blob), 210_005n + 786_432n);
	const most = { ...tx, gasLimit: 2n ** 64n - 1n, maxFeePerGas: 2n ** 256n - 1n, value: 2n ** 256n - 1n };
	assert.equal(transactionCost(most), 2n ** 64n * (2n ** 256n - 1n));
});

test("price in a block", () => {
	const rows: readonly [bigint, bigint, bigint, bigint][] = [
		// fee cap, priority cap, base fee: price
		[100n, 10n, 50n, 60n],
		[100n, 10n, 90n, 100n],
		[100n, 10n, 95n, 100n],
		[100n, 10n, 100n, 100n],
		[100n, 10n, 101n, 100n],
		// A gas price is both caps.
		[100n, 100n, 30n, 100n],
		[0n, 0n, 0n, 0n],
	];
	for (const [maxFeePerGas, maxPriorityFeePerGas, baseFee, price] of rows) {
		assert.equal(effectiveGasPrice({ maxFeePerGas, maxPriorityFeePerGas }, baseFee), price);
	}
});

const BY = testAccount(3);
const SELF = { by: BY, to: BY.address };

test("a transfer to its own sender is one, whatever its value and fees", () => {
	for (const options of [{ type: 0 }, { type: 1 }, { type: 2 }, { value: 0n }, { value: 5n }] as const) {
		assert.equal(isSelfTransfer(signedTransaction({ ...SELF, ...options })), true, `${Object.keys(options)}`);
	}
});

test("data, blobs, a delegation, a creation or another receiver: it is none", () => {
	const rows = [
		{ ...SELF, data: "0x00" },
		{ ...SELF, type: 3 },
		{ ...SELF, type: 4 },
		{ by: BY, to: null },
		{ by: BY, to: testAccount(4).address },
	] as const;
	for (const options of rows) {
		assert.equal(isSelfTransfer(signedTransaction(options)), false, `${Object.keys(options)}`);
	}
});

const HIDDEN = { gasPrice: "0x0", v: "0x0", r: "0x0", s: "0x0", yParity: "0x0" };
const NOWHERE = { blockHash: null, blockNumber: null, transactionIndex: null };

test("a pending one of each type is shown with its fields, and neither blobs nor signatures", () => {
	for (const type of [0, 1, 2, 3, 4] as const) {
		const accessList = type === 0 ? [] : [{ address: `0x${"ab".repeat(20)}`, storageKeys: [] }];
		const tx = signedTransaction({ type, nonce: 5, value: 3n, gasLimit: 90_000, data: "0x00ff", accessList });
		const price = (wei: bigint) => `0x${wei.toString(16)}`;
		assert.deepEqual(pendingTransaction(tx), {
			...NOWHERE,
			...{
				hash: tx.hash,
				type: `0x${type}`,
				chainId: price(tx.chainId),
				nonce: "0x5",
				from: tx.from,
				to: tx.to,
			},
			...{ value: "0x3", gas: "0x15f90", input: "0x00ff", accessList },
			maxFeePerGas: price(tx.maxFeePerGas),
			maxPriorityFeePerGas: price(tx.maxPriorityFeePerGas),
			...(type === 3
				? {
						maxFeePerBlobGas: price(tx.maxFeePerBlobGas ?? 0n),
						blobVersionedHashes: tx.blobVersionedHashes,
					}
				: {}),
			...HIDDEN,
		});
	}
});

test("a node's one is given the fields that older types lack, and loses its signature", () => {
	const node = {
		...{ ...NOWHERE, hash: "0x1", gasPrice: "0x7", blockNumber: "0x9" },
		...{ v: "0x1b", r: "0x2", s: "0x3" },
	};
	assert.deepEqual(minedTransaction(node, 31_337n), {
		...node,
		...{ chainId: "0x7a69", maxFeePerGas: "0x7", maxPriorityFeePerGas: "0x7", accessList: [] },
		...HIDDEN,
	});
	const full = { chainId: "0x1", maxFeePerGas: "0x8", maxPriorityFeePerGas: "0x1", accessList: [{}] };
	assert.deepEqual(minedTransaction({ ...node, ...full }, 31_337n), { ...node, ...full, ...HIDDEN });
});

test("a hash that was never seen has the given fields and no more", () => {
	const hash = `0x${"ab".repeat(32)}`;
	assert.deepEqual(unknownStatus(hash), {
		...{ status: "UNKNOWN", hash, rpc_timestamp: null },
		transaction: { from: "", to: "", gas: "", nonce: "", value: "" },
		...{ fastMode: false, shared: false, simulationError: null, backruns: 0 },
		...{ referrer: null, refundRecipient: null, refund: 0 },
	});
});
