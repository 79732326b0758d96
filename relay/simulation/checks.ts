// What the relay checks itself before the node runs a simulation, because nodes check it differently or not at all there: nonces,
// funds, the block's gas and fees, and room for authorizations.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { Authorization } from "../../shared/ethereum/transactionFields.ts";
import { authorizationsForChain, useNonces } from "../domain/authorizations.ts";
import { feeProblem, fundsProblem, gasLimitProblem, nonceProblem } from "../domain/blockProblems.ts";
import type { NextBlock } from "../domain/chain.ts";
import type { SimulationError, SimulationRequest } from "../domain/simulation.ts";
import { BLOCK_FULL } from "./engines/verdicts.ts";

/** How many transactions may run, and the problem of the next one; null if all may run. */
export interface Checked {
	readonly runnable: number;
	readonly problem: SimulationError | null;
}

const NO_ROOM: SimulationError = { code: "GAS_LIMIT_TOO_HIGH", message: BLOCK_FULL };

/**
 * Checks what is known before a run. Of the balances, only the first transaction's can be checked. `fitting`: as
 * {@link countFitting} says, where it was asked already.
 */
export function checkTransactions(request: SimulationRequest, fitting = countFitting(request)): Checked {
	const { block, transactions, accounts } = request;
	// All senders', because one may have signed an authorization in another sender's transaction.
	const nonces = new Map([...accounts].map(([address, { nonce }]) => [address, nonce]));
	for (const [index, tx] of transactions.entries()) {
		if (index >= fitting) return { runnable: index, problem: NO_ROOM };
		const account = accounts.get(tx.from);
		if (account === undefined) throw new Error("a simulation was asked for without its sender's account");
		const funds = index === 0 ? fundsProblem(tx, account.balance) : null;
		const problem = nonceProblem(tx, nonces.get(tx.from) ?? 0n) ?? termsProblem(tx, block) ?? funds;
		if (problem !== null) return { runnable: index, problem };
		if (index < fitting - 1) useNonces(nonces, tx);
	}
	return { runnable: transactions.length, problem: null };
}

/** Why the block can't have `tx` by its terms alone, gas limit and fees; null if it can. */
export function termsProblem(
	tx: DecodedTransaction,
	block: Pick<NextBlock, "gasLimit" | "baseFee" | "blobBaseFee">,
): SimulationError | null {
	return gasLimitProblem(tx, block) ?? feeProblem(tx, block);
}

/** The authorizations that may use nonces before the last of the `fitting` transactions; those of that one concern nobody behind it. */
export function relevantAuthorizations(
	{ transactions }: SimulationRequest,
	fitting: number,
): readonly Authorization[] {
	return transactions.slice(0, Math.max(0, fitting - 1)).flatMap(authorizationsForChain);
}

/**
 * How many of the transactions, from the first, one block has room for by the gas of their authorizations alone. Those that
 * need not be in one block all count.
 */
export function countFitting({ transactions, block, mayWait = false }: SimulationRequest): number {
	let left = block.gasLimit;
	const first = transactions.findIndex(({ authorizationList }) => {
		left -= block.fork.gas.leastAuthorization * BigInt(authorizationList.length);
		return left < 0n && !mayWait;
	});
	return first < 0 ? transactions.length : first;
}
