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

/** Those that say that it was run and failed; with all others but NODE_UNAVAILABLE it could not be in the block. */
export const EXECUTION_FAILURES: ReadonlySet<SimulationErrorCode> = new Set([
	"EXECUTION_REVERTED",
	"OUT_OF_GAS",
	"INVALID_OPCODE",
	"EXECUTION_FAILED",
]);

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
			/**
			 * Wei that the block's fee recipient got by transfers in it, internal ones included, less what it gave back;
			 * priority fees are not part of it. Null: the engine can't tell.
			 */
			readonly paid: bigint | null;
	  }
	| { readonly ok: false; readonly error: SimulationError };

/** Who goes first where simulations wait: new arrivals, those that are checked again, bids, those that failed. */
export type SimulationPriority = "new" | "again" | "bid" | "held";

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
	/** A transaction to be run right behind the chain: it has the last outcome. Its sender may be the chain's too. */
	readonly backrun?: SimulatedBackrun;
}

/** A backrun and its sender's account in the state that the block builds on. */
export interface SimulatedBackrun {
	readonly tx: DecodedTransaction;
	/** Of the account, before anything of the chain. */
	readonly nonce: bigint;
	/** Wei. */
	readonly balance: bigint;
}
