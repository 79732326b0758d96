// Decodes raw transactions for a builder, by ethers instead of the relay's decoder. It checks no state.

import { getBytes, Transaction } from "ethers";
import { LRUCache } from "lru-cache";
import { recoverAddress } from "./builderSignature.ts";

/** A decoded transaction. Fees in wei a gas; addresses checksummed; hashes lower-case. */
export interface DecodedTransaction {
	readonly raw: string;
	readonly hash: string;
	readonly from: string;
	/** Null for a creation. */
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

/** Kept decoded: the same transactions come again for every block, and six blobs take ethers 0.7 s. */
const CACHE_CHARS = 64 * 1024 * 1024;

/** Decodes and remembers. */
export class TransactionDecoder {
	readonly #cache = new LRUCache<string, DecodedTransaction>({ maxSize: CACHE_CHARS });

	/** The transaction of `raw` (0x hex, blobs with their sidecar), or null when it is none. */
	decode(raw: unknown): DecodedTransaction | null {
		if (typeof raw !== "string") return null;
		const known = this.#cache.get(raw);
		if (known !== undefined) return known;
		const decoded = decode(raw);
		if (decoded !== null) this.#cache.set(raw, decoded, { size: raw.length });
		return decoded;
	}
}

function decode(raw: string): DecodedTransaction | null {
	try {
		const tx = Transaction.from(raw);
		const { signature, hash } = tx;
		if (signature === null || hash === null) return null;
		// A builder needs the blobs themselves: without the sidecar no block could hold them.
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
