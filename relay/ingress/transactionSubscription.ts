// Subscribes a websocket to one transaction's status, starting with the current record. Later changes are published by
// status/announcer.ts.

import type { CallContext, Connection } from "../../shared/http/callContext.ts";
import { transactionTopic } from "../domain/topics.ts";
import type { MethodDependencies } from "./methodDependencies.ts";

/**
 * Subscribes `connection` to the transaction with this hash, lower case; answers the subscription's id. Each result is
 * the object that `GET /tx/{hash}` answers: how it stands now, where the relay holds it or has held it within a week, and
 * how it stands after each change. One that was never seen is silent until it comes.
 */
export async function subscribeToTransaction(
	connection: Connection,
	hash: string,
	{ exchange }: CallContext,
	{ subscriptions, records, following, statusView }: MethodDependencies,
): Promise<string> {
	let moved = false;
	const unfollow = following.follow(hash, () => {
		moved = true;
	});
	try {
		let record = await records.record(hash);
		// What came, or came back, while the store was read is looked at again; a live record is always as it is now.
		if (moved) record = await records.record(hash);
		const id = subscriptions.subscribe(connection, transactionTopic(hash), exchange);
		if (record !== null) subscriptions.notify(connection, id, () => statusView(record));
		return id;
	} finally {
		unfollow();
	}
}
