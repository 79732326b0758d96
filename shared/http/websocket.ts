// JSON-RPC over websockets, on the port of the HTTP server. All connections share budgets by client, so that
// opening many gains nothing.

import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { type Clock, pause, type Timer } from "../clock.ts";
import type { Dispatcher } from "../jsonrpc/dispatch.ts";
import { errorText } from "../jsonrpc/envelope.ts";
import { RPC_ERRORS, type RpcErrorKind } from "../jsonrpc/errors.ts";
import { FairScheduler } from "../shares/scheduler.ts";
import { ByteBudget, Shares } from "../shares/shares.ts";
import {
	type CallContext,
	type ClientAddress,
	callContext,
	type RequestTarget,
	readTarget,
} from "./callContext.ts";
import { endWith, rawAnswer } from "./messages.ts";
import type { RateLimiter } from "./rateLimit.ts";
import type { UnreadBytes } from "./unreadBytes.ts";
import { WebsocketConnection, type WebsocketParts } from "./websocketConnection.ts";

export interface RpcWebsocketOptions {
	/** Paths that may be upgraded, without a slash at their end. */
	readonly paths: readonly string[];
	/** Bytes of a message at most; a longer one ends the connection with 1009. */
	readonly maxMessageBytes: number;
	/** Connections in all; a further upgrade gets 503. 10,000 unless said. */
	readonly maxConnections?: number;
	/** Messages of a connection that are worked on at a time. 32 unless said. */
	readonly maxUnderWay?: number;
}

interface RpcWebsocketDependencies {
	readonly dispatcher: Dispatcher<CallContext>;
	/** Takes what a message weighs. */
	readonly limiter: Pick<RateLimiter, "takeBody">;
	/** What readers have left unread; too much ends one with 1013. */
	readonly unread: UnreadBytes;
	readonly clock: Clock;
	/** Headers of each answer that refuses an upgrade. */
	readonly headers?: () => Readonly<Record<string, string>>;
}

const MAX_CONNECTIONS = 10_000;
const MAX_UNDER_WAY = 32;
/** Bytes of messages worked on at a time: of all, and of one client's; as many of unfinished ones. */
const MAX_BYTES = { total: 128 * 1024 * 1024, perClient: 32 * 1024 * 1024 };
/** Heroku cuts a connection on which nothing is said for 55 s. A client silent for two of these is cut. */
const PING_MS = 25_000;
/** How long the closing handshake may take. */
const CLOSE_TIMEOUT = { closeTimeout: 5_000 };

/** The websocket side of a server: give it to createHttpServer. */
export class RpcWebsocket {
	readonly #options: RpcWebsocketOptions;
	readonly #dependencies: RpcWebsocketDependencies;
	readonly #paths: ReadonlySet<string>;
	readonly #server: WebSocketServer;
	readonly #budget = new ByteBudget(MAX_BYTES);
	readonly #unfinished = new Shares(MAX_BYTES);
	/** One at a time, and one more of another client. What waits is bounded by what may be unread. */
	readonly #largeFrames = new FairScheduler({ concurrency: 2, maxWaiting: Number.POSITIVE_INFINITY });
	readonly #connections = new Set<WebsocketConnection>();
	#onEmpty: (() => void)[] = [];
	#pinging: Timer | undefined;
	#draining = false;

