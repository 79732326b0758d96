// One connection: the request that is worked on, and the reading of the next one. Node's server gives requests out as soon as it
// has read them. So it is given the bytes in pieces, and none while a whole request is unanswered: the next ones wait unread, and
// a client that sends without end fills its own buffers.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ClientAddress } from "../client.ts";
import type { QueuedWork } from "../shares/scheduler.ts";
import type { ClientLife, RequestTarget } from "./callContext.ts";
import { declaredBytes } from "./messages.ts";
import type { OpenAnswer } from "./unreadBytes.ts";

/** A request, its response and the resources held for it. */
export interface Exchange {
	readonly request: IncomingMessage;
	readonly response: ServerResponse;
	readonly target: RequestTarget;
	/** See requestId.ts. */
	readonly requestId: string;
	/** Who sent it. */
	readonly from: ClientAddress;
	readonly connection: OpenConnection;
	/** Makes room for another request of its client. */
	releaseSlot: () => void;
	/** Whether the client sends its body only after 100 Continue. */
	readonly awaitsContinue: boolean;
	/** Buffered bytes of the body. */
	bytes: number;
	/** Tells handlers of the request that its client is gone. For a POST whose body was read, and for proxied requests. */
	life: ClientLife | null;
	/** Its queued handling, then its queued answer. */
	work: QueuedWork | null;
	/** The body, read while a proxy streams it; null as a result for a long one. Null: not read so. */
	quickBody: Promise<Buffer | null> | null;
}

/** A request as Node's server gives it out. */
export type ReadRequest = readonly [request: IncomingMessage, response: ServerResponse];

/**
 * Bytes of a piece: most requests fit into one, and of the smallest ones it holds no more than a turn of the event loop may
 * take. The body of a request has larger pieces.
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
	/** Requests that were in one piece with the one that is worked on. */
	#waiting: ReadRequest[] = [];
	/** Bytes that the body of the last request has yet, at most. */
	#bodyBytes = 0;
	#isAttached = false;

	constructor(socket: Socket, client: string | null) {
		this.socket = socket;
		this.client = client;
	}

	/** The request that is worked on. */
	get exchange(): Exchange | null {
		return this.#exchange;
	}

	/** Whether requests wait that were read already. */
	get hasWaiting(): boolean {
		return this.#waiting.length > 0;
	}

	/** Whether nothing is worked on, streamed or sent by messages. */
	get isIdle(): boolean {
		return this.#exchange === null && this.stream === null && !this.isWebsocket;
	}

	/** Whether a whole request is unanswered, or its answer is being written. */
	get isUnanswered(): boolean {
		const exchange = this.#exchange;
		return exchange !== null && (exchange.request.complete || exchange.response.headersSent);
	}

	/** Whether the client would mistake what is sent now for the answer to another request. */
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

	/** Reads nothing more: others do, or it is being closed. */
	detach(): void {
		this.#isAttached = false;
		this.socket.off("readable", this.#read);
		this.socket.off("resume", this.#readOn);
	}

	begin(exchange: Exchange): void {
		this.#exchange = exchange;
		this.#bodyBytes = declaredBytes(exchange.request) ?? 0;
	}

	/** A request that was read while another one is worked on. */
	hold(read: ReadRequest): void {
		this.#waiting.push(read);
	}

	/** The request that is worked on has ended. */
	end(): void {
		this.#exchange = null;
	}

	/** Whether its client has sent more than was worked on. */
	get hasMore(): boolean {
		return this.#waiting.length > 0 || this.socket.readableLength > 0;
	}

	/** The next request if it was read already; else goes on reading. */
	next(): ReadRequest | undefined {
		const next = this.#waiting.shift();
		if (next !== undefined || !this.#isAttached) return next;
		this.#read();
		// The client may have ended it behind what was unread: Node tells of that when more is asked for.
		if (this.socket.readableLength === 0) this.socket.read(0);
		return undefined;
	}

	/** Hands over what was read and waits. */
	takeWaiting(): readonly ReadRequest[] {
		return this.#waiting.splice(0);
	}

	/** Something came, or the end. */
	readonly #read = (): void => {
		const { socket } = this;
		let unread = socket.readableLength;
		if (unread === 0) socket.read(0);
		while (unread > 0 && this.#mayRead()) {
			const bytes = Math.min(unread, Math.max(PIECE_BYTES, this.#bodyBytes));
			this.#bodyBytes -= bytes;
			// Node's server takes what is read here.
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
