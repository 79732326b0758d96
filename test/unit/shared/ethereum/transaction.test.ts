// The transaction decoder: each rule of the encoding broken in each type that has it, values just
// within the rules, both forms of blob sidecars, random transactions compared with ethers, and
// damaged ones.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Transaction, verifyAuthorization } from "ethers";
import {
	type DecodedTransaction,
	type DecodeReason,
	decodeTransaction,
	senderOfAuthorization,
} from "../../../../shared/ethereum/transaction.ts";
import { entriesOf } from "../../../../shared/ethereum/transactionFields.ts";
import { sized } from "../../../support/length.ts";
import {
	ADDRESS,
	AUTHORIZATION,
	BLOB,
	bareBlobBytes,
	COMMITMENTS,
	encodeDecoded,
	FIELD_NAMES,
	type FieldName,
	PROOF,
	type RawItem,
	randomKey,
	randomTransaction,
	type Spoiling,
	STORAGE_KEY,
	sidecarV0,
	sidecarV1,
	signedBytes,
	type Type,
	times,
	transactionBytes,
	VERSIONED_HASHES,
	verbatim,
} from "../../../support/rawTransactions.ts";
import { SeededRandom } from "../../../support/seededRandom.ts";

const TYPES: readonly Type[] = [0, 1, 2, 3, 4];
const N = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const MAX = 2n ** 256n - 1n;

function refused(raw: Buffer, reason: DecodeReason, message: string): void {
	assert.deepEqual(decodeTransaction(raw), { ok: false, reason, message });
}

const INTEGERS: Partial<Record<FieldName, number>> = {
	...{ chainId: 32, nonce: 8, gasPrice: 32, maxPriorityFeePerGas: 32, maxFeePerGas: 32 },
	...{ gasLimit: 8, value: 32, maxFeePerBlobGas: 32 },
};
/** Invalid encodings of an integer of at most `maxBytes` bytes. */
const spoiledIntegers = (maxBytes: number): [RawItem, string][] => [
	[verbatim("00"), "leading zero"],
	[Buffer.from([0, 5]), "leading zero"],
	[verbatim("817f"), "single byte below 0x80 with a length before it"],
	[verbatim("b80411111111"), "long form of a short length"],
	[Buffer.alloc(maxBytes + 1, 0x11), `expected at most ${maxBytes} bytes, got ${maxBytes + 1}`],
	[[5n], "expected a byte string, got a list"],
];

test("integers must be canonical and not too long", () => {
	for (const type of TYPES) {
		for (const field of FIELD_NAMES[type]) {
			const maxBytes = INTEGERS[field];
			for (const [item, fault] of maxBytes === undefined ? [] : spoiledIntegers(maxBytes)) {
				refused(transactionBytes(type, { fields: { [field]: item } }), "rlp", `rlp: ${field}: ${fault}`);
			}
		}
		for (const field of [type === 0 ? "v" : "yParity", "r", "s"] as const) {
			for (const [item, fault] of spoiledIntegers(32)) {
				refused(transactionBytes(type, { signature: { [field]: item } }), "rlp", `rlp: ${field}: ${fault}`);
			}
		}
	}
});

const authorization = (index: number, item: RawItem) => ({
	authorizationList: [AUTHORIZATION.map((old, at) => (at === index ? item : old))],
});
const access = (...entries: RawItem[]) => ({ accessList: entries });
const NO_STRING = "expected a byte string, got a list";
const NO_LIST = "expected a list, got a byte string";
const CREATES: readonly Type[] = [0, 1, 2];
const CALLS: readonly Type[] = [3, 4];

