// Whether a block can take a signed transaction, in go-ethereum's words, and what must be known of its sender for that.
// Nodes check these rules differently, or not at all, when they simulate.

import { readQuantity, toQuantity } from "../../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import type { AccountState } from "../../domain/chain.ts";
import type { BlockContext } from "../../domain/simulation.ts";
import { type ChainRules, firstRefusal, PROTOCOL_RULES } from "../../domain/transactionRules.ts";
import { findBlockProblem } from "../simulator.ts";
import type { AskNode } from "./blocks.ts";

/** A sender right before its transaction; wei. */
export type SenderState = Pick<AccountState, "nonce" | "balance" | "code">;

/** What is wrong with it whatever stands before it; null: nothing. */
export function ownProblem(
	tx: DecodedTransaction,
	sender: SenderState | undefined,
	block: BlockContext,
	rules: ChainRules,
): string | null {
	// EIP-3607: a contract sends nothing.
	const code = sender?.code === "contract" ? `sender not an eoa: address ${tx.from} has code` : null;
	const own = firstRefusal(PROTOCOL_RULES, tx, rules)?.message ?? code;
	return own ?? findBlockProblem(tx, tx.nonce, block)?.message ?? null;
}

/** Why it does not fit behind what used `gasUsed` in its block. */
export function roomProblem(tx: DecodedTransaction, left: bigint): string {
	return `gas limit reached: gas limit ${tx.gasLimit}, left in the block ${left}`;
}

/** `0xef0100` and an address. https://eips.ethereum.org/EIPS/eip-7702 */
const DELEGATION = /^0xef0100[0-9a-f]{40}$/i;

/** Senders in the state after `block`, by lower-case address; null where the node does not have that state. */
export async function readSenders(
	ask: AskNode,
	addresses: readonly string[],
	block: number,
): Promise<ReadonlyMap<string, SenderState> | null> {
	const senders = new Map<string, SenderState>();
	const read = async (address: string): Promise<void> => {
		const params = [address, toQuantity(block)];
		const [nonce, balance, code] = await Promise.all(
			["eth_getTransactionCount", "eth_getBalance", "eth_getCode"].map(async (method) => {
				const answer = await ask({ method, params });
				return answer.ok ? answer.result : null;
			}),
		);
		const [nonceValue, balanceValue] = [readQuantity(nonce), readQuantity(balance)];
		if (nonceValue === null || balanceValue === null || typeof code !== "string") return;
		const kind = code === "0x" ? "none" : DELEGATION.test(code) ? "delegated" : "contract";
		senders.set(address, { nonce: nonceValue, balance: balanceValue, code: kind });
	};
	const distinct = new Set(addresses);
	await Promise.all([...distinct].map(read));
	return senders.size === distinct.size ? senders : null;
}
