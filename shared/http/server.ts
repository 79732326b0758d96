// The HTTP server of a process: limits, start, drain and stop. The rules for requests are in
// requestHandler.ts. Errors about the port or address name the setting.

import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Clock, pause } from "../clock.ts";
import type { Component } from "../lifecycle.ts";
import { type Logger, safeError } from "../log.ts";
import { badRequestText, endWith, rawAnswer, tooManyRequestsAnswer, withoutUpgrade } from "./messages.ts";
import type { ReadRequest } from "./openConnection.ts";
import {
	RequestHandler,
	type RequestHandlerDependencies,
	type RequestHandlerOptions,
} from "./requestHandler.ts";
import type { RpcWebsocket } from "./websocket.ts";

export interface HttpServerOptions extends RequestHandlerOptions {
	/** For the log. */
	readonly name: string;
	readonly host: string;
	/** 0 for any free port, see {@link HttpServer.port}. */
	readonly port: number;
	/** Log message once it listens. Default "listening". */
	readonly announcement?: string;
	/** How long a request may take to arrive before it gets 408, in ms. Default 30 s. */
	readonly requestMs?: number;
	/** How long a stop waits for requests in flight, in ms. Default 6 s. */
	readonly stopMs?: number;
}

export type UpgradeHandler = Pick<RpcWebsocket, "upgrade" | "drain" | "stop">;

interface HttpServerDependencies extends RequestHandlerDependencies {
	/** If absent, upgrades are answered like other requests. */
	readonly websocket?: UpgradeHandler;
	/**
	 * Listens on the port until the server starts, then passes on the port and all connections and
	 * requests that arrived meanwhile.
	 */
	readonly standby?: { leave(): Handover | undefined };
}

/** The state that a server receives from the standby. */
export interface Handover {
	/** Listening, without handlers. */
	readonly server: Server;
	readonly sockets: readonly Socket[];
	/** Requests without a handler, whose bodies are unread. Those of one connection are in order. */
	readonly requests: readonly ReadRequest[];
}

/**
 * Longer than the 90 s of Heroku's router, which would otherwise use connections that are just
 * being closed.
 */
const KEEP_ALIVE_MS = 95_000;
const REQUEST_MS = 30_000;
/**
 * Connections without any progress for this long are closed, also if the client does not read its
 * answer.
 */
const SILENCE_MS = 120_000;
const STOP_MS = 6_000;
/**
 * Connections that may wait to be accepted: as many as a server holds, or as the system allows. Any
 * more only connect seconds later, when TCP tries again. Node's default of 511 is too small for the
 * clients that reconnect when another process has ended.
 */
const BACKLOG = 10_000;
/**
 * Time to wait, after all other requests are answered, for requests whose first bytes are still
 * arriving.
 */
const STOP_GRACE_MS = 100;
/** Events of Node's server that have listeners here. */
const EVENTS = ["request", "checkContinue", "clientError", "connect", "upgrade", "error"] as const;

export function createHttpServer(
	options: HttpServerOptions,
	dependencies: HttpServerDependencies,
): HttpServer {
	return new HttpServer(options, dependencies);
}

/** Call `start`, then `drain` (still serving, but not ready any more), then `stop`. */
export class HttpServer implements Component {
	readonly name: string;
	readonly #options: HttpServerOptions;
	readonly #dependencies: HttpServerDependencies;
	readonly #handler: RequestHandler;
	#server: Server | null = null;
	#draining = false;

	constructor(options: HttpServerOptions, dependencies: HttpServerDependencies) {
		this.name = options.name;
		this.#options = options;
		this.#dependencies = dependencies;
		this.#handler = new RequestHandler(options, dependencies);
	}

