// Random transactions: decodeTransaction reads what others sign and write as ethers does, and answers damaged ones by
// the ten thousand; what it takes is canonical.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Transaction, verifyAuthorization } from "ethers";
import type { Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { rlpEncode } from "../../../../shared/ethereum/rlp.ts";
import {
	type DecodedTransaction,
	decodeTransaction,
	senderOfAuthorization,
} from "../../../../shared/ethereum/transaction.ts";
import {
	bareBlobBytes,
	encodeDecoded,
	type RandomTransaction,
	randomKey,
	randomTransaction,
	signedBytes,
	transactionBytes,
} from "../../../support/rawTransactions.ts";
import { type SeededRandom, seededRandom } from "../../../support/seededRandom.ts";

const TYPES = [0, 1, 2, 4] as const;
const hexOf = (bytes: Uint8Array): Hex => `0x${Buffer.from(bytes).toString("hex")}`;

function decoded(raw: Buffer): DecodedTransaction {
	const result = decodeTransaction(raw);
	assert.ok(result.ok, result.ok ? "" : result.message);
	return result.tx;
}

/** Every field that the sender chose, and his address. */
function assertFields(tx: DecodedTransaction, wanted: RandomTransaction, key: Buffer): void {
	const oneFee = wanted.type <= 1;
	assert.deepEqual(
		{ ...tx, data: hexOf(tx.data), v: 0, yParity: 0, r: 0, s: 0, hash: 0, raw: 0, size: 0 },
		{
			...wanted,
			gasPrice: oneFee ? wanted.maxFeePerGas : null,
			maxFeePerBlobGas: null,
			blobVersionedHashes: [],
			sidecar: null,
			from: privateKeyToAccount(hexOf(key)).address.toLowerCase(),
			...{ v: 0, yParity: 0, r: 0, s: 0, hash: 0, raw: 0, size: 0 },
		},
	);
}

test("reads what the tests' encoder wrote as ethers does", () => {
	const random = seededRandom(0x1eeffa11);
	for (let round = 0; round < 240; round++) {
		const wanted = randomTransaction(random, TYPES[round % 4] as 0 | 1 | 2 | 4);
		const key = randomKey(random);
		const raw = signedBytes(wanted, key);
		const tx = decoded(raw);
		assertFields(tx, wanted, key);
		assert.equal(tx.raw, raw);
		assert.deepEqual(encodeDecoded(tx), raw);
		assert.equal(tx.size, raw.length);
		assertAsEthers(tx, raw);
	}
});

function assertAsEthers(tx: DecodedTransaction, raw: Buffer): void {
	const theirs = Transaction.from(hexOf(raw));
	const { signature } = theirs;
	assert.ok(signature !== null);
	assert.deepEqual(
		{
			...{ type: tx.type, hash: tx.hash, from: tx.from, chainId: tx.chainId, nonce: Number(tx.nonce) },
			...{ gasLimit: tx.gasLimit, to: tx.to, value: tx.value, data: hexOf(tx.data) },
			...{ gasPrice: tx.gasPrice, accessList: tx.accessList, yParity: tx.yParity, r: tx.r, s: tx.s },
			maxFeePerGas: tx.type <= 1 ? null : tx.maxFeePerGas,
			maxPriorityFeePerGas: tx.type <= 1 ? null : tx.maxPriorityFeePerGas,
			authorizations: tx.authorizationList,
			authorities: tx.authorizationList.map(senderOfAuthorization),
			v: tx.type === 0 ? tx.v : null,
		},
		{
			...{ type: theirs.type, hash: theirs.hash, from: theirs.from?.toLowerCase() },
			...{ chainId: theirs.chainId, nonce: theirs.nonce, gasLimit: theirs.gasLimit },
			...{ to: theirs.to?.toLowerCase() ?? null, value: theirs.value, data: theirs.data },
			gasPrice: theirs.gasPrice,
			accessList: (theirs.accessList ?? []).map(({ address, storageKeys }) => ({
				address: address.toLowerCase(),
				storageKeys: [...storageKeys],
			})),
			...{ yParity: signature.yParity, r: BigInt(signature.r), s: BigInt(signature._s) },
			...{ maxFeePerGas: theirs.maxFeePerGas, maxPriorityFeePerGas: theirs.maxPriorityFeePerGas },
			authorizations: (theirs.authorizationList ?? []).map((entry) => ({
				...{ chainId: entry.chainId, address: entry.address.toLowerCase(), nonce: entry.nonce },
				yParity: entry.signature.yParity,
				r: BigInt(entry.signature.r),
				s: BigInt(entry.signature._s),
			})),
			authorities: tx.authorizationList.map((_, index) => authorityByEthers(theirs, index)),
			v: tx.type === 0 ? signature.networkV : null,
		},
	);
}

/** The authority as ethers recovers it. */
function authorityByEthers(theirs: Transaction, index: number): string | null {
	const entry = theirs.authorizationList?.[index];
	assert.ok(entry !== undefined);
	return verifyAuthorization(entry, entry.signature).toLowerCase();
}

const REASONS = new Set([
	...["rlp", "unsupportedType", "invalidSignature"],
	...["notReplayProtected", "missingBlobSidecar", "invalidSidecar"],
]);

/** One to three damages: bits, bytes put in, taken out or repeated, ends cut off, rubbish behind. */
function damage(raw: Buffer, random: SeededRandom): Buffer {
	let bytes = Buffer.from(raw);
	for (let times = 1 + random.below(3); times > 0; times--) {
		// The headers are at the front, so most damage is done there.
		const at = random.below(random.below(2) === 0 ? Math.min(bytes.length, 24) + 1 : bytes.length + 1);
		const before = bytes.subarray(0, at);
		const after = bytes.subarray(at);
		const kinds = [
			() => Buffer.concat([before, random.bytes(1), after.subarray(1)]),
			() => Buffer.concat([before, random.bytes(1 + random.below(4)), after]),
			() => Buffer.concat([before, after.subarray(1 + random.below(4))]),
			() => before,
			() => Buffer.concat([bytes, random.bytes(1 + random.below(9))]),
			() => Buffer.concat([before, after.subarray(0, 8), after]),
			() =>
				Buffer.concat([
					before,
					Buffer.from([random.pick([0, 0x80, 0xb8, 0xbf, 0xc0, 0xf8, 0xff])]),
					after.subarray(1),
				]),
		];
		bytes = Buffer.from(random.pick(kinds)());
	}
	return bytes;
}

test("answers 24,000 damaged transactions without throwing", () => {
	const random = seededRandom(0xdead10cc);
	const seen = new Map<string, number>();
	// Signing takes far longer than damaging, so each of these is damaged many times.
	const bare = bareBlobBytes();
	const signed = Array.from({ length: 400 }, (_, index) => {
		const tx = randomTransaction(random, TYPES[index % 4] as 0 | 1 | 2 | 4);
		return signedBytes({ ...tx, data: tx.data.slice(0, 202) as "0x" }, KEY);
	});
	for (let round = 0; round < 24_000; round++) {
		const raw = damage(round % 8 === 0 ? bare : random.pick(signed), random);
		const result = decodeTransaction(raw);
		const outcome = result.ok ? "taken" : result.reason;
		seen.set(outcome, (seen.get(outcome) ?? 0) + 1);
		if (result.ok) {
			assert.match(result.tx.from, /^0x[0-9a-f]{40}$/);
			assert.deepEqual(encodeDecoded(result.tx), raw);
		} else {
			assert.ok(REASONS.has(result.reason));
			assert.ok(result.message.length < 120);
		}
	}
	for (const outcome of ["taken", "rlp", "unsupportedType", "invalidSignature", "missingBlobSidecar"]) {
		assert.ok((seen.get(outcome) ?? 0) > 0, `no damage led to ${outcome}`);
	}
});

const KEY = randomKey(seededRandom(77));

test("every cut of a transaction is refused", () => {
	for (const type of [0, 1, 2, 4] as const) {
		const raw = transactionBytes(type);
		for (let length = 0; length < raw.length; length++) {
			const result = decodeTransaction(raw.subarray(0, length));
			assert.ok(!result.ok && result.reason === "rlp", `type ${type} cut to ${length} bytes`);
		}
	}
});

test("a list nested 100,000 deep is refused without a stack of that depth", () => {
	const nested = Buffer.alloc(100_000, 0xc0);
	assert.equal(decodeTransaction(nested).ok, false);
	const access = Buffer.concat([Buffer.from([0x01]), rlpEncode([Buffer.from([1]), nested])]);
	assert.equal(decodeTransaction(access).ok, false);
});
