// A builder's needs of its node beside plain JSON-RPC: to try blocks that nobody sees, and to mine
// one with exactly its transactions. There is one implementation for anvil, and one for
// go-ethereum.

import type { ChainHead, MinedBlock } from "./chainRpc.ts";

/** A transaction to try or mine. */
export interface Pushed {
	readonly raw: string;
	/** Lower-case. */
	readonly hash: string;
}

/** A transaction's outcome in a trial. */
export interface TriedTransaction {
	readonly reverted: boolean;
	readonly gasUsed: bigint;
	/** Wei that it paid to the coinbase: priority fee and transfers. */
	readonly gain: bigint;
}

/**
 * The outcome of a trial block: its transactions by hash. Missing ones were refused, or could not
 * be mined.
 */
export type TriedBlock = ReadonlyMap<string, TriedTransaction>;

/** The terms of the block on a head. */
export interface BlockTerms {
	readonly head: ChainHead;
	readonly coinbase: string;
	/** Unix seconds. */
	readonly timestamp: number;
}

/** A block to be mined. */
export interface BlockToMine extends BlockTerms {
	/** The block holds these, in order, and after them those of the public pool. */
	readonly transactions: readonly Pushed[];
}

/**
 * The end of mining. `moved`: the head or its terms are not those that were given. `refused`: the
 * chain refuses some transactions (hashes). In both cases nothing was mined.
 */
export type MiningOutcome =
	| { readonly outcome: "mined"; readonly block: MinedBlock; readonly publicTransactions: readonly string[] }
	| { readonly outcome: "moved" }
	| { readonly outcome: "refused"; readonly hashes: readonly string[] };

/** Serves one caller at a time. */
export interface BuildingNode {
	/**
	 * The most gas of a trial block, as a multiple of the chain's: with more room more orders are
	 * measured at once.
	 */
	readonly trialRoom: bigint;
	readHead(): Promise<ChainHead>;
	/**
	 * Comes before the trials on a head: they will touch these `addresses`, and hold blobs or not.
	 */
	prepare(terms: BlockTerms, addresses: readonly string[], hasBlobs: boolean): Promise<void>;
	/** Executes `transactions` in a block on the head that is thrown away. */
	tryBlock(terms: BlockTerms, transactions: readonly Pushed[], gasLimit: bigint): Promise<TriedBlock>;
	/** Mines one block with all of its transactions, or none. */
	mine(block: BlockToMine): Promise<MiningOutcome>;
	/** Sees that the account has this much. Throws where that cannot be. */
	fund(address: string, wei: bigint): Promise<void>;
	/** Ends what it has started; not the chain's node. */
	stop(): Promise<void>;
}
