// What the ways to let the node run transactions have in common: what they are given, and how they ask.

import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import type { RpcAnswer, RpcCall } from "../../../shared/jsonrpc/client.ts";
import type { BlockContext, SimulatedAccount, SimulationError } from "../../domain/simulation.ts";

/** Methods of the node by which transactions are run, the better one first. */
export const ENGINE_NAMES = ["eth_simulateV1", "debug_traceCall"] as const;

/** The node, as far as simulations need it. Both throw an UpstreamError where no verdict was had in `timeoutMs`. */
export interface SimulationNode {
	call(call: RpcCall, timeoutMs: number): Promise<RpcAnswer>;
	batch(calls: readonly RpcCall[], timeoutMs: number): Promise<readonly RpcAnswer[]>;
}

/** What is assumed of accounts instead of what the state says, by lower-case address; as nodes take it. */
export type StateOverrides = Readonly<Record<string, AccountOverride>>;

export interface AccountOverride {
	readonly balance?: string;
	readonly nonce?: string;
	readonly code?: string;
	/** Some of its storage, by slot; 32 bytes of hex each. */
	readonly stateDiff?: Readonly<Record<string, string>>;
}

/** Transactions that the relay's own rules let run, one after another; never empty. */
export interface EngineRequest {
	readonly block: BlockContext;
	/** 32 bytes of hex each, drawn for this request alone: nobody knows the block's own beforehand. */
	readonly prevRandao: string;
	readonly beaconRoot: string;
	readonly chain: readonly DecodedTransaction[];
	/** All senders', before any of the request's transactions. */
	readonly accounts: ReadonlyMap<string, SimulatedAccount>;
	/** Hashes of those that may fail. */
	readonly mayFail: ReadonlySet<string>;
	/** Whether it matters what the last one pays. */
	readonly measured: boolean;
	/** Whether what does not fit into the block may be run in the next one. */
	readonly mayWait: boolean;
}

/** A request from one of its transactions on. */
export interface Part extends EngineRequest {
	/** What those before left behind, as far as it differs from the block's state. */
	readonly state: StateOverrides;
}

/** What the node said to one call, sorted. */
export type NodeAnswer =
	| { readonly kind: "result"; readonly value: unknown }
	/** Its verdict about the transaction. */
	| { readonly kind: "failed"; readonly error: SimulationError }
	/** It does not serve the method, or not with these params. */
	| { readonly kind: "refused" }
	/** No verdict: it did not answer, or could not; perhaps since it does not have the block that was named yet. */
	| { readonly kind: "fault"; readonly isMissing?: boolean };

/** Asks the node, in one request, within what is left of the simulation's deadline; never throws for a node's failure. */
export type Ask = (calls: readonly RpcCall[]) => Promise<readonly NodeAnswer[]>;