	/** The port it listens on; 0 before the start. */
	get port(): number {
		return (this.#server?.address() as AddressInfo | null)?.port ?? 0;
	}

	get draining(): boolean {
		return this.#draining;
	}

	/** Rejects with Node's error (EADDRINUSE, EACCES, …) if it can't listen. */
	async start(): Promise<void> {
		const { log, standby } = this.#dependencies;
		const handed = standby?.leave();
		const server = handed?.server ?? this.#nodeServer();
		for (const socket of handed?.sockets ?? []) this.#handler.connections.add(socket);
		this.#attachTo(server);
		if (handed === undefined) await this.#listen(server);
		this.#server = server;
		// For example if no file handles are left. Without a listener the error would end the
		// process.
		server.on("error", (error) => log.error("connection lost", { fault: safeError(error) }));
		log.info(this.#options.announcement ?? "listening", { task: this.name, port: this.port });
		for (const request of handed?.requests ?? []) this.#handler.handle(...request);
	}

	/**
	 * Gives up the port, the connections and the requests that wait on them, and returns them. No
	 * more requests are answered here, not even those in flight. If `isFinishing`, requests that
	 * were read are still answered here.
	 */
	leave(isFinishing = false): Handover | undefined {
		const server = this.#server;
		if (server === null) return undefined;
		this.#server = null;
		for (const event of EVENTS) server.removeAllListeners(event);
		server.off("connection", this.#add);
		const open = [...this.#handler.connections.all()];
		for (const connection of open) connection.detach();
		const requests = isFinishing ? [] : open.flatMap((connection) => connection.takeWaiting());
		if (!isFinishing) for (const { exchange } of open) if (exchange !== null) this.#handler.end(exchange);
		return { server, sockets: open.map(({ socket }) => socket), requests };
	}

	/**
	 * Closes each connection after its next answer. Requests are still served, upgrades are refused.
	 */
	drain(): void {
		this.#draining = true;
		this.#handler.drain();
		this.#dependencies.websocket?.drain();
	}

	/**
	 * Refuses new requests, waits for those in flight, and finally closes all connections. Never
	 * rejects.
	 */
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

	#nodeServer(): Server {
		const { requestMs = REQUEST_MS } = this.#options;
		const server = createServer({
			keepAliveTimeout: KEEP_ALIVE_MS,
			headersTimeout: requestMs / 2,
			requestTimeout: requestMs,
			// The interval at which Node checks both.
			connectionsCheckingInterval: requestMs / 15,
		});
		server.timeout = SILENCE_MS;
		return server;
	}

	#listen(server: Server): Promise<void> {
		return new Promise((resolve, reject) => {
			server.once("error", reject);
			const { port, host } = this.#options;
			server.listen({ port, host, backlog: BACKLOG }, () => {
				server.off("error", reject);
				resolve();
			});
		});
	}

	readonly #add = (socket: Socket): void => this.#handler.connections.add(socket);

	#attachTo(server: Server): void {
		const { connections } = this.#handler;
		const handle = this.#handler.handle.bind(this.#handler);
		server.on("connection", this.#add);
		server.on("request", handle);
		server.on("checkContinue", handle);
		server.on("clientError", (error: Error & { code?: string }, socket) => {
			const connection = connections.of(socket);
			// The next request is not late: we do not read on while a request is unanswered.
			if (error.code === "ERR_HTTP_REQUEST_TIMEOUT" && connection?.isUnanswered === true) return;
			connection?.detach();
			if (error.code === "ECONNRESET" || !socket.writable || connection?.isBusy === true) socket.destroy();
			else endWith(socket, badRequestText(error.code, this.#standingLines()));
		});
		// Without a listener Node closes the connection unanswered.
		server.on("connect", (_request, socket) => {
			const body = JSON.stringify({ error: "expected one of POST, OPTIONS" });
			const headers = ["allow: POST, OPTIONS", ...this.#standingLines()];
			const connection = connections.of(socket);
			connection?.detach();
			if (connection?.isBusy === true) socket.destroy();
			else endWith(socket, rawAnswer(405, body, headers));
		});
		if (this.#dependencies.websocket === undefined) return;
		server.on("upgrade", (request, socket, head) => {
			const connection = connections.of(socket);
			connection?.detach();
			// Node keeps no order between an upgrade and the requests that it read with the
			// upgrade. The first bytes of the upgrade would be mistaken for the answer to an
			// unanswered request.
			if (connection?.isBusy === true) socket.destroy();
			else if (request.headers.upgrade?.toLowerCase() === "websocket") this.#upgrade(request, socket, head);
			else {
				// Java's client and curl offer HTTP/2 in their first request, which may be ignored (RFC
				// 9110, 7.8).
				socket.unshift(withoutUpgrade(request, head));
				server.emit("connection", socket);
			}
		});
	}

	#upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
		const { connections } = this.#handler;
		const connection = connections.of(socket);
		if (connection === undefined) return;
		const from = this.#dependencies.readAddress(request.headers, request.socket.remoteAddress);
		const [isOverLimit, end] = connections.begin(connection, from, true);
		socket.once("close", end);
		const refusal = isOverLimit
			? tooManyRequestsAnswer({ method: "POST", headers: {} }, connections.maxPerClient)
			: (this.#options.refuse?.(from) ?? null);
		if (refusal === null) {
			this.#dependencies.websocket?.upgrade(request, socket, head, from);
			return;
		}
		const { status, body, headers = {} } = refusal;
		endWith(socket, rawAnswer(status, String(body), [...headerLines(headers), ...this.#standingLines()]));
	}

	#standingLines(): string[] {
		return headerLines(this.#options.headersFor?.(null) ?? {});
	}
}

function headerLines(headers: Readonly<Record<string, string>>): string[] {
	return Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
}

/** Load balancers query /readyz every second or two. */
const NOTICE_MS = 1_500;

/**
 * The first part of a stop. Turns /readyz to 503 and refuses new websockets at once, then closes
 * the open ones within `drainMs`. HTTP requests are still served. Without websockets this takes a
 * second and a half, or `drainMs` if that is less.
 */
export async function drainServers(
	servers: readonly Pick<HttpServer, "drain">[],
	websocket: Pick<RpcWebsocket, "size" | "closeOver">,
	drainMs: number,
	{ clock, log }: { readonly clock: Clock; readonly log: Logger },
): Promise<void> {
	for (const server of servers) server.drain();
	const noticeMs = Math.min(NOTICE_MS, drainMs);
	// Waits until load balancers have noticed, so that reconnecting clients do not come back here.
	await pause(clock, noticeMs);
	const ms = drainMs - noticeMs;
	if (websocket.size > 0) log.info("closing websockets", { count: websocket.size, ms });
	await websocket.closeOver(ms);
}

/** By server name: the setting of its port, and its value. */
type PortSettings = Readonly<Record<string, readonly [setting: string, port: number | undefined]>>;

/** The port or address of a setting can't be used. The message is for the operator. */
class ListenError extends Error {
	readonly code = "LISTEN";
	constructor(message: string) {
		super(message);
		this.name = "ListenError";
	}
}

/**
 * Starts the servers one after another; all or none. Throws {@link ListenError} if another setting
 * would help.
 */
export async function startListening(servers: readonly Component[], ports: PortSettings): Promise<void> {
	for (const [i, server] of servers.entries()) {
		try {
			await server.start();
		} catch (thrown) {
			for (const started of servers.slice(0, i)) await started.stop();
			throw listenError(server.name, ports, thrown);
		}
	}
}

/** The last code: an IPv6 address on a machine without IPv6. */
const NO_ADDRESS = new Set(["EADDRNOTAVAIL", "ENOTFOUND", "EINVAL", "EAI_AGAIN", "EAFNOSUPPORT"]);

/** The {@link ListenError} for an error about a port or address; other errors unchanged. */
function listenError(server: string, ports: PortSettings, thrown: unknown): unknown {
	const code = (thrown as { code?: unknown } | null)?.code;
	const [setting, port] = ports[server] ?? ["PORT", undefined];
	if (code === "EADDRINUSE" || code === "EACCES") {
		const problem = code === "EACCES" ? "may not be used" : "is taken";
		return new ListenError(
			`${setting} ${port} ${problem}: expected a free port, for example ${setting}=8090`,
		);
	}
	if (typeof code === "string" && NO_ADDRESS.has(code)) {
		return new ListenError(
			"HOST is not valid: expected an address of this machine, for example HOST=127.0.0.1",
		);
	}
	return thrown;
}
