// A websocket to our relay on behalf of one client: what is sent on it arrives in order, and its subscriptions end with it.

import { WebSocket } from "ws";
import type { Clock, Timer } from "../../shared/clock.ts";
import { ForeignRpcError } from "../../shared/jsonrpc/errors.ts";

/** Where it goes and for whom. */
export interface RelayLinkOptions {
	/** Our relay's, http or https, with credentials and a path where it has them. */
	readonly relayUrl: string;
	/** Of the client, and what makes the relay believe it. */
	readonly headers: Readonly<Record<string, string>>;
}

export interface RelayLinkDependencies {
	readonly clock: Clock;
	/** Called with the relay's id of the subscription and the message as it came. */
	readonly onNotification: (id: string, text: string) => void;
	/** Called once, when it has ended for whatever reason. */
	readonly onClose: () => void;
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
/** Longer than the relay takes for anything. */
const ANSWER_MS = 29_000;
/** The relay asks for a sign of life every 25 s; one that nothing came on between two looks is dead. */
const LOOK_MS = 60_000;
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
const NOTIFICATION = /"method":"eth_subscription","params":\{"subscription":"(0x[0-9a-f]+)"/;

interface Waiting {
	readonly resolve: (result: unknown) => void;
	readonly reject: (thrown: Error) => void;
}

/** An open websocket. */
export class RelayLink {
	readonly #socket: WebSocket;
	readonly #with: RelayLinkDependencies;
	readonly #waiting = new Map<number, Waiting>();
	#lastId = 0;
	#heard = true;
	#looking: Timer;

	private constructor(socket: WebSocket, dependencies: RelayLinkDependencies) {
		this.#socket = socket;
		this.#with = dependencies;
		this.#looking = this.#look();
		socket.on("message", (data: Buffer) => this.#told(data.toString("utf8")));
		socket.on("ping", () => {
			this.#heard = true;
		});
		socket.on("close", () => {
			this.#looking.cancel();
			for (const { reject } of this.#waiting.values()) reject(new LinkError());
			this.#waiting.clear();
			dependencies.onClose();
		});
	}

	/** Connects. Throws {@link LinkError} where the relay does not take it. */
	static open(options: RelayLinkOptions, dependencies: RelayLinkDependencies): Promise<RelayLink> {
		const url = new URL(options.relayUrl);
		url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
		url.pathname = `${url.pathname.replace(/\/+$/, "")}/ws`;
		const socket = new WebSocket(url, {
			headers: options.headers,
			handshakeTimeout: OPEN_MS,
			maxPayload: MAX_MESSAGE_BYTES,
			perMessageDeflate: false,
			// A notification comes behind the answer that tells its subscription's id, in a later turn.
			allowSynchronousEvents: false,
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
			// What does not answer does not tell of anything, either.
			const timer = this.#with.clock.after(ANSWER_MS, () => this.close());
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

	/** Ends it at once. */
	close(): void {
		this.#socket.terminate();
	}

	#told(text: string): void {
		this.#heard = true;
		const id = NOTIFICATION.exec(text.slice(0, 200))?.[1];
		if (id !== undefined) {
			this.#with.onNotification(id, text);
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

	#look(): Timer {
		return this.#with.clock.after(LOOK_MS, () => {
			if (!this.#heard) this.close();
			this.#heard = false;
			this.#looking = this.#look();
		});
	}
}
