// The HTTP server of a process: what comes in is connections, what goes out is their requests, handed on, and an
// orderly start and stop. It holds the limits on connections; the rules for requests are requestHandler.ts's.

import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { type Clock, pause } from "../clock.ts";
import type { Component } from "../lifecycle.ts";
import { type Logger, safeError } from "../log.ts";
import { badRequestText, rawAnswer, withoutUpgrade } from "./badRequest.ts";
import type { ReadAddress } from "./clientIdentity.ts";
import type { HttpAnswer } from "./httpAnswer.ts";
import type { PassThrough } from "./passThrough.ts";
import type { RateLimiter } from "./rateLimit.ts";
import { RequestHandler } from "./requestHandler.ts";
import type { Route } from "./routes.ts";
import type { PostHandler } from "./rpcOverHttp.ts";

export interface HttpServerOptions {
	/** What it is called in the log and as a component. */
	readonly name: string;
	readonly host: string;
	/** 0 takes a free one, see {@link HttpServer.port}. */
	readonly port: number;
	/** Paths that take POST, without a slash at their end. */
	readonly rpcPaths: readonly string[];
	/** What is served beside that, by path. */
	readonly routes: readonly Route[];
	/** Bytes of a body at most. */
	readonly maxBodyBytes: number;
	/** Bytes of all bodies that are read or worked on at a time; above it 503. 256 MiB unless said. */
	readonly maxBufferedBytes?: number;
	/** Requests under way at most; above it 503. 10,000 unless said. */
	readonly maxOpenRequests?: number;
	/** Connections at most; further ones are closed at once. 10,000 unless said. */
	readonly maxConnections?: number;
	/** Headers of our own that web pages may read. */
	readonly exposedHeaders?: readonly string[];
	/**
	 * Headers of every answer of the server's own but preflights, unless the answer has them itself; undefined where it
	 * has them all. Null: of one that is not an answer to a request. Lower case.
	 */
	readonly headersFor?: (answer: HttpAnswer | null) => Readonly<Record<string, string>> | undefined;
	/** How long a request may take to arrive, in ms: what is slower is answered with 408. 30 s unless said. */
	readonly requestMs?: number;
	/** How long a stop waits for requests under way, in ms; 7 s unless said. */
	readonly stopMs?: number;
}

/** Takes upgrades to a websocket: see websocket.ts. */
export interface UpgradeHandler {
	/** Owns the socket from here on. */
	upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
	/** Refuses new connections from now on, and closes the others when their calls under way are answered. */
	drain(): void;
	/** Like {@link drain}; resolves when all connections are closed. What is left after `deadlineMs` is cut. */
	stop(deadlineMs: number): Promise<void>;
}

export interface HttpServerDependencies {
	/** Answers POSTs on `rpcPaths`. */
	readonly post?: PostHandler;
	/** Without one, upgrades are answered like any request. */
	readonly websocket?: UpgradeHandler;
	/** Takes what is on no path of a route, but for preflights; without one it is answered with 404. */
	readonly pass?: PassThrough;
	readonly readAddress: ReadAddress;
	/** Limits routes that have a weight. */
	readonly limiter?: RateLimiter;
	readonly log: Logger;
	readonly clock: Clock;
}

/** A server with its life: `start`, then `drain` (still serving, not ready any more), then `stop`. */
export interface HttpServer extends Component {
	/** The port it listens on; 0 before the start. */
	readonly port: number;
	readonly draining: boolean;
	/** From now on connections are closed after their next answer; requests are still served, upgrades are not. */
	drain(): void;
}

/** Heroku's router keeps idle connections for 90 s: ours must last longer, or it would send into closed ones. */
const KEEP_ALIVE_MS = 95_000;
const REQUEST_MS = 30_000;
/** A connection on which nothing moved for this long, also not an answer that its client does not read, is cut. */
const SILENCE_MS = 120_000;
const MAX_CONNECTIONS = 10_000;
const STOP_MS = 7_000;
/** For requests whose first bytes are on their way when all others are answered. */
const STOP_GRACE_MS = 100;

/** A server that is not started yet. */
export function createHttpServer(
	options: HttpServerOptions,
	dependencies: HttpServerDependencies,
): HttpServer {
	return new NodeHttpServer(options, dependencies);
}

class NodeHttpServer implements HttpServer {
	readonly name: string;
	readonly #options: HttpServerOptions;
	readonly #dependencies: HttpServerDependencies;
	readonly #handler: RequestHandler;
	readonly #server: Server;
	#draining = false;

