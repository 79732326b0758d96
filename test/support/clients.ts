// Plain clients for tests, which hide nothing: HTTP byte by byte, websockets, and event streams.
// Each reports how its connection ended.

import { get, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { type ClientOptions, WebSocket } from "ws";
import { resetSocket } from "./tcpProxy.ts";
import { PATIENCE_MS, until } from "./until.ts";

/** An unparsed HTTP answer. */
export interface RawAnswer {
	readonly status: number;
	/** Names in lower case. */
	readonly headers: Readonly<Record<string, string>>;
	readonly body: string;
}

/** One connection to 127.0.0.1. */
export class RawConnection {
	readonly #socket: Socket;
	#received = Buffer.alloc(0);
	#ended = false;
	#changed = () => {};

	private constructor(socket: Socket) {
		this.#socket = socket;
		socket.on("data", (chunk) => {
			this.#received = Buffer.concat([this.#received, chunk]);
			this.#changed();
		});
		// A reset counts like a close: tests look at what came before.
		socket.on("error", () => {});
		socket.on("close", () => {
			this.#ended = true;
			this.#changed();
		});
	}

	/** Connects to 127.0.0.1; `localAddress` decides which client the server sees. */
	static open(port: number, localAddress?: string): Promise<RawConnection> {
		return new Promise((resolve, reject) => {
			const socket = connect({
				...{ port, host: "127.0.0.1" },
				...(localAddress === undefined ? {} : { localAddress }),
			});
			socket.once("error", reject);
			socket.once("connect", () => {
				socket.off("error", reject);
				resolve(new RawConnection(socket));
			});
		});
	}

	/** Sends `bytes` unchanged. */
	write(bytes: string | Uint8Array): void {
		this.#socket.write(bytes);
	}

	/** Sends `bytes`, then closes our side. */
	end(bytes: string | Uint8Array): void {
		this.#socket.end(bytes);
	}

	/**
	 * Sends `bytes` without reading anything meanwhile; resolves when all are sent, or sending
	 * failed.
	 */
	async writeBlindly(bytes: Buffer): Promise<void> {
		this.#socket.pause();
		await new Promise<void>((resolve) => this.#socket.write(bytes, () => resolve()));
		this.#socket.resume();
	}

	/** Resets the connection. */
	destroy(): void {
		resetSocket(this.#socket);
	}

	/**
	 * The next answer. `head`: the answer to a HEAD request, which has no body whatever its headers
	 * say.
	 */
	async answer(head = false): Promise<RawAnswer> {
		return this.#until("an answer", () => this.#take(head));
	}

	/** Resolves when the peer has closed, with what came since the last answer. */
	async closed(): Promise<string> {
		return this.#until("the close", () => (this.#ended ? this.#received.toString("latin1") : undefined));
	}

	get isClosed(): boolean {
		return this.#ended;
	}

	/** Bytes that have come since the last answer that was read. */
	get unreadBytes(): number {
		return this.#received.length;
	}

	#take(head: boolean): RawAnswer | undefined {
		const end = this.#received.indexOf("\r\n\r\n");
		if (end === -1) return undefined;
		const [start = "", ...lines] = this.#received.subarray(0, end).toString("latin1").split("\r\n");
		const headers: Record<string, string> = {};
		for (const line of lines) {
			const colon = line.indexOf(":");
			headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
		}
		const length = head ? 0 : Number(headers["content-length"] ?? 0);
		const whole = end + 4 + length;
		if (this.#received.length < whole) return undefined;
		const body = this.#received.subarray(end + 4, whole).toString("utf8");
		this.#received = this.#received.subarray(whole);
		return { status: Number(start.split(" ")[1]), headers, body };
	}

	#until<T>(what: string, look: () => T | undefined): Promise<T> {
		return new Promise((resolve, reject) => {
			const deadline = setTimeout(
				() => reject(new Error(`${what} did not come; there is: ${this.#received.toString("latin1")}`)),
				PATIENCE_MS,
			);
			const check = (): void => {
				const found = look();
				if (found === undefined && !this.#ended) return;
				clearTimeout(deadline);
				this.#changed = () => {};
				if (found !== undefined) resolve(found);
				else {
					reject(new Error(`closed before ${what}; there is: ${this.#received.toString("latin1")}`));
				}
			};
			this.#changed = check;
			check();
		});
	}
}

/**
 * The bytes of a request; `Content-Length` is added for a body, unless `headers` has it or chunks
 * it.
 */
export function requestText(
	verb: string,
	path: string,
	headers: Readonly<Record<string, string>> = {},
	body?: string | Buffer,
): Buffer {
	const lines = [`${verb} ${path} HTTP/1.1`, "Host: relay.test"];
	for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
	const names = Object.keys(headers).map((name) => name.toLowerCase());
	if (body !== undefined && !names.includes("content-length") && !names.includes("transfer-encoding")) {
		lines.push(`Content-Length: ${Buffer.byteLength(body)}`);
	}
	return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), Buffer.from(body ?? "")]);
}

