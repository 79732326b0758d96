// The names that `eth_subscribe` takes, for the method and for the setting that adds others. Pure.

/** Unsigned pending transactions as they are shared (interface section 6); aliases mean this one. */
export const PARTIAL_PENDING_TRANSACTIONS = "service_partialPendingTransactions";

/** Every name that has a meaning of its own. */
export const SUBSCRIPTION_NAMES = [
	PARTIAL_PENDING_TRANSACTIONS,
	"newHeads",
	"service_transactionStatus",
	"service_bundleStatus",
] as const;
