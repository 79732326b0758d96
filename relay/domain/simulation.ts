// What a simulation answers: passes in the next block, or why not; and the closed list of reasons. Pure.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { AccountState, NextBlock } from "./chain.ts";

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
			 * priority fees are not part of it. Null: it was not asked for, or could not be told.
			 */
			readonly paid: bigint | null;
	  }
	| { readonly ok: false; readonly error: SimulationError };

/** Who goes first where simulations wait: new arrivals, those that are checked again, bids, those that failed. */
export type SimulationPriority = "new" | "again" | "bid" | "held";

/** The block a simulation runs in: the next one, or one that is further ahead. */
export interface BlockContext extends NextBlock {
	/** Number of the state's block (the head). */
	readonly stateBlock: number;
	readonly feeRecipient: string;
}

/** The block `number`, which is the next one unless said, on the state of today. */
export function blockContext(
	next: NextBlock,
	feeRecipient: string,
	number = next.number,
	slotSeconds = 0,
): BlockContext {
	const timestamp = next.timestamp + (number - next.number) * slotSeconds;
	return { ...next, number, timestamp, stateBlock: next.number - 1, feeRecipient };
}

/** An account in the state that a block builds on, before any of its transactions. */
export type SimulatedAccount = Pick<AccountState, "nonce" | "balance">;

/**
 * Transactions of any senders, to be run one after another in `block` with nothing between: a sender's chain of
 * nonces, one with a backrun behind it, a searcher's plain bundle.
 */
export interface SimulationRequest {
	readonly block: BlockContext;
	/** Who it is done for, as `clientOf` names it: what simulations cost is shared by client. */
	readonly client: string;
	readonly priority: SimulationPriority;
	/** Where it is aborted before its turn it is not run: nobody wants to know any more. */
	readonly signal?: AbortSignal;
	readonly transactions: readonly DecodedTransaction[];
	/** Every sender's, by its lower-case address. */
	readonly accounts: ReadonlyMap<string, SimulatedAccount>;
	/** Hashes of those that may fail: what stands behind them is run all the same. Absent: none may. */
	readonly mayFail?: ReadonlySet<string>;
	/** Whether the last one's `paid` is wanted. */
	readonly measured?: boolean;
	/** Whether those for which the block has no gas left may be run in the block after it, where they would go. */
	readonly mayWait?: boolean;
}