	constructor(options: HttpServerOptions, dependencies: HttpServerDependencies) {
		this.name = options.name;
		this.#options = options;
		this.#dependencies = dependencies;
		this.#handler = new RequestHandler(options, dependencies);
		this.#server = this.#createServer();
	}

	get port(): number {
		return (this.#server.address() as AddressInfo | null)?.port ?? 0;
	}

	get draining(): boolean {
		return this.#draining;
	}

	/** Rejects with node's error (EADDRINUSE, EACCES, …) when the port cannot be had. */
	async start(): Promise<void> {
		const { host, port } = this.#options;
		await new Promise<void>((resolve, reject) => {
			this.#server.once("error", reject);
			this.#server.listen(port, host, () => {
				this.#server.off("error", reject);
				resolve();
			});
		});
		const { log } = this.#dependencies;
		// A connection that could not be taken (no file handles left): without a listener it would end the process.
		this.#server.on("error", (error) => log.error("a connection was lost", { fault: safeError(error) }));
		log.info("listening", { task: this.name, port: this.port });
	}

	drain(): void {
		this.#draining = true;
		this.#handler.drain();
		this.#dependencies.websocket?.drain();
	}

	/** Refuses new requests, waits for those under way, and cuts what is left after the time for it. Never rejects. */
	async stop(): Promise<void> {
		const { clock, websocket } = this.#dependencies;
		const deadlineMs = this.#options.stopMs ?? STOP_MS;
		this.drain();
		this.#handler.refuseAll();
		const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
		const deadline = pause(clock, deadlineMs);
		const sockets = websocket?.stop(deadlineMs) ?? Promise.resolve();
		await Promise.race([Promise.all([this.#handler.idle(), sockets]), deadline]);
		await Promise.race([closed, pause(clock, STOP_GRACE_MS), deadline]);
		this.#server.closeAllConnections();
		await sockets;
		await closed;
	}

	#createServer(): Server {
		const { websocket } = this.#dependencies;
		const { requestMs = REQUEST_MS } = this.#options;
		const server = createServer({
			keepAliveTimeout: KEEP_ALIVE_MS,
			headersTimeout: requestMs / 2,
			requestTimeout: requestMs,
			// Node looks for slow ones only this often.
			connectionsCheckingInterval: requestMs / 15,
		});
		server.timeout = SILENCE_MS;
		server.maxConnections = this.#options.maxConnections ?? MAX_CONNECTIONS;
		server.on("request", (request, response) => this.#handler.handle(request, response, false));
		server.on("checkContinue", (request, response) => this.#handler.handle(request, response, true));
		server.on("clientError", (error: Error & { code?: string }, socket) => this.#badRequest(error, socket));
		// Without a listener node closes it without a word.
		server.on("connect", (_request, socket) => {
			socket.on("error", () => socket.destroy());
			if (this.#handler.isBusy(socket)) {
				socket.destroy();
				return;
			}
			const body = JSON.stringify({ error: "expected one of POST, OPTIONS" });
			const headers = ["allow: POST, OPTIONS", ...this.#standingLines()];
			socket.end(rawAnswer(405, body, headers), () => socket.destroy());
		});
		if (websocket !== undefined) {
			server.on("upgrade", (request, socket, head) => {
				// Node answers requests in a row in their order, but knows of no order between them and what comes after
				// an upgrade: its first bytes would be taken for the answer that is still due.
				if (this.#handler.isBusy(socket)) socket.destroy();
				else if (request.headers.upgrade?.toLowerCase() === "websocket") {
					websocket.upgrade(request, socket, head);
				} else {
					// Java's client and curl offer HTTP/2 with each first request; the offer may be ignored (RFC 9110, 7.8).
					socket.unshift(withoutUpgrade(request, head));
					server.emit("connection", socket);
				}
			});
		}
		return server;
	}

	#badRequest(error: Error & { code?: string }, socket: Duplex): void {
		// Behind a request that is not answered yet, the client would take ours for the answer to that one.
		if (error.code === "ECONNRESET" || !socket.writable || this.#handler.isBusy(socket)) socket.destroy();
		else socket.end(badRequestText(error.code, this.#standingLines()), () => socket.destroy());
	}

	#standingLines(): string[] {
		const headers = this.#options.headersFor?.(null) ?? {};
		return Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
	}
}
