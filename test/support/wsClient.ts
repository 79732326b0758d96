// A websocket client for tests, over ws: sends messages as given, reads answers one by one, and tells how the
// connection ended.

import type { IncomingMessage } from "node:http";
import { type ClientOptions, WebSocket } from "ws";

/** A message of the server's, parsed. */
export interface WsMessage {
	readonly id?: unknown;
	readonly result?: unknown;
	readonly error?: { readonly code: number; readonly message: string };
}

const DEADLINE_MS = 30_000;

/** A connection that is open. */
export class WsClient {
	readonly socket: WebSocket;
	/** Pings that came. */
	pings = 0;
	readonly #messages: string[] = [];
	#closed: { code: number; reason: string } | undefined;
	#changed = () => {};

	private constructor(socket: WebSocket) {
		this.socket = socket;
		socket.on("message", (data) => {
			this.#messages.push(String(data));
			this.#changed();
		});
		socket.on("ping", () => {
			this.pings++;
			this.#changed();
		});
		socket.on("error", () => {});
		socket.on("close", (code, reason) => {
			this.#closed = { code, reason: reason.toString() };
			this.#changed();
		});
	}

	static open(url: string, options: ClientOptions = {}): Promise<WsClient> {
		return new Promise((resolve, reject) => {
			const socket = new WebSocket(url, options);
			const client = new WsClient(socket);
			socket.once("open", () => resolve(client));
			socket.once("error", reject);
		});
	}

	/** The status and body with which an upgrade is refused. */
	static refused(url: string, options: ClientOptions = {}): Promise<{ status: number; body: string }> {
		return new Promise((resolve, reject) => {
			const socket = new WebSocket(url, options);
			socket.once("open", () => reject(new Error("it was accepted")));
			socket.once("error", reject);
			socket.once("unexpected-response", (_request, answer: IncomingMessage) => {
				let body = "";
				answer.on("data", (chunk) => {
					body += chunk;
				});
				answer.on("end", () => resolve({ status: answer.statusCode ?? 0, body }));
			});
		});
	}

	/** Sends text or bytes as they are, anything else as JSON. */
	send(message: unknown): void {
		const raw = typeof message === "string" || Buffer.isBuffer(message);
		this.socket.send(raw ? message : JSON.stringify(message));
	}

	/** The next message. */
	async next(): Promise<WsMessage> {
		return JSON.parse(await this.#until("a message", () => this.#messages.shift()));
	}

	/** How many messages have come and were not asked for yet. */
	get unread(): number {
		return this.#messages.length;
	}

	/** How it ended. */
	closed(): Promise<{ code: number; reason: string }> {
		return this.#until("the close", () => this.#closed);
	}

	/** Resolves when `count` pings have come. */
	pinged(count: number): Promise<true> {
		return this.#until(`${count} pings`, () => this.pings >= count || undefined) as Promise<true>;
	}

	terminate(): void {
		this.socket.terminate();
	}

	#until<T>(what: string, look: () => T | undefined): Promise<T> {
		return new Promise((resolve, reject) => {
			const deadline = setTimeout(() => reject(new Error(`${what} did not come`)), DEADLINE_MS);
			this.#changed = () => {
				const found = look();
				if (found === undefined) return;
				clearTimeout(deadline);
				this.#changed = () => {};
				resolve(found);
			};
			this.#changed();
		});
	}
}
