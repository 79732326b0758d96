// The relay's own rules of what may run in a block: transactions, their block and their senders' nonces and balances come
// in, what is wrong goes out. Nodes check them differently, or not at all, when they simulate; a block's builder does.

import { transactionCost } from "../../shared/ethereum/intrinsicGas.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { BlockContext, SimulationError, SimulationRequest } from "../domain/simulation.ts";
import { effectiveAuthorizations } from "./authorizations.ts";

/** How many transactions from the front may run, and what is wrong with the next one; null where all may. */
export interface CheckedChain {
	readonly runnable: number;
	readonly problem: SimulationError | null;
}

/** All that shall run, in order: the chain, and behind it the backrun, if there is one. */
export function transactionsOf({ chain, backrun }: SimulationRequest): readonly DecodedTransaction[] {
	return backrun === undefined ? chain : [...chain, backrun.tx];
}

/** Wei that the sender of `tx`, one of the request's, holds before anything ran. */
export function balanceBefore(
	{ sender, balance, backrun }: SimulationRequest,
	tx: DecodedTransaction,
): bigint {
	return backrun === undefined || tx.from === sender ? balance : backrun.balance;
}

/** Checks all that can be known before anything ran: of balances, that is the first transaction's alone. */
export function checkChain(request: SimulationRequest): CheckedChain {
	const { block, sender, chain, backrun } = request;
	const txs = transactionsOf(request);
	let nonce = request.nonce;
	// The backrun's sender may have signed authorizations that take effect in the chain.
	let other = backrun?.nonce ?? 0n;
	for (const [index, tx] of txs.entries()) {
		const funds = index === 0 ? findFundsProblem(tx, balanceBefore(request, tx)) : null;
		const isOthers = index === chain.length && tx.from !== sender;
		const problem = findBlockProblem(tx, isOthers ? other : nonce, block) ?? funds;
		if (problem !== null) return { runnable: index, problem };
		nonce = nonceAfter(tx, sender, nonce);
		if (backrun !== undefined) other = nonceAfter(tx, backrun.tx.from, other);
	}
	return { runnable: txs.length, problem: null };
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
	if (tx.maxFeePerGas < block.baseFee) {
		const message = `max fee per gas less than block base fee: max fee ${tx.maxFeePerGas}, base fee ${block.baseFee}`;
		return { code: "FEE_CAP_TOO_LOW", message };
	}
	if (tx.maxFeePerBlobGas !== null && tx.maxFeePerBlobGas < block.blobBaseFee) {
		const fees = `max fee ${tx.maxFeePerBlobGas}, blob base fee ${block.blobBaseFee}`;
		return {
			code: "BLOB_FEE_CAP_TOO_LOW",
			message: `max fee per blob gas less than block blob base fee: ${fees}`,
		};
	}
	return null;
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
