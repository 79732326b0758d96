// A websocket that this process opens to a server: it connects within a deadline, ends after a
// silence, and matches answers to calls by id. Its user reads and writes the messages.

import type { LookupFunction } from "node:net";
import { WebSocket } from "ws";
import type { Clock, Timer } from "../clock.ts";
import { OUTGOING_HEADERS } from "../outgoing/headers.ts";

export interface LinkOptions {
	/** http(s) or ws(s). Never printed, because it may contain a key. */
	readonly url: string | URL;
	readonly headers?: Readonly<Record<string, string>>;
	/** A longer message ends the connection. */
	readonly maxMessageBytes: number;
	/** How long connecting may take, in ms. */
	readonly openMs: number;
	/** A server that is silent for longer is gone, in ms. */
	readonly silenceMs: number;
	/**
	 * Which side pings. "client": the server was up when the last ping that it answered was sent.
	 * "server": it was up when its last message or ping arrived.
	 */
	readonly pings: "client" | "server";
}

export interface LinkDependencies {
	readonly clock: Clock;
	/** Default: Node's own. */
	readonly lookup?: LookupFunction | undefined;
	/** Ends the connection, or the attempt to connect. */
	readonly stopped?: AbortSignal;
}

export interface LinkEvents {
	readonly onMessage: (message: Buffer) => void;
	/**
	 * Called once, when a connection that was open has ended, with its close code and the error if
	 * there was one. Open calls are rejected after it.
	 */
	readonly onEnd: (code: number, fault: Error | null) => void;
}

/** A call that waits for its answer. */
export interface OpenCall {
	readonly resolve: (result: unknown) => void;
	readonly reject: (thrown: Error) => void;
}

/** The server is not reachable on the websocket, or the connection has ended. */
export class LinkError extends Error {
	readonly code = "LINK";
	/** The connection's error, if there was one. */
	readonly fault: Error | null;
	constructor(fault: Error | null = null) {
		super("the websocket has ended");
		this.name = "LinkError";
		this.fault = fault;
	}
}

/** Time between two pings or checks, as a part of the allowed silence. */
const BEAT_PART = 0.2;

/** One connection. */
export class Link<Call extends OpenCall = OpenCall> {
	readonly #socket: WebSocket;
	readonly #options: LinkOptions;
	readonly #clock: Clock;
	readonly #calls = new Map<number, Call>();
	#lastId = 0;
	/** The connection's error, if there was one. */
	#fault: Error | null = null;
	/** When the server was last known to be up, in monotonic ms. */
	#heardAt = 0;
	#timer: Timer | null = null;

	private constructor(socket: WebSocket, options: LinkOptions, { clock }: LinkDependencies) {
		this.#socket = socket;
		this.#options = options;
		this.#clock = clock;
		socket.on("error", (error) => {
			this.#fault = error;
		});
	}

