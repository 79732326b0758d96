// What a method may know of the request it came with: path, query, client and connection. It holds no
// headers and no body, so nothing in it has to be kept secret.

import type { RequestTarget } from "./routes.ts";

/** Who sent a request. */
export interface Client {
	/** Network address in its shortest form, IPv4 where it is one; "unknown" where the connection is gone. */
	readonly address: string;
	/**
	 * Address whose key signed the body (`X-Flashbots-Signature`, verified here or by a proxy that vouches), lower-case;
	 * null where none did.
	 */
	readonly signer: string | null;
	/** True where the address was told by the proxy that knows the shared secret. */
	readonly vouched: boolean;
}

/** A websocket connection, as far as methods may use it. */
export interface Connection {
	/** Sends one message. A reader too far behind is closed with 1013 instead; after the close it does nothing. */
	send(text: string): void;
	/** Closes it with a code and a reason of at most 123 bytes. */
	close(code: number, reason: string): void;
	/** Calls `listener` once, when the connection has ended for whatever reason; at once if it already has. */
	onClose(listener: () => void): void;
}

/** One message of a websocket and its answer. */
export interface Exchange {
	/**
	 * Calls `listener` once, when the answer was sent ahead of whatever is sent from then on, or none is due; at once if
	 * that was before.
	 */
	onAnswered(listener: () => void): void;
}

/** What a method gets beside its parameters. */
export interface CallContext {
	readonly transport: "http" | "ws";
	/** The pathname, without a slash at its end: "/", "/fast". Over a websocket that of the upgrade. */
	readonly path: string;
	/** The query, percent-decoded. */
	readonly query: URLSearchParams;
	readonly client: Client;
	/** The `Origin` header: which web page or extension sent it; null where none was sent. */
	readonly origin: string | null;
	/** How long the request lasts that the call came with. */
	readonly life: RequestLife;
	/** Null over HTTP. */
	readonly connection: Connection | null;
	/** The message that the call came with; null over HTTP. */
	readonly exchange: Exchange | null;
}

/** The context of a request to `target`; over a websocket with its connection and the message. */
export function callContext(
	target: RequestTarget,
	client: Client,
	origin: string | null,
	connection: Connection | null,
	exchange: Exchange | null = null,
	life: RequestLife = LASTING,
): CallContext {
	return new RequestContext(target, client, origin, connection, exchange, life);
}

/** The life of a request whose client does not leave. */
const LASTING: RequestLife = { bytes: 0, onGone: () => {} };

/** Parses the query when it is first asked for: most requests have none, and few methods ask. */
class RequestContext implements CallContext {
	readonly transport: "http" | "ws";
	readonly path: string;
	readonly client: Client;
	readonly origin: string | null;
	readonly life: RequestLife;
	readonly connection: Connection | null;
	readonly exchange: Exchange | null;
	readonly #search: string;
	#query: URLSearchParams | undefined;

	constructor(
		target: RequestTarget,
		client: Client,
		origin: string | null,
		connection: Connection | null,
		exchange: Exchange | null,
		life: RequestLife,
	) {
		this.transport = connection === null ? "http" : "ws";
		this.path = target.path;
		this.client = client;
		this.origin = origin;
		this.life = life;
		this.connection = connection;
		this.exchange = exchange;
		this.#search = target.search;
	}

	get query(): URLSearchParams {
		this.#query ??= new URLSearchParams(this.#search);
		return this.#query;
	}
}

/** A request or message that a call came with, until it is answered. */
export interface RequestLife {
	/** Of its body. They are held until it is answered. */
	readonly bytes: number;
	/** Calls `listener` once, when its client has gone; at once where it already has. */
	onGone(listener: () => void): void;
}

/** The life of one request; whoever owns the connection ends it. */
export class ClientLife implements RequestLife {
	readonly bytes: number;
	#listeners: (() => void)[] = [];
	#gone = false;

	constructor(bytes: number) {
		this.bytes = bytes;
	}

	onGone(listener: () => void): void {
		if (this.#gone) listener();
		else this.#listeners.push(listener);
	}

	/** The client has gone or was answered. Listeners hear of both: after an answer they have nothing left to end. */
	end(): void {
		this.#gone = true;
		for (const listener of this.#listeners.splice(0)) listener();
	}
}
