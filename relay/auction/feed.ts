// The searchers' feed: each shared transaction once, as far as searchers may see it (interface section 2.3): never a signature,
// a blob or an authorization. What is shared is decided elsewhere.

import type { Clock } from "../../shared/clock.ts";
import { bytesToHex, toQuantity } from "../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { PENDING_TRANSACTIONS } from "../domain/endpoints.ts";
import type { EventSink, Publisher } from "../domain/ports.ts";
import type { PrivateTransaction } from "../domain/transaction.ts";

export interface FeedDependencies {
	readonly publisher: Publisher;
	readonly records: EventSink;
	/** Whether the transaction with this hash is held and has not been shown yet. */
	readonly isNew: (hash: string) => boolean;
	readonly clock: Clock;
}

/** A function that shows searchers a transaction, unless it has been shown before. */
export function createFeed(dependencies: FeedDependencies): (transaction: PrivateTransaction) => void {
	const { publisher, records, isNew, clock } = dependencies;
	return ({ tx }) => {
		if (!isNew(tx.hash)) return;
		// The event is recorded before publishing: a bid may arrive immediately.
		records.emit(tx.hash, { type: "shared", at: clock.now() });
		publisher.publish(PENDING_TRANSACTIONS, () => partialPendingTransaction(tx));
	};
}

/**
 * The partial pending transaction: quantities in hex, `to` null for a creation. Legacy and type-1 transactions
 * carry `gasPrice`, repeated in both EIP-1559 fee fields. Authorizations (EIP-7702) are signatures, and left out whole.
 */
export function partialPendingTransaction(tx: DecodedTransaction): Record<string, unknown> {
	return {
		chainId: toQuantity(tx.chainId),
		to: tx.to,
		value: toQuantity(tx.value),
		data: bytesToHex(tx.data),
		accessList: tx.accessList,
		nonce: toQuantity(tx.nonce),
		maxPriorityFeePerGas: toQuantity(tx.maxPriorityFeePerGas),
		maxFeePerGas: toQuantity(tx.maxFeePerGas),
		...(tx.gasPrice === null ? {} : { gasPrice: toQuantity(tx.gasPrice) }),
		...(tx.maxFeePerBlobGas === null
			? {}
			: { maxFeePerBlobGas: toQuantity(tx.maxFeePerBlobGas), blobVersionedHashes: tx.blobVersionedHashes }),
		gas: toQuantity(tx.gasLimit),
		type: toQuantity(tx.type),
		hash: tx.hash,
		from: tx.from,
	};
}
