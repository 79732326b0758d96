// Decodes raw transactions for a builder, and recovers the signer of a body. Uses ethers instead of
// the relay's code, so that both don't share a mistake. Only the two slow steps are native (ethers
// takes 2 ms and, for six blobs, 126 ms); tests compare them with ethers. It checks no state.

import { getAddress, getBytes, hashMessage, isHexString, Transaction } from "ethers";
import createKeccakHash from "keccak";
import { LRUCache } from "lru-cache";
import secp256k1 from "secp256k1";

/** A decoded transaction. Fees are in wei per gas, addresses checksummed, hashes in lower case. */
export interface DecodedTransaction {
	readonly raw: string;
	readonly hash: string;
	readonly from: string;
	/** Null creates a contract. */
	readonly to: string | null;
	readonly nonce: number;
	readonly gasLimit: bigint;
	readonly maxFeePerGas: bigint;
	readonly maxPriorityFeePerGas: bigint;
	/** 0 to 4. */
	readonly type: number;
	/** Null for a legacy transaction without EIP-155. */
	readonly chainId: bigint | null;
}

/**
 * Cache, since the same transactions come again for every block, and six blobs take ethers 0.7 s.
 */
const known = new LRUCache<string, DecodedTransaction>({ maxSize: 64 * 1024 * 1024 });

/** The transaction of `raw` (0x hex, blobs with their sidecar), or null if it is invalid. */
export function decodeTransaction(raw: unknown): DecodedTransaction | null {
	if (typeof raw !== "string") return null;
	const decoded = known.get(raw) ?? decode(raw);
	if (decoded !== null) known.set(raw, decoded, { size: raw.length });
	return decoded;
}

function decode(raw: string): DecodedTransaction | null {
	try {
		const tx = Transaction.from(raw);
		const { signature, hash } = tx;
		if (signature === null || hash === null) return null;
		// A block needs the blobs themselves, so a blob transaction without its sidecar is refused.
		if (tx.type === 3 && (tx.blobs ?? []).length === 0) return null;
		const rs = getBytes(signature.r + signature.s.slice(2));
		const from = recoverAddress(tx.unsignedHash, rs, signature.yParity);
		if (from === null) return null;
		const price = tx.gasPrice ?? 0n;
		return {
			raw: raw.toLowerCase(),
			hash,
			from,
			to: tx.to,
			nonce: tx.nonce,
			gasLimit: tx.gasLimit,
			maxFeePerGas: tx.maxFeePerGas ?? price,
			maxPriorityFeePerGas: tx.maxPriorityFeePerGas ?? price,
			type: tx.type ?? 0,
			chainId: tx.chainId === 0n ? null : tx.chainId,
		};
	} catch {
		return null;
	}
}

/** The signer, checksummed, or what is wrong with the header. */
type SignatureVerdict =
	| { readonly signer: string; readonly problem: null }
	| { readonly signer: null; readonly problem: string };

/**
 * Checks `address:signature`, where the signature is an EIP-191 one over the text of the body's
 * keccak256 in hex (0x and 64 digits): that text is signed, not the 32 bytes.
 */
export function checkSignature(header: string | undefined, body: Buffer): SignatureVerdict {
	if (header === undefined) return { signer: null, problem: "missing signature" };
	const [address = "", signature = "", ...rest] = header.split(":");
	if (rest.length > 0 || !isHexString(address, 20) || !isHexString(signature, 65)) {
		return { signer: null, problem: "malformed signature" };
	}
	const hash = createKeccakHash("keccak256").update(body).digest().toString("hex");
	const bytes = getBytes(signature);
	const v = bytes[64] ?? 0;
	const signer = recoverAddress(hashMessage(`0x${hash}`), bytes.subarray(0, 64), v >= 27 ? v - 27 : v);
	if (signer === null || signer !== getAddress(address.toLowerCase())) {
		return { signer: null, problem: "signature does not match" };
	}
	return { signer, problem: null };
}

/**
 * The checksummed address whose key made the signature (64 bytes, r and s) of `digest` (32 bytes,
 * hex); null if invalid.
 */
function recoverAddress(digest: string, rs: Uint8Array, recovery: number): string | null {
	if (recovery !== 0 && recovery !== 1) return null;
	try {
		const key = secp256k1.ecdsaRecover(rs, recovery, getBytes(digest), false);
		const hash = createKeccakHash("keccak256")
			.update(Buffer.from(key.subarray(1)))
			.digest();
		return getAddress(`0x${hash.subarray(12).toString("hex")}`);
	} catch {
		return null;
	}
}
