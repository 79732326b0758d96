// Whether a block can take a signed transaction: it, the block and its sender's account at that point come in, why not
// goes out, in go-ethereum's words. Nodes check these rules differently, or not at all, when they simulate.

import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import type { AccountState } from "../../domain/chain.ts";
import type { BlockContext } from "../../domain/simulation.ts";
import { type ChainRules, firstRefusal, PROTOCOL_RULES } from "../../domain/transactionRules.ts";
import { findBlockProblem, findFundsProblem } from "../checks.ts";

/** A sender right before its transaction; wei. */
export type SenderState = Pick<AccountState, "nonce" | "balance" | "code">;

/** What is wrong with the transaction itself, whatever the state; null: nothing. */
export function findOwnProblem(tx: DecodedTransaction, rules: ChainRules): string | null {
	return firstRefusal(PROTOCOL_RULES, tx, rules)?.message ?? null;
}

/** Why `block` can't take it from a sender in `state`, its balance aside; null: it can. */
export function findNonceProblem(
	tx: DecodedTransaction,
	state: SenderState,
	block: BlockContext,
): string | null {
	// EIP-3607: a contract sends nothing.
	if (state.code === "contract") return `sender not an eoa: address ${tx.from} has code`;
	return findBlockProblem(tx, state.nonce, block)?.message ?? null;
}

/** Why the sender can't pay for it; null: it can. */
export function findBalanceProblem(tx: DecodedTransaction, balance: bigint): string | null {
	return findFundsProblem(tx, balance)?.message ?? null;
}

/** Why it does not fit behind what used `gasUsed` in `block`; null: it does. */
export function findRoomProblem(tx: DecodedTransaction, gasUsed: bigint, block: BlockContext): string | null {
	const left = block.gasLimit - gasUsed;
	return tx.gasLimit <= left
		? null
		: `gas limit reached: gas limit ${tx.gasLimit}, left in the block ${left}`;
}
