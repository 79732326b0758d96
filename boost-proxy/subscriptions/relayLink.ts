// A websocket to our relay for one client. Calls keep their order on it, and its subscriptions end
// with it. Messages from the relay are handled in steps, between which the event loop runs. They
// are forwarded as the received bytes, since a block may bring each client thousands of messages.
// The relay is read only as fast as the client reads, so that a slow client's messages wait there,
// where all subscribers share one text.

import type { LookupFunction } from "node:net";
import { WebSocket } from "ws";
import type { Clock, Timer } from "../../shared/clock.ts";
import { longResult } from "../../shared/jsonrpc/client.ts";
import { ForeignRpcError } from "../../shared/jsonrpc/errors.ts";

export interface RelayLinkOptions {
	/** Our relay's http or https URL, which may have credentials and a path. */
	readonly relayUrl: string;
	/** The client's address, and the secret that makes the relay accept it. */
	readonly headers: Readonly<Record<string, string>>;
}

export interface RelayLinkDependencies {
	readonly clock: Clock;
	/** Default: Node's own. */
	readonly lookup?: LookupFunction | undefined;
	/** Runs `work` in a turn of the event loop that has time for it. */
	readonly inTurn: (work: () => void) => void;
	/** Calls `listener` once the client is ready for more. Until then no message is handled. */
	readonly onDrained: (listener: () => void) => void;
	readonly onNotifications: (notifications: readonly LinkNotification[]) => void;
	/** Called once when it has ended, with the relay's close code. */
	readonly onClose: (code: number) => void;
}

/** A notification of the relay to a subscription. */
export interface LinkNotification {
	/** The relay's id of the subscription. */
	readonly id: string;
	/** Unchanged, and a buffer that nothing else uses. */
	readonly message: Buffer;
}

/** The relay did not answer on the websocket, or it has ended. */
export class LinkError extends Error {
	readonly code = "LINK";
	constructor() {
		super("the websocket to the relay has ended");
		this.name = "LinkError";
	}
}

