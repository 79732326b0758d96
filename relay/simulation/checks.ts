// The relay's own checks before the node runs a simulation: nonces, funds, the block's gas and
// fees, and room for authorizations. In simulations, nodes check these differently or not at all.

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
 * Checks all that is known before a run. Only the first transaction's balance can be checked.
 * `fitting` is the result of {@link countFitting}, if the caller has it.
 */
export function checkTransactions(request: SimulationRequest, fitting = countFitting(request)): Checked {
	const { block, transactions, accounts } = request;
	// The map has all senders, because one may have signed an authorization in another sender's
	// transaction.
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

/** The problem of `tx` with the block's gas limit or fees; null if there is none. */
export function termsProblem(
	tx: DecodedTransaction,
	block: Pick<NextBlock, "gasLimit" | "baseFee" | "blobBaseFee">,
): SimulationError | null {
	return gasLimitProblem(tx, block) ?? feeProblem(tx, block);
}

/**
 * The authorizations that may use nonces before the last of the `fitting` transactions. Those of
 * the last one affect no later transaction.
 */
export function relevantAuthorizations(
	{ transactions }: SimulationRequest,
	fitting: number,
): readonly Authorization[] {
	return transactions.slice(0, Math.max(0, fitting - 1)).flatMap(authorizationsForChain);
}

/**
 * How many of the transactions, from the first, fit into one block by the gas of their
 * authorizations alone. If they need not be in one block, all of them count.
 */
export function countFitting({ transactions, block, mayWait = false }: SimulationRequest): number {
	let left = block.gasLimit;
	const first = transactions.findIndex(({ authorizationList }) => {
		left -= block.fork.gas.leastAuthorization * BigInt(authorizationList.length);
		return left < 0n && !mayWait;
	});
	return first < 0 ? transactions.length : first;
}
