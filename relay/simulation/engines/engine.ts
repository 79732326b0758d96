// The types that both ways to run transactions on the node share: `eth_simulateV1` and
// `debug_traceCall`.

import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import type { RpcAnswer, RpcCall } from "../../../shared/jsonrpc/client.ts";
import type { BlockContext, SimulatedAccount, SimulationError } from "../../domain/simulation.ts";

/** The node methods that run transactions, the better one first. */
export const ENGINE_NAMES = ["eth_simulateV1", "debug_traceCall"] as const;

/** The node. Both methods throw an UpstreamError if it does not answer within `timeoutMs`. */
export interface SimulationNode {
	call(call: RpcCall, timeoutMs: number): Promise<RpcAnswer>;
	batch(calls: readonly RpcCall[], timeoutMs: number): Promise<readonly RpcAnswer[]>;
}

/** State overrides for the node, by lower-case address. */
export type StateOverrides = Readonly<Record<string, AccountOverride>>;

export interface AccountOverride {
	readonly balance?: string;
	readonly nonce?: string;
	readonly code?: string;
	/** Changed storage slots; 32 bytes of hex each. */
	readonly stateDiff?: Readonly<Record<string, string>>;
}

/** The block as the node runs it. The node knows its fork's rules itself. */
export type EngineBlock = Omit<BlockContext, "fork">;

/** A chain of transactions that passed the relay's own checks. */
export interface EngineRequest {
	readonly block: EngineBlock;
	/** 32 bytes of hex each: the published values, or random ones while these are not known. */
	readonly prevRandao: string;
	/** Null if the node does not accept it. */
	readonly beaconRoot: string | null;
	readonly chain: readonly DecodedTransaction[];
	/** The state of all senders before the chain. */
	readonly accounts: ReadonlyMap<string, SimulatedAccount>;
	/** Hashes of transactions that may fail. */
	readonly mayFail: ReadonlySet<string>;
	/** Whether the last transaction's payment is needed. */
	readonly measured: boolean;
	/** Whether transactions that do not fit into the block may run in the next one. */
	readonly mayWait: boolean;
}

/** The limits of the node for one request. */
export interface RequestLimits {
	/** Gas of all transactions of one request together. */
	readonly gasCap: bigint;
	/** Gas limit of a block. Absent: no limit. */
	readonly maxBlockGas?: bigint | undefined;
}

/** The rest of a request, from one of its transactions on. */
export interface Part extends EngineRequest {
	/** The changes of earlier transactions, over the block's state. */
	readonly state: StateOverrides;
}

/** A classified answer of the node. */
export type NodeAnswer =
	| { readonly kind: "result"; readonly value: unknown }
	/** The transaction failed. */
	| { readonly kind: "failed"; readonly error: SimulationError }
	/**
	 * The node does not support the request: the method, these params, or a request of this size.
	 * No verdict on the transaction.
	 */
	| { readonly kind: "unsupported" }
	/** No verdict: the node failed; `isMissing` if it does not have the requested block yet. */
	| { readonly kind: "fault"; readonly isMissing?: boolean };

/**
 * Asks the node in one request within the simulation's deadline; a node's failure is an answer,
 * never thrown.
 */
export type Ask = (calls: readonly RpcCall[]) => Promise<readonly NodeAnswer[]>;
