// A private transaction as the relay holds it: the decoded bytes and what its sender asked for with them.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { SubmissionPath } from "./endpoints.ts";

/** What came with a submission beside the transaction itself. */
export interface SubmissionOptions {
	readonly path: SubmissionPath;
	/** A self-transfer of the same nonce ends it without a fee. False on paths where the flag has no effect. */
	readonly softCancellations: boolean;
	/** Lower-case address that gets the rebate, or null: then the sender does. */
	readonly refundRecipient: string | null;
	readonly referrer: string | null;
}

/** A transaction that was admitted. */
export interface PrivateTransaction extends SubmissionOptions {
	readonly tx: DecodedTransaction;
	/** The network address that submitted it: who may cancel it. */
	readonly origin: string;
	/** When it came, in ms since the epoch. */
	readonly receivedAt: number;
}

/** An admitted transaction of what its client asked for. */
export function privateTransaction(
	tx: DecodedTransaction,
	options: SubmissionOptions & { readonly origin: string },
	receivedAt: number,
): PrivateTransaction {
	const { path, softCancellations, refundRecipient, referrer, origin } = options;
	return { tx, path, softCancellations, refundRecipient, referrer, origin, receivedAt };
}

/**
 * The transaction without what can be large, for one that never goes out again: no raw bytes, data or lists. Its hash,
 * sender and nonce stay.
 */
export function withoutBytes(transaction: PrivateTransaction): PrivateTransaction {
	const tx = { ...transaction.tx, raw: NO_BYTES, data: NO_BYTES, accessList: [], authorizationList: [] };
	return { ...transaction, tx };
}

const NO_BYTES = Buffer.alloc(0);
