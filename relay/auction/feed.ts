// The searchers' feed: each shared transaction once, unsigned. What is shared is decided elsewhere.

import type { Clock } from "../../shared/clock.ts";
import type { EventSink, Publisher } from "../domain/ports.ts";
import { PENDING_TRANSACTIONS } from "../domain/topics.ts";
import type { PrivateTransaction } from "../domain/transaction.ts";
import { partialPendingTransaction } from "./partialTransaction.ts";

export interface FeedDependencies {
	readonly publisher: Publisher;
	readonly events: EventSink;
	/** Whether the transaction with this hash is held and has not been shown yet. */
	readonly isNew: (hash: string) => boolean;
	readonly clock: Clock;
}

/** A function that shows searchers a transaction, unless it has been shown before. */
export function createFeed(dependencies: FeedDependencies): (transaction: PrivateTransaction) => void {
	const { publisher, events, isNew, clock } = dependencies;
	return ({ tx }) => {
		if (!isNew(tx.hash)) return;
		// First: whoever hears of it may bid at once.
		events.emit(tx.hash, { type: "shared", at: clock.now() });
		publisher.publish(PENDING_TRANSACTIONS, () => partialPendingTransaction(tx));
	};
}