const FIELDS: readonly [types: readonly Type[], fields: Spoiling["fields"] & object, fault: string][] = [
	[CREATES, { to: ADDRESS.subarray(1) }, "to: expected 20 bytes or none, got 19"],
	[CREATES, { to: Buffer.alloc(21, 7) }, "to: expected 20 bytes or none, got 21"],
	[CALLS, { to: Buffer.alloc(0) }, "to: expected 20 bytes, got 0"],
	[CALLS, { to: Buffer.alloc(32, 7) }, "to: expected 20 bytes, got 32"],
	[TYPES, { to: [] }, `to: ${NO_STRING}`],
	[TYPES, { data: [] }, `data: ${NO_STRING}`],
	[TYPES, { data: verbatim(`b837${"11".repeat(55)}`) }, "data: long form of a short length"],
	[TYPES, { data: verbatim(`b90038${"11".repeat(56)}`) }, "data: leading zero in its length"],
	[TYPES, { data: verbatim("8100") }, "data: single byte below 0x80 with a length before it"],
	[TYPES, { data: verbatim("ba100000") }, "data: longer than what holds it"],
	[TYPES, { data: verbatim(`bf40${"00".repeat(7)}`) }, "data: longer than what holds it"],
	[[1, 2, 3, 4], { accessList: Buffer.alloc(0) }, `accessList: ${NO_LIST}`],
	[[1, 2, 3, 4], access(ADDRESS), `accessList entry: ${NO_LIST}`],
	[[2], access([]), "accessList address: missing"],
	[[2], access([ADDRESS]), "accessList storageKeys: missing"],
	[[2], access([ADDRESS, [], []]), "accessList entry: more items than expected"],
	[[2], access([ADDRESS.subarray(1), []]), "accessList address: expected 20 bytes, got 19"],
	[[2], access([ADDRESS, STORAGE_KEY]), `accessList storageKeys: ${NO_LIST}`],
	[[2], access([ADDRESS, [Buffer.alloc(33)]]), "accessList storageKeys: expected 32 bytes, got 33"],
	[[2], access(verbatim("c3"), verbatim("94")), "accessList entry: longer than what holds it"],
	[[3], { blobVersionedHashes: Buffer.alloc(0) }, `blobVersionedHashes: ${NO_LIST}`],
	[[3], { blobVersionedHashes: [Buffer.alloc(31)] }, "blobVersionedHashes: expected 32 bytes, got 31"],
	[[4], { authorizationList: Buffer.alloc(0) }, `authorizationList: ${NO_LIST}`],
	[[4], { authorizationList: [Buffer.from([1, 2])] }, `authorization: ${NO_LIST}`],
	[[4], { authorizationList: [[]] }, "authorization chainId: missing"],
	[[4], { authorizationList: [[...AUTHORIZATION, 0n]] }, "authorization: more items than expected"],
	[[4], authorization(1, ADDRESS.subarray(1)), "authorization address: expected 20 bytes, got 19"],
	[[4], authorization(2, 2n ** 64n), "authorization nonce: expected at most 8 bytes, got 9"],
	[[4], authorization(3, 256n), "authorization yParity: expected at most 1 bytes, got 2"],
	[[4], authorization(5, verbatim("00")), "authorization s: leading zero"],
];

const LISTS: readonly [signed: (list: readonly RawItem[]) => readonly RawItem[], fault: string][] = [
	[(list) => list.slice(0, -1), "s: missing"],
	[(list) => list.slice(0, -2), "r: missing"],
	[(list) => [...list, 0n], "transaction: more items than expected"],
	[(list) => [...list, []], "transaction: more items than expected"],
];

test("byte strings and lists must have the right length and number", () => {
	for (const [types, fields, fault] of FIELDS) {
		for (const type of types) refused(transactionBytes(type, { fields }), "rlp", `rlp: ${fault}`);
	}
	for (const type of TYPES) {
		for (const [signed, fault] of LISTS) refused(transactionBytes(type, { signed }), "rlp", `rlp: ${fault}`);
		const whole = transactionBytes(type);
		const name = type === 3 ? "blob transaction" : "transaction";
		refused(Buffer.concat([whole, Buffer.from([0])]), "rlp", "rlp: trailing bytes");
		refused(whole.subarray(0, -1), "rlp", `rlp: ${name}: longer than what holds it`);
	}
});

