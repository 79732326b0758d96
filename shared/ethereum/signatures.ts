// Hashing, recovery of signers (libsecp256k1, 44 µs each), and making and checking the header
// X-Flashbots-Signature. The header only identifies its signer; what a signer may do is decided
// elsewhere. https://docs.flashbots.net/flashbots-auction/advanced/rpc-endpoint#authentication

import { randomBytes } from "node:crypto";
import createKeccakHash from "keccak";
import secp256k1 from "secp256k1";
import { asBuffer, bytesToHex, hexToBytes } from "./hex.ts";

/** The order of the curve's group. */
export const SECP256K1_N = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const HALF_N = SECP256K1_N / 2n;

/**
 * Whether r and s are in 1..n−1 and s is in the lower half. Each signature has a counterpart with s
 * in the upper half, which EIP-2 forbids. https://eips.ethereum.org/EIPS/eip-2
 */
export function isCanonicalSignature(r: bigint, s: bigint): boolean {
	return r > 0n && r < SECP256K1_N && s > 0n && s <= HALF_N;
}

/**
 * The lower-case address whose key signed the 32 bytes of `hash`, or null for an invalid signature:
 * r or s out of range, s in the upper half, or r not on the curve.
 */
export function recoverAddress(hash: Uint8Array, yParity: 0 | 1, r: bigint, s: bigint): string | null {
	if (!isCanonicalSignature(r, s)) return null;
	const signature = Buffer.from(hex32(r) + hex32(s), "hex");
	try {
		return addressOfPublicKey(secp256k1.ecdsaRecover(signature, yParity, hash, false));
	} catch {
		// The package throws if r is not the x of a point, as is the case for about half of all
		// numbers.
		return null;
	}
}

/** The lower-case address of an uncompressed public key (65 bytes, 0x04 first). */
export function addressOfPublicKey(publicKey: Uint8Array): string {
	return `0x${keccak256(publicKey.subarray(1)).toString("hex", 12)}`;
}

/** 64 digits. */
export function hex32(value: bigint): string {
	return value.toString(16).padStart(64, "0");
}

/**
 * One reused hasher: creating one takes longer than hashing a few hundred bytes. After a digest it
 * only needs its `_finalized` flag reset.
 */
const hasher = createKeccakHash("keccak256");

/**
 * The Keccak-256 hash (Ethereum's, not NIST's SHA3-256) of the concatenated `parts`, as a new
 * buffer. With parts the caller need not copy large calldata to put a header before it.
 */
export function keccak256(...parts: readonly Uint8Array[]): Buffer {
	hasher._finalized = false;
	for (const part of parts) hasher.update(asBuffer(part));
	return hasher.digest();
}

/** A signature of 32 bytes: r and s, and the parity that selects one of the two possible keys. */
export interface HashSignature {
	readonly signature: Uint8Array;
	readonly recid: number;
}

/** Signs 32 bytes with a key of 32 bytes. */
export function signHash(hash: Uint8Array, secret: Uint8Array): HashSignature {
	return secp256k1.ecdsaSign(hash, secret);
}

/**
 * The result of checking a header; `address` is lower-case, `digest` the 32 bytes that were signed,
 * as lower-case hex.
 */
export type BodyVerification =
	| { readonly ok: true; readonly address: string; readonly digest: string }
	| {
			readonly ok: false;
			/**
			 * `malformed`: not `address:signature`; `invalid`: not a valid signature; `mismatch`: signed
			 * by another key.
			 */
			readonly reason: "malformed" | "invalid" | "mismatch";
	  };

interface BodySigner {
	/** Lower-case. */
	readonly address: string;
	/** The header's value for a body, which must then be sent unchanged. */
	sign(body: Uint8Array | string): string;
}

/** A random key, as `0x` and 64 digits. */
export function createKey(): string {
	for (;;) {
		const key = randomBytes(32);
		// All but one in 2¹²⁷ are below the curve's order.
		if (secp256k1.privateKeyVerify(key)) return bytesToHex(key);
	}
}

/** The lower-case address of a key of `0x` and 64 digits. Throws for an invalid key. */
export function addressOfKey(key: string): string {
	return addressOfPublicKey(secp256k1.publicKeyCreate(keyBytes(key), false));
}

/** A signer, which derives its address only once. Throws for an invalid key. */
export function createBodySigner(key: string): BodySigner {
	const secret = keyBytes(key);
	const address = addressOfKey(key);
	return {
		address,
		sign: (body) => bodyHeader(address, signHash(bodyHash(body), secret)),
	};
}

/** The header's value for a signature over the result of {@link signedOf}. */
export function bodyHeader(address: string, { signature, recid }: HashSignature): string {
	return `${address}:${bytesToHex(signature)}${recid === 0 ? "1b" : "1c"}`;
}

/**
 * Checks a header against the received body. Accepts v as {@link recoverHex} does, and hex in any
 * case. Rejects an s in the upper half, so that nobody can make a second valid header from one.
 */
export function verifyBody(header: string, body: Uint8Array | string): BodyVerification {
	if (!HEADER.test(header)) return { ok: false, reason: "malformed" };
	const claimed = header.slice(0, 42).toLowerCase();
	const hash = bodyHash(body);
	const address = recoverHex(hash, header.slice(43));
	if (address === null) return { ok: false, reason: "invalid" };
	return address === claimed
		? { ok: true, address, digest: bytesToHex(hash) }
		: { ok: false, reason: "mismatch" };
}

const HEADER = /^0x[0-9a-f]{40}:0x[0-9a-f]{130}$/i;

/**
 * The lower-case address that has signed the 32 bytes of `hash`, by its signature as 0x and 130 hex
 * digits in any case. Accepts v as 0, 1, 27 or 28; null for an invalid one, as {@link
 * recoverAddress}.
 */
export function recoverHex(hash: Uint8Array, signature: string): string | null {
	const r = BigInt(`0x${signature.slice(2, 66)}`);
	const s = BigInt(`0x${signature.slice(66, 130)}`);
	const v = Number.parseInt(signature.slice(130), 16);
	const yParity = v >= 27 ? v - 27 : v;
	return yParity === 0 || yParity === 1 ? recoverAddress(hash, yParity, r, s) : null;
}

/** EIP-191 prefix for 66 characters: the hash's hex text is signed, not its 32 bytes. */
const PREFIX = Buffer.from("\x19Ethereum Signed Message:\n66", "latin1");

function bodyHash(body: Uint8Array | string): Buffer {
	const bytes = typeof body === "string" ? Buffer.from(body, "utf8") : asBuffer(body);
	return signedOf(keccak256(bytes));
}

/** The 32 bytes that are signed for a body with this Keccak-256 hash. */
export function signedOf(hash: Uint8Array): Buffer {
	return keccak256(PREFIX, Buffer.from(bytesToHex(hash), "latin1"));
}

/** The 32 bytes of a key of `0x` and 64 digits. Throws without quoting it. */
export function keyBytes(key: string): Buffer {
	const bytes = hexToBytes(key);
	if (bytes === null || bytes.length !== 32 || !secp256k1.privateKeyVerify(bytes)) {
		throw new TypeError("a signing key is 0x and 64 hex digits, within the order of secp256k1");
	}
	return bytes;
}
