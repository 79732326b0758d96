// JSON-RPC over websockets, on the port of the HTTP server. Budgets are per client, so that many
// connections gain nothing.

import { randomInt } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import type { ClientAddress } from "../client.ts";
import { type Clock, inSlices, pause, type Timer } from "../clock.ts";
import { errorText } from "../jsonrpc/answers.ts";
import type { Dispatcher } from "../jsonrpc/dispatch.ts";
import { RPC_ERRORS, type RpcErrorKind } from "../jsonrpc/errors.ts";
import { MessageIds, REQUEST_ID, requestIdOf } from "../requestId.ts";
import { FairScheduler } from "../shares/scheduler.ts";
import { ByteBudget, Shares } from "../shares/shares.ts";
import { type CallContext, callContext, type RequestTarget, readTarget } from "./callContext.ts";
import { endWith, rawAnswer } from "./messages.ts";
import type { RateLimiter } from "./rateLimit.ts";
import type { UnreadBytes } from "./unreadBytes.ts";
import { WebsocketConnection, type WebsocketDependencies } from "./websocketConnection.ts";

export interface RpcWebsocketOptions {
	/** Paths that may be upgraded, without a trailing slash. */
	readonly paths: readonly string[];
	/** A longer message closes the connection with 1009. */
	readonly maxMessageBytes: number;
	/** Further upgrades get 503. Default 10,000. */
	readonly maxConnections?: number;
	/** Messages of a connection in flight. Default 32. */
	readonly maxInFlight?: number;
}

interface RpcWebsocketDependencies {
	readonly dispatcher: Dispatcher<CallContext>;
	/** Rate limits messages by size, and pings. */
	readonly limiter: Pick<RateLimiter, "takeBody" | "takeFrom">;
	/** Closes connections that read too slowly with 1013. */
	readonly unread: UnreadBytes;
	readonly clock: Clock;
	/** Headers of answers that refuse an upgrade. */
	readonly headers?: () => Readonly<Record<string, string>>;
}

const MAX_CONNECTIONS = 10_000;
const MAX_IN_FLIGHT = 32;
/**
 * Average bytes of a piece, in the longest message that may come in pieces. go-ethereum's client
 * sends 1,024 in each.
 */
const LEAST_PIECE = 512;
/** Bytes of messages in flight, and the same limit again for unfinished ones. */
const MAX_BYTES = { total: 128 * 1024 * 1024, perClient: 32 * 1024 * 1024 };
/**
 * Heroku closes connections that are idle for 55 s. A client that misses a ping is disconnected at
 * the next one.
 */
const PING_MS = 25_000;
/** Minimum time between two searches for due pings, in ms. */
const PING_STEP_MS = 50;
/** How long the closing handshake may take. */
const CLOSE_TIMEOUT = { closeTimeout: 5_000 };
/**
 * Longest and shortest pause between two closes of a drain, in ms. With the longest one, a few
 * websockets don't prolong the drain.
 */
const CLOSE_STEP_MS = { most: 200, least: 20 };

