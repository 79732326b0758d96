// Whether the chain limits the gas of a single transaction (EIP-7825, part of Osaka): the node is asked, what goes
// out is the limit or null. It judges no transaction.

import { MAX_TX_GAS } from "../../shared/ethereum/intrinsicGas.ts";
import type { JsonRpcClient } from "../../shared/jsonrpc/client.ts";

/** Mainnet, Sepolia and Hoodi, which have had Osaka since 2025. */
const OSAKA_CHAINS: readonly bigint[] = [1n, 11_155_111n, 560_048n];

/**
 * The gas limit of a transaction on this chain, or null. Nodes that serve `eth_config` (EIP-7910) list the fork's
 * precompiles, of which P256VERIFY (EIP-7951) came with the same fork; of others only well-known chains are known.
 */
export async function transactionGasCap(
	node: Pick<JsonRpcClient, "call">,
	chainId: bigint,
): Promise<bigint | null> {
	const answer = await node.call({ method: "eth_config", params: [] });
	const current = answer.ok
		? (answer.result as { current?: { precompiles?: object } } | null)?.current
		: null;
	if (current?.precompiles !== undefined) {
		return "P256VERIFY" in current.precompiles ? MAX_TX_GAS : null;
	}
	return OSAKA_CHAINS.includes(chainId) ? MAX_TX_GAS : null;
}
