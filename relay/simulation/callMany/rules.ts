// Checks whether a block can include a signed transaction, with go-ethereum's error messages, and
// reads the senders' states for that. In simulations, nodes check these rules differently or not at
// all.

import { toQuantity } from "../../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import { codeProblem } from "../../domain/blockProblems.ts";
import type { AccountState } from "../../domain/chain.ts";
import { ACCOUNT_METHODS, readAccount } from "../../domain/nodeJson.ts";
import type { BlockContext } from "../../domain/simulation.ts";
import { type ChainRules, firstRejection, PROTOCOL_RULES } from "../../domain/transactionRules.ts";
import { termsProblem } from "../checks.ts";
import type { AskNode } from "./blocks.ts";

/** A sender right before its transaction; balance in wei. */
export type SenderState = Pick<AccountState, "nonce" | "balance" | "code">;

/** Why the transaction can't be included, regardless of earlier ones; null if it can. */
export function ownProblem(
	tx: DecodedTransaction,
	sender: SenderState | undefined,
	block: BlockContext,
	rules: ChainRules,
): string | null {
	const own = firstRejection(PROTOCOL_RULES, tx, rules, block)?.message ?? null;
	return own ?? (codeProblem(tx, sender?.code) ?? termsProblem(tx, block))?.message ?? null;
}

/** The error for a transaction that needs more gas than is `left` in the block. */
export function roomProblem(tx: DecodedTransaction, left: bigint): string {
	return `gas limit reached: gas limit ${tx.gasLimit}, left in the block ${left}`;
}

/**
 * Senders' states after `block`, by lower-case address; null if the node does not have that state.
 */
export async function readSenders(
	ask: AskNode,
	addresses: readonly string[],
	block: number,
): Promise<ReadonlyMap<string, SenderState> | null> {
	const senders = new Map<string, SenderState>();
	const read = async (address: string): Promise<void> => {
		const results = ACCOUNT_METHODS.map(async (method) => {
			const answer = await ask({ method, params: [address, toQuantity(block)] });
			return answer.ok ? answer.result : null;
		});
		const account = readAccount(await Promise.all(results));
		if (account !== null) senders.set(address, account);
	};
	const distinct = new Set(addresses);
	await Promise.all([...distinct].map(read));
	return senders.size === distinct.size ? senders : null;
}
