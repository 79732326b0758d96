// What a submission or a cancel ends: which events to write and whom to tell. Besides pool transactions this covers an
// expired transaction, since its bytes would bring it back.

import type { DecodedTransaction } from "../shared/ethereum/transaction.ts";
import { policyOf } from "./domain/endpoints.ts";
import type { TxEvent } from "./domain/events.ts";
import type { NonceHolders } from "./domain/ports.ts";
import { fold, type TransactionRecord } from "./domain/record.ts";
import { tooManyTakenBack } from "./domain/rejection.ts";
import { MAX_TAKEN_BACK, type SubmitOutcome } from "./domain/submission.ts";
import type { PrivateTransaction } from "./domain/transaction.ts";
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

/** That `other` has taken the place of a transaction; `builders` are told to forget that. */
export function replacedBy(
	other: PrivateTransaction,
	about: { readonly at: number; readonly block: number; readonly builders: readonly string[] },
) {
	const discreet = policyOf(other.path).shared === "never";
	return { type: "replaced", by: other.tx.hash, discreet, ...about } as const;
}

/** The refusal of one more from a sender who has taken back too many lately, else null. */
export function refusalOfMore(from: string, ledger: Ledger): SubmitOutcome | null {
	if (ledger.takenBack(from) < MAX_TAKEN_BACK) return null;
	return { outcome: "refused", rejection: tooManyTakenBack(MAX_TAKEN_BACK) };
}
