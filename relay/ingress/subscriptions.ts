// Sends published results to the websocket subscriptions of a topic, as `eth_subscription`. A result is serialized once for all
// subscribers. Which results a subscriber may see is decided elsewhere.

import { randomBytes } from "node:crypto";
import type { CallContext, Connection, Exchange } from "../../shared/http/callContext.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import { PENDING_TRANSACTIONS, transactionTopic } from "../domain/endpoints.ts";
import type { Publisher } from "../domain/ports.ts";
import type { MethodDependencies } from "./methodDependencies.ts";

/** Subscriptions of one connection at most. */
export const MAX_SUBSCRIPTIONS = 16;
/** Characters that one subscription may hold until the client has its id. */
const MAX_HELD_CHARS = 8 * 1024 * 1024;
const TRY_AGAIN_LATER = 1013;
const ID_BYTES = 16;

/** All subscriptions of the process. Those of a connection end with it. */
export class SubscriptionHub implements Publisher {
	readonly #log: Logger;
	/** Topics with subscribers. */
	readonly #topics = new Map<string, Set<Subscription>>();
	readonly #connections = new Map<Connection, Map<string, Subscription>>();
	#size = 0;

	constructor(dependencies: { readonly log: Logger }) {
		this.#log = dependencies.log;
	}

	/** The number of subscriptions. */
	get size(): number {
		return this.#size;
	}

	/** Whether `topic` has subscribers. */
	hasSubscribers(topic: string): boolean {
		return this.#topics.has(topic);
	}

	/** The rest, after `prefix`, of each subscribed topic that begins with it. */
	subscribedSuffixes(prefix: string): readonly string[] {
		return [...this.#topics.keys()]
			.filter((topic) => topic.startsWith(prefix))
			.map((topic) => topic.slice(prefix.length));
	}

	/**
	 * Subscribes `connection`; returns the subscription's id, 16 random bytes as 0x hex. If `exchange` is given, results are
	 * held until its answer, which carries the id, was sent. Throws RpcError `limit`.
	 */
	subscribe(connection: Connection, topic: string, exchange: Exchange | null = null): string {
		const known = this.#connections.get(connection);
		const own = known ?? new Map<string, Subscription>();
		if (own.size >= MAX_SUBSCRIPTIONS) {
			throw new RpcError("limit", `limit exceeded: ${MAX_SUBSCRIPTIONS} subscriptions a connection`);
		}
		// A second one would send each transaction, in full, twice.
		if (topic === PENDING_TRANSACTIONS && [...own.values()].some((one) => one.topic === topic)) {
			throw new RpcError("limit", "limit exceeded: one subscription to pending transactions a connection");
		}
		const id = `0x${randomBytes(ID_BYTES).toString("hex")}`;
		const subscription: Subscription = { id, topic, connection, held: null };
		own.set(id, subscription);
		const listeners = this.#topics.get(topic);
		if (listeners === undefined) this.#topics.set(topic, new Set([subscription]));
		else listeners.add(subscription);
		this.#size++;
		if (exchange !== null) {
			subscription.held = { texts: [], chars: 0 };
			exchange.onAnswered(() => this.#release(subscription));
		}
		if (known === undefined) this.#addConnection(connection, own);
		return id;
	}

	/** Ends a subscription of `connection`; false if it has none with this id. */
	unsubscribe(connection: Connection, id: string): boolean {
		const subscription = this.#connections.get(connection)?.get(id);
		if (subscription === undefined) return false;
		this.#connections.get(connection)?.delete(id);
		this.#forget(subscription);
		return true;
	}

	/** See {@link Publisher.publish}. An error of `make` is logged, so that the publisher can't fail by it. */
	publish(topic: string, make: () => unknown): void {
		const listeners = this.#topics.get(topic);
		if (listeners === undefined) return;
		const text = this.#textOf(make);
		if (text === null) return;
		for (const subscription of listeners) this.#send(subscription, text);
	}

	/** Sends a result to one subscription, unless that has ended. */
	notify(connection: Connection, id: string, make: () => unknown): void {
		const subscription = this.#connections.get(connection)?.get(id);
		if (subscription === undefined) return;
		const text = this.#textOf(make);
		if (text !== null) this.#send(subscription, text);
	}

	/** Adds it until it closes. If it is closed already its subscriptions, `own`, end at once. */
	#addConnection(connection: Connection, own: Map<string, Subscription>): void {
		this.#connections.set(connection, own);
		connection.onClose(() => {
			for (const subscription of own.values()) this.#forget(subscription);
			own.clear();
			this.#connections.delete(connection);
		});
	}

	#forget(subscription: Subscription): void {
		const listeners = this.#topics.get(subscription.topic);
		listeners?.delete(subscription);
		if (listeners?.size === 0) this.#topics.delete(subscription.topic);
		subscription.held = null;
		this.#size--;
	}

	#textOf(make: () => unknown): string | null {
		try {
			return JSON.stringify(make()) ?? "null";
		} catch (thrown) {
			this.#log.error("a notification could not be made", { fault: safeError(thrown) });
			return null;
		}
	}

	/** Sends or holds a result. A failing connection must not keep others from their results, so its error is only logged. */
	#send(subscription: Subscription, text: string): void {
		const { id, connection, held } = subscription;
		try {
			if (held === null) {
				connection.send(frame(id, text));
				return;
			}
			// All holders share the text, so the real memory use is lower than this count.
			held.chars += text.length;
			if (held.chars <= MAX_HELD_CHARS) held.texts.push(text);
			else connection.close(TRY_AGAIN_LATER, "too slow");
		} catch (thrown) {
			this.#log.warn("a subscriber could not be told", { fault: safeError(thrown) });
		}
	}

	/** Sends what was held, now that the client has the id. */
	#release(subscription: Subscription): void {
		const { held } = subscription;
		if (held === null) return;
		subscription.held = null;
		for (const text of held.texts) this.#send(subscription, text);
	}
}

interface Subscription {
	readonly id: string;
	readonly topic: string;
	readonly connection: Connection;
	/** Results held until the client has the id; null afterwards, and when the subscription has ended. */
	held: { readonly texts: string[]; chars: number } | null;
}

/** Built from text, so that the result is not serialised again for each id. */
function frame(id: string, result: string): string {
	return `{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"${id}","result":${result}}}`;
}

/**
 * Subscribes `connection` to the transaction with this hash, lower case; returns the subscription's id. Each result is the
 * object of `GET /tx/{hash}`: first the current status if the relay has a record, then the status after each change. For an
 * unknown transaction nothing is sent until it arrives.
 */
export async function subscribeToTransaction(
	connection: Connection,
	hash: string,
	{ exchange }: CallContext,
	{ subscriptions, records, following, statusView }: MethodDependencies,
): Promise<string> {
	let hasChanged = false;
	const unfollow = following.follow(hash, () => {
		hasChanged = true;
	});
	try {
		let record = await records.record(hash);
		// It changed while the store was read. Once more is enough: what changes is in memory, and the record there is no copy.
		if (hasChanged) record = await records.record(hash);
		const id = subscriptions.subscribe(connection, transactionTopic(hash), exchange);
		if (record !== null) subscriptions.notify(connection, id, () => statusView(record));
		return id;
	} finally {
		unfollow();
	}
}
