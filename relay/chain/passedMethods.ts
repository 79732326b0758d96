// The methods that are proxied to the node, and how. All others are refused: signing, mining, accounts, admin_,
// debug_, txpool_, and filters and subscriptions, which live in one node's memory and do not work behind a load
// balancer.

/**
 * How long an answer is good. `once`: it is asked for each time. `always`: as long as the process. `found`: it is of
 * a block named by its hash and never changes once it is there. `deep`: it never changes once its block is so deep
 * that no reorganisation reaches it.
 */
export type Keep = "once" | "always" | "found" | "deep";

/** How one method is passed on. */
export interface PassedMethod {
	readonly keep: Keep;
	/** What a call weighs in the rate limit. */
	readonly weight: number;
	/** Deadline in ms; the client's whole call has 28 s. */
	readonly timeoutMs: number;
	/** It runs code: an internal error may be that code's own. */
	readonly executes: boolean;
}

const READ: PassedMethod = { keep: "once", weight: 1, timeoutMs: 10_000, executes: false };
const ALWAYS: PassedMethod = { ...READ, keep: "always" };
const FOUND: PassedMethod = { ...READ, keep: "found" };
const DEEP: PassedMethod = { ...READ, keep: "deep" };
/** The node works on these for as long as it likes. */
const HEAVY: PassedMethod = { ...READ, weight: 10, timeoutMs: 20_000 };
const EXECUTION: PassedMethod = { ...HEAVY, executes: true };

/**
 * The list. Not in it, because the relay answers them itself: eth_sendRawTransaction, eth_getTransactionCount,
 * eth_getTransactionByHash, eth_callMany. https://ethereum.github.io/execution-apis/
 */
export const PASSED_METHODS: ReadonlyMap<string, PassedMethod> = new Map(
	Object.entries({
		eth_chainId: ALWAYS,
		eth_protocolVersion: READ,
		eth_syncing: READ,
		eth_config: READ,
		eth_capabilities: READ,
		eth_blockNumber: READ,
		eth_gasPrice: READ,
		eth_baseFee: READ,
		eth_maxPriorityFeePerGas: READ,
		eth_feeHistory: READ,
		eth_blobBaseFee: READ,

		eth_call: EXECUTION,
		eth_estimateGas: EXECUTION,
		eth_createAccessList: EXECUTION,
		eth_simulateV1: EXECUTION,

		eth_getBalance: READ,
		eth_getCode: READ,
		eth_getStorageAt: READ,
		eth_getStorageValues: READ,
		eth_getProof: READ,

		eth_getBlockByHash: FOUND,
		eth_getBlockByNumber: DEEP,
		eth_getBlockTransactionCountByHash: FOUND,
		eth_getBlockTransactionCountByNumber: READ,
		eth_getBlockReceipts: READ,
		eth_getUncleByBlockHashAndIndex: FOUND,
		eth_getUncleByBlockNumberAndIndex: READ,
		eth_getUncleCountByBlockHash: FOUND,
		eth_getUncleCountByBlockNumber: READ,

		eth_getTransactionByBlockHashAndIndex: FOUND,
		eth_getTransactionByBlockNumberAndIndex: READ,
		eth_getTransactionReceipt: DEEP,
		// The node knows only what is public: what is sent here never reaches its mempool.
		eth_getRawTransactionByHash: READ,
		eth_getRawTransactionByBlockHashAndIndex: FOUND,
		eth_getRawTransactionByBlockNumberAndIndex: READ,
		eth_getLogs: HEAVY,

		net_version: ALWAYS,
		net_listening: READ,
		net_peerCount: READ,
		web3_clientVersion: READ,
		web3_sha3: READ,
	}),
);
