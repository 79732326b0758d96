// Derives the row in the list of refunds, and the part of the totals, from the record of a mined
// transaction. Pure.

import { termsOf } from "../../shared/ownership.ts";
import type { Refund, TxEvent } from "./events.ts";
import { isMined, type TransactionRecord } from "./record.ts";

type Of<T extends TxEvent["type"]> = Extract<TxEvent, { type: T }>;

/**
 * A refund as in the block. Amounts are wei as decimal strings; hashes and addresses are lower
 * case.
 */
export interface RefundRow extends Pick<Refund, "payer" | "recipient" | "owed" | "paid"> {
	readonly block: number;
	readonly blockHash: string;
	/** The transaction that was refunded. */
	readonly hash: string;
	/** The sender of that transaction. */
	readonly sender: string;
	/** The referrer that all its submitters named. */
	readonly referrer?: string;
	/** When the block was seen, in ms since the epoch. Missing in rows of earlier versions. */
	readonly at?: number;
}

/**
 * The refund of a transaction in the block that contains it now; null if there is no block, or no
 * refund in it.
 */
export function refundRowOf(record: TransactionRecord): RefundRow | null {
	const included = inclusionOf(record);
	const refunded = refundOf(record);
	if (included === null || refunded === null) return null;
	const { payer, recipient, owed, paid } = refunded;
	const { block, blockHash, at } = included;
	const { referrer } = termsOf(record.owners);
	const row = { block, blockHash, hash: record.hash, sender: record.from, recipient, payer, owed, paid, at };
	return referrer === null ? row : { ...row, referrer };
}

/** The refund in the block that contains it now, if there is one. */
export function refundOf(record: TransactionRecord): Of<"refunded"> | null {
	const included = inclusionOf(record);
	const refunded = record.events.findLast((event): event is Of<"refunded"> => event.type === "refunded");
	if (included === null || refunded === undefined) return null;
	return record.events.lastIndexOf(refunded) < record.events.lastIndexOf(included) ? null : refunded;
}

/** The addresses that may query a refund: the transaction's sender, and the refund's recipient. */
export function partiesOf({ sender, recipient }: RefundRow): readonly string[] {
	return sender === recipient ? [sender] : [sender, recipient];
}

/** The part of the totals that comes from one mined transaction. */
export interface Counted {
	/** When its block was seen, in ms since the epoch. */
	readonly at: number;
	/**
	 * 1 if it is in a block, did not revert, and was in no earlier block that has left the chain;
	 * else 0.
	 */
	readonly transactions: number;
	/** Wei that was paid for it. */
	readonly refunded: bigint;
}

/** The part of the totals that comes from a record; null if it is in no block. */
export function countedOf(record: TransactionRecord): Counted | null {
	const included = inclusionOf(record);
	if (included === null) return null;
	const isProtected = record.stage === "INCLUDED" && record.exposed === null;
	return { at: included.at, transactions: isProtected ? 1 : 0, refunded: BigInt(record.refund) };
}

/** The event of its present block; null if it is in none. */
export function inclusionOf({ stage, events }: TransactionRecord): Of<"included"> | null {
	if (!isMined(stage)) return null;
	return events.findLast((event): event is Of<"included"> => event.type === "included") ?? null;
}
