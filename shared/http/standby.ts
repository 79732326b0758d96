// A server's place while the process waits for another one to let go of its store: connections come in, /livez and /readyz
// are answered, other requests are held for a moment. Whoever starts in its place gets them all, and the port with them.

import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Clock, Timer } from "../clock.ts";
import { type Logger, safeError } from "../log.ts";
import { badRequestText, rawAnswer } from "./badRequest.ts";
import type { ConnectionsOptions } from "./connections.ts";
import { type HttpAnswer, jsonAnswer, rpcErrorAnswer, writeHead } from "./httpAnswer.ts";
import { startListening } from "./listening.ts";
import { listen, type NodeServer, nodeServer } from "./nodeServer.ts";
import { endUnread, hasBody } from "./requestBody.ts";

export interface StandbyOptions extends ConnectionsOptions {
	readonly host: string;
	/** Of the setting PORT. */
	readonly port: number;
	/** How long a request is held before it is refused, in ms: its client may have another road. */
	readonly holdMs: number;
	/** Requests held at most (1,000); further ones are refused at once. */
	readonly maxHeld?: number;
}

/** A request that nobody has answered or read. */
export interface HeldRequest {
	readonly request: IncomingMessage;
	readonly response: ServerResponse;
	/** True where the client waits for a word before it sends the body (`Expect: 100-continue`). */
	readonly awaitsContinue: boolean;
}

/** What the next one takes over: a server that listens and has nobody else, and what came in. */
export interface Handed {
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
			else socket.end(badRequestText(error.code, []), () => socket.destroy());
		});
		for (const event of ["connect", "upgrade"] as const) {
			server.on(event, (_request, socket) => {
				socket.on("error", () => socket.destroy());
				const body = JSON.stringify({ error: WAITS });
				socket.end(rawAnswer(503, body, ["retry-after: 1"]), () => socket.destroy());
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

/** In JSON-RPC where that was spoken. */
function refusal({ request }: HeldRequest): HttpAnswer {
	const headers = { "retry-after": "1" };
	return request.method === "POST"
		? rpcErrorAnswer("unavailable", 503, `internal error: ${WAITS}`, headers)
		: jsonAnswer(503, { error: WAITS }, headers);
}

function ended(response: ServerResponse): Promise<void> {
	return new Promise((resolve) => {
		if (response.writableFinished || response.destroyed) resolve();
		else response.once("close", () => resolve());
	});
}
