// A bundle of signed transactions that is ready to be run, whatever it is run by. A type alone.

import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import type { ChainRules } from "../../domain/transactionRules.ts";
import type { BaseState, CallBlock } from "./blocks.ts";
import type { SenderState } from "./transactionRules.ts";

/** Transactions in their order, the block they run in, and the state that it builds on. */
export interface SignedRun {
	readonly base: BaseState;
	readonly block: CallBlock;
	readonly txs: readonly DecodedTransaction[];
	readonly rules: ChainRules;
	/** Every sender in the state of {@link base}. */
	readonly senders: ReadonlyMap<string, SenderState>;
}
