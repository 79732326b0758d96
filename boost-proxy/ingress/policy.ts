// What is done with a call, by its method. Reads may be answered by any upstream; what is ours to understand is listed one
// by one; everything else is for our relay alone.

import { RAW_PARAMS_SIZE, readParamsSize } from "../../shared/jsonrpc/method.ts";

/**
 * `submission`, `sync`, `cancel`: by delivery state. `nonce`, `byHash`: merged over all that may know. `read`: of the
 * chain, any upstream's. `relay`: our relay's alone, never sent to a third party.
 */
export type MethodKind = "submission" | "sync" | "cancel" | "nonce" | "byHash" | "read" | "relay";

const OWN: ReadonlyMap<string, MethodKind> = new Map<string, MethodKind>([
	["eth_sendRawTransaction", "submission"],
	["eth_sendRawTransactionSync", "sync"],
	["eth_cancelTransaction", "cancel"],
	["eth_getTransactionCount", "nonce"],
	["eth_getTransactionByHash", "byHash"],
]);

/** What a call weighs in the rate limit. */
const LIGHT = 1;
const HEAVY = 10;

/** The reads that our relay passes to its node, with their weight. https://ethereum.github.io/execution-apis/ */
export const READS: ReadonlyMap<string, number> = new Map(
	Object.entries({
		eth_chainId: LIGHT,
		eth_protocolVersion: LIGHT,
		eth_syncing: LIGHT,
		eth_config: LIGHT,
		eth_capabilities: LIGHT,
		eth_blockNumber: LIGHT,
		eth_gasPrice: LIGHT,
		eth_baseFee: LIGHT,
		eth_maxPriorityFeePerGas: LIGHT,
		eth_feeHistory: LIGHT,
		eth_blobBaseFee: LIGHT,
		eth_call: HEAVY,
		eth_estimateGas: HEAVY,
		eth_createAccessList: HEAVY,
		eth_simulateV1: HEAVY,
		eth_getBalance: LIGHT,
		eth_getCode: LIGHT,
		eth_getStorageAt: LIGHT,
		eth_getStorageValues: LIGHT,
		eth_getProof: LIGHT,
		eth_getBlockByHash: LIGHT,
		eth_getBlockByNumber: LIGHT,
		eth_getBlockTransactionCountByHash: LIGHT,
		eth_getBlockTransactionCountByNumber: LIGHT,
		eth_getBlockReceipts: LIGHT,
		eth_getUncleByBlockHashAndIndex: LIGHT,
		eth_getUncleByBlockNumberAndIndex: LIGHT,
		eth_getUncleCountByBlockHash: LIGHT,
		eth_getUncleCountByBlockNumber: LIGHT,
		eth_getTransactionByBlockHashAndIndex: LIGHT,
		eth_getTransactionByBlockNumberAndIndex: LIGHT,
		eth_getTransactionReceipt: LIGHT,
		eth_getRawTransactionByHash: LIGHT,
		eth_getRawTransactionByBlockHashAndIndex: LIGHT,
		eth_getRawTransactionByBlockNumberAndIndex: LIGHT,
		eth_getLogs: HEAVY,
		net_version: LIGHT,
		net_listening: LIGHT,
		net_peerCount: LIGHT,
		web3_clientVersion: LIGHT,
		web3_sha3: LIGHT,
	}),
);

/** What only our relay serves, by weight; names that are not here it refuses itself. */
export const RELAY_ONLY: ReadonlyMap<string, number> = new Map(
	Object.entries({
		eth_sendBundle: LIGHT,
		eth_cancelBundle: LIGHT,
		mev_sendBundle: LIGHT,
		eth_callMany: HEAVY,
		eth_sendPrivateTransaction: LIGHT,
		eth_subscribe: LIGHT,
		eth_unsubscribe: LIGHT,
		service_client: LIGHT,
		service_transactionStatuses: HEAVY,
		"rpc.discover": LIGHT,
	}),
);

/** What is done with a call of `method`. */
export function kindOf(method: string): MethodKind {
	return OWN.get(method) ?? (READS.has(method) ? "read" : "relay");
}

/** What a call of `method` weighs in the rate limit. */
export function weightOf(method: string): number {
	return READS.get(method) ?? RELAY_ONLY.get(method) ?? LIGHT;
}

/** Characters that the parameters of a call of `method` have as JSON at most; the relay judges what is for it alone. */
export function maxParamsSizeOf(method: string): number {
	const weight = READS.get(method);
	return weight === undefined ? RAW_PARAMS_SIZE : readParamsSize(weight);
}

/** A name for labels: one that is known, or "unknown". */
export function labelOf(method: string): string {
	return OWN.has(method) || READS.has(method) || RELAY_ONLY.has(method) ? method : "unknown";
}

/** Every name that {@link labelOf} can answer. */
export const METHOD_LABELS: readonly string[] = [
	...OWN.keys(),
	...READS.keys(),
	...RELAY_ONLY.keys(),
	"unknown",
];
