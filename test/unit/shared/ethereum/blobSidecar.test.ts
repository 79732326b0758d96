// Blob transactions in network form: both sidecars compared with ethers, and every way in which a sidecar can
// disagree with its payload.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Transaction } from "ethers";
import { decodeTransaction } from "../../../../shared/ethereum/transaction.ts";
import {
	BLOB,
	bareBlobBytes,
	COMMITMENTS,
	PROOF,
	type Spoiling,
	sidecarV0,
	sidecarV1,
	times,
	transactionBytes,
	VERSIONED_HASHES,
} from "./baseTransactions.ts";
import { type RawItem, verbatim } from "./rawEncoding.ts";

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
