// Types and limits of `eth_callMany`: a bundle of signed transactions, or bundles of unsigned calls, and what each
// returned.

import type { AccessListEntry } from "../../shared/ethereum/rlp.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { BlockTag } from "../../shared/jsonrpc/method.ts";

/** Transactions of a bundle, or calls of all bundles together, at most: each costs the node an execution. */
export const MAX_CALLS = 100;
/** Bundles of calls at most; each is a block of its own. */
export const MAX_CALL_BUNDLES = 16;
/** How far above the state's block the simulated one may be. */
export const MAX_BLOCKS_ABOVE = 30;

/** A block as a client names it. `pending` is taken for `latest`: the node's own pending block is nobody's. */
export type NamedBlock = bigint | BlockTag;

/** Shape A: signed transactions, run one after another in one block on the state after another block. */
export interface TransactionsRequest {
	/** Who asks, for its share of what may be under way. */
	readonly client: string;
	/** The transactions; a string is the hash of one that is shared with searchers. Never empty. */
	readonly txs: readonly (DecodedTransaction | string)[];
	readonly blockNumber: bigint;
	readonly stateBlock: NamedBlock;
	/** Seconds since the epoch; null: the state block's and a slot for each block. */
	readonly timestamp: number | null;
}

/** One unsigned call; what is null is left to the node as in `eth_call`. Amounts in wei. */
export interface UnsignedCall {
	/** Lower-case; the zero address unless said. */
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

/** What a bundle changes of its block. */
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

/** Shape B: unsigned calls, run one after another in a block of the chain, behind some or all of its transactions. */
export interface CallsRequest {
	/** Who asks, for its share of what may be under way. */
	readonly client: string;
	/** Never empty; each further one runs one block later. */
	readonly bundles: readonly CallBundle[];
	readonly block: NamedBlock;
	/** How many of the block's transactions come before; null: all. */
	readonly transactionIndex: number | null;
}

/** How one of them fared. */
export interface CallResult {
	/** Hex digits without 0x: return data, a creation's code, or what it reverted with; "" where it could not run. */
	readonly value: string;
	/** Why it failed, in our own words; absent where it passed. */
	readonly error?: string;
}

/** How one transaction of a bundle fared. */
export interface BundleResult extends CallResult {
	readonly tx: DecodedTransaction;
	/** 0 where it could not run. */
	readonly gasUsed: bigint;
	/** Wei that the block's fee recipient has more behind it, priority fees included; negative where it has less. */
	readonly coinbaseDiff: bigint;
	/** Wei of that which are priority fees. */
	readonly gasFees: bigint;
}

/** How a bundle fared. */
export interface BundleRun {
	/** Number of the block whose state it ran on. */
	readonly stateBlock: number;
	readonly results: readonly BundleResult[];
}

/** One inner list for each bundle. */
export type CallResults = readonly (readonly CallResult[])[];

/** Runs calls of its clients on the node. Nothing is kept, and no signature leaves. */
export interface CallMany {
	/**
	 * Throws RpcError: `invalidParams` where a block can't be meant, `rejected` for a hash that is not shared or a
	 * state that the node does not have, `limit` where too many are under way, of its client or in all, `internal` where
	 * the node is out.
	 */
	runTransactions(request: TransactionsRequest): Promise<CallResults>;
	/** The same with what each transaction used and paid. Throws like {@link runTransactions}. */
	runBundle(request: TransactionsRequest): Promise<BundleRun>;
	/** Throws like {@link runTransactions}; `rejected` also where the node can't replay the block. */
	runCalls(request: CallsRequest): Promise<CallResults>;
}
