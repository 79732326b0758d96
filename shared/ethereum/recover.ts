// Hashing and the recovery of signers, by native code: keccak, and libsecp256k1 (44 µs a signer).

import createKeccakHash from "keccak";
import secp256k1 from "secp256k1";
import { asBuffer } from "./hex.ts";

/** The order of the curve's group. */
export const SECP256K1_N = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const HALF_N = SECP256K1_N / 2n;

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

function hex32(value: bigint): string {
	return value.toString(16).padStart(64, "0");
}

/**
 * The one hasher. The package makes a stream of each, which takes longer than to hash a few hundred bytes; a digest leaves
 * it as new but for a mark that it was made.
 */
const hasher = createKeccakHash("keccak256");

/**
 * The Keccak-256 hash (Ethereum's, not NIST's SHA3-256) of all `parts` behind one another, as a fresh buffer of
 * 32 bytes. Parts spare the caller a copy of large calldata only to put a header before it.
 */
export function keccak256(...parts: readonly Uint8Array[]): Buffer {
	hasher._finalized = false;
	for (const part of parts) hasher.update(asBuffer(part));
	return hasher.digest();
}
