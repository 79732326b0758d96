// The context that a method receives besides its parameters: path, query, client and connection. It
// has no headers and no body, so it contains no secrets.

import type { Client } from "../client.ts";
import type { Recovered } from "../ethereum/transaction.ts";
import type { LaterMessages } from "./laterMessages.ts";

/** A websocket connection, as far as methods may use it. */
export interface Connection {
	/** Its client, see {@link clientOf}. */
	readonly client: string;
	/**
	 * Sends one message, or closes a client that reads too slowly with 1013. Does nothing after the
	 * close.
	 */
	send(text: string): void;
	/**
	 * Sends messages after all those sent before. They count as unread bytes at once. If the client
	 * reads too slowly for them, none is made and it is closed with 1013.
	 */
	sendLater(messages: LaterMessages): void;
	/**
	 * Counts bytes that are kept for the client as unread, or closes it with 1013. Returns a
	 * function that ends the counting.
	 */
	hold(bytes: number): () => void;
	/**
	 * Calls `listener` once, when the client has read enough of what was sent, or has disconnected;
	 * at once if it already has. A source that waits for it keeps little for a slow client.
	 */
	onDrained(listener: () => void): void;
	/** Accepts no more messages, and closes with 1012 when those in flight are answered. */
	finish(): void;
	/** Closes it with a code and a reason of at most 123 bytes. */
	close(code: number, reason: string): void;
	/** Calls `listener` once, when the connection has ended; at once if it already has. */
	onClose(listener: () => void): void;
}

/** One message of a websocket and its answer. */
export interface WebsocketMessage {
	/**
	 * Calls `listener` once, when the answer was sent or there is none. Calls it at once if that is
	 * over.
	 */
	onAnswered(listener: () => void): void;
}

/** The context of a call: everything that a method receives besides its parameters. */
export interface CallContext {
	readonly transport: "http" | "ws";
	/** The pathname without a trailing slash: "/", "/fast". On a websocket that of the upgrade. */
	readonly path: string;
	/** The query, percent-decoded. */
	readonly query: URLSearchParams;
	readonly client: Client;
	/** The `Origin` header, which names the web page or extension; null if absent. */
	readonly origin: string | null;
	readonly life: RequestLife;
	/** Null over HTTP. */
	readonly connection: Connection | null;
	/** The message of the call; null over HTTP. */
	readonly message: WebsocketMessage | null;
	/** See requestId.ts; null for a call of our own. */
	readonly requestId: string | null;
	/** The `traceparent` from a trusted process that forwarded the call; see tracing/traces.ts. */
	readonly trace: string | null;
	/**
	 * The recovered signature of the transaction that the call submits, from a trusted process that
	 * has recovered it.
	 */
	readonly recovered?: Recovered | undefined;
}

/** For a request whose client never disconnects. */
const LASTING: RequestLife = { bytes: 0, onGone: () => {} };

/** The context of a request; on a websocket with its connection and message. */
export function callContext(
	target: RequestTarget,
	client: Client,
	origin: string | null,
	connection: Connection | null,
	message: WebsocketMessage | null = null,
	life: RequestLife = LASTING,
	requestId: string | null = null,
	trace: string | null = null,
	recovered?: Recovered,
): CallContext {
	return new RequestContext(target, client, origin, connection, message, life, requestId, trace, recovered);
}

/**
 * Parses the query only when a method reads it. Otherwise a websocket's query would be parsed with
 * each of its messages.
 */
class RequestContext implements CallContext {
	readonly transport: "http" | "ws";
	readonly path: string;
	readonly client: Client;
	readonly origin: string | null;
	readonly life: RequestLife;
	readonly connection: Connection | null;
	readonly message: WebsocketMessage | null;
	readonly requestId: string | null;
	readonly trace: string | null;
	readonly recovered: Recovered | undefined;
	readonly #search: string;
	#query: URLSearchParams | undefined;

	constructor(
		target: RequestTarget,
		client: Client,
		origin: string | null,
		connection: Connection | null,
		message: WebsocketMessage | null,
		life: RequestLife,
		requestId: string | null,
		trace: string | null,
		recovered: Recovered | undefined,
	) {
		this.transport = connection === null ? "http" : "ws";
		this.path = target.path;
		this.client = client;
		this.origin = origin;
		this.life = life;
		this.connection = connection;
		this.message = message;
		this.requestId = requestId;
		this.trace = trace;
		this.recovered = recovered;
		this.#search = target.search;
	}

	get query(): URLSearchParams {
		this.#query ??= new URLSearchParams(this.#search);
		return this.#query;
	}
}

/** The request or message of a call, until it is answered. */
export interface RequestLife {
	/** Size of its body, which stays in memory until the answer. */
	readonly bytes: number;
	/** Calls `listener` once, when its client has disconnected; at once if it already has. */
	onGone(listener: () => void): void;
}

/** Something that ends once, with listeners. */
export class Ending {
	#listeners: (() => void)[] = [];
	#isOver = false;

	get isOver(): boolean {
		return this.#isOver;
	}

	/** Calls `listener` once, at the end; at once if it is over. */
	onEnd(listener: () => void): void {
		if (this.#isOver) listener();
		else this.#listeners.push(listener);
	}

	end(): void {
		this.#isOver = true;
		for (const listener of this.#listeners.splice(0)) listener();
	}
}

/**
 * Reports the end of one request; `bytes` is the size of its body. The owner of the connection ends
 * it when the client has disconnected or was answered. Listeners are called in both cases, since
 * after an answer they have nothing left to end.
 */
export class ClientLife extends Ending implements RequestLife {
	readonly bytes: number;

	constructor(bytes: number) {
		super();
		this.bytes = bytes;
	}

	onGone(listener: () => void): void {
		this.onEnd(listener);
	}
}

export interface RequestTarget {
	/** Without query and trailing slashes, except "/" itself. Repeated slashes are merged. */
	readonly path: string;
	/** After the first "?", or "". */
	readonly search: string;
}

/**
 * Reads a request target: origin form (`/fast?a=b`) or absolute form (`http://host/fast`, as
 * proxies send). `//fast`, from a base URL with a slash at its end, is `/fast`.
 */
export function readTarget(target: string): RequestTarget {
	const origin = target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/?#]*\/?/i, "/");
	const mark = origin.indexOf("?");
	let end = mark === -1 ? origin.length : mark;
	while (end > 1 && origin.charCodeAt(end - 1) === 0x2f) end--;
	const path = origin.slice(0, end);
	return {
		path: path.includes("//") ? path.replace(/\/{2,}/g, "/") : path,
		search: mark === -1 ? "" : origin.slice(mark + 1),
	};
}