test("other bytes are refused", () => {
	const rows: [hex: string, reason: DecodeReason, message: string][] = [
		["", "rlp", "rlp: empty input"],
		["80", "rlp", `rlp: transaction: ${NO_LIST}`],
		["f90100", "rlp", "rlp: transaction: longer than what holds it"],
		["f901", "rlp", "rlp: transaction: ends inside its length"],
		["f80180", "rlp", "rlp: transaction: long form of a short length"],
		["02", "rlp", "rlp: transaction: missing"],
		["03", "rlp", "rlp: blob transaction: missing"],
		["0380", "rlp", `rlp: blob transaction: ${NO_LIST}`],
		["03c0", "rlp", "rlp: chainId: missing"],
		["00c0", "unsupportedType", "transaction type not supported"],
		["05c0", "unsupportedType", "transaction type not supported"],
		["7fc0", "unsupportedType", "transaction type not supported"],
	];
	for (const [hex, reason, message] of rows) refused(Buffer.from(hex, "hex"), reason, message);
	refused(bareBlobBytes(), "missingBlobSidecar", "missing blob sidecar");
	refused(bareBlobBytes({ fields: { nonce: verbatim("00") } }), "rlp", "rlp: nonce: leading zero");
	// A list nested 100,000 deep needs no stack of that depth.
	assert.equal(decodeTransaction(Buffer.alloc(100_000, 0xc0)).ok, false);
});

test("invalid signatures and those without replay protection are refused", () => {
	for (const type of TYPES) {
		const parity = type === 0 ? "v" : "yParity";
		const parities = type === 0 ? [2n, 26n, 29n, 34n] : [2n, 27n, 28n, 2n ** 255n];
		for (const signature of [
			...[{ r: 0n }, { s: 0n }, { r: N }, { s: N }, { r: MAX }, { s: N / 2n + 1n }, { s: N - 1n }],
			// 5³ + 7 is no square: no point of the curve has this x.
			...[{ [parity]: 0n, r: 0n, s: 0n }, { r: 5n }, ...parities.map((value) => ({ [parity]: value }))],
		]) {
			const raw = transactionBytes(type, { signature });
			refused(raw, "invalidSignature", "invalid transaction v, r, s values");
		}
	}
	const words = "only replay-protected (EIP-155) transactions allowed over RPC";
	for (const v of [0n, 1n, 27n, 28n]) {
		refused(transactionBytes(0, { signature: { v } }), "notReplayProtected", words);
	}
});

test("what is just within the rules is taken, with its values", () => {
	const highest = [[MAX, ADDRESS, 2n ** 64n - 1n, 255n, MAX, MAX]];
	const rows: [readonly Type[], Spoiling][] = [
		[TYPES, {}],
		[TYPES, { fields: { nonce: 2n ** 64n - 1n, gasLimit: 2n ** 64n - 1n, value: MAX } }],
		...[[], [0x00], [0x80], Array(55).fill(1), Array(56).fill(1)].map((data): [readonly Type[], Spoiling] => [
			TYPES,
			{ fields: { data: Buffer.from(data) } },
		]),
		[TYPES, { signature: { r: 1n, s: N / 2n } }],
		[[1, 2, 3, 4], { fields: { chainId: MAX, accessList: [] } }],
		[[2], { fields: access([ADDRESS, []]) }],
		[[0], { fields: { gasPrice: MAX }, signature: { v: 35n } }],
		[[0], { signature: { v: MAX } }],
		[[2], { fields: { maxFeePerGas: 1n, maxPriorityFeePerGas: MAX } }],
		[[3], { fields: { maxFeePerBlobGas: MAX } }],
		[[4], { fields: { authorizationList: [] } }],
		[[4], { fields: { authorizationList: highest } }],
	];
	for (const [types, spoiling] of rows) {
		for (const type of types) {
			const result = decodeTransaction(transactionBytes(type, spoiling));
			assert.ok(result.ok, `type ${type}: ${result.ok || result.message}`);
			for (const [field, value] of Object.entries(spoiling.fields ?? {})) {
				if (typeof value === "bigint") assert.equal(result.tx[field as "nonce"], value, field);
			}
		}
	}
});

