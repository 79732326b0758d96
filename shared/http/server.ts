// The HTTP server of a process, with its limits, start, drain and stop. The rules for requests are in requestHandler.ts. A port
// or address that can't be had is told in terms of the setting that names it.

import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { pause } from "../clock.ts";
import type { Component } from "../lifecycle.ts";
import { safeError } from "../log.ts";
import { badRequestText, crowded, endWith, rawAnswer, withoutUpgrade } from "./messages.ts";
import {
	RequestHandler,
	type RequestHandlerDependencies,
	type RequestHandlerOptions,
} from "./requestHandler.ts";
import type { RpcWebsocket } from "./websocket.ts";

export interface HttpServerOptions extends RequestHandlerOptions {
	/** What it is called in the log and as a component. */
	readonly name: string;
	readonly host: string;
	/** 0 takes a free one, see {@link HttpServer.port}. */
	readonly port: number;
	/** What the log says once it listens; "listening" unless given. */
	readonly announcement?: string;
	/** How long a request may take to arrive, in ms: what is slower is answered with 408. 30 s unless said. */
	readonly requestMs?: number;
	/** How long a stop waits for requests under way, in ms; 7 s unless said. */
	readonly stopMs?: number;
}

export interface HttpServerDependencies extends RequestHandlerDependencies {
	/** Without one, upgrades are answered like any request. */
	readonly websocket?: RpcWebsocket;
	/** Has its place until it starts, and what came in the meantime. */
	readonly standby?: { leave(): Handed | undefined };
}

/** What a server takes over from one that had its place. */
export interface Handed {
	/** Listens, without handlers. */
	readonly server: Server;
	readonly sockets: readonly Socket[];
	/** Requests that nobody has answered or read. */
	readonly requests: readonly Parameters<RequestHandler["handle"]>[];
}

/** Heroku's router keeps idle connections for 90 s: ours must last longer, or it would send into closed ones. */
const KEEP_ALIVE_MS = 95_000;
const REQUEST_MS = 30_000;
/** A connection on which nothing moved for this long, also not an answer that its client does not read, is cut. */
const SILENCE_MS = 120_000;
const STOP_MS = 7_000;
/** For requests whose first bytes are on their way when all others are answered. */
const STOP_GRACE_MS = 100;
/** Those of node's server that it has listeners for. */
const EVENTS = ["request", "checkContinue", "clientError", "connect", "upgrade", "error"] as const;

/** A server that is not started yet. */
export function createHttpServer(
	options: HttpServerOptions,
	dependencies: HttpServerDependencies,
): HttpServer {
	return new HttpServer(options, dependencies);
}

/** A server with its life: `start`, then `drain` (still serving, not ready any more), then `stop`. */
export class HttpServer implements Component {
	readonly name: string;
	readonly #options: HttpServerOptions;
	readonly #with: HttpServerDependencies;
	readonly #handler: RequestHandler;
	/** Null until it starts. */
	#server: Server | null = null;
	#draining = false;

	constructor(options: HttpServerOptions, dependencies: HttpServerDependencies) {
		this.name = options.name;
		this.#options = options;
		this.#with = dependencies;
		this.#handler = new RequestHandler(options, dependencies);
	}

