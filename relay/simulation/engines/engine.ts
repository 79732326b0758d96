// What an engine is: one way to let the node run a sender's transactions in the next block. Pure types. What goes in
// is the chain and the block, what comes out is how each transaction fared; the relay's own rules are not its matter.

import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import type { RpcAnswer, RpcCall } from "../../../shared/jsonrpc/client.ts";
import type { BlockContext, SimulationError, SimulationOutcome } from "../../domain/simulation.ts";

export type EngineName = "eth_simulateV1" | "debug_traceCall" | "eth_call";

/** The node, as far as simulations need it. Throws an UpstreamError where no verdict was had in `timeoutMs`. */
export interface SimulationNode {
	call(call: RpcCall, timeoutMs: number): Promise<RpcAnswer>;
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
	/** Of one sender, but for the last one, which may be another's. */
	readonly chain: readonly DecodedTransaction[];
	/** Whether it matters what the last one pays: then it must be exact, and nothing its contracts do may forge it. */
	readonly measured: boolean;
	readonly overrides: StateOverrides;
}

/** What the node said to one call, sorted. */
export type NodeAnswer =
	| { readonly kind: "result"; readonly value: unknown }
	/** Its verdict about the transaction. */
	| { readonly kind: "failed"; readonly error: SimulationError }
	/** It does not serve the method, or not with these params. */
	| { readonly kind: "refused" }
	/** No verdict: it did not answer, or could not. */
	| { readonly kind: "fault" };

/** Asks the node one thing within what is left of the simulation's deadline; never throws for a node's failure. */
export type Ask = (call: RpcCall) => Promise<NodeAnswer>;

/** How one transaction fared. */
export interface Step {
	readonly outcome: SimulationOutcome;
	/** The next transaction's sender's wei behind it; null: the engine can't tell, it did not change, or nothing follows. */
	readonly balance: bigint | null;
}

export type EngineAnswer =
	| {
			readonly kind: "ran";
			/** From the front; the last one is the first that failed, if one did. */
			readonly steps: readonly Step[];
			/** The last one failed, and the node did not say why: another engine may know. */
			readonly vague: boolean;
	  }
	/** This engine does not serve such a chain on this node: the next one may. */
	| { readonly kind: "refused" };

/** One way to simulate. */
export interface Engine {
	readonly name: EngineName;
	/** Whether it runs more than one transaction; if not, it answers for the first one alone. */
	readonly sequences: boolean;
	/** Whether it tells if a transaction emitted an event. */
	readonly events: boolean;
	/** A cheap call that succeeds where the engine is served. */
	readonly probe: RpcCall;
	/** Whether `result` is what the probe answers where overrides are honoured. */
	probed(result: unknown): boolean;
	run(request: EngineRequest, ask: Ask): Promise<EngineAnswer>;
}

/** What a simulation without a verdict answers. */
export const NO_VERDICT: Step = {
	outcome: { ok: false, error: { code: "NODE_UNAVAILABLE", message: "the node gave no verdict" } },
	balance: null,
};
