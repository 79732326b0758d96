// Sends published results to the subscriptions of a topic: to websockets as `eth_subscription`, to
// event streams in their own form. A result is serialized once for all subscribers. They are served
// in turns of the event loop, fairly by client. Other modules decide which results a subscriber may
// see.

import { randomBytes } from "node:crypto";
import type { Connection, WebsocketMessage } from "../../shared/http/callContext.ts";
import type { LaterMessages } from "../../shared/http/laterMessages.ts";
import { Notifications, oneResult, type Results } from "../../shared/http/notifications.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import { MultiMap } from "../../shared/multiMap.ts";
import type { EventLoopQueue } from "../../shared/shares/scheduler.ts";
import { PENDING_TRANSACTIONS } from "../domain/endpoints.ts";
import type { Publisher } from "../domain/ports.ts";

/** Maximum number of subscriptions of one connection. */
export const MAX_SUBSCRIPTIONS = 16;
const ID_BYTES = 16;

/** The receiver of results: a websocket, or an event stream. */
export type Subscriber = Pick<Connection, "client" | "sendLater" | "hold" | "onClose">;

/** Makes the messages that a subscriber gets for results, under the subscription's id. */
type MakeMessages = (id: string, results: Results) => LaterMessages;

const asNotifications: MakeMessages = (id, results) => new Notifications(id, results);

/** All subscriptions of the process. Those of a connection end with it. */
export class SubscriptionHub implements Publisher {
	readonly #log: Logger;
	readonly #turns: EventLoopQueue;
	readonly #onEmpty: (topic: string) => void;
	readonly #isNews: (topic: string, text: string) => boolean;
	/** Topics with subscribers. */
	readonly #topics = new MultiMap<Subscription>();
	readonly #taps = new MultiMap<(text: string) => void>();
	readonly #connections = new Map<Subscriber, Map<string, Subscription>>();
	#size = 0;

	/**
	 * `onEmpty` is called when a topic has no subscribers any more. `isNews` decides whether
	 * subscribers receive a result, given as JSON; by default they receive all.
	 */
	constructor(dependencies: {
		readonly log: Logger;
		readonly turns: EventLoopQueue;
		readonly onEmpty?: ((topic: string) => void) | undefined;
		readonly isNews?: ((topic: string, text: string) => boolean) | undefined;
	}) {
		this.#log = dependencies.log;
		this.#turns = dependencies.turns;
		this.#onEmpty = dependencies.onEmpty ?? (() => {});
		this.#isNews = dependencies.isNews ?? (() => true);
	}

	/** The number of subscriptions. */
	get size(): number {
		return this.#size;
	}

	/** Whether `topic` has subscribers. */
	hasSubscribers(topic: string): boolean {
		return this.#topics.has(topic);
	}

	/**
	 * Calls `listener` with each result that is published under `topic`, as JSON. Returns a
	 * function that ends this.
	 */
	tap(topic: string, listener: (text: string) => void): () => void {
		this.#taps.add(topic, listener);
		return () => this.#taps.delete(topic, listener);
	}

	/**
	 * The rest, after `prefix`, of each subscribed topic that begins with it, and the client that
	 * subscribed first.
	 */
	*subscribed(prefix: string): Iterable<{ readonly suffix: string; readonly client: string }> {
		for (const topic of this.#topics.keys()) {
			if (!topic.startsWith(prefix)) continue;
			const [first] = this.#topics.get(topic);
			if (first !== undefined) yield { suffix: topic.slice(prefix.length), client: first.connection.client };
		}
	}

