// Tests each rule of the decoder, violated once in each type that has it, for the exact reason and message, and what
// is just within the rules.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type DecodeReason, decodeTransaction } from "../../../../shared/ethereum/transaction.ts";
import {
	ADDRESS,
	AUTHORIZATION,
	bareBlobBytes,
	type Spoiling,
	STORAGE_KEY,
	type Type,
	transactionBytes,
	VERSIONED_HASHES,
} from "./baseTransactions.ts";
import {
	byteStringRows,
	fieldRows,
	listRows,
	type Row,
	rlpRow,
	signatureFieldRows,
	spoiledIntegers,
} from "./encodingViolations.ts";
import { type RawItem, verbatim } from "./rawEncoding.ts";

const TYPES: readonly Type[] = [0, 1, 2, 3, 4];
const TYPED: readonly Type[] = [1, 2, 3, 4];
const N = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const BAD_SIGNATURE = "invalid transaction v, r, s values";
const UNPROTECTED = "only replay-protected (EIP-155) transactions allowed over RPC";

function signatureRow(type: Type, name: string, signature: Spoiling["signature"] & object): Row {
	const raw = transactionBytes(type, { signature });
	return { name: `type ${type}: ${name}`, raw, reason: "invalidSignature", message: BAD_SIGNATURE };
}

function signatureRows(type: Type): Row[] {
	const parity = type === 0 ? "v" : "yParity";
	const rows = [
		signatureRow(type, "r is 0", { r: 0n }),
		signatureRow(type, "s is 0", { s: 0n }),
		signatureRow(type, "r is n", { r: N }),
		signatureRow(type, "s is n", { s: N }),
		signatureRow(type, "r is 2^256-1", { r: 2n ** 256n - 1n }),
		signatureRow(type, "s is just in the upper half", { s: N / 2n + 1n }),
		signatureRow(type, "s is n-1", { s: N - 1n }),
		signatureRow(type, "unsigned with three zeros", { [parity]: 0n, r: 0n, s: 0n }),
		// 5³ + 7 is no square: no point of the curve has this x.
		signatureRow(type, "r is on no point", { r: 5n }),
	];
	const badParities = type === 0 ? [2n, 26n, 29n, 34n] : [2n, 27n, 28n, 255n, 2n ** 255n];
	for (const value of badParities)
		rows.push(signatureRow(type, `${parity} is ${value}`, { [parity]: value }));
	return rows;
}

function accessListRows(type: Type): Row[] {
	const row = (name: string, accessList: RawItem, fault: string) =>
		rlpRow(type, `accessList: ${name}`, { fields: { accessList } }, fault);
	return [
		row("entry is a string", [ADDRESS], "accessList entry: expected a list, got a byte string"),
		row("empty entry", [[]], "accessList address: missing"),
		row("entry without keys", [[ADDRESS]], "accessList storageKeys: missing"),
		row("entry of three", [[ADDRESS, [], []]], "accessList entry: more items than expected"),
		row("address of 19 bytes", [[ADDRESS.subarray(1), []]], "accessList address: expected 20 bytes, got 19"),
		row("address of no bytes", [[0n, []]], "accessList address: expected 20 bytes, got 0"),
		row(
			"keys are a string",
			[[ADDRESS, STORAGE_KEY]],
			"accessList storageKeys: expected a list, got a byte string",
		),
		row(
			"key of 31 bytes",
			[[ADDRESS, [STORAGE_KEY.subarray(1)]]],
			"accessList storageKeys: expected 32 bytes, got 31",
		),
		row(
			"key of 33 bytes",
			[[ADDRESS, [Buffer.alloc(33, 1)]]],
			"accessList storageKeys: expected 32 bytes, got 33",
		),
		row("key is a list", [[ADDRESS, [[]]]], "accessList storageKeys: expected a byte string, got a list"),
		row(
			"entry over its list's end",
			[verbatim("c3"), verbatim("94")],
			"accessList entry: longer than what holds it",
		),
	];
}

function authorizationRows(): Row[] {
	const row = (name: string, entry: RawItem, fault: string) =>
		rlpRow(4, `authorization: ${name}`, { fields: { authorizationList: [entry] } }, fault);
	const withItem = (index: number, item: RawItem) =>
		AUTHORIZATION.map((old, at) => (at === index ? item : old));
	const limits: [string, number, number][] = [
		["chainId", 0, 32],
		["nonce", 2, 8],
		["yParity", 3, 1],
		["r", 4, 32],
		["s", 5, 32],
	];
	return [
		row("a string", Buffer.from("c0ffee", "hex"), "authorization: expected a list, got a byte string"),
		row("empty", [], "authorization chainId: missing"),
		row("without s", AUTHORIZATION.slice(0, 5), "authorization s: missing"),
		row("one item more", [...AUTHORIZATION, 0n], "authorization: more items than expected"),
		row(
			"address of 19 bytes",
			withItem(1, ADDRESS.subarray(1)),
			"authorization address: expected 20 bytes, got 19",
		),
		row("address of no bytes", withItem(1, 0n), "authorization address: expected 20 bytes, got 0"),
		...limits.flatMap(([field, index, maxBytes]) =>
			spoiledIntegers(maxBytes).map(([name, item, fault]) =>
				row(`${field}: ${name}`, withItem(index, item), `authorization ${field}: ${fault}`),
			),
		),
	];
}

