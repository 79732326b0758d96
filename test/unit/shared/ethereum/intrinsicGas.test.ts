// Gas and wei by a transaction's fields, against sums done by hand from the EIPs.

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
