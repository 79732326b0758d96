// Both sides of subscriptions for tests: a searcher's websocket client, fake connections that
// record what they are sent, and a server with the subscription methods on a free port.

import type { ClientOptions } from "ws";
import type { TransactionRecord } from "../../relay/domain/record.ts";
import { Core } from "../../relay/edge/core.ts";
import type { CoreNeeds, MethodDependencies } from "../../relay/ingress/methodDependencies.ts";
import { eth_subscribe, eth_unsubscribe } from "../../relay/ingress/methods/subscriptions.ts";
import { SubscriptionHub } from "../../relay/ingress/subscriptions.ts";
import { createTopics } from "../../relay/ingress/topics.ts";
import { Followers } from "../../relay/status/followers.ts";
import { addressReader } from "../../shared/client.ts";
import { systemClock } from "../../shared/clock.ts";
import { unknownStatus } from "../../shared/ethereum/statusRecord.ts";
import type { CallContext, Connection, WebsocketMessage } from "../../shared/http/callContext.ts";
import type { LaterMessages } from "../../shared/http/laterMessages.ts";
import { RateLimiter } from "../../shared/http/rateLimit.ts";
import { rpcOverHttp } from "../../shared/http/routes.ts";
import { createHttpServer } from "../../shared/http/server.ts";
import { UnreadBytes } from "../../shared/http/unreadBytes.ts";
import { RpcWebsocket } from "../../shared/http/websocket.ts";
import { createDispatcher } from "../../shared/jsonrpc/dispatch.ts";
import { methodTable } from "../../shared/jsonrpc/method.ts";
import { silentLogger } from "../../shared/log.ts";
import { EventLoopQueue } from "../../shared/shares/scheduler.ts";
import { NO_TRACES } from "../../shared/tracing/traces.ts";
import { WsClient } from "./clients.ts";
import { PATIENCE_MS, until } from "./until.ts";

/** A message from the server. */
interface Frame {
	readonly id?: unknown;
	readonly result?: unknown;
	readonly error?: { readonly code: number; readonly message: string };
	readonly method?: string;
	readonly params?: { readonly subscription: string; readonly result: unknown };
}

/** The `result` of a notification. */
export type Told = Readonly<Record<string, unknown>>;

/** A searcher's client on an open websocket. */
export class FeedClient {
	readonly ws: WsClient;
	/** Every received text, in order. */
	readonly texts: string[] = [];
	readonly #frames: Frame[] = [];
	#id = 0;

	private constructor(ws: WsClient) {
		this.ws = ws;
		ws.socket.on("message", (data) => {
			this.texts.push(String(data));
			this.#frames.push(JSON.parse(String(data)) as Frame);
		});
	}

	static async open(url: string, options: ClientOptions = {}): Promise<FeedClient> {
		return new FeedClient(await WsClient.open(url, options));
	}

