// The reads that the relay forwards to its node, and that boost sends to any upstream.

/**
 * How long an answer is cached. `once`: not at all. `always`: as long as the process runs. `found`:
 * for a block named by its hash, as soon as it exists. `deep`: as soon as its block is too deep for
 * a reorganisation.
 */
type Keep = "once" | "always" | "found" | "deep";

/** How one method is forwarded. */
export interface Read {
	readonly keep: Keep;
	/** Cost in the rate limit. */
	readonly weight: number;
	/** Deadline in ms; the client's whole call has 28 s. */
	readonly timeoutMs: number;
}

export const LIGHT_READ: Read = { keep: "once", weight: 1, timeoutMs: 10_000 };
const ALWAYS: Read = { ...LIGHT_READ, keep: "always" };
const FOUND: Read = { ...LIGHT_READ, keep: "found" };
const DEEP: Read = { ...LIGHT_READ, keep: "deep" };
/** Reads that may take the node long. */
export const HEAVY_READ: Read = { ...LIGHT_READ, weight: 10, timeoutMs: 20_000 };

/**
 * The methods that are forwarded. The relay answers these itself, so they are not listed:
 * eth_sendRawTransaction, eth_getTransactionCount, eth_getTransactionByHash, eth_callMany,
 * eth_callBundle, mev_simBundle. https://ethereum.github.io/execution-apis/
 */
export const READS: ReadonlyMap<string, Read> = new Map(
	Object.entries({
		eth_chainId: ALWAYS,
		eth_protocolVersion: LIGHT_READ,
		eth_syncing: LIGHT_READ,
		eth_config: LIGHT_READ,
		eth_capabilities: LIGHT_READ,
		eth_blockNumber: LIGHT_READ,
		eth_gasPrice: LIGHT_READ,
		eth_baseFee: LIGHT_READ,
		eth_maxPriorityFeePerGas: LIGHT_READ,
		eth_feeHistory: LIGHT_READ,
		eth_blobBaseFee: LIGHT_READ,

		eth_call: HEAVY_READ,
		eth_estimateGas: HEAVY_READ,
		eth_createAccessList: HEAVY_READ,
		eth_simulateV1: HEAVY_READ,

		eth_getBalance: LIGHT_READ,
		eth_getCode: LIGHT_READ,
		eth_getStorageAt: LIGHT_READ,
		eth_getStorageValues: LIGHT_READ,
		eth_getProof: LIGHT_READ,

		eth_getBlockByHash: FOUND,
		eth_getBlockByNumber: DEEP,
		eth_getBlockTransactionCountByHash: FOUND,
		eth_getBlockTransactionCountByNumber: LIGHT_READ,
		eth_getBlockReceipts: LIGHT_READ,
		eth_getUncleByBlockHashAndIndex: FOUND,
		eth_getUncleByBlockNumberAndIndex: LIGHT_READ,
		eth_getUncleCountByBlockHash: FOUND,
		eth_getUncleCountByBlockNumber: LIGHT_READ,

		eth_getTransactionByBlockHashAndIndex: FOUND,
		eth_getTransactionByBlockNumberAndIndex: LIGHT_READ,
		eth_getTransactionReceipt: DEEP,
		// Finds public transactions only: private ones never reach the node's mempool.
		eth_getRawTransactionByHash: LIGHT_READ,
		eth_getRawTransactionByBlockHashAndIndex: FOUND,
		eth_getRawTransactionByBlockNumberAndIndex: LIGHT_READ,
		eth_getLogs: HEAVY_READ,

		net_version: ALWAYS,
		net_listening: LIGHT_READ,
		net_peerCount: LIGHT_READ,
		web3_clientVersion: LIGHT_READ,
		web3_sha3: LIGHT_READ,
	}),
);

/**
 * The calls that have a sender. The value tells whether a call without a block means the pending
 * block.
 */
const CALLS: ReadonlyMap<string, boolean> = new Map([
	["eth_call", false],
	["eth_estimateGas", true],
	["eth_createAccessList", false],
]);

/**
 * Whether the call is about the pending block, in which the relay counts the client's own private
 * transactions. Clients name no block by omitting it or by null.
 */
export function asksPending(method: string, [, block]: readonly unknown[]): boolean {
	const byDefault = CALLS.get(method);
	return byDefault !== undefined && (block == null ? byDefault : block === "pending");
}