for (const [version, sidecar] of [
	[0, sidecarV0],
	[1, sidecarV1],
] as const) {
	test(`sidecar version ${version} is read as ethers does; hash and sender are those without blobs`, () => {
		for (const count of [1, 2]) {
			const fields = { blobVersionedHashes: VERSIONED_HASHES.slice(0, count) };
			const raw = transactionBytes(3, { fields, sidecar: sidecar(count) });
			const result = decodeTransaction(raw);
			assert.ok(result.ok, result.ok ? "" : result.message);
			const theirs = Transaction.from(`0x${raw.toString("hex")}`);
			const bare = Transaction.from(`0x${bareBlobBytes({ fields }).toString("hex")}`);
			const { hash, from, blobVersionedHashes, maxFeePerBlobGas } = result.tx;
			assert.deepEqual(
				[hash, hash, from, blobVersionedHashes, maxFeePerBlobGas],
				[
					theirs.hash,
					bare.hash,
					bare.from?.toLowerCase(),
					theirs.blobVersionedHashes,
					theirs.maxFeePerBlobGas,
				],
			);
			assert.deepEqual(result.tx.sidecar, { version, blobCount: count });
			assert.equal(result.tx.raw, raw);
		}
	});
}

const [first, second] = COMMITMENTS as [Buffer, Buffer];
const [hashA, hashB] = VERSIONED_HASHES as [Buffer, Buffer];
const otherVersion = Buffer.concat([Buffer.from([2]), hashB.subarray(1)]);
const otherHash = Buffer.concat([hashB.subarray(0, 31), Buffer.from([(hashB[31] as number) ^ 1])]);
const [blobs, proofs] = [times(2, BLOB), times(2, PROOF)];

const SIDECARS: readonly [Spoiling, string][] = [
	[{ fields: { blobVersionedHashes: [] }, sidecar: sidecarV0(0) }, "missing blob hashes"],
	[{ sidecar: [[BLOB], COMMITMENTS, proofs] }, "1 blobs for 2 blob hashes"],
	[{ sidecar: [times(3, BLOB), COMMITMENTS, proofs] }, "3 blobs for 2 blob hashes"],
	[{ sidecar: [blobs, [first], proofs] }, "1 commitments for 2 blob hashes"],
	[{ sidecar: [blobs, COMMITMENTS, [PROOF]] }, "1 proofs, expected 2"],
	[{ sidecar: sidecarV1().slice(1) }, "256 proofs, expected 2"],
	[{ sidecar: [1n, ...sidecarV0()] }, "2 proofs, expected 256"],
	[{ sidecar: [0n, ...sidecarV0()] }, "unknown wrapper version"],
	[{ sidecar: [2n, ...sidecarV1().slice(1)] }, "unknown wrapper version"],
	[{ sidecar: [blobs, [second, first], proofs] }, "blob hash 0 does not match its commitment"],
	[{ fields: { blobVersionedHashes: [hashA, otherHash] } }, "blob hash 1 does not match its commitment"],
	[{ fields: { blobVersionedHashes: [hashA, otherVersion] } }, "blob hash 1 has an unknown version"],
];
const MALFORMED: readonly [readonly RawItem[], string][] = [
	[[[BLOB, BLOB.subarray(1)], COMMITMENTS, proofs], "blobs: expected 131072 bytes, got 131071"],
	[[[BLOB, []], COMMITMENTS, proofs], `blobs: ${NO_STRING}`],
	[[blobs, [first, second.subarray(1)], proofs], "commitments: expected 48 bytes, got 47"],
	[[blobs, COMMITMENTS, [PROOF, Buffer.alloc(49)]], "proofs: expected 48 bytes, got 49"],
	[[blobs, COMMITMENTS], "proofs: missing"],
	[[], "wrapperVersion: missing"],
	[[...sidecarV0(), []], "blob transaction: more items than expected"],
	[[verbatim("00"), ...sidecarV1().slice(1)], "wrapperVersion: leading zero"],
	[[256n, ...sidecarV1().slice(1)], "wrapperVersion: expected at most 1 bytes, got 2"],
];

test("a sidecar that is malformed or contradicts its payload is refused", () => {
	for (const [spoiling, problem] of SIDECARS) {
		refused(transactionBytes(3, spoiling), "invalidSidecar", `invalid blob sidecar: ${problem}`);
	}
	for (const [sidecar, fault] of MALFORMED) refused(transactionBytes(3, { sidecar }), "rlp", `rlp: ${fault}`);
});

