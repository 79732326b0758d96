// Prepares a node to check blobs without a delay. It changes no state.

import { concat, sha256, ZeroHash } from "ethers";
import type { ChainRpc } from "./chainRpc.ts";

/** EIP-4844's point evaluation. */
const POINT_EVALUATION = "0x000000000000000000000000000000000000000a";
/** Commitment and proof of the polynomial that is zero everywhere. */
const INFINITY = `0xc0${"00".repeat(47)}`;

/**
 * anvil 1.7.1 computes its KZG tables, 1 to 7 seconds, when it first needs them: that would be in the middle of a
 * burst. A call of the precompile makes it do so beforehand; other calls are answered meanwhile.
 */
export async function warmKzg(rpc: ChainRpc): Promise<void> {
	const versionedHash = `0x01${sha256(INFINITY).slice(4)}`;
	const data = concat([versionedHash, ZeroHash, ZeroHash, INFINITY, INFINITY]);
	await rpc.call("eth_call", [{ to: POINT_EVALUATION, data }, "latest"]);
}
