// Types and limits of `eth_callMany`: a bundle of signed transactions, or bundles of unsigned
// calls, and their results.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { AccessListEntry } from "../../shared/ethereum/transactionFields.ts";
import type { BlockTag } from "../../shared/jsonrpc/method.ts";

/**
 * Most transactions of a bundle, or calls of all bundles together, since each costs the node an
 * execution.
 */
export const MAX_CALLS = 100;
/** Most bundles of calls; each runs in its own block. */
export const MAX_CALL_BUNDLES = 16;
/** Most blocks from the state's block to the simulated one. */
export const MAX_BLOCKS_ABOVE = 30;

/**
 * A block in a request. `pending` means `latest`, since the node's pending block contains no
 * private transactions.
 */
export type NamedBlock = bigint | BlockTag;

/**
 * Shape A: signed transactions, run one after another in one block on the state after another
 * block.
 */
export interface TransactionsRequest {
	/** The client that is charged for the calls. */
	readonly client: string;
	/** The transactions; a string is the hash of one that is disclosed to searchers. Never empty. */
	readonly txs: readonly (DecodedTransaction | string)[];
	/** Null: the one after the state's block. */
	readonly blockNumber: bigint | null;
	readonly stateBlock: NamedBlock;
	/** Seconds since the epoch; null: the state block's time plus a slot for each block. */
	readonly timestamp: number | null;
	/** The client's names for these three. Default: as in `eth_callMany`. */
	readonly names?: BlockNames;
}

/** The names of the parameters that set the block in which transactions run. */
export interface BlockNames {
	readonly stateBlock: string;
	readonly blockNumber: string;
	readonly timestamp: string;
}

/** An unsigned call; null leaves a field to the node, as in `eth_call`. Amounts in wei. */
export interface UnsignedCall {
	/** Lower-case; default: the zero address. */
	readonly from: string;
	/** Null for a creation. */
	readonly to: string | null;
	/** Null: the block's gas limit. */
	readonly gas: bigint | null;
	readonly gasPrice: bigint | null;
	readonly maxFeePerGas: bigint | null;
	readonly maxPriorityFeePerGas: bigint | null;
	readonly value: bigint;
	/** 0x hex. */
	readonly data: string;
	readonly accessList: readonly AccessListEntry[];
}

/** Block fields that a bundle overrides. */
export interface CallBlockOverride {
	readonly blockNumber?: number | undefined;
	/** Seconds since the epoch. */
	readonly timestamp?: number | undefined;
	/** Lower-case. */
	readonly coinbase?: string | undefined;
	readonly gasLimit?: bigint | undefined;
	/** Wei per gas. */
	readonly baseFee?: bigint | undefined;
}

/** Calls of one block. */
export interface CallBundle {
	readonly transactions: readonly UnsignedCall[];
	readonly blockOverride: CallBlockOverride;
}

/**
 * Shape B: unsigned calls, run one after another in a block of the chain, behind some or all of its
 * transactions.
 */
export interface CallsRequest {
	/** The client that is charged for the calls. */
	readonly client: string;
	/** Never empty; each further one runs one block later. */
	readonly bundles: readonly CallBundle[];
	readonly block: NamedBlock;
	/** How many of the block's transactions come before; null: all. */
	readonly transactionIndex: number | null;
}

/** The result of one call. */
export interface CallResult {
	/**
	 * Hex digits without 0x: return data, a creation's code, or revert data; "" if it could not
	 * run.
	 */
	readonly value: string;
	/** Why it failed; absent if it passed. */
	readonly error?: string;
}

/** The result of one transaction of a bundle. */
export interface BundleResult extends CallResult {
	readonly tx: DecodedTransaction;
	/** 0 if it could not run. */
	readonly gasUsed: bigint;
	/** Change of the fee recipient's balance in wei, priority fees included. */
	readonly coinbaseDiff: bigint;
	/** The priority fees in it, in wei. */
	readonly gasFees: bigint;
}

/** The result of a bundle. */
export interface BundleRun {
	/** Number of the block whose state it ran on. */
	readonly stateBlock: number;
	readonly results: readonly BundleResult[];
}

/** The results of each bundle. */
export type CallResults = readonly (readonly CallResult[])[];

/** Runs clients' calls on the node. Keeps nothing, and sends no signature to the node. */
export interface CallMany {
	/**
	 * Throws RpcError. `invalidParams`: an impossible block. `rejected`: a hash that is not
	 * disclosed, or a state that the node does not have. `limit`: too many calls are running (of
	 * the client or in all). `internal`: the node is unavailable.
	 */
	runTransactions(request: TransactionsRequest): Promise<CallResults>;
	/**
	 * The same, with the gas that each transaction used and the amount that it paid. Throws like
	 * {@link runTransactions}.
	 */
	runBundle(request: TransactionsRequest): Promise<BundleRun>;
	/** Throws like {@link runTransactions}; `rejected` also if the node can't replay the block. */
	runCalls(request: CallsRequest): Promise<CallResults>;
}
