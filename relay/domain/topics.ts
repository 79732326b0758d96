// The topics that websockets subscribe to, as strings. Pure.

/** Unsigned transactions as they are shared with searchers. */
export const PENDING_TRANSACTIONS = "pendingTransactions";

/** Headers of new blocks. */
export const NEW_HEADS = "newHeads";

/** What becomes of one transaction. */
export function transactionTopic(hash: string): string {
	return `transaction ${hash}`;
}

/** What becomes of one bundle of one owner. */
export function bundleTopic(owner: string, hash: string): string {
	return `bundle ${owner} ${hash}`;
}
