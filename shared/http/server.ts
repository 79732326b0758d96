// The HTTP server of a process, with its start, drain and stop. The rules for requests are in
// requestHandler.ts.

import type { IncomingMessage, Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { pause } from "../clock.ts";
import type { Component } from "../lifecycle.ts";
import { safeError } from "../log.ts";
import type { ClientAddress } from "./callContext.ts";
import type { Connections } from "./connections.ts";
import { listen, type NodeServer, type NodeServerOptions, nodeServer } from "./listening.ts";
import { badRequestText, crowded, endWith, rawAnswer, withoutUpgrade } from "./messages.ts";
import {
	RequestHandler,
	type RequestHandlerDependencies,
	type RequestHandlerOptions,
} from "./requestHandler.ts";
import type { Standby } from "./standby.ts";

export interface HttpServerOptions extends NodeServerOptions, RequestHandlerOptions {
	/** What it is called in the log and as a component. */
	readonly name: string;
	readonly host: string;
	/** 0 takes a free one, see {@link HttpServer.port}. */
	readonly port: number;
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

interface HttpServerDependencies extends RequestHandlerDependencies {
	/** Without one, upgrades are answered like any request. */
	readonly websocket?: UpgradeHandler;
	/** Has its place until it starts, and what came in the meantime. */
	readonly standby?: Standby;
}

const STOP_MS = 7_000;
/** For requests whose first bytes are on their way when all others are answered. */
const STOP_GRACE_MS = 100;

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

	/** The port it listens on; 0 before the start. */
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

	/** From now on connections are closed after their next answer; requests are still served, upgrades are not. */
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
		// Without a listener node closes the connection without an answer.
		server.on("connect", (_request, socket) => {
			const body = JSON.stringify({ error: "expected one of POST, OPTIONS" });
			const headers = ["allow: POST, OPTIONS", ...this.#standingLines()];
			if (this.#handler.isBusy(socket)) socket.destroy();
			else endWith(socket, rawAnswer(405, body, headers));
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
		const { status, body, headers = {} } = crowded("POST", maxPerClient);
		endWith(socket, rawAnswer(status, String(body), [...headerLines(headers), ...this.#standingLines()]));
	}

	#badRequest(error: Error & { code?: string }, socket: Duplex): void {
		// Behind a request that is not answered yet, the client would take ours for the answer to that one.
		if (error.code === "ECONNRESET" || !socket.writable || this.#handler.isBusy(socket)) socket.destroy();
		else endWith(socket, badRequestText(error.code, this.#standingLines()));
	}

	#standingLines(): string[] {
		return headerLines(this.#options.headersFor?.(null) ?? {});
	}
}

function headerLines(headers: Readonly<Record<string, string>>): string[] {
	return Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
}
