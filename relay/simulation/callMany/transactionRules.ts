// Whether a block can take a signed transaction: it, the block and its sender's account at that point come in, why not
// goes out, in go-ethereum's words. Nodes check these rules differently, or not at all, when they simulate.

import { floorDataGas, intrinsicGas, MAX_INITCODE_BYTES } from "../../../shared/ethereum/intrinsicGas.ts";
import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import type { AccountState } from "../../domain/chain.ts";
import type { BlockContext } from "../../domain/simulation.ts";
import { findBlockProblem, findFundsProblem } from "../checks.ts";

/** What the chain demands of every transaction. */
export interface TransactionRules {
	readonly chainId: bigint;
	/** EIP-7825 gas limit of a transaction, or null where the chain has none. */
	readonly maxTxGas: bigint | null;
}

/** A sender right before its transaction; wei. */
export type SenderState = Pick<AccountState, "nonce" | "balance" | "code">;

/** A nonce that can't be used: the account could not count past it (EIP-2681). */
const MAX_NONCE = 2n ** 64n - 1n;

/** What is wrong with the transaction itself, whatever the state; null: nothing. */
export function findOwnProblem(tx: DecodedTransaction, rules: TransactionRules): string | null {
	if (tx.chainId !== rules.chainId) {
		return `invalid chain id for signer: have ${tx.chainId} want ${rules.chainId}`;
	}
	if (tx.to === null && tx.data.length > MAX_INITCODE_BYTES) {
		return `max initcode size exceeded: code size ${tx.data.length}, limit ${MAX_INITCODE_BYTES}`;
	}
	if (tx.maxPriorityFeePerGas > tx.maxFeePerGas) {
		const fees = `maxPriorityFeePerGas: ${tx.maxPriorityFeePerGas}, maxFeePerGas: ${tx.maxFeePerGas}`;
		return `max priority fee per gas higher than max fee per gas: ${fees}`;
	}
	if (tx.type === 4 && tx.authorizationList.length === 0) return "EIP-7702 transaction with empty auth list";
	if (rules.maxTxGas !== null && tx.gasLimit > rules.maxTxGas) {
		return `transaction gas limit too high (cap: ${rules.maxTxGas}, tx: ${tx.gasLimit})`;
	}
	const needed = intrinsicGas(tx);
	if (tx.gasLimit < needed) return `intrinsic gas too low: gas ${tx.gasLimit}, minimum needed ${needed}`;
	const floor = floorDataGas(tx);
	if (tx.gasLimit < floor) {
		return `floor data gas cost not covered: gas ${tx.gasLimit}, minimum needed ${floor}`;
	}
	return tx.nonce < MAX_NONCE ? null : `nonce has max value: ${tx.nonce}`;
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
