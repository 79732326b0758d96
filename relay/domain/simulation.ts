// What a simulation answers: passes in the next block, or why not. Pure types, and the closed list of reasons.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";

/** Why a simulation failed; the whole list. */
export const SIMULATION_ERROR_CODES = [
	"EXECUTION_REVERTED",
	"OUT_OF_GAS",
	"INVALID_OPCODE",
	"EXECUTION_FAILED",
	"NONCE_TOO_LOW",
	"NONCE_GAP",
	"INSUFFICIENT_FUNDS",
	"FEE_CAP_TOO_LOW",
	"BLOB_FEE_CAP_TOO_LOW",
	"GAS_LIMIT_TOO_HIGH",
	"NODE_UNAVAILABLE",
] as const;

export type SimulationErrorCode = (typeof SIMULATION_ERROR_CODES)[number];

/** What the status record shows as `simulationError`. */
export interface SimulationError {
	readonly code: SimulationErrorCode;
	/** For people: the decoded revert reason where there is one. */
	readonly message: string;
	/** The revert data as 0x hex, where there is any. */
	readonly data?: string;
}

/** How one transaction fared. */
export type SimulationOutcome =
	| {
			readonly ok: true;
			readonly gasUsed: bigint;
			/** Whether it emitted an event; synthetic logs of Ether transfers do not count. Null: the engine can't tell. */
			readonly emitsEvents: boolean | null;
	  }
	| { readonly ok: false; readonly error: SimulationError };

/** Who goes first where simulations wait: new arrivals, then those that are checked again, then those that failed. */
export type SimulationPriority = "new" | "again" | "held";

/** The block a simulation runs in. */
export interface BlockContext {
	/** Number of the state's block (the head). */
	readonly stateBlock: number;
	/** Number of the simulated block: head + 1. */
	readonly number: number;
	/** Seconds since the epoch. */
	readonly timestamp: number;
	/** Wei per gas. */
	readonly baseFee: bigint;
	/** Wei per blob gas. */
	readonly blobBaseFee: bigint;
	readonly gasLimit: bigint;
	readonly feeRecipient: string;
}

/** One sender's transactions in nonce order, to be run one after another in `block`. */
export interface SimulationRequest {
	readonly block: BlockContext;
	readonly sender: string;
	/** The sender's nonce and balance (wei) in the state that `block` builds on. */
	readonly nonce: bigint;
	readonly balance: bigint;
	readonly chain: readonly DecodedTransaction[];
}
