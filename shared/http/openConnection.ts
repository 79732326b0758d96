// One connection: its request in progress, and the reading of the next one. Node's server emits
// requests as soon as it has read them. So it receives the bytes in pieces, and none while a whole
// request is unanswered. The next requests stay unread, and a client that sends without end fills
// its own buffers.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ClientAddress } from "../client.ts";
import type { QueuedWork } from "../shares/scheduler.ts";
import type { ClientLife, RequestTarget } from "./callContext.ts";
import { declaredBytes } from "./messages.ts";
import type { OpenAnswer } from "./unreadBytes.ts";

/** A request, its response and its resources. */
export interface Exchange {
	readonly request: IncomingMessage;
	readonly response: ServerResponse;
	readonly target: RequestTarget;
	/** See requestId.ts. */
	readonly requestId: string;
	/** Address of its sender. */
	readonly from: ClientAddress;
	readonly connection: OpenConnection;
	/** Makes room for another request of its client. */
	releaseSlot: () => void;
	/** Whether the client sends its body only after 100 Continue. */
	readonly awaitsContinue: boolean;
	/** Buffered bytes of the body. */
	bytes: number;
	/**
	 * Notifies handlers of the request that its client is gone. For a POST whose body was read, and
	 * for proxied requests.
	 */
	life: ClientLife | null;
	/** Its queued handling, then its queued answer. */
	work: QueuedWork | null;
	/**
	 * The body, read while a proxy streams it. Resolves with null for a long one. Null if it is not
	 * read that way.
	 */
	quickBody: Promise<Buffer | null> | null;
}

/** A request as Node's server emits it. */
export type ReadRequest = readonly [request: IncomingMessage, response: ServerResponse];

/**
 * Bytes of a piece. Most requests fit into one. A piece of the smallest requests holds no more than
 * one turn of the event loop may process. The body of a request has larger pieces.
 */
const PIECE_BYTES = 4 * 1024;

export class OpenConnection {
	readonly socket: Socket;
	/** Null for a proxy's connection. */
	client: string | null;
	/** Whether a request has come on it. */
	hasAsked = false;
	/** Whether it has become a websocket. */
	isWebsocket = false;
	/** The streamed answer on it. */
	stream: OpenAnswer | null = null;
	#exchange: Exchange | null = null;
	/** Requests that were in the same piece as the request in progress. */
	#waiting: ReadRequest[] = [];
	/** Maximum bytes of the last request's body that have not arrived. */
	#bodyBytes = 0;
	#isAttached = false;

	constructor(socket: Socket, client: string | null) {
		this.socket = socket;
		this.client = client;
	}

	/** The request in progress. */
	get exchange(): Exchange | null {
		return this.#exchange;
	}

	/** Whether requests that were read already are queued. */
	get hasWaiting(): boolean {
		return this.#waiting.length > 0;
	}

	/** Whether it has no request in progress, no stream and no websocket messages. */
	get isIdle(): boolean {
		return this.#exchange === null && this.stream === null && !this.isWebsocket;
	}

	/** Whether a whole request is unanswered, or its answer is being written. */
	get isUnanswered(): boolean {
		const exchange = this.#exchange;
		return exchange !== null && (exchange.request.complete || exchange.response.headersSent);
	}

	/** Whether the client would mistake anything sent now for the answer to another request. */
	get isBusy(): boolean {
		return this.stream !== null || this.isUnanswered;
	}

	/** Reads requests from now on. */
	attach(): void {
		if (this.#isAttached) return;
		this.#isAttached = true;
		this.socket.on("readable", this.#read);
		this.socket.on("resume", this.#readOn);
	}

	/** Stops reading, because another reader takes over or the connection is being closed. */
	detach(): void {
		this.#isAttached = false;
		this.socket.off("readable", this.#read);
		this.socket.off("resume", this.#readOn);
	}

	begin(exchange: Exchange): void {
		this.#exchange = exchange;
		this.#bodyBytes = declaredBytes(exchange.request) ?? 0;
	}

	/** Queues a request that was read while another one is in progress. */
	hold(read: ReadRequest): void {
		this.#waiting.push(read);
	}

	/** The request in progress has ended. */
	end(): void {
		this.#exchange = null;
	}

	/** Whether its client has sent bytes that are not processed yet. */
	get hasMore(): boolean {
		return this.#waiting.length > 0 || this.socket.readableLength > 0;
	}

	/** The next request if it was read already. Otherwise continues reading. */
	next(): ReadRequest | undefined {
		const next = this.#waiting.shift();
		if (next !== undefined || !this.#isAttached) return next;
		this.#read();
		// The client may have ended the connection after the unread bytes. Node only reports that
		// at the next read.
		if (this.socket.readableLength === 0) this.socket.read(0);
		return undefined;
	}

	/** Returns the queued requests and removes them. */
	takeWaiting(): readonly ReadRequest[] {
		return this.#waiting.splice(0);
	}

	/** Called for new bytes and at the end. */
	readonly #read = (): void => {
		const { socket } = this;
		let unread = socket.readableLength;
		if (unread === 0) socket.read(0);
		while (unread > 0 && this.#mayRead()) {
			const bytes = Math.min(unread, Math.max(PIECE_BYTES, this.#bodyBytes));
			this.#bodyBytes -= bytes;
			// Node's server receives the bytes that are read here.
			socket.read(bytes);
			unread = socket.readableLength;
		}
	};

	/** Node resumes the socket when more of a body is wanted. */
	readonly #readOn = (): void => {
		if (this.socket.readableLength > 0) this.#read();
	};

	#mayRead(): boolean {
		if (!this.#isAttached || this.socket.destroyed || this.#waiting.length > 0) return false;
		const request = this.#exchange?.request;
		if (request === undefined) return true;
		return !request.complete && request.readableLength < request.readableHighWaterMark;
	}
}
