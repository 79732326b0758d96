// Types of simulations: requests, outcomes and error codes. Pure.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { type AccountState, type NextBlock, timestampBehind } from "./chain.ts";

/** All reasons why a simulation fails. */
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
	"FORK_RULES",
	"NODE_UNAVAILABLE",
] as const;

export type SimulationErrorCode = (typeof SIMULATION_ERROR_CODES)[number];

/**
 * Failures during execution. All others but NODE_UNAVAILABLE mean that the transaction is invalid
 * in the block.
 */
export const EXECUTION_FAILURES: ReadonlySet<SimulationErrorCode> = new Set([
	"EXECUTION_REVERTED",
	"OUT_OF_GAS",
	"INVALID_OPCODE",
	"EXECUTION_FAILED",
]);

/** `simulationError` of the status record. */
export interface SimulationError {
	readonly code: SimulationErrorCode;
	/** For people: the decoded revert reason if there is one. */
	readonly message: string;
	/** The revert data as 0x hex, if any. */
	readonly data?: string;
}

/** The outcome of one transaction. */
export type SimulationOutcome =
	| {
			readonly ok: true;
			readonly gasUsed: bigint;
			/**
			 * Whether it emitted an event, not counting synthetic logs of Ether transfers. Null: unknown.
			 */
			readonly emitsEvents: boolean | null;
			/**
			 * Net wei that the fee recipient got by transfers, internal ones included, without priority
			 * fees. Null: not requested, or unknown.
			 */
			readonly paid: bigint | null;
	  }
	| {
			readonly ok: false;
			readonly error: SimulationError;
			/** With NODE_UNAVAILABLE: the node can't simulate it. */
			readonly isImpossible?: boolean;
			/**
			 * With `isImpossible`: delay in ms before a retry, since that may pass. Absent: no
			 * retry for the same block.
			 */
			readonly againMs?: number;
	  };

/** Whether the node can't simulate it, which is no verdict on the transaction. */
export function isImpossible(outcome: SimulationOutcome | undefined): boolean {
	return outcome?.ok === false && outcome.isImpossible === true;
}

/**
 * Delay in ms before the node is asked again for the same block; null: not at all. It is `faultMs`
 * if the node failed to answer.
 */
export function askAgainMs(outcome: SimulationOutcome | undefined, faultMs: number): number | null {
	if (outcome?.ok !== false || outcome.error.code !== "NODE_UNAVAILABLE") return null;
	return outcome.isImpossible ? (outcome.againMs ?? null) : faultMs;
}

/** The order in the queue. */
export type SimulationPriority =
	/** A submission or another change by a user. */
	| "new"
	/** A transaction that has passed before, checked again since it must pass in each block. */
	| "again"
	| "bid"
	/** A transaction that failed before or could not be sent. */
	| "held";

/** The block in which a simulation runs: the next one or a later one. */
export interface BlockContext extends NextBlock {
	/** Number of the head, on whose state it runs. */
	readonly stateBlock: number;
	readonly feeRecipient: string;
}

/** The block `number` (default: the next one), on the current state. */
export function blockContext(next: NextBlock, feeRecipient: string, number = next.number): BlockContext {
	const stateBlock = next.number - 1;
	if (number === next.number) return { ...next, stateBlock, feeRecipient };
	// Nothing is published for a later block.
	const { published: _, ...rest } = next;
	const timestamp = timestampBehind(next, number - next.number);
	return { ...rest, number, timestamp, stateBlock, feeRecipient };
}

/** An account in the state that a block builds on, before any of its transactions. */
export type SimulatedAccount = Pick<AccountState, "nonce" | "balance">;

/**
 * Transactions to run in order in `block`: a sender's chain of nonces, such a chain with a backrun
 * behind it, or a plain bundle.
 */
export interface SimulationRequest {
	readonly block: BlockContext;
	/** The client (see clientOf) that is charged for the simulation. */
	readonly client: string;
	readonly priority: SimulationPriority;
	/** If it is aborted while the simulation is queued, the simulation is not run. */
	readonly signal?: AbortSignal;
	readonly transactions: readonly DecodedTransaction[];
	/** The senders' accounts by lower-case address. */
	readonly accounts: ReadonlyMap<string, SimulatedAccount>;
	/** Hashes of transactions that may fail without stopping the run. Absent: none may. */
	readonly mayFail?: ReadonlySet<string>;
	/** Whether `paid` of the last transaction is needed. */
	readonly measured?: boolean;
	/** Whether transactions that exceed the block's gas limit may run in the following block. */
	readonly mayWait?: boolean;
}