	/**
	 * Subscribes `connection`. Returns the subscription's id, 16 random bytes as 0x hex. If
	 * `message` is given, results wait until its answer, which carries the id, was sent. `make`
	 * sets the form of the results. Throws RpcError `limit`.
	 */
	subscribe(
		connection: Subscriber,
		topic: string,
		message: WebsocketMessage | null = null,
		make: MakeMessages = asNotifications,
	): string {
		const known = this.#connections.get(connection);
		const own = known ?? new Map<string, Subscription>();
		if (own.size >= MAX_SUBSCRIPTIONS) {
			throw new RpcError("limit", `limit exceeded: ${MAX_SUBSCRIPTIONS} subscriptions per connection`);
		}
		// A second subscription would send each transaction, in full, twice.
		if (topic === PENDING_TRANSACTIONS && [...own.values()].some((one) => one.topic === topic)) {
			throw new RpcError("limit", "limit exceeded: one subscription to pending transactions per connection");
		}
		const id = `0x${randomBytes(ID_BYTES).toString("hex")}`;
		const subscription: Subscription = { id, topic, connection, make, held: null, hasEnded: false };
		own.set(id, subscription);
		this.#topics.add(topic, subscription);
		this.#size++;
		if (message !== null) {
			subscription.held = [];
			message.onAnswered(() => this.#release(subscription));
		}
		if (known === undefined) this.#addConnection(connection, own);
		return id;
	}

	/** Ends a subscription of `connection`; false if it has none with this id. */
	unsubscribe(connection: Subscriber, id: string): boolean {
		const subscription = this.#connections.get(connection)?.get(id);
		if (subscription === undefined) return false;
		this.#connections.get(connection)?.delete(id);
		this.#forget(subscription);
		return true;
	}

	/**
	 * See {@link Publisher.publish}. An error of `make` is only logged, so that it does not reach
	 * the publisher.
	 */
	publish(topic: string, make: () => unknown): void {
		if (!this.#taps.has(topic) && !this.#topics.has(topic)) return;
		const text = this.#textOf(make);
		if (text === null) return;
		for (const tap of this.#taps.get(topic)) tap(text);
		if (this.#isNews(topic, text)) this.publishAll(topic, oneResult(text));
	}

	/** Publishes serialized results. */
	publishAll(topic: string, results: Results): void {
		for (const subscription of this.#topics.get(topic)) this.#sendInTurn(subscription, results);
	}

	/** Sends a result to one subscription, unless that has ended. */
	notify(connection: Subscriber, id: string, make: () => unknown): void {
		const subscription = this.#connections.get(connection)?.get(id);
		if (subscription === undefined) return;
		const text = this.#textOf(make);
		if (text !== null) this.#sendInTurn(subscription, oneResult(text));
	}

	/**
	 * Keeps the connection until it closes. If it is closed already, its subscriptions (`own`) end
	 * at once.
	 */
	#addConnection(connection: Subscriber, own: Map<string, Subscription>): void {
		this.#connections.set(connection, own);
		connection.onClose(() => {
			for (const subscription of own.values()) this.#forget(subscription);
			own.clear();
			this.#connections.delete(connection);
		});
	}

	#forget(subscription: Subscription): void {
		const { topic } = subscription;
		this.#topics.delete(topic, subscription);
		if (!this.#topics.has(topic)) this.#onEmpty(topic);
		for (const { release } of subscription.held ?? []) release();
		subscription.held = null;
		subscription.hasEnded = true;
		this.#size--;
	}

	#textOf(make: () => unknown): string | null {
		try {
			return JSON.stringify(make()) ?? "null";
		} catch (thrown) {
			this.#log.error("could not create a notification", { fault: safeError(thrown) });
			return null;
		}
	}

	#sendInTurn(subscription: Subscription, results: Results): void {
		this.#turns.run(subscription.connection.client, () => this.#send(subscription, results));
	}

	/**
	 * Sends or buffers results. A failing connection must not delay other subscribers, so its error
	 * is only logged.
	 */
	#send({ id, connection, make, held, hasEnded }: Subscription, results: Results): void {
		if (hasEnded) return;
		try {
			const messages = make(id, results);
			if (held === null) connection.sendLater(messages);
			else held.push({ results, release: connection.hold(messages.bytes) });
		} catch (thrown) {
			this.#log.warn("could not notify a subscriber", { fault: safeError(thrown) });
		}
	}

	/** Sends the buffered results, now that the client has the id. */
	#release(subscription: Subscription): void {
		const { held } = subscription;
		if (held === null) return;
		subscription.held = null;
		for (const { results, release } of held) {
			release();
			this.#send(subscription, results);
		}
	}
}

interface Subscription {
	readonly id: string;
	readonly topic: string;
	readonly connection: Subscriber;
	readonly make: MakeMessages;
	/**
	 * Results buffered until the client has the id, and counted as unread bytes. Null afterwards,
	 * and after the end of the subscription.
	 */
	held: { readonly results: Results; readonly release: () => void }[] | null;
	hasEnded: boolean;
}