	/** The port it listens on; 0 before the start. */
	get port(): number {
		return (this.#server?.address() as AddressInfo | null)?.port ?? 0;
	}

	get draining(): boolean {
		return this.#draining;
	}

	/** Rejects with node's error (EADDRINUSE, EACCES, …) when the port cannot be had. */
	async start(): Promise<void> {
		const { log, standby } = this.#with;
		const handed = standby?.leave();
		const server = handed?.server ?? this.#nodeServer();
		for (const socket of handed?.sockets ?? []) this.#handler.connections.add(socket);
		this.#takeFrom(server);
		if (handed === undefined) await this.#listen(server);
		this.#server = server;
		// A connection that could not be taken (no file handles left): without a listener it would end the process.
		server.on("error", (error) => log.error("a connection was lost", { fault: safeError(error) }));
		log.info(this.#options.announcement ?? "listening", { task: this.name, port: this.port });
		for (const request of handed?.requests ?? []) this.#handler.handle(...request);
	}

	/** Gives its place away: nothing more is answered here, also not what is under way. */
	leave(): Omit<Handed, "requests"> | undefined {
		const server = this.#server;
		if (server === null) return undefined;
		this.#server = null;
		for (const event of EVENTS) server.removeAllListeners(event);
		server.off("connection", this.#add);
		const open = [...this.#handler.connections.all()];
		for (const { requests } of open) for (const { end } of [...requests]) end();
		return { server, sockets: open.map(({ socket }) => socket as Socket) };
	}

	/** From now on connections are closed after their next answer; requests are still served, upgrades are not. */
	drain(): void {
		this.#draining = true;
		this.#handler.drain();
		this.#with.websocket?.drain();
	}

	/** Refuses new requests, waits for those under way, and cuts what is left after the time for it. Never rejects. */
	async stop(): Promise<void> {
		const server = this.#server;
		if (server === null) return;
		const { clock, websocket } = this.#with;
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

	#nodeServer(): Server {
		const { requestMs = REQUEST_MS } = this.#options;
		const server = createServer({
			keepAliveTimeout: KEEP_ALIVE_MS,
			headersTimeout: requestMs / 2,
			requestTimeout: requestMs,
			// Node looks for slow ones only this often.
			connectionsCheckingInterval: requestMs / 15,
		});
		server.timeout = SILENCE_MS;
		return server;
	}

	#listen(server: Server): Promise<void> {
		return new Promise((resolve, reject) => {
			server.once("error", reject);
			server.listen(this.#options.port, this.#options.host, () => {
				server.off("error", reject);
				resolve();
			});
		});
	}

	readonly #add = (socket: Socket): void => this.#handler.connections.add(socket);

	/** Everything that comes in by `server` is this one's. */
	#takeFrom(server: Server): void {
		const { connections } = this.#handler;
		const handle = this.#handler.handle.bind(this.#handler);
		server.on("connection", this.#add);
		server.on("request", handle);
		server.on("checkContinue", handle);
		server.on("clientError", (error: Error & { code?: string }, socket) => {
			// Behind a request that is not answered yet, the client would take ours for the answer to that one.
			if (error.code === "ECONNRESET" || !socket.writable || connections.isBusy(socket)) socket.destroy();
			else endWith(socket, badRequestText(error.code, this.#standingLines()));
		});
		// Without a listener node closes the connection without an answer.
		server.on("connect", (_request, socket) => {
			const body = JSON.stringify({ error: "expected one of POST, OPTIONS" });
			const headers = ["allow: POST, OPTIONS", ...this.#standingLines()];
			if (connections.isBusy(socket)) socket.destroy();
			else endWith(socket, rawAnswer(405, body, headers));
		});
		if (this.#with.websocket === undefined) return;
		server.on("upgrade", (request, socket, head) => {
			// Node answers requests in a row in their order, but knows of no order between them and what comes after
			// an upgrade: its first bytes would be taken for the answer that is still due.
			if (connections.isBusy(socket)) socket.destroy();
			else if (request.headers.upgrade?.toLowerCase() === "websocket") this.#upgrade(request, socket, head);
			else {
				// Java's client and curl offer HTTP/2 with each first request; the offer may be ignored (RFC 9110, 7.8).
				socket.unshift(withoutUpgrade(request, head));
				server.emit("connection", socket);
			}
		});
	}

	#upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
		const { connections } = this.#handler;
		const connection = connections.of(socket);
		if (connection === undefined) return;
		const from = this.#with.readAddress(request.headers, request.socket.remoteAddress);
		const { isOver, end } = connections.begin(connection, from, true);
		socket.once("close", end);
		if (!isOver) {
			this.#with.websocket?.upgrade(request, socket, head, from);
			return;
		}
		const { status, body, headers = {} } = crowded("POST", connections.maxPerClient);
		endWith(socket, rawAnswer(status, String(body), [...headerLines(headers), ...this.#standingLines()]));
	}

	#standingLines(): string[] {
		return headerLines(this.#options.headersFor?.(null) ?? {});
	}
}

function headerLines(headers: Readonly<Record<string, string>>): string[] {
	return Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
}

/** By the name of a server: the setting of its port, and its value. */
type PortSettings = Readonly<Record<string, readonly [setting: string, port: number | undefined]>>;

/** A port or address of the settings can't be had. The message is meant for the operator. */
class ListenError extends Error {
	readonly code = "LISTEN";
	constructor(message: string) {
		super(message);
		this.name = "ListenError";
	}
}

/** Starts them one after another. Throws {@link ListenError} for what another setting would help. */
export async function startListening(
	servers: readonly Pick<Component, "name" | "start">[],
	ports: PortSettings,
): Promise<void> {
	for (const server of servers) {
		await server.start().catch((thrown: unknown) => {
			throw listenError(server.name, ports, thrown);
		});
	}
}

/** Says which setting it was and what was expected; anything that is not about an address stays as it was. */
function listenError(server: string, ports: PortSettings, thrown: unknown): unknown {
	const code = (thrown as { code?: unknown } | null)?.code;
	const [setting, port] = ports[server] ?? ["PORT", undefined];
	if (code === "EADDRINUSE" || code === "EACCES") {
		const problem = code === "EACCES" ? "may not be used" : "is taken";
		return new ListenError(
			`${setting} ${port} ${problem}: expected a free port, for example ${setting}=8090`,
		);
	}
	if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND" || code === "EINVAL" || code === "EAI_AGAIN") {
		return new ListenError(
			"HOST is not valid: expected an address of this machine, for example HOST=127.0.0.1",
		);
	}
	return thrown;
}
