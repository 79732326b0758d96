// Each rule of the decoder, violated once in each type that has it, for the exact reason and message; both blob sidecars
// and each way in which one can disagree with its payload; and what is just within the rules.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Transaction } from "ethers";
import { type DecodeReason, decodeTransaction } from "../../../../shared/ethereum/transaction.ts";
import {
	ADDRESS,
	AUTHORIZATION,
	BLOB,
	bareBlobBytes,
	COMMITMENTS,
	PROOF,
	type RawItem,
	type Spoiling,
	STORAGE_KEY,
	sidecarV0,
	sidecarV1,
	type Type,
	times,
	transactionBytes,
	VERSIONED_HASHES,
	verbatim,
} from "../../../support/rawTransactions.ts";
import {
	byteStringRows,
	fieldRows,
	listRows,
	type Row,
	rlpRow,
	signatureFieldRows,
	spoiledIntegers,
} from "./encodingViolations.ts";

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

const FORMS: readonly [0 | 1, (count?: number) => RawItem[]][] = [
	[0, sidecarV0],
	[1, sidecarV1],
];

for (const [version, sidecar] of FORMS) {
	test(`reads sidecar version ${version} as ethers does`, () => {
		for (const count of [1, 2]) {
			const fields = { blobVersionedHashes: VERSIONED_HASHES.slice(0, count) };
			const raw = transactionBytes(3, { fields, sidecar: sidecar(count) });
			const result = decodeTransaction(raw);
			assert.ok(result.ok, result.ok ? "" : result.message);
			const theirs = Transaction.from(`0x${raw.toString("hex")}`);
			const { tx } = result;
			assert.equal(tx.hash, theirs.hash);
			assert.equal(tx.from, theirs.from?.toLowerCase());
			assert.deepEqual(tx.blobVersionedHashes, theirs.blobVersionedHashes);
			assert.equal(tx.maxFeePerBlobGas, theirs.maxFeePerBlobGas);
			assert.equal(theirs.blobs?.length, count);
			assert.deepEqual(tx.sidecar, { version, blobCount: count });
			assert.equal(tx.raw, raw);
		}
	});
}

test("has the hash and the sender of the form that blocks hold", () => {
	const result = decodeTransaction(transactionBytes(3));
	const inBlock = Transaction.from(`0x${bareBlobBytes().toString("hex")}`);
	assert.ok(result.ok);
	assert.equal(result.tx.hash, inBlock.hash);
	assert.equal(result.tx.from, inBlock.from?.toLowerCase());
});

const [first, second] = COMMITMENTS as [Buffer, Buffer];
const oneBlob = times(1, BLOB);
const twoBlobs = times(2, BLOB);
const twoProofs = times(2, PROOF);
const [hashA, hashB] = VERSIONED_HASHES as [Buffer, Buffer];
const otherVersion = Buffer.concat([Buffer.from([2]), hashB.subarray(1)]);
const otherHash = Buffer.concat([hashB.subarray(0, 31), Buffer.from([(hashB[31] as number) ^ 1])]);

