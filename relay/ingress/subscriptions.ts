// Delivers published results to the websocket subscriptions of a topic, as `eth_subscription`; one to a transaction's status
// starts with the current record. A result is serialized once, however many listen. Who may hear what is decided elsewhere.

import { randomBytes } from "node:crypto";
import type { CallContext, Connection, Exchange } from "../../shared/http/callContext.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import { PENDING_TRANSACTIONS, transactionTopic } from "../domain/endpoints.ts";
import type { Publisher } from "../domain/ports.ts";
import type { MethodDependencies } from "./methodDependencies.ts";

/** Subscriptions of one connection at most. */
export const MAX_SUBSCRIPTIONS = 16;
/** Characters that one subscription may have waiting until its id was told. */
const MAX_HELD_CHARS = 8 * 1024 * 1024;
const TRY_AGAIN_LATER = 1013;
const ID_BYTES = 16;

/** All subscriptions of the process; nothing of a connection is kept after its end. */
export class SubscriptionHub implements Publisher {
	readonly #log: Logger;
	/** Only topics that somebody listens to. */
	readonly #topics = new Map<string, Set<Subscription>>();
	readonly #connections = new Map<Connection, Map<string, Subscription>>();
	#size = 0;

	constructor(dependencies: { readonly log: Logger }) {
		this.#log = dependencies.log;
	}

	/** How many subscriptions there are. */
	get size(): number {
		return this.#size;
	}

	/** Whether anybody listens to `topic`. */
	isHeard(topic: string): boolean {
		return this.#topics.has(topic);
	}

	/** What the topics that begin with `prefix` and that somebody listens to go on with. */
	heardAfter(prefix: string): readonly string[] {
		return [...this.#topics.keys()]
			.filter((topic) => topic.startsWith(prefix))
			.map((topic) => topic.slice(prefix.length));
	}

	/**
	 * Subscribes `connection`; answers the subscription's id, 16 random bytes as 0x hex. Where the message that asked
	 * for it is given, nothing is sent before its answer, which tells the id. Throws an RpcError of the kind `limit`.
	 */
	subscribe(connection: Connection, topic: string, exchange: Exchange | null = null): string {
		const known = this.#connections.get(connection);
		const own = known ?? new Map<string, Subscription>();
		if (own.size >= MAX_SUBSCRIPTIONS) {
			throw new RpcError("limit", `limit exceeded: ${MAX_SUBSCRIPTIONS} subscriptions a connection`);
		}
		// Each would be sent every transaction whole.
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
		if (known === undefined) this.#watch(connection, own);
		return id;
	}

	/** Ends a subscription of `connection`'s own; false where it has none with this id. */
	unsubscribe(connection: Connection, id: string): boolean {
		const subscription = this.#connections.get(connection)?.get(id);
		if (subscription === undefined) return false;
		this.#connections.get(connection)?.delete(id);
		this.#forget(subscription);
		return true;
	}

	/** See {@link Publisher.publish}. A fault of `make` is logged: what is published must not fail for it. */
	publish(topic: string, make: () => unknown): void {
		const listeners = this.#topics.get(topic);
		if (listeners === undefined) return;
		const text = this.#textOf(make);
		if (text === null) return;
		for (const subscription of listeners) this.#send(subscription, text);
	}

	/** Tells one subscription alone; one that has ended is told nothing. */
	notify(connection: Connection, id: string, make: () => unknown): void {
		const subscription = this.#connections.get(connection)?.get(id);
		if (subscription === undefined) return;
		const text = this.#textOf(make);
		if (text !== null) this.#send(subscription, text);
	}

	/** Forgets all of it at its end, which may have been already. */
	#watch(connection: Connection, own: Map<string, Subscription>): void {
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

	/** One connection's fault is its own: the others are told all the same. */
	#send(subscription: Subscription, text: string): void {
		const { id, connection, held } = subscription;
		try {
			if (held === null) {
				connection.send(frame(id, text));
				return;
			}
			// The text is shared by all that hold it, so this bounds what one client costs from above.
			held.chars += text.length;
			if (held.chars <= MAX_HELD_CHARS) held.texts.push(text);
			else connection.close(TRY_AGAIN_LATER, "too slow");
		} catch (thrown) {
			this.#log.warn("a subscriber could not be told", { fault: safeError(thrown) });
		}
	}

	/** Its id was told: sends what was held. */
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
	/** What waits until the id was told; null when it was, and once the subscription has ended. */
	held: { readonly texts: string[]; chars: number } | null;
}

/** Put together from text, so that the result is not serialised anew for each id. */
function frame(id: string, result: string): string {
	return `{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"${id}","result":${result}}}`;
}

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