/** A POST of JSON. */
export function postText(
	path: string,
	value: unknown,
	headers: Readonly<Record<string, string>> = {},
): Buffer {
	const body = typeof value === "string" || Buffer.isBuffer(value) ? value : JSON.stringify(value);
	return requestText("POST", path, { "Content-Type": "application/json", ...headers }, body);
}

/** A parsed message from the server. */
export interface WsMessage {
	readonly id?: unknown;
	readonly result?: unknown;
	readonly error?: { readonly code: number; readonly message: string };
}

/** An open websocket. */
export class WsClient {
	readonly socket: WebSocket;
	/** Number of pings received. */
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

	/** Sends text or bytes unchanged, anything else as JSON. */
	send(message: unknown): void {
		const raw = typeof message === "string" || Buffer.isBuffer(message);
		this.socket.send(raw ? message : JSON.stringify(message));
	}

	/** The next message. */
	async next(): Promise<WsMessage> {
		return JSON.parse(await this.#until("a message", () => this.#messages.shift()));
	}

	/** Number of received messages that {@link next} has not returned yet. */
	get unread(): number {
		return this.#messages.length;
	}

	/** Waits for the close, and returns its code and reason. */
	closed(): Promise<{ code: number; reason: string }> {
		return this.#until("the close", () => this.#closed);
	}

	/** Resolves when `count` pings were received. */
	pinged(count: number): Promise<true> {
		return this.#until(`${count} pings`, () => this.pings >= count || undefined) as Promise<true>;
	}

	terminate(): void {
		this.socket.terminate();
	}

	#until<T>(what: string, look: () => T | undefined): Promise<T> {
		return new Promise((resolve, reject) => {
			const deadline = setTimeout(() => reject(new Error(`${what} did not come`)), PATIENCE_MS);
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

/** A message of the stream. */
export interface StreamMessage {
	readonly id: string;
	readonly data: Readonly<Record<string, unknown>>;
}

/** The answer to a request for an event stream, which may stay open. */
export class EventStreamReader {
	readonly status: number;
	readonly headers: IncomingHttpHeaders;
	readonly messages: StreamMessage[] = [];
	/** All text received. */
	text = "";
	comments = 0;
	/** The server's `retry` field, in ms. */
	retry: number | null = null;
	/** How it ended: in order ("end"), or by a broken connection ("cut"). */
	ended: "end" | "cut" | null = null;
	readonly #response: IncomingMessage;
	#rest = "";

	private constructor(response: IncomingMessage) {
		this.status = response.statusCode ?? 0;
		this.headers = response.headers;
		this.#response = response;
		response.setEncoding("utf8");
		response.on("data", (text: string) => this.#read(text));
		response.on("end", () => {
			this.ended ??= "end";
		});
		response.on("error", () => {
			this.ended ??= "cut";
		});
		response.on("close", () => {
			this.ended ??= response.complete ? "end" : "cut";
		});
	}

	/** Requests `url` as an event stream, on a new connection. */
	static open(url: string, headers: Readonly<Record<string, string>> = {}): Promise<EventStreamReader> {
		return new Promise((resolve, reject) => {
			const request = get(url, { agent: false, headers: { accept: "text/event-stream", ...headers } });
			request.on("response", (response) => resolve(new EventStreamReader(response)));
			request.on("error", reject);
		});
	}

	/** Resolves once `count` messages were received. */
	async come(count: number): Promise<readonly StreamMessage[]> {
		await until(`${count} messages; there are ${this.messages.length}`, () => this.messages.length >= count);
		return this.messages;
	}

	/** Waits for a message that `matches`, and returns the first. */
	message(what: string, matches: (data: StreamMessage["data"]) => boolean): Promise<StreamMessage> {
		return until(what, () => this.messages.find(({ data }) => matches(data)));
	}

	/** Waits for the end, and returns how it ended. */
	over(): Promise<"end" | "cut"> {
		return until("the end of the stream", () => this.ended ?? undefined);
	}

	/** The answer's body as JSON, once it has ended. */
	async json(): Promise<unknown> {
		await this.over();
		return JSON.parse(this.text);
	}

	/** Stops reading, like a client that hangs. */
	hang(): void {
		this.#response.pause();
	}

	/** Disconnects. */
	leave(): void {
		this.#response.destroy();
	}

	#read(text: string): void {
		this.text += text;
		const blocks = (this.#rest + text).split("\n\n");
		this.#rest = blocks.pop() ?? "";
		for (const block of blocks) this.#take(block);
	}

	#take(block: string): void {
		const fields = new Map<string, string>();
		for (const line of block.split("\n")) {
			const colon = line.indexOf(":");
			const name = colon === -1 ? line : line.slice(0, colon);
			if (fields.has(name)) throw new Error(`${name} stands twice in ${block}`);
			fields.set(name, line.slice(colon + 1).trimStart());
		}
		if (fields.has("")) this.comments += 1;
		const retry = fields.get("retry");
		if (retry !== undefined) this.retry = Number(retry);
		const data = fields.get("data");
		if (data === undefined) return;
		for (const name of fields.keys()) {
			if (name !== "id" && name !== "data") throw new Error(`unexpected field ${name}`);
		}
		this.messages.push({ id: fields.get("id") ?? "", data: JSON.parse(data) as StreamMessage["data"] });
	}
}
