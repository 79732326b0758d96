// Senders of hashes and of EIP-7702 authorizations, against ethers and viem, and what has no sender.

import assert from "node:assert/strict";
import { test } from "node:test";
import { SigningKey, Wallet } from "ethers";
import secp256k1 from "secp256k1";
import { privateKeyToAccount } from "viem/accounts";
import { isCanonicalSignature, recoverAddress, SECP256K1_N } from "../../../../shared/ethereum/signatures.ts";
import { senderOfAuthorization } from "../../../../shared/ethereum/transaction.ts";
import { randomKey } from "./randomTransactions.ts";
import { seededRandom } from "./seededRandom.ts";

const random = seededRandom(0x51);
const hexOf = (bytes: Buffer): `0x${string}` => `0x${bytes.toString("hex")}`;

test("recovers what ethers signed", () => {
	for (let round = 0; round < 100; round++) {
		const key = hexOf(randomKey(random));
		const hash = random.bytes(32);
		const { yParity, r, s } = new SigningKey(key).sign(hash);
		const address = new Wallet(key).address.toLowerCase();
		assert.equal(recoverAddress(hash, yParity, BigInt(r), BigInt(s)), address);
		assert.notEqual(recoverAddress(hash, yParity === 0 ? 1 : 0, BigInt(r), BigInt(s)), address);
		assert.equal(recoverAddress(hash, yParity === 0 ? 1 : 0, BigInt(r), SECP256K1_N - BigInt(s)), null);
	}
});

test("signature values have bounds", () => {
	const half = SECP256K1_N / 2n;
	assert.ok(isCanonicalSignature(1n, 1n));
	assert.ok(isCanonicalSignature(SECP256K1_N - 1n, half));
	const bad = [
		[0n, 1n],
		[1n, 0n],
		[SECP256K1_N, 1n],
		[1n, half + 1n],
		[1n, SECP256K1_N],
		[-1n, 1n],
		[1n, -1n],
		[2n ** 256n, 1n],
	] as const;
	for (const [r, s] of bad) {
		assert.equal(isCanonicalSignature(r, s), false);
		assert.equal(recoverAddress(Buffer.alloc(32, 1), 0, r, s), null);
	}
	// No point of the curve has 5 for its x.
	assert.equal(recoverAddress(Buffer.alloc(32, 1), 0, 5n, 1n), null);
});

test("finds the authority of an authorization that viem signed", async () => {
	for (const [chainId, nonce] of [
		[0, 0],
		[1, 7],
		[31_337, 2 ** 40],
	] as const) {
		const account = privateKeyToAccount(hexOf(randomKey(random)));
		const signed = await account.signAuthorization({ chainId, nonce, address: hexOf(random.bytes(20)) });
		const authorization = {
			...{ chainId: BigInt(chainId), nonce: BigInt(nonce), address: signed.address.toLowerCase() },
			...{ yParity: signed.yParity as number, r: BigInt(signed.r), s: BigInt(signed.s) },
		};
		assert.equal(senderOfAuthorization(authorization), account.address.toLowerCase());
		for (const spoiled of [
			{ yParity: 2 },
			{ yParity: 27 },
			{ r: 0n },
			{ s: SECP256K1_N - authorization.s },
			{ r: 5n },
		]) {
			assert.equal(senderOfAuthorization({ ...authorization, ...spoiled }), null);
		}
		assert.notEqual(senderOfAuthorization({ ...authorization, nonce: 1n }), account.address.toLowerCase());
	}
});

// Recovery ids 2 and 3 mean that r is the x less n: real for a few tiny r, and no parity.
test("takes no recovery id for a parity", () => {
	const bytes = (value: bigint) => Buffer.from(value.toString(16).padStart(64, "0"), "hex");
	const tuple = { chainId: 1n, address: `0x${"11".repeat(20)}`, nonce: 0n, s: 1n };
	const recoverable = Array.from({ length: 20 }, (_, index) => BigInt(index + 1)).filter((r) => {
		try {
			secp256k1.ecdsaRecover(Buffer.concat([bytes(r), bytes(1n)]), 2, Buffer.alloc(32, 1));
			return true;
		} catch {
			return false;
		}
	});
	assert.notEqual(recoverable.length, 0);
	for (const r of recoverable) assert.equal(senderOfAuthorization({ ...tuple, yParity: 2, r }), null);
});
