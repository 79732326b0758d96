// Keccak-256 by the native package, which is five times as fast as ethers'.

import createKeccakHash from "keccak";
import { asBuffer } from "./hex.ts";

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