const OPEN_MS = 2_500;
/** Longer than any call takes at the relay. */
const ANSWER_MS = 29_000;
/** The relay pings every 25 s, so a websocket without any message for this long is dead. */
const SILENCE_MS = 60_000;
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
/** Each step handles messages up to this size in total, in bytes, or one longer message. */
const STEP_BYTES = 16 * 1024;
/** While this many bytes wait to be handled, no more is read. */
const MAX_WAITING_BYTES = 64 * 1024;
const NOTIFICATION = /"method":"eth_subscription","params":\{"subscription":"(0x[0-9a-f]+)"/;
const ANSWER_ID = /"id":(\d+)/;
/** Both patterns match within this many bytes. */
const HEAD_BYTES = 200;

interface Waiting {
	readonly resolve: (result: unknown) => void;
	readonly reject: (thrown: Error) => void;
}

export class RelayLink {
	readonly #socket: WebSocket;
	readonly #dependencies: RelayLinkDependencies;
	readonly #waiting = new Map<number, Waiting>();
	/** Messages that wait to be handled. */
	readonly #received: Buffer[] = [];
	#receivedBytes = 0;
	/** Whether a step is already scheduled. */
	#isQueued = false;
	#lastId = 0;
	#isAlive = true;
	#check: Timer;

	private constructor(socket: WebSocket, dependencies: RelayLinkDependencies) {
		this.#socket = socket;
		this.#dependencies = dependencies;
		this.#check = this.#checkLater();
		socket.on("message", (data: Buffer) => this.#receive(data));
		socket.on("ping", () => {
			this.#isAlive = true;
		});
		socket.on("close", (code: number) => {
			this.#check.cancel();
			while (this.#received.length > 0) this.#handleSome();
			for (const { reject } of this.#waiting.values()) reject(new LinkError());
			this.#waiting.clear();
			dependencies.onClose(code);
		});
	}

	/** Connects. Throws {@link LinkError} if the relay does not accept the connection. */
	static open(options: RelayLinkOptions, dependencies: RelayLinkDependencies): Promise<RelayLink> {
		const url = new URL(options.relayUrl);
		url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
		url.pathname = `${url.pathname.replace(/\/+$/, "")}/ws`;
		const socket = new WebSocket(url, {
			headers: options.headers,
			handshakeTimeout: OPEN_MS,
			maxPayload: MAX_MESSAGE_BYTES,
			perMessageDeflate: false,
			// The relay makes its text itself, and clients check it.
			skipUTF8Validation: true,
			...(dependencies.lookup === undefined ? {} : { lookup: dependencies.lookup }),
		});
		return new Promise((resolve, reject) => {
			socket.on("error", () => reject(new LinkError()));
			socket.once("open", () => resolve(new RelayLink(socket, dependencies)));
		});
	}

	/**
	 * The result of a call. Throws ForeignRpcError with the relay's own error, or {@link LinkError}.
	 */
	call(method: string, params: readonly unknown[]): Promise<unknown> {
		const id = ++this.#lastId;
		return new Promise((resolve, reject) => {
			const settle = (): void => {
				this.#waiting.delete(id);
				timer.cancel();
			};
			// Without an answer, no notifications will come either.
			const timer = this.#dependencies.clock.after(ANSWER_MS, () => this.close());
			this.#waiting.set(id, {
				resolve(result) {
					settle();
					resolve(result);
				},
				reject(thrown) {
					settle();
					reject(thrown);
				},
			});
			if (this.#socket.readyState !== WebSocket.OPEN) this.#waiting.get(id)?.reject(new LinkError());
			else this.#socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
		});
	}

	close(): void {
		this.#socket.terminate();
	}

	#receive(message: Buffer): void {
		this.#isAlive = true;
		this.#received.push(message);
		this.#receivedBytes += message.length;
		if (this.#receivedBytes >= MAX_WAITING_BYTES) this.#socket.pause();
		if (!this.#isQueued) this.#handleLater();
	}

	#handleLater(): void {
		this.#isQueued = true;
		this.#dependencies.onDrained(() => this.#dependencies.inTurn(() => this.#handleNext()));
	}

	#handleNext(): void {
		const isAnswer = this.#received.length > 0 && this.#handleSome();
		// A subscription's notifications are handled after the answer with its id. That includes
		// those that are yet to arrive.
		if (isAnswer) setImmediate(() => this.#handleLater());
		else if (this.#received.length > 0) this.#handleLater();
		else {
			this.#isQueued = false;
			if (this.#socket.isPaused) this.#socket.resume();
		}
	}

	/**
	 * Handles the next messages: some notifications, or an answer and the notifications before it.
	 * Returns whether there was an answer.
	 */
	#handleSome(): boolean {
		const notifications: LinkNotification[] = [];
		let answer: Buffer | null = null;
		let count = 0;
		let bytes = 0;
		for (const message of this.#received) {
			if (bytes >= STEP_BYTES || answer !== null) break;
			count += 1;
			bytes += message.length;
			const id = NOTIFICATION.exec(message.toString("latin1", 0, HEAD_BYTES))?.[1];
			if (id === undefined) answer = message;
			else notifications.push({ id, message });
		}
		this.#received.splice(0, count);
		this.#receivedBytes -= bytes;
		if (notifications.length > 0) this.#dependencies.onNotifications(notifications);
		if (answer !== null) this.#answered(answer.toString("utf8"));
		return answer !== null;
	}

	#answered(text: string): void {
		const id = Number(ANSWER_ID.exec(text.slice(0, HEAD_BYTES))?.[1]);
		const long = longResult(text, id);
		if (long !== null) {
			this.#waiting.get(id)?.resolve(long);
			return;
		}
		const answer = JSON.parse(text) as {
			id?: number;
			result?: unknown;
			error?: { code: number; message: string; data?: unknown };
		};
		const waiting = this.#waiting.get(answer.id ?? 0);
		const { error } = answer;
		if (error === undefined) waiting?.resolve(answer.result);
		else waiting?.reject(new ForeignRpcError(error.code, error.message, error.data));
	}

	#checkLater(): Timer {
		return this.#dependencies.clock.after(SILENCE_MS, () => {
			// While the client does not read, neither does this.
			if (!this.#isAlive && !this.#socket.isPaused) this.close();
			this.#isAlive = false;
			this.#check = this.#checkLater();
		});
	}
}
