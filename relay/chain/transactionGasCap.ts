// Whether the chain limits the gas of a single transaction (EIP-7825, part of Osaka): the node is asked, what goes
// out is the limit or null. It judges no transaction.

import type { JsonRpcClient } from "../../shared/jsonrpc/client.ts";

/** The limit of EIP-7825: 2^24 gas. */
export const EIP_7825_GAS = 16_777_216n;
/** Mainnet, Sepolia and Hoodi, which have had Osaka since 2025. */
const OSAKA_CHAINS: readonly bigint[] = [1n, 11_155_111n, 560_048n];

/**
 * The gas limit of a transaction on this chain, or null. Nodes that serve `eth_config` (EIP-7910) list the fork's
 * precompiles, of which P256VERIFY (EIP-7951) came with the same fork; of others only well-known chains are known.
 */
export async function transactionGasCap(client: JsonRpcClient, chainId: bigint): Promise<bigint | null> {
	const answer = await client.call({ method: "eth_config", params: [] });
	const current = answer.ok
		? (answer.result as { current?: { precompiles?: object } } | null)?.current
		: null;
	if (current?.precompiles !== undefined) {
		return "P256VERIFY" in current.precompiles ? EIP_7825_GAS : null;
	}
	return OSAKA_CHAINS.includes(chainId) ? EIP_7825_GAS : null;
}