	constructor(options: RpcWebsocketOptions, dependencies: RpcWebsocketDependencies) {
		this.#options = options;
		this.#dependencies = dependencies;
		this.#paths = new Set(options.paths);
		this.#server = new WebSocketServer({
			noServer: true,
			clientTracking: false,
			maxPayload: options.maxMessageBytes,
			// Compression costs memory for each connection, and what is sent here hardly shrinks.
			perMessageDeflate: false,
			// One message a turn of the event loop: thousands come in one read, and others want to be served too.
			allowSynchronousEvents: false,
			...CLOSE_TIMEOUT,
		});
	}

	/** How many connections there are. */
	get size(): number {
		return this.#connections.size;
	}

	/** Owns the socket from here on. */
	upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, from: ClientAddress): void {
		const target = readTarget(request.url ?? "/");
		const refusal = this.#judge(request, target);
		if (refusal !== null) {
			endWith(socket, refusal);
			return;
		}
		this.#server.handleUpgrade(request, socket, head, (websocket) => {
			const client = { signer: null, ...from };
			const origin = request.headers.origin ?? null;
			this.#connect(websocket, socket, from.address, (connection, exchange, life) =>
				callContext(target, client, origin, connection, exchange, life),
			);
		});
	}

	/** Refuses new connections from now on. */
	drain(): void {
		this.#draining = true;
	}

	/**
	 * Refuses new connections, and closes the others when their calls under way are answered; resolves when all are closed.
	 * What is left after `deadlineMs` is cut.
	 */
	async stop(deadlineMs: number): Promise<void> {
		this.#draining = true;
		const empty = new Promise<void>((resolve) => this.#onEmpty.push(resolve));
		this.#tellIfEmpty();
		for (const connection of this.#connections) connection.finish();
		await Promise.race([empty, pause(this.#dependencies.clock, deadlineMs)]);
		for (const connection of this.#connections) connection.terminate();
		await empty;
		this.#pinging?.cancel();
	}

	/** The raw answer that refuses the upgrade, or null. */
	#judge(request: IncomingMessage, { path }: RequestTarget): string | null {
		const { maxConnections = MAX_CONNECTIONS } = this.#options;
		if (!this.#paths.has(path)) return this.#refusal(404, "invalidRequest", "invalid request: unknown path");
		if (request.headers["x-flashbots-signature"] !== undefined) {
			const message = "invalid request: X-Flashbots-Signature is not taken on a websocket";
			return this.#refusal(400, "invalidRequest", message);
		}
		if (this.#draining) return this.#refusal(503, "unavailable", "internal error: shutting down");
		if (this.#connections.size < maxConnections) return null;
		return this.#refusal(503, "limit", "limit exceeded: too many connections");
	}

	#refusal(status: number, kind: RpcErrorKind, message: string): string {
		const all = { ...(status === 503 ? { "retry-after": "1" } : {}), ...this.#dependencies.headers?.() };
		const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
		return rawAnswer(status, errorText(null, RPC_ERRORS[kind].code, message), lines);
	}

	#connect(socket: WebSocket, wire: Duplex, address: string, contextOf: WebsocketParts["contextOf"]): void {
		const { maxUnderWay = MAX_UNDER_WAY } = this.#options;
		const connection = new WebsocketConnection(address, {
			...this.#dependencies,
			...{ socket, wire, maxUnderWay, contextOf },
			budget: this.#budget,
			unfinished: this.#unfinished,
			onCrowd: () => this.#cutLargest(),
			largeFrames: this.#largeFrames,
		});
		this.#connections.add(connection);
		connection.onClose(() => {
			this.#connections.delete(connection);
			this.#tellIfEmpty();
		});
		this.#pinging ??= this.#dependencies.clock.after(PING_MS, () => this.#pingAll());
	}

	#tellIfEmpty(): void {
		if (this.#connections.size === 0) for (const resolve of this.#onEmpty.splice(0)) resolve();
	}

	/** Of the client that has the most unfinished, the connection that has the most of it. */
	#cutLargest(): void {
		const client = this.#unfinished.largest();
		let most: WebsocketConnection | null = null;
		for (const one of this.#connections) {
			if (one.client === client && one.unfinished > (most?.unfinished ?? 0)) most = one;
		}
		most?.terminate();
	}

	#pingAll(): void {
		for (const connection of this.#connections) connection.ping();
		this.#pinging =
			this.#connections.size === 0
				? undefined
				: this.#dependencies.clock.after(PING_MS, () => this.#pingAll());
	}
}
