// Recovers who signed a hash, by the native libsecp256k1 (44 µs).

import secp256k1 from "secp256k1";
import { keccak256 } from "./keccak.ts";
import { rlpEncode, uintToBytes } from "./rlp.ts";
import type { Authorization } from "./transactionFields.ts";

/** The order of the curve's group. */
export const SECP256K1_N = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const HALF_N = SECP256K1_N / 2n;

/** The byte before an authorization's RLP where it is signed. https://eips.ethereum.org/EIPS/eip-7702 */
const AUTHORIZATION_MAGIC = Buffer.from([0x05]);

/**
 * Whether r and s are in 1..n−1 and s in the lower half: a signature has a twin with the other s, and EIP-2 allows
 * one of the two. https://eips.ethereum.org/EIPS/eip-2
 */
export function isCanonicalSignature(r: bigint, s: bigint): boolean {
	return r > 0n && r < SECP256K1_N && s > 0n && s <= HALF_N;
}

/**
 * The lower-case address whose key signed the 32 bytes of `hash`, or null where no key can have: r or s out of
 * range, s in the upper half, or r not on the curve.
 */
export function recoverAddress(hash: Uint8Array, yParity: 0 | 1, r: bigint, s: bigint): string | null {
	if (!isCanonicalSignature(r, s)) return null;
	const signature = Buffer.from(hex32(r) + hex32(s), "hex");
	try {
		return addressOfPublicKey(secp256k1.ecdsaRecover(signature, yParity, hash, false));
	} catch {
		// The package has no other way to say that r is no point's x: about half of all numbers are not.
		return null;
	}
}

/** The lower-case address of an uncompressed public key (65 bytes, 0x04 first). */
export function addressOfPublicKey(publicKey: Uint8Array): string {
	return `0x${keccak256(publicKey.subarray(1)).toString("hex", 12)}`;
}

/**
 * The authority of an EIP-7702 authorization: the account that signed it and whose code it sets. Null where the
 * signature is not valid; such an entry is skipped by the chain and does not make its transaction invalid.
 */
export function senderOfAuthorization(authorization: Authorization): string | null {
	const { chainId, address, nonce, yParity, r, s } = authorization;
	if (yParity !== 0 && yParity !== 1) return null;
	const message = rlpEncode([uintToBytes(chainId), Buffer.from(address.slice(2), "hex"), uintToBytes(nonce)]);
	return recoverAddress(keccak256(AUTHORIZATION_MAGIC, message), yParity, r, s);
}

function hex32(value: bigint): string {
	return value.toString(16).padStart(64, "0");
}
