// What a submission or a cancel ends beside what is in the pool: an expired transaction with its sender and nonce, whose
// bytes would bring it back otherwise. A sender and nonce come in, what is to be written and told goes out.

import type { DecodedTransaction } from "../shared/ethereum/transaction.ts";
import type { TxEvent } from "./domain/events.ts";
import type { NonceHolders } from "./domain/ports.ts";
import { fold, type TransactionRecord } from "./domain/record.ts";
import type { Ledger } from "./status/ledger.ts";

/** The expired one with the sender and nonce of `tx`, or null; `tx` itself is none. */
export async function expiredBefore(
	{ hash, from, nonce }: DecodedTransaction,
	{ ledger, store }: { readonly ledger: Ledger; readonly store: NonceHolders },
): Promise<TransactionRecord | null> {
	const old = ledger.expiredAt(from, nonce) ?? (await store.expiredHolder(from, nonce));
	if (old === null || old.hash === hash) return null;
	const now = ledger.get(old.hash)?.record ?? old;
	return now.stage === "EXPIRED" ? now : null;
}

/**
 * The record, if there is one, as `event` leaves it: to be written before that is told. What is settled has no one left
 * to be told of it.
 */
export function endedBy(
	event: TxEvent,
	record: TransactionRecord | null,
	ledger: Ledger,
): readonly TransactionRecord[] {
	if (record === null) return [];
	const preview = ledger.preview(record.hash, event);
	if (preview !== null) return [preview];
	const copy = structuredClone(record);
	return fold(copy, event) ? [{ ...copy, settledAt: copy.settledAt ?? 0 }] : [];
}
