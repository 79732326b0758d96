// What is asked of the node beside heads: which chain it is, and what the relay's own methods are built of. Nothing
// of it is remembered.

import { parseHash, readQuantity } from "../../shared/ethereum/hex.ts";
import { type JsonRpcClient, UpstreamError } from "../../shared/jsonrpc/client.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import type { NodeReads } from "../domain/ports.ts";
import type { Passthrough } from "./passthrough.ts";

/** Which node and chain it is. */
export interface NodeProbe {
	readonly chainId: bigint;
	/** Lower-case. */
	readonly genesisHash: string;
	/** As the node calls itself, in 100 printable characters at most; "unknown" where it does not say. */
	readonly clientVersion: string;
}

const PROBE_MS = 5_000;

/** Asks the node who it is, within five seconds. Throws an UpstreamError where it does not tell. */
export async function probeNode(node: Pick<JsonRpcClient, "call">): Promise<NodeProbe> {
	const ask = async (method: string, params: readonly unknown[]): Promise<unknown> => {
		const answer = await node.call({ method, params }, PROBE_MS);
		return answer.ok ? answer.result : null;
	};
	const [chain, genesis, version] = await Promise.all([
		ask("eth_chainId", []),
		ask("eth_getBlockByNumber", ["0x0", false]),
		ask("web3_clientVersion", []),
	]);
	const chainId = readQuantity(chain);
	const genesisHash = hashOf(genesis);
	if (chainId === null || genesisHash === null) throw new UpstreamError("notJsonRpc");
	return { chainId, genesisHash, clientVersion: printable(version) };
}

/** The reads for the relay's own methods, which stand in no list: shared like those that do, and never remembered. */
export function nodeReads(passthrough: Pick<Passthrough, "read">): NodeReads {
	return {
		async pendingCount(address, caller) {
			const told = await passthrough.read("eth_getTransactionCount", [address, "pending"], caller);
			const count = readQuantity(told);
			if (count !== null) return count;
			throw new RpcError("internal", "internal error", { reason: "node unavailable" });
		},
		transactionCount: (address, block, caller) =>
			passthrough.read("eth_getTransactionCount", [address, block], caller),
		transactionByHash: (hash, caller) => passthrough.read("eth_getTransactionByHash", [hash], caller),
		receipt: (hash, caller) => passthrough.read("eth_getTransactionReceipt", [hash], caller),
	};
}

function hashOf(block: unknown): string | null {
	if (typeof block !== "object" || block === null || !("hash" in block)) return null;
	return typeof block.hash === "string" ? parseHash(block.hash) : null;
}

function printable(version: unknown): string {
	if (typeof version !== "string" || version === "") return "unknown";
	return version.replace(/[^\x20-\x7e]/g, "?").slice(0, 100);
}
