// The topics that websockets subscribe to, and the names that `eth_subscribe` takes for them. Pure.

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

/** Unsigned pending transactions as they are shared (interface section 6); aliases mean this one. */
export const PARTIAL_PENDING_TRANSACTIONS = "service_partialPendingTransactions";

/** Every name that has a meaning of its own. */
export const SUBSCRIPTION_NAMES = [
	PARTIAL_PENDING_TRANSACTIONS,
	"newHeads",
	"service_transactionStatus",
	"service_bundleStatus",
] as const;
