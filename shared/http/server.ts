// The HTTP server of a process: what comes in is connections, what goes out is their requests, handed on, and an
// orderly start and stop. It holds the limits on connections; the rules for requests are requestHandler.ts's.

import type { IncomingMessage, Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { type Clock, pause } from "../clock.ts";
import type { Component } from "../lifecycle.ts";
import { type Logger, safeError } from "../log.ts";
import { badRequestText, rawAnswer, withoutUpgrade } from "./badRequest.ts";
import type { ClientAddress, ReadAddress } from "./clientIdentity.ts";
import type { Connections } from "./connections.ts";
import type { HttpAnswer } from "./httpAnswer.ts";
import { listen, type NodeServer, type NodeServerOptions, nodeServer } from "./nodeServer.ts";
import type { PassThrough } from "./passThrough.ts";
import type { RateLimiter } from "./rateLimit.ts";
import { crowded } from "./refusals.ts";
import { RequestHandler } from "./requestHandler.ts";
import type { Route } from "./routes.ts";
import type { PostHandler } from "./rpcOverHttp.ts";
import type { Standby } from "./standby.ts";
import type { UnreadBytes } from "./unreadBytes.ts";

export interface HttpServerOptions extends NodeServerOptions {
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
	/** And of one client's; above it 429. 32 MiB unless said. */
	readonly maxBufferedBytesPerClient?: number;
	/** Requests under way at most; above it 503. 10,000 unless said. */
	readonly maxOpenRequests?: number;
	/** Headers of our own that web pages may read. */
	readonly exposedHeaders?: readonly string[];
	/**
	 * Headers of every answer of the server's own but preflights, unless the answer has them itself; undefined where it
	 * has them all. Null: of one that is not an answer to a request. Lower case.
	 */
	readonly headersFor?: (answer: HttpAnswer | null) => Readonly<Record<string, string>> | undefined;
	/** How long a stop waits for requests under way, in ms; 7 s unless said. */
	readonly stopMs?: number;
}

/** Takes upgrades to a websocket: see websocket.ts. */
export interface UpgradeHandler {
	/** Owns the socket from here on. */
	upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, from: ClientAddress): void;
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
	/** Has its place until it starts, and what came in the meantime. */
	readonly standby?: Standby;
	/** Limits routes that have a weight. */
	readonly limiter?: RateLimiter;
	/** Of the process, where it has more readers than this server's. */
	readonly unread?: UnreadBytes;
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
	/** Null until it starts. */
	#server: Server | null = null;
	#draining = false;

	constructor(options: HttpServerOptions, dependencies: HttpServerDependencies) {
		this.name = options.name;
		this.#options = options;
		this.#dependencies = dependencies;
		this.#handler = new RequestHandler(options, dependencies);
	}

	get port(): number {
		return (this.#server?.address() as AddressInfo | null)?.port ?? 0;
	}

	get draining(): boolean {
		return this.#draining;
	}

	/** Rejects with node's error (EADDRINUSE, EACCES, …) when the port cannot be had. */
	async start(): Promise<void> {
		const { log, standby } = this.#dependencies;
		const held = standby?.leave();
		const listening = held?.listening ?? nodeServer(this.#options);
		const { server } = listening;
		this.#takeFrom(listening);
		if (held === undefined) await listen(server, this.#options);
		this.#server = server;
		// A connection that could not be taken (no file handles left): without a listener it would end the process.
		server.on("error", (error) => log.error("a connection was lost", { fault: safeError(error) }));
		log.info("listening", { task: this.name, port: this.port });
		for (const { request, response, awaitsContinue } of held?.requests ?? []) {
			this.#handler.handle(request, response, awaitsContinue, listening.connections);
		}
	}

	drain(): void {
		this.#draining = true;
		this.#handler.drain();
		this.#dependencies.websocket?.drain();
	}

	/** Refuses new requests, waits for those under way, and cuts what is left after the time for it. Never rejects. */
	async stop(): Promise<void> {
		const server = this.#server;
		if (server === null) return;
		const { clock, websocket } = this.#dependencies;
		const deadlineMs = this.#options.stopMs ?? STOP_MS;
		this.drain();
		this.#handler.refuseAll();
		const closed = new Promise<void>((resolve) => server.close(() => resolve()));
		const deadline = pause(clock, deadlineMs);
		const sockets = websocket?.stop(deadlineMs) ?? Promise.resolve();
		await Promise.race([Promise.all([this.#handler.idle(), sockets]), deadline]);
		await Promise.race([closed, pause(clock, STOP_GRACE_MS), deadline]);
		server.closeAllConnections();
		await sockets;
		await closed;
	}

	/** Everything that comes in by `server` is this one's. */
	#takeFrom({ server, connections }: NodeServer): void {
		const { websocket, readAddress } = this.#dependencies;
		server.on("request", (request, response) => {
			this.#handler.handle(request, response, false, connections);
		});
		server.on("checkContinue", (request, response) => {
			this.#handler.handle(request, response, true, connections);
		});
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
					const from = readAddress(request.headers, request.socket.remoteAddress);
					const { isOver, end } = connections.begin(socket, from, true);
					socket.once("close", end);
					if (isOver) this.#refuseUpgrade(socket, connections);
					else websocket.upgrade(request, socket, head, from);
				} else {
					// Java's client and curl offer HTTP/2 with each first request; the offer may be ignored (RFC 9110, 7.8).
					socket.unshift(withoutUpgrade(request, head));
					server.emit("connection", socket);
				}
			});
		}
	}

	/** Its client has its share. */
	#refuseUpgrade(socket: Duplex, { maxPerClient }: Connections): void {
		socket.on("error", () => socket.destroy());
		const { status, body, headers } = crowded("POST", maxPerClient);
		const lines = Object.entries(headers ?? {}).map(([name, value]) => `${name}: ${value}`);
		const answer = rawAnswer(status, String(body), [...lines, ...this.#standingLines()]);
		socket.end(answer, () => socket.destroy());
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
