// decodeTransaction against ethers and viem, both ways: what they sign is decoded to what they were given, and what
// the tests' own encoder writes is read alike by all three.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Signature, Transaction, type TransactionLike, verifyAuthorization, Wallet } from "ethers";
import { type Hex, parseTransaction, type TransactionSerializable, keccak256 as viemKeccak } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import {
	type DecodedTransaction,
	decodeTransaction,
	senderOfAuthorization,
} from "../../../../shared/ethereum/transaction.ts";
import {
	encodeDecoded,
	type RandomTransaction,
	randomKey,
	randomTransaction,
	signedBytes,
} from "./randomTransactions.ts";
import { fromHex } from "./rawEncoding.ts";
import { seededRandom } from "./seededRandom.ts";

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

test("reads what the tests' encoder wrote as ethers and viem do", () => {
	const random = seededRandom(0x1eeffa11);
	for (let round = 0; round < 800; round++) {
		const wanted = randomTransaction(random, TYPES[round % 4] as 0 | 1 | 2 | 4);
		const key = randomKey(random);
		const raw = signedBytes(wanted, key);
		const tx = decoded(raw);
		assertFields(tx, wanted, key);
		assert.equal(tx.raw, raw);
		assert.deepEqual(encodeDecoded(tx), raw);
		assert.equal(tx.size, raw.length);
		assertAsEthers(tx, raw);
		assertAsViem(tx, raw);
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

function assertAsViem(tx: DecodedTransaction, raw: Buffer): void {
	const theirs = parseTransaction(hexOf(raw));
	assert.equal(tx.hash, viemKeccak(hexOf(raw)));
	assert.equal(BigInt(theirs.chainId ?? 0), tx.chainId);
	assert.equal(BigInt(theirs.nonce ?? 0), tx.nonce);
	assert.equal(theirs.gas ?? 0n, tx.gasLimit);
	assert.equal(theirs.to ?? null, tx.to);
	assert.equal(theirs.value ?? 0n, tx.value);
	assert.equal(theirs.data ?? "0x", hexOf(tx.data));
	assert.equal(theirs.gasPrice ?? null, tx.gasPrice === 0n ? null : tx.gasPrice);
	if (tx.type > 1) assert.equal(theirs.maxFeePerGas ?? 0n, tx.maxFeePerGas);
	assert.deepEqual(theirs.accessList ?? [], tx.accessList);
}

test("reads what viem signed as what viem was given", async () => {
	const random = seededRandom(0x0b5e55ed);
	for (let round = 0; round < 600; round++) {
		const wanted = randomTransaction(random, TYPES[round % 4] as 0 | 1 | 2 | 4);
		const key = randomKey(random);
		const serialized = await privateKeyToAccount(hexOf(key)).signTransaction(forViem(wanted));
		const tx = decoded(fromHex(serialized));
		assertFields(tx, wanted, key);
		assert.equal(tx.hash, viemKeccak(serialized));
	}
});

test("reads what ethers signed as what ethers was given", async () => {
	const random = seededRandom(0x5eaf00d);
	for (let round = 0; round < 300; round++) {
		const wanted = randomTransaction(random, TYPES[round % 4] as 0 | 1 | 2 | 4);
		const key = randomKey(random);
		const serialized = await new Wallet(hexOf(key)).signTransaction(forEthers(wanted));
		assertFields(decoded(fromHex(serialized)), wanted, key);
	}
});

function forViem(tx: RandomTransaction): TransactionSerializable {
	const types = { 0: "legacy", 1: "eip2930", 2: "eip1559", 4: "eip7702" } as const;
	const { authorizationList, accessList, type, maxFeePerGas, maxPriorityFeePerGas, gasLimit, ...rest } = tx;
	const fees = type <= 1 ? { gasPrice: maxFeePerGas } : { maxFeePerGas, maxPriorityFeePerGas };
	return {
		...{ ...rest, ...fees, type: types[type], gas: gasLimit },
		chainId: Number(tx.chainId),
		nonce: Number(tx.nonce),
		...(type === 0 ? {} : { accessList }),
		...(type === 4
			? {
					authorizationList: authorizationList.map(({ chainId, nonce, r, s, ...entry }) => ({
						...{ ...entry, chainId: Number(chainId), nonce: Number(nonce) },
						...{ r: word(r), s: word(s) },
					})),
				}
			: {}),
	} as TransactionSerializable;
}

function forEthers(tx: RandomTransaction): TransactionLike<string> {
	const { type, chainId, gasLimit, to, value, data, maxFeePerGas, maxPriorityFeePerGas } = tx;
	const like: TransactionLike<string> = { type, chainId, gasLimit, to, value, data, nonce: Number(tx.nonce) };
	if (type <= 1) like.gasPrice = maxFeePerGas;
	else Object.assign(like, { maxFeePerGas, maxPriorityFeePerGas });
	if (type !== 0) like.accessList = [...tx.accessList];
	if (type === 4) {
		like.authorizationList = tx.authorizationList.map(({ yParity, r, s, ...entry }) => ({
			...entry,
			signature: Signature.from({ yParity: yParity as 0 | 1, r: word(r), s: word(s) }),
		}));
	}
	return like;
}

function word(value: bigint): string {
	return `0x${value.toString(16).padStart(64, "0")}`;
}