	/** Makes a call, and returns the whole answer. */
	async ask(method: string, params: readonly unknown[]): Promise<Frame> {
		this.#id += 1;
		return this.say(JSON.stringify({ jsonrpc: "2.0", id: this.#id, method, params }));
	}

	/**
	 * Sends `request` unchanged, whose id may have been used before, and returns the whole answer.
	 */
	say(request: string): Promise<Frame> {
		const { id } = JSON.parse(request) as Frame;
		const { socket } = this.ws;
		return new Promise((resolve, reject) => {
			const timer = setTimeout(() => end(new Error(`no answer to ${request}`)), PATIENCE_MS);
			const look = (): void => {
				const frame = this.#frames.at(-1);
				if (frame !== undefined && frame.id === id) end(frame);
			};
			const end = (outcome: Frame | Error): void => {
				clearTimeout(timer);
				socket.off("message", look);
				if (outcome instanceof Error) reject(outcome);
				else resolve(outcome);
			};
			// Behind the listener of the constructor, which has kept the frame by then.
			socket.on("message", look);
			this.ws.send(request);
		});
	}

	/** Makes a call, and returns its result; throws with the code and message of an error. */
	async call(method: string, params: readonly unknown[]): Promise<unknown> {
		const { result, error } = await this.ask(method, params);
		if (error !== undefined) throw new Error(`${error.code} ${error.message}`);
		return result;
	}

	/** Subscribes, and returns the subscription's id. */
	async subscribe(...params: readonly unknown[]): Promise<string> {
		return String(await this.call("eth_subscribe", params));
	}

	/** The results that all subscriptions have received so far. */
	get told(): readonly Told[] {
		return this.#frames.flatMap(({ params }) => (params === undefined ? [] : [params.result as Told]));
	}

	/** The results that `subscription` has received so far. */
	received(subscription: string): readonly Told[] {
		return this.#frames.flatMap(({ params }) =>
			params?.subscription === subscription ? [params.result as Told] : [],
		);
	}

	/** How often `subscription` has received the transaction with this hash. */
	times(subscription: string, hash: string): number {
		return this.received(subscription).filter((one) => one.hash === hash).length;
	}

	/**
	 * Waits until `subscription` receives the transaction with this hash, and returns the first
	 * result.
	 */
	shown(subscription: string, hash: string): Promise<Told> {
		return until(`${hash} on the feed`, () => this.received(subscription).find((one) => one.hash === hash));
	}

	/**
	 * The positions among all frames of the answer with the id of `subscription`, and of its first
	 * notification.
	 */
	order(subscription: string): { readonly answer: number; readonly first: number } {
		return {
			answer: this.#frames.findIndex(({ result }) => result === subscription),
			first: this.#frames.findIndex(({ params }) => params?.subscription === subscription),
		};
	}

	close(): void {
		this.ws.terminate();
	}
}

/** A parsed notification. */
interface Notification {
	readonly jsonrpc: string;
	readonly method: string;
	readonly params: { readonly subscription: string; readonly result: unknown };
}

/** A fake connection that records what it is sent. */
export class Listener implements Connection {
	readonly frames: string[] = [];
	readonly closes: { readonly code: number; readonly reason: string }[] = [];
	readonly client = "192.0.2.1";
	/** Bytes that are kept for it. */
	held = 0;
	/** The number of listeners for its end. */
	watchers = 0;
	/** If set, the next sends throw it. */
	fault: Error | null = null;
	#onClose: (() => void)[] = [];
	#ended = false;

	send(text: string): void {
		if (this.fault !== null) throw this.fault;
		this.frames.push(text);
	}

	sendLater(messages: LaterMessages): void {
		while (messages.count > 0) this.send(String(messages.next()));
	}

	hold(bytes: number): () => void {
		this.held += bytes;
		return () => {
			this.held -= bytes;
		};
	}

	onDrained(listener: () => void): void {
		listener();
	}

	finish(): void {
		this.close(1012, "the server restarts: connect again");
	}

	close(code: number, reason: string): void {
		this.closes.push({ code, reason });
	}

	onClose(listener: () => void): void {
		this.watchers++;
		if (this.#ended) listener();
		else this.#onClose.push(listener);
	}

	end(): void {
		this.#ended = true;
		for (const listener of this.#onClose.splice(0)) listener();
	}

	/** All that it was sent, parsed. */
	get received(): readonly Notification[] {
		return this.frames.map((text) => JSON.parse(text) as Notification);
	}

	/** Subscription and result of each notification that it was sent. */
	get results(): readonly (readonly [string, unknown])[] {
		return this.received.map(({ params }) => [params.subscription, params.result] as const);
	}
}

/** A message that is answered when the test says so. */
export class OpenMessage implements WebsocketMessage {
	#listeners: (() => void)[] = [];

	onAnswered(listener: () => void): void {
		this.#listeners.push(listener);
	}

	answer(): void {
		for (const listener of this.#listeners.splice(0)) listener();
	}
}

/** A running server. */
export interface SubscriptionServer {
	/** `ws://127.0.0.1:port` */
	readonly wsUrl: string;
	readonly hub: SubscriptionHub;
	/**
	 * The transactions' records by hash, as the server reads them; notifications show hash and stage.
	 */
	readonly records: Map<string, TransactionRecord>;
	/** Awaited after each read of a record, before it is returned. */
	reading: () => Promise<void>;
	readonly followers: Followers;
	stop(): Promise<void>;
}

/**
 * Starts the server, with `aliases` of the pending transactions' subscription. It trusts one proxy
 * (TRUST_PROXY 1).
 */
export async function startSubscriptionServer(aliases: readonly string[]): Promise<SubscriptionServer> {
	const log = silentLogger;
	const clock = systemClock;
	const hub = new SubscriptionHub({ log, turns: new EventLoopQueue({ clock }) });
	const records = new Map<string, TransactionRecord>();
	const followers = new Followers({ log });
	const statusView: CoreNeeds["statusView"] = ({ hash, stage }) => ({ ...unknownStatus(hash), stage });
	const topics = createTopics({
		subscriptions: hub,
		bundles: { bundle: () => null },
		statusView,
		records: {
			async record(hash) {
				const record = records.get(hash) ?? null;
				await running.reading();
				return record;
			},
		},
	});
	const core = new Core<CoreNeeds>({
		subscriptions: hub,
		charge() {},
		recover: () => undefined,
		traces: NO_TRACES,
		clock,
		timeoutMs: 1_000,
	});
	await core.take({ needs: {} as CoreNeeds, term: null, follow: topics, shared: () => [] });
	const needs: Pick<MethodDependencies, "subscriptions" | "subscriptionAliases" | "core"> = {
		...{ subscriptions: hub, subscriptionAliases: aliases, core },
	};
	// These two methods need nothing else of the relay.
	const methods = methodTable([eth_subscribe, eth_unsubscribe], needs as MethodDependencies);
	const dispatcher = createDispatcher<CallContext>({ maxBatch: 100 }, { methods, log, clock });
	const limiter = new RateLimiter({ rps: 0 }, { clock });
	const readAddress = addressReader({ trustProxy: 1 });
	const websocket = new RpcWebsocket(
		{ paths: ["/"], maxMessageBytes: 65_536 },
		{ dispatcher, limiter, unread: new UnreadBytes({ clock }), clock },
	);
	const server = createHttpServer(
		{ name: "test", host: "127.0.0.1", port: 0, rpcPaths: ["/"], routes: [], maxBodyBytes: 65_536 },
		{ post: rpcOverHttp({ dispatcher, limiter }), websocket, readAddress, log, clock },
	);
	await server.start();
	const running: SubscriptionServer = {
		wsUrl: `ws://127.0.0.1:${server.port}`,
		hub,
		...{ records, followers },
		reading: async () => {},
		stop: () => server.stop(),
	};
	return running;
}
