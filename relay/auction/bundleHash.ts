// The hash of a bundle, from its transactions' hashes.

import { bytesToHex, hexToBytes } from "../../shared/ethereum/hex.ts";
import { keccak256 } from "../../shared/ethereum/recover.ts";

/** keccak256 of the hashes (32 bytes of 0x hex each) in a row. */
export function bundleHash(hashes: readonly string[]): string {
	return bytesToHex(keccak256(Buffer.concat(hashes.map((hash) => hexToBytes(hash) ?? Buffer.alloc(0)))));
}
