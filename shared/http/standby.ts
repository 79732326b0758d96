// Keeps a server's port while the process waits for another one to let go of its store: it answers /livez
// and /readyz and holds other requests for a moment. The server that starts in its place takes over the port
// and all of them.

import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Clock, Timer } from "../clock.ts";
import { type Logger, safeError } from "../log.ts";
import type { ConnectionsOptions } from "./connections.ts";
import { listen, type NodeServer, nodeServer, startListening } from "./listening.ts";
import {
	badRequestText,
	endUnread,
	endWith,
	type HttpAnswer,
	hasBody,
	jsonAnswer,
	notServing,
	rawAnswer,
	writeHead,
} from "./messages.ts";

export interface StandbyOptions extends ConnectionsOptions {
	readonly host: string;
	/** Of the setting PORT. */
	readonly port: number;
	/** How long a request is held before it is refused, in ms: its client may have another server to go to. */
	readonly holdMs: number;
	/** Requests held at most (1,000); further ones are refused at once. */
	readonly maxHeld?: number;
}

/** A request that nobody has answered or read. */
interface HeldRequest {
	readonly request: IncomingMessage;
	readonly response: ServerResponse;
	/** True where the client sends its body only after a 100 Continue. */
	readonly awaitsContinue: boolean;
}

/** What the next server takes over: one that listens, without its handlers, and the requests that came in. */
interface Handed {
	readonly listening: NodeServer;
	readonly requests: readonly HeldRequest[];
}

const MAX_HELD = 1_000;
const WAITS = "another process has the store: this one waits for it to end";
const EVENTS = ["request", "checkContinue", "clientError", "connect", "upgrade", "error"] as const;

/** One place; nothing listens before {@link start}. */
export class Standby {
	readonly #options: StandbyOptions;
	readonly #clock: Clock;
	readonly #log: Logger;
	readonly #held = new Map<HeldRequest, Timer>();
	#listening: NodeServer | null = null;

	constructor(options: StandbyOptions, dependencies: { readonly clock: Clock; readonly log: Logger }) {
		this.#options = options;
		this.#clock = dependencies.clock;
		this.#log = dependencies.log;
	}

	/** The port it listens on; 0 where it does not. */
	get port(): number {
		return (this.#listening?.server.address() as AddressInfo | null)?.port ?? 0;
	}

	/** Listens; does nothing where it does already. Throws ListenError, which names PORT or HOST. */
	async start(): Promise<void> {
		if (this.#listening !== null) return;
		this.#listening = nodeServer(this.#options);
		const { server } = this.#listening;
		this.#takeFrom(server);
		const { port } = this.#options;
		try {
			await startListening([{ name: "http", start: () => listen(server, this.#options) }], {
				http: ["PORT", port],
			});
		} catch (thrown) {
			this.#listening = null;
			throw thrown;
		}
		server.on("error", (error) => this.#log.error("a connection was lost", { fault: safeError(error) }));
		this.#log.info("listening, not ready yet", { task: "standby", port: this.port });
	}

	/** Gives the place away: nothing more is answered here. Undefined where it does not listen. */
	leave(): Handed | undefined {
		const listening = this.#listening;
		if (listening === null) return undefined;
		this.#listening = null;
		for (const event of EVENTS) listening.server.removeAllListeners(event);
		const requests = [...this.#held.keys()];
		for (const timer of this.#held.values()) timer.cancel();
		this.#held.clear();
		return { listening, requests };
	}

	/** Refuses what is held and listens no more; does nothing where the place was given away. */
	async stop(): Promise<void> {
		const handed = this.leave();
		if (handed === undefined) return;
		const { requests } = handed;
		const { server } = handed.listening;
		const closed = new Promise<void>((resolve) => server.close(() => resolve()));
		for (const held of requests) this.#answer(held, refusal(held));
		server.closeIdleConnections();
		await Promise.all(requests.map(({ response }) => ended(response)));
		server.closeAllConnections();
		await closed;
	}

	#takeFrom(server: Server): void {
		server.on("request", (request, response) => this.#take({ request, response, awaitsContinue: false }));
		server.on("checkContinue", (request, response) => {
			this.#take({ request, response, awaitsContinue: true });
		});
		server.on("clientError", (error: Error & { code?: string }, socket) => {
			if (error.code === "ECONNRESET" || !socket.writable) socket.destroy();
			else endWith(socket, badRequestText(error.code));
		});
		for (const event of ["connect", "upgrade"] as const) {
			server.on(event, (_request, socket) => {
				endWith(socket, rawAnswer(503, JSON.stringify({ error: WAITS }), ["retry-after: 1"]));
			});
		}
	}

	#take(held: HeldRequest): void {
		const { request, response } = held;
		const path = request.url?.split("?", 1)[0];
		if (path === "/livez") this.#answer(held, jsonAnswer(200, { live: true }));
		else if (path === "/readyz") this.#answer(held, NOT_READY);
		else if (this.#held.size >= (this.#options.maxHeld ?? MAX_HELD)) this.#answer(held, refusal(held));
		else {
			const timer = this.#clock.after(this.#options.holdMs, () => {
				if (this.#held.delete(held)) this.#answer(held, refusal(held));
			});
			this.#held.set(held, timer);
			response.once("close", () => {
				timer.cancel();
				this.#held.delete(held);
			});
		}
	}

	#answer({ request, response }: HeldRequest, answer: HttpAnswer): void {
		const isUnread = hasBody(request) && !request.complete;
		writeHead(response, answer, isUnread, {});
		const body = request.method === "HEAD" ? null : answer.body;
		if (isUnread) endUnread(request, response, body, this.#clock);
		else response.end(body);
	}
}

const NOT_READY = jsonAnswer(503, {
	ready: false,
	draining: false,
	checks: { store: { ok: false, reason: WAITS } },
});

function refusal({ request }: HeldRequest): HttpAnswer {
	return notServing(request.method, WAITS);
}

function ended(response: ServerResponse): Promise<void> {
	return new Promise((resolve) => {
		if (response.writableFinished || response.destroyed) resolve();
		else response.once("close", () => resolve());
	});
}