/** The websocket side of a server: give it to createHttpServer. */
export class RpcWebsocket {
	readonly #options: RpcWebsocketOptions;
	readonly #dependencies: RpcWebsocketDependencies;
	readonly #paths: ReadonlySet<string>;
	readonly #server: WebSocketServer;
	readonly #budget = new ByteBudget(MAX_BYTES);
	readonly #unfinished = new Shares(MAX_BYTES);
	/**
	 * Sends large frames, at most one of each client at a time. The limit of unread bytes bounds
	 * the queue.
	 */
	readonly #largeFrames = new FairScheduler({ concurrency: 2, maxWaiting: Number.POSITIVE_INFINITY });
	/**
	 * Open connections, each with the time of its next ping in monotonic ms. They are in the order
	 * of these times.
	 */
	readonly #connections = new Map<WebsocketConnection, number>();
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
			maxFragments: Math.ceil(options.maxMessageBytes / LEAST_PIECE),
			// Compression costs memory per connection, and hashes and signatures hardly shrink.
			perMessageDeflate: false,
			// Connections answer pings themselves, since these are limited.
			autoPong: false,
			// One message in each turn of the event loop, since a single read may hold thousands.
			allowSynchronousEvents: false,
			...CLOSE_TIMEOUT,
		});
		this.#server.on("headers", (lines, { headers }) => lines.push(`X-Request-Id: ${headers[REQUEST_ID]}`));
	}

	/** Open connections. */
	get size(): number {
		return this.#connections.size;
	}

	/** Takes over the socket. */
	upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, from: ClientAddress): void {
		const target = readTarget(request.url ?? "/");
		const refusal = this.#check(request, target);
		if (refusal !== null) {
			endWith(socket, refusal);
			return;
		}
		const requestId = requestIdOf(request.headers[REQUEST_ID]);
		request.headers[REQUEST_ID] = requestId;
		this.#server.handleUpgrade(request, socket, head, (websocket) => {
			const client = { signer: null, ...from };
			const ids = new MessageIds(requestId);
			const origin = request.headers.origin ?? null;
			this.#connect(websocket, socket, from.address, (connection, message, life) =>
				callContext(target, client, origin, connection, message, life, ids.next()),
			);
		});
	}

	/** Refuses new connections. */
	drain(): void {
		this.#draining = true;
	}

	/**
	 * Closes all connections evenly over `ms`, or faster if they are few, in random order. Their
	 * clients reconnect, and another server must not receive them all in one second. Resolves when
	 * {@link WebsocketConnection.finish} was called on each.
	 */
	async closeOver(ms: number): Promise<void> {
		const { clock } = this.#dependencies;
		const all = shuffled(this.#connections.keys());
		const stepMs = Math.min(CLOSE_STEP_MS.most, ms / all.length);
		const begun = clock.monotonic();
		for (let closed = 0; ; ) {
			const due = stepMs > 0 ? Math.floor((clock.monotonic() - begun) / stepMs) + 1 : all.length;
			await inSlices(all.slice(closed, due), clock, (connection) => connection.finish());
			closed = due;
			if (closed >= all.length || this.#connections.size === 0) return;
			await pause(clock, Math.max(CLOSE_STEP_MS.least, stepMs));
		}
	}

	/**
	 * Refuses new connections, and closes the others when their calls in flight are answered, or at
	 * the latest after `deadlineMs`. Resolves when all are closed.
	 */
	async stop(deadlineMs: number): Promise<void> {
		this.#draining = true;
		const empty = new Promise<void>((resolve) => this.#onEmpty.push(resolve));
		this.#notifyIfEmpty();
		for (const connection of this.#connections.keys()) connection.finish();
		await Promise.race([empty, pause(this.#dependencies.clock, deadlineMs)]);
		for (const connection of this.#connections.keys()) connection.terminate();
		await empty;
		this.#pinging?.cancel();
	}

	/** The raw answer that refuses the upgrade, or null. */
	#check(request: IncomingMessage, { path }: RequestTarget): string | null {
		const { maxConnections = MAX_CONNECTIONS } = this.#options;
		if (!this.#paths.has(path)) return this.#refusal(404, "invalidRequest", "invalid request: unknown path");
		for (const name of ["X-Flashbots-Signature", "X-Leeward-Signature"]) {
			if (request.headers[name.toLowerCase()] === undefined) continue;
			return this.#refusal(400, "invalidRequest", `invalid request: ${name} is not accepted on a websocket`);
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

	#connect(
		socket: WebSocket,
		wire: Duplex,
		address: string,
		contextOf: WebsocketDependencies["contextOf"],
	): void {
		const { maxInFlight = MAX_IN_FLIGHT } = this.#options;
		const connection = new WebsocketConnection(address, {
			...this.#dependencies,
			socket,
			wire,
			maxInFlight,
			contextOf,
			budget: this.#budget,
			unfinished: this.#unfinished,
			onCrowd: () => this.#terminateLargest(),
			largeFrames: this.#largeFrames,
		});
		this.#connections.set(connection, this.#dependencies.clock.monotonic() + PING_MS);
		connection.onClose(() => {
			this.#connections.delete(connection);
			this.#notifyIfEmpty();
		});
		this.#pinging ??= this.#dependencies.clock.after(PING_MS, () => this.#pingDue());
	}

	#notifyIfEmpty(): void {
		if (this.#connections.size === 0) for (const resolve of this.#onEmpty.splice(0)) resolve();
	}

	/** Terminates the connection with the most unfinished bytes, of the client with the most. */
	#terminateLargest(): void {
		const client = this.#unfinished.largest();
		let most: WebsocketConnection | null = null;
		for (const one of this.#connections.keys()) {
			if (one.client === client && one.unfinished > (most?.unfinished ?? 0)) most = one;
		}
		most?.terminate();
	}

	/**
	 * Pings the connections whose ping is due. Each connection has its own schedule, which begins
	 * when it opens. To ping 10,000 at once, and to read all their pongs, would block the event
	 * loop for 100 ms.
	 */
	#pingDue(): void {
		const { clock } = this.#dependencies;
		const now = clock.monotonic();
		for (const [connection, due] of this.#connections) {
			if (due > now) break;
			// Moves the connection to the end, so that the first one is always due next.
			this.#connections.delete(connection);
			this.#connections.set(connection, now + PING_MS);
			connection.ping();
		}
		const [next] = this.#connections.values();
		this.#pinging =
			next === undefined ? undefined : clock.after(Math.max(PING_STEP_MS, next - now), () => this.#pingDue());
	}
}

function shuffled<T>(items: Iterable<T>): readonly T[] {
	const mixed = [...items];
	for (let last = mixed.length - 1; last > 0; last--) {
		const other = randomInt(last + 1);
		[mixed[last], mixed[other]] = [mixed[other] as T, mixed[last] as T];
	}
	return mixed;
}
