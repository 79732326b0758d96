// How long a transaction is sent.

import type { SlotLength } from "../../shared/ethereum/slots.ts";
import type { TransactionRecord } from "./record.ts";

/**
 * Longest wait behind a nonce gap, in seconds of chain time. It is the lifetime of a queued
 * transaction in go-ethereum.
 */
export const GAP_LIFE_S = 3 * 3600;

export interface Lifetime {
	/** Its length from the first block that could contain the transaction. */
	readonly txTtlBlocks: number;
	readonly slot: SlotLength;
}

/** The last block of a lifetime that began with `firstBlock`. */
export function lastBlockFrom(firstBlock: number, { txTtlBlocks }: Lifetime): number {
	return firstBlock + txTtlBlocks - 1;
}

/** Whether its lifetime is over at `head`, or it has waited too long behind a gap. */
export function isOver(
	{ firstBlock, block }: Pick<TransactionRecord, "firstBlock" | "block">,
	head: number,
	lifetime: Lifetime,
): boolean {
	if (firstBlock !== null) return head >= lastBlockFrom(firstBlock, lifetime);
	return head >= (block ?? head) + Math.ceil((GAP_LIFE_S * 1_000) / lifetime.slot.ms);
}