	/**
	 * Connects, and resolves to what `begin` returns. `begin` is called at once, to listen before any
	 * message is read. Throws {@link LinkError} if connecting fails.
	 */
	static open<T, Call extends OpenCall = OpenCall>(
		options: LinkOptions,
		dependencies: LinkDependencies,
		begin: (link: Link<Call>) => T,
	): Promise<T> {
		const url = new URL(options.url);
		url.protocol = url.protocol.replace(/^http/, "ws");
		const { clock, lookup, stopped } = dependencies;
		const socket = new WebSocket(url, {
			headers: { ...OUTGOING_HEADERS, ...options.headers },
			maxPayload: options.maxMessageBytes,
			perMessageDeflate: false,
			// The texts are made by our own processes; of a node's, only hashes are read.
			skipUTF8Validation: true,
			...(lookup === undefined ? {} : { lookup }),
		});
		const link = new Link<Call>(socket, options, dependencies);
		return new Promise((resolve, reject) => {
			const end = (): void => link.close();
			const deadline = clock.after(options.openMs, end);
			stopped?.addEventListener("abort", end);
			if (stopped?.aborted) end();
			socket.once("close", () => {
				deadline.cancel();
				stopped?.removeEventListener("abort", end);
				reject(new LinkError(link.#fault));
			});
			socket.once("open", () => {
				deadline.cancel();
				resolve(begin(link));
			});
		});
	}

	/** Calls the listeners, and judges the server's silence, from now on. */
	listen({ onMessage, onEnd }: LinkEvents): void {
		const socket = this.#socket;
		this.#heardAt = this.#clock.monotonic();
		this.#timer = this.#beat();
		socket.on("ping", () => this.#heard());
		socket.on("pong", (sentAt: Buffer) => this.#ponged(Number(sentAt.toString("latin1"))));
		socket.on("message", (message: Buffer) => {
			this.#heard();
			onMessage(message);
		});
		socket.on("close", (code: number) => {
			this.#timer?.cancel();
			onEnd(code, this.#fault);
			for (const id of [...this.#calls.keys()]) this.take(id)?.reject(new LinkError(this.#fault));
		});
	}

	/** Whether messages can be sent: false also while it closes. */
	get isOpen(): boolean {
		return this.#socket.readyState === WebSocket.OPEN;
	}

	/** Time since the server was last known to be up, in ms. */
	get silentMs(): number {
		return this.#clock.monotonic() - this.#heardAt;
	}

	/** Whether it is read: see {@link pause}. */
	get isPaused(): boolean {
		return this.#socket.isPaused;
	}

	/** Sends a message, if the connection is open. */
	send(message: string): void {
		if (this.isOpen) this.#socket.send(message);
	}

	/**
	 * The id of a call, which its user sends. `call` gets the answer by {@link take}, or {@link
	 * LinkError} at the end of the connection; at once if it has ended. `id`: of a call that has
	 * had one answer and gets another.
	 */
	expect(call: Call, id = ++this.#lastId): number {
		if (this.isOpen) this.#calls.set(id, call);
		else call.reject(new LinkError(this.#fault));
		return id;
	}

	/**
	 * Sends a JSON-RPC call, see {@link expect}. The connection ends if there is no answer within
	 * `answerMs`.
	 */
	call(method: string, params: readonly unknown[], call: Call, answerMs: number): void {
		const id = this.expect(this.#timed(call, answerMs));
		this.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
	}

	/** The call with this id, which no longer waits; undefined if none has it. */
	take(id: number): Call | undefined {
		const call = this.#calls.get(id);
		this.#calls.delete(id);
		return call;
	}

	/** Stops reading. The server is not taken for gone meanwhile. */
	pause(): void {
		this.#socket.pause();
	}

	/** Reads on. */
	resume(): void {
		this.#heard();
		this.#socket.resume();
	}

	/** Ends the connection at once. */
	close(): void {
		this.#socket.terminate();
	}

	#timed(call: Call, answerMs: number): Call {
		const timer = this.#clock.after(answerMs, () => this.close());
		return {
			...call,
			resolve(result) {
				timer.cancel();
				call.resolve(result);
			},
			reject(thrown) {
				timer.cancel();
				call.reject(thrown);
			},
		};
	}

	/** Pings, and ends the connection when the server was silent for too long. */
	#beat(): Timer {
		const { pings, silenceMs } = this.#options;
		if (pings === "client") this.#socket.ping(String(this.#clock.monotonic()));
		return this.#clock.after(BEAT_PART * silenceMs, () => {
			const isGone = this.silentMs > silenceMs && !this.isPaused;
			// A connection that is still closing after this time is cut off.
			if (isGone || !this.isOpen) this.close();
			else this.#timer = this.#beat();
		});
	}

	/** Something has arrived from a server that pings. */
	#heard(): void {
		if (this.#options.pings === "server") this.#heardAt = this.#clock.monotonic();
	}

	/** The server has answered the ping that was sent at this time. */
	#ponged(sentAt: number): void {
		if (sentAt <= this.#clock.monotonic()) this.#heardAt = Math.max(this.#heardAt, sentAt);
	}
}
