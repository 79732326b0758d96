// The relay's own checks of what may run in a block, by nonces and balances of the senders. Nodes check these
// differently, or not at all, when they simulate; a block's builder does.

import { transactionCost } from "../../shared/ethereum/intrinsicGas.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { BlockContext, SimulationError, SimulationRequest } from "../domain/simulation.ts";
import { feeProblem } from "../domain/transactionRules.ts";
import { effectiveAuthorizations } from "./authorizations.ts";

/** How many transactions from the front may run, and what is wrong with the next one; null where all may. */
export interface Checked {
	readonly runnable: number;
	readonly problem: SimulationError | null;
}

/** Checks all that can be known before anything ran: of balances, that is the first transaction's alone. */
export function checkTransactions(request: SimulationRequest): Checked {
	const { block, transactions, accounts } = request;
	// Of all senders: one may have signed authorizations that take effect in another's transaction.
	const nonces = new Map([...accounts].map(([address, { nonce }]) => [address, nonce]));
	for (const [index, tx] of transactions.entries()) {
		const account = accounts.get(tx.from);
		if (account === undefined) throw new Error("a simulation was asked for without its sender's account");
		const funds = index === 0 ? findFundsProblem(tx, account.balance) : null;
		const problem = findBlockProblem(tx, nonces.get(tx.from) ?? 0n, block) ?? funds;
		if (problem !== null) return { runnable: index, problem };
		for (const [address, nonce] of nonces) nonces.set(address, nonceAfter(tx, address, nonce));
	}
	return { runnable: transactions.length, problem: null };
}

/** Why `tx` may not be in `block` when its sender's next nonce is `nonce`, its funds aside; null: it may. */
export function findBlockProblem(
	tx: DecodedTransaction,
	nonce: bigint,
	block: BlockContext,
): SimulationError | null {
	if (tx.nonce < nonce) {
		return { code: "NONCE_TOO_LOW", message: `nonce too low: next nonce ${nonce}, tx nonce ${tx.nonce}` };
	}
	if (tx.nonce > nonce) {
		return { code: "NONCE_GAP", message: `nonce too high: next nonce ${nonce}, tx nonce ${tx.nonce}` };
	}
	if (tx.gasLimit > block.gasLimit) {
		const message = `exceeds block gas limit: gas limit ${tx.gasLimit}, block gas limit ${block.gasLimit}`;
		return { code: "GAS_LIMIT_TOO_HIGH", message };
	}
	return feeProblem(tx, block);
}

/** Why a sender who holds `balance` wei can't buy the gas of `tx` at its highest price and send its value; or null. */
export function findFundsProblem(tx: DecodedTransaction, balance: bigint): SimulationError | null {
	const cost = transactionCost(tx);
	if (cost <= balance) return null;
	const amounts = `balance ${balance}, tx cost ${cost}, overshot ${cost - balance}`;
	return { code: "INSUFFICIENT_FUNDS", message: `insufficient funds for gas * price + value: ${amounts}` };
}

/** An account's nonce after `tx`: one more if it sent it, and one for each EIP-7702 authorization of its own in effect. */
function nonceAfter(tx: DecodedTransaction, account: string, nonce: bigint): bigint {
	const sent = tx.from === account ? 1n : 0n;
	return nonce + sent + BigInt(effectiveAuthorizations(tx, account, nonce).length);
}