const MISMATCHES: readonly [string, Spoiling, string][] = [
	["no hashes", { fields: { blobVersionedHashes: [] }, sidecar: sidecarV0(0) }, "missing blob hashes"],
	["a blob less", { sidecar: [oneBlob, COMMITMENTS, twoProofs] }, "1 blobs for 2 blob hashes"],
	["a blob more", { sidecar: [times(3, BLOB), COMMITMENTS, twoProofs] }, "3 blobs for 2 blob hashes"],
	["no blobs", { sidecar: [[], [], []] }, "0 blobs for 2 blob hashes"],
	["a commitment less", { sidecar: [twoBlobs, [first], twoProofs] }, "1 commitments for 2 blob hashes"],
	[
		"a commitment more",
		{ sidecar: [twoBlobs, [first, second, second], twoProofs] },
		"3 commitments for 2 blob hashes",
	],
	["a proof less", { sidecar: [twoBlobs, COMMITMENTS, [PROOF]] }, "1 proofs, expected 2"],
	["a proof more", { sidecar: [twoBlobs, COMMITMENTS, times(3, PROOF)] }, "3 proofs, expected 2"],
	["cell proofs in the older form", { sidecar: sidecarV1().slice(1) }, "256 proofs, expected 2"],
	["blob proofs in the newer form", { sidecar: [1n, ...sidecarV0()] }, "2 proofs, expected 256"],
	[
		"a cell proof less",
		{ sidecar: [1n, twoBlobs, COMMITMENTS, times(255, PROOF)] },
		"255 proofs, expected 256",
	],
	["wrapper version 0", { sidecar: [0n, ...sidecarV0()] }, "unknown wrapper version"],
	["wrapper version 2", { sidecar: [2n, ...sidecarV1().slice(1)] }, "unknown wrapper version"],
	[
		"commitments in another order",
		{ sidecar: [twoBlobs, [second, first], twoProofs] },
		"blob hash 0 does not match its commitment",
	],
	[
		"another hash",
		{ fields: { blobVersionedHashes: [hashA, otherHash] } },
		"blob hash 1 does not match its commitment",
	],
	[
		"another version of hash",
		{ fields: { blobVersionedHashes: [hashA, otherVersion] } },
		"blob hash 1 has an unknown version",
	],
];

test("refuses each disagreement between sidecar and payload", () => {
	for (const [name, spoiling, problem] of MISMATCHES) {
		const wanted = { ok: false, reason: "invalidSidecar", message: `invalid blob sidecar: ${problem}` };
		assert.deepEqual(decodeTransaction(transactionBytes(3, spoiling)), wanted, name);
	}
});

const MALFORMED: readonly [string, readonly RawItem[], string][] = [
	[
		"a blob a byte too short",
		[[BLOB, BLOB.subarray(1)], COMMITMENTS, twoProofs],
		"blobs: expected 131072 bytes, got 131071",
	],
	[
		"a blob a byte too long",
		[[BLOB, Buffer.alloc(131_073)], COMMITMENTS, twoProofs],
		"blobs: expected 131072 bytes, got 131073",
	],
	["an empty blob", [[BLOB, 0n], COMMITMENTS, twoProofs], "blobs: expected 131072 bytes, got 0"],
	["a blob as a list", [[BLOB, []], COMMITMENTS, twoProofs], "blobs: expected a byte string, got a list"],
	[
		"a short commitment",
		[twoBlobs, [first, second.subarray(1)], twoProofs],
		"commitments: expected 48 bytes, got 47",
	],
	["a long proof", [twoBlobs, COMMITMENTS, [PROOF, Buffer.alloc(49)]], "proofs: expected 48 bytes, got 49"],
	["without proofs", [twoBlobs, COMMITMENTS], "proofs: missing"],
	["without anything", [], "wrapperVersion: missing"],
	["one list more", [...sidecarV0(), []], "blob transaction: more items than expected"],
	["one list more in the newer form", [...sidecarV1(), []], "blob transaction: more items than expected"],
	[
		"wrapper version with a leading zero",
		[verbatim("00"), ...sidecarV1().slice(1)],
		"wrapperVersion: leading zero",
	],
	[
		"wrapper version of two bytes",
		[256n, ...sidecarV1().slice(1)],
		"wrapperVersion: expected at most 1 bytes, got 2",
	],
	["commitments as a string", [twoBlobs, 0n, twoProofs], "commitments: expected a list, got a byte string"],
];

test("refuses each malformed sidecar", () => {
	for (const [name, sidecar, fault] of MALFORMED) {
		const wanted = { ok: false, reason: "rlp", message: `rlp: ${fault}` };
		assert.deepEqual(decodeTransaction(transactionBytes(3, { sidecar })), wanted, name);
	}
});
