// A websocket to our relay for one client. Calls keep their order on it, and its subscriptions end with it.

import type { LookupFunction } from "node:net";
import { WebSocket } from "ws";
import type { Clock, Timer } from "../../shared/clock.ts";
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
	/** Called with the relay's id of the subscription and the unchanged message. */
	readonly onNotification: (id: string, text: string) => void;
	/** Called once when it has ended, with the relay's code. */
	readonly onClose: (code: number) => void;
}

/** The relay did not answer on it, or it has ended. */
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
/** The relay pings every 25 s: a websocket without any message for this long is dead. */
const SILENCE_MS = 60_000;
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
const NOTIFICATION = /"method":"eth_subscription","params":\{"subscription":"(0x[0-9a-f]+)"/;

interface Waiting {
	readonly resolve: (result: unknown) => void;
	readonly reject: (thrown: Error) => void;
}

export class RelayLink {
	readonly #socket: WebSocket;
	readonly #dependencies: RelayLinkDependencies;
	readonly #waiting = new Map<number, Waiting>();
	#lastId = 0;
	#isAlive = true;
	#check: Timer;

	private constructor(socket: WebSocket, dependencies: RelayLinkDependencies) {
		this.#socket = socket;
		this.#dependencies = dependencies;
		this.#check = this.#checkLater();
		socket.on("message", (data: Buffer) => this.#receive(data.toString("utf8")));
		socket.on("ping", () => {
			this.#isAlive = true;
		});
		socket.on("close", (code: number) => {
			this.#check.cancel();
			for (const { reject } of this.#waiting.values()) reject(new LinkError());
			this.#waiting.clear();
			dependencies.onClose(code);
		});
	}

	/** Connects. Throws {@link LinkError} if the relay does not accept it. */
	static open(options: RelayLinkOptions, dependencies: RelayLinkDependencies): Promise<RelayLink> {
		const url = new URL(options.relayUrl);
		url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
		url.pathname = `${url.pathname.replace(/\/+$/, "")}/ws`;
		const socket = new WebSocket(url, {
			headers: options.headers,
			handshakeTimeout: OPEN_MS,
			maxPayload: MAX_MESSAGE_BYTES,
			perMessageDeflate: false,
			// A notification is then handled later than the answer with its subscription's id.
			allowSynchronousEvents: false,
			...(dependencies.lookup === undefined ? {} : { lookup: dependencies.lookup }),
		});
		return new Promise((resolve, reject) => {
			socket.on("error", () => reject(new LinkError()));
			socket.once("open", () => resolve(new RelayLink(socket, dependencies)));
		});
	}

	/** The result of a call. Throws ForeignRpcError with the relay's own error, or {@link LinkError}. */
	call(method: string, params: readonly unknown[]): Promise<unknown> {
		const id = ++this.#lastId;
		return new Promise((resolve, reject) => {
			const settle = (): void => {
				this.#waiting.delete(id);
				timer.cancel();
			};
			// Without an answer no notifications are to be expected either.
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

	#receive(text: string): void {
		this.#isAlive = true;
		const id = NOTIFICATION.exec(text.slice(0, 200))?.[1];
		if (id !== undefined) {
			this.#dependencies.onNotification(id, text);
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
			if (!this.#isAlive) this.close();
			this.#isAlive = false;
			this.#check = this.#checkLater();
		});
	}
}
