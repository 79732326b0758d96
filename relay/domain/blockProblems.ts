// Why a block can't contain a transaction: by its sender's nonce, code and funds, or by the block's
// gas and fees. The messages are go-ethereum's. Admission, simulations and bundles use them. Pure.

import { transactionCost } from "../../shared/ethereum/intrinsicGas.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { AccountState, NextBlock } from "./chain.ts";
import type { SimulationError } from "./simulation.ts";

type Problem = SimulationError | null;

/** Checks the nonce against the sender's next nonce, `next`. */
export function nonceProblem({ nonce }: Pick<DecodedTransaction, "nonce">, next: bigint): Problem {
	if (nonce === next) return null;
	const nonces = `next nonce ${next}, tx nonce ${nonce}`;
	if (nonce < next) return { code: "NONCE_TOO_LOW", message: `nonce too low: ${nonces}` };
	return { code: "NONCE_GAP", message: `nonce too high: ${nonces}` };
}

/** EIP-3607: a contract can't send transactions. */
export function codeProblem(
	{ from }: Pick<DecodedTransaction, "from">,
	code: AccountState["code"] | undefined,
): Problem {
	if (code !== "contract") return null;
	return { code: "EXECUTION_FAILED", message: `sender not an eoa: address ${from} has code` };
}

/**
 * Whether the sender's `balance` covers the value and the most that its gas may cost; both in wei.
 */
export function fundsProblem(tx: DecodedTransaction, balance: bigint): Problem {
	const cost = transactionCost(tx);
	if (cost <= balance) return null;
	const amounts = `balance ${balance}, tx cost ${cost}, overshot ${cost - balance}`;
	return { code: "INSUFFICIENT_FUNDS", message: `insufficient funds for gas * price + value: ${amounts}` };
}

/** Whether its gas limit is above the block's. */
export function gasLimitProblem(
	tx: Pick<DecodedTransaction, "gasLimit">,
	{ gasLimit }: Pick<NextBlock, "gasLimit">,
): Problem {
	if (tx.gasLimit <= gasLimit) return null;
	const limits = `gas limit ${tx.gasLimit}, block gas limit ${gasLimit}`;
	return { code: "GAS_LIMIT_TOO_HIGH", message: `exceeds block gas limit: ${limits}` };
}

/** Whether its fees are too low for the block. */
export function feeProblem(
	tx: Pick<DecodedTransaction, "maxFeePerGas" | "maxFeePerBlobGas">,
	block: Pick<NextBlock, "baseFee" | "blobBaseFee">,
): Problem {
	if (tx.maxFeePerGas < block.baseFee) {
		const message = `max fee per gas less than block base fee: max fee ${tx.maxFeePerGas}, base fee ${block.baseFee}`;
		return { code: "FEE_CAP_TOO_LOW", message };
	}
	if (tx.maxFeePerBlobGas !== null && tx.maxFeePerBlobGas < block.blobBaseFee) {
		const fees = `max fee ${tx.maxFeePerBlobGas}, blob base fee ${block.blobBaseFee}`;
		const message = `max fee per blob gas less than block blob base fee: ${fees}`;
		return { code: "BLOB_FEE_CAP_TOO_LOW", message };
	}
	return null;
}