function otherRows(): Row[] {
	const row = (name: string, hex: string, reason: DecodeReason, message: string): Row => ({
		...{ name, raw: Buffer.from(hex, "hex"), reason, message },
	});
	const unsupported = [0x00, 0x05, 0x06, 0x2a, 0x7e, 0x7f].map((type) =>
		row(
			`type byte ${type}`,
			`${type.toString(16).padStart(2, "0")}c0`,
			"unsupportedType",
			"transaction type not supported",
		),
	);
	const unprotected = [0n, 1n, 27n, 28n].map((v) => ({
		...{ name: `legacy v ${v}`, raw: transactionBytes(0, { signature: { v } }) },
		...({ reason: "notReplayProtected", message: UNPROTECTED } as const),
	}));
	return [
		...unsupported,
		...unprotected,
		row("nothing", "", "rlp", "rlp: empty input"),
		row("empty string", "80", "rlp", "rlp: transaction: expected a list, got a byte string"),
		...[1, 2, 4].map((type) => row(`type ${type} alone`, `0${type}`, "rlp", "rlp: transaction: missing")),
		row("type 3 alone", "03", "rlp", "rlp: blob transaction: missing"),
		row("type 3 with a string", "0380", "rlp", "rlp: blob transaction: expected a list, got a byte string"),
		row("type 3 with an empty list", "03c0", "rlp", "rlp: chainId: missing"),
		{
			name: "blob, bare",
			raw: bareBlobBytes(),
			reason: "missingBlobSidecar",
			message: "missing blob sidecar",
		},
		{
			...{ name: "blob, bare, malformed", raw: bareBlobBytes({ fields: { nonce: verbatim("00") } }) },
			...({ reason: "rlp", message: "rlp: nonce: leading zero" } as const),
		},
		rlpRow(
			3,
			"versioned hash of 31 bytes",
			{ fields: { blobVersionedHashes: [VERSIONED_HASHES[0]?.subarray(1) ?? 0n] } },
			"blobVersionedHashes: expected 32 bytes, got 31",
		),
	];
}

const ROWS: readonly Row[] = [
	...TYPES.flatMap((type) => [
		...fieldRows(type),
		...signatureFieldRows(type),
		...byteStringRows(type),
		...listRows(type),
		...signatureRows(type),
	]),
	...TYPED.flatMap(accessListRows),
	...authorizationRows(),
	...otherRows(),
];

test("the transactions that the table spoils are valid", () => {
	for (const type of TYPES) assert.equal(decodeTransaction(transactionBytes(type)).ok, true, `type ${type}`);
});

test(`refuses each of ${ROWS.length} violations with its reason and message`, () => {
	assert.ok(ROWS.length >= 80);
	for (const { name, raw, reason, message } of ROWS) {
		assert.deepEqual(decodeTransaction(raw), { ok: false, reason, message }, name);
	}
});

/** What is just within the rules. */
const ALLOWED: readonly [string, Type, Spoiling][] = [
	...TYPES.flatMap((type): [string, Type, Spoiling][] => [
		["nonce 2^64-1", type, { fields: { nonce: 2n ** 64n - 1n } }],
		["gas limit 2^64-1", type, { fields: { gasLimit: 2n ** 64n - 1n } }],
		["value 2^256-1", type, { fields: { value: 2n ** 256n - 1n } }],
		["no data", type, { fields: { data: Buffer.alloc(0) } }],
		["data of one byte below 0x80", type, { fields: { data: Buffer.from([0x00]) } }],
		["data of one byte from 0x80", type, { fields: { data: Buffer.from([0x80]) } }],
		["data of 55 bytes", type, { fields: { data: Buffer.alloc(55, 1) } }],
		["data of 56 bytes", type, { fields: { data: Buffer.alloc(56, 1) } }],
		["s of n/2", type, { signature: { r: 1n, s: N / 2n } }],
	]),
	...TYPED.flatMap((type): [string, Type, Spoiling][] => [
		["chain id 2^256-1", type, { fields: { chainId: 2n ** 256n - 1n } }],
		["no access list", type, { fields: { accessList: [] } }],
		["access list without keys", type, { fields: { accessList: [[ADDRESS, []]] } }],
	]),
	["gas price 2^256-1", 0, { fields: { gasPrice: 2n ** 256n - 1n } }],
	["v of 32 bytes", 0, { signature: { v: 2n ** 256n - 1n } }],
	["lowest v", 0, { signature: { v: 35n } }],
	["fees 2^256-1", 2, { fields: { maxFeePerGas: 2n ** 256n - 1n, maxPriorityFeePerGas: 2n ** 256n - 1n } }],
	["priority fee over the fee cap", 2, { fields: { maxFeePerGas: 1n, maxPriorityFeePerGas: 2n } }],
	["blob fee 2^256-1", 3, { fields: { maxFeePerBlobGas: 2n ** 256n - 1n } }],
	["no authorizations", 4, { fields: { authorizationList: [] } }],
	[
		"authorization at its bounds",
		4,
		{
			fields: {
				authorizationList: [
					[2n ** 256n - 1n, ADDRESS, 2n ** 64n - 1n, 255n, 2n ** 256n - 1n, 2n ** 256n - 1n],
				],
			},
		},
	],
];

test(`takes each of ${ALLOWED.length} extremes within the rules`, () => {
	for (const [name, type, spoiling] of ALLOWED) {
		const result = decodeTransaction(transactionBytes(type, spoiling));
		assert.ok(result.ok, `type ${type}: ${name}: ${result.ok || result.message}`);
		for (const [field, value] of Object.entries(spoiling.fields ?? {})) {
			if (typeof value === "bigint")
				assert.equal(result.tx[field as "nonce"], value, `type ${type}: ${name}`);
		}
	}
});