/** A transaction of either decoder in a common form. */
function ofOurs(tx: DecodedTransaction) {
	const { type, hash, from, chainId, gasLimit, to, value, gasPrice, yParity, r, s } = tx;
	return {
		...{ type, hash, from, chainId, gasLimit, to, value, gasPrice, yParity, r, s },
		accessList: entriesOf(tx.accessList),
		...{ nonce: Number(tx.nonce), data: `0x${tx.data.toString("hex")}` },
		fees: type <= 1 ? [null, null] : [tx.maxFeePerGas, tx.maxPriorityFeePerGas],
		authorizations: tx.authorizationList.map((one) => [one, senderOfAuthorization(one)]),
	};
}

function ofTheirs(tx: Transaction) {
	const { type, hash, nonce, data, chainId, gasLimit, value, gasPrice, signature } = tx;
	assert.ok(signature !== null);
	return {
		...{ type, hash, nonce, data, chainId, gasLimit, value, gasPrice },
		...{ from: tx.from?.toLowerCase(), to: tx.to?.toLowerCase() ?? null },
		accessList: (tx.accessList ?? []).map(({ address, storageKeys }) => ({
			address: address.toLowerCase(),
			storageKeys: [...storageKeys],
		})),
		...{ yParity: signature.yParity, r: BigInt(signature.r), s: BigInt(signature._s) },
		fees: [tx.maxFeePerGas, tx.maxPriorityFeePerGas],
		authorizations: (tx.authorizationList ?? []).map((entry) => {
			const { yParity, r, _s } = entry.signature;
			const { chainId, nonce } = entry;
			const address = entry.address.toLowerCase();
			const ours = { chainId, address, nonce, yParity, r: BigInt(r), s: BigInt(_s) };
			return [ours, verifyAuthorization(entry, entry.signature).toLowerCase()];
		}),
	};
}

test("random transactions are decoded as by ethers, and encode to the same bytes", () => {
	const random = new SeededRandom(0x1eeffa11);
	for (let round = 0; round < sized(40, 2_400); round++) {
		const raw = signedBytes(
			randomTransaction(random, ([0, 1, 2, 4] as const)[round % 4] ?? 0),
			randomKey(random),
		);
		const result = decodeTransaction(raw);
		assert.ok(result.ok, result.ok ? "" : result.message);
		assert.deepEqual(ofOurs(result.tx), ofTheirs(Transaction.from(`0x${raw.toString("hex")}`)));
		assert.deepEqual([encodeDecoded(result.tx), result.tx.size], [raw, raw.length]);
	}
});

/** Damages bytes one to three times: changes, inserts, removes, truncates or appends. */
function damage(raw: Buffer, random: SeededRandom): Buffer {
	let bytes = raw;
	for (let left = 1 + random.below(3); left > 0; left--) {
		// Headers are at the front, so half of the damage is done there.
		const at = random.below(random.below(2) === 0 ? Math.min(bytes.length, 24) + 1 : bytes.length + 1);
		const [before, after] = [bytes.subarray(0, at), bytes.subarray(at)];
		const header = Buffer.from([random.pick([0, 0x80, 0xb8, 0xbf, 0xc0, 0xf8, 0xff])]);
		const parts = random.pick([
			[before, random.bytes(1), after.subarray(1)],
			[before, random.bytes(1 + random.below(4)), after],
			[before, after.subarray(1 + random.below(4))],
			[before],
			[bytes, random.bytes(1 + random.below(9))],
			[before, header, after.subarray(1)],
		]);
		bytes = Buffer.concat(parts);
	}
	return bytes;
}

test("of thousands of damaged transactions only canonical ones are accepted, and none breaks the decoder", () => {
	const random = new SeededRandom(0xdead10cc);
	const seen = new Set<string>();
	const bare = bareBlobBytes();
	const whole = TYPES.filter((type) => type !== 3).map((type) => transactionBytes(type));
	for (let round = 0; round < sized(3_000, 240_000); round++) {
		const raw = damage(round % 8 === 0 ? bare : random.pick(whole), random);
		const result = decodeTransaction(raw);
		seen.add(result.ok ? "taken" : result.reason);
		if (result.ok) assert.deepEqual(encodeDecoded(result.tx), raw);
		else assert.ok(result.message.length < 120);
	}
	for (const outcome of ["taken", "rlp", "unsupportedType", "invalidSignature", "missingBlobSidecar"]) {
		assert.ok(seen.has(outcome), outcome);
	}
});
