// A websocket to the relay with calls and subscriptions. It knows no methods, and never reconnects,
// since notifications sent meanwhile would be lost: a lost connection ends it.

import { WebSocket } from "ws";
import { type Clock, withDeadline } from "../../../shared/clock.ts";

/** The relay's error for a call. */
export class RelayRefusal extends Error {
	readonly code: number;
	constructor(method: string, code: number, message: string) {
		super(`${method}: ${message} (${code})`);
		this.name = "RelayRefusal";
		this.code = code;
	}
}

/** A running subscription. */
export interface Subscription {
	/** The id that the relay gave it. */
	readonly id: string;
	end(): Promise<void>;
}

interface Waiting {
	readonly method: string;
	readonly resolve: (result: unknown) => void;
	readonly reject: (error: Error) => void;
}

interface Message {
	readonly id?: number;
	readonly result?: unknown;
	readonly error?: { readonly code: number; readonly message: string };
	readonly params?: { readonly subscription: string; readonly result: unknown };
}

/**
 * Deadline of a call: shorter than a slot, and enough for a bid, which is simulated before it is
 * answered.
 */
const CALL_MS = 5_000;
/** The relay pings, so a connection that is silent for this long is dead. */
const SILENCE_MS = 90_000;

/** One connection: `open` it, then call and subscribe. */
export class RelaySocket {
	readonly #clock: Clock;
	readonly #socket: WebSocket;
	readonly #waiting = new Map<number, Waiting>();
	readonly #listeners = new Map<string, (result: unknown) => void>();
	#lastId = 0;
	#lastWord: number;

	/** Resolves with the reason when the connection has ended. */
	readonly closed: Promise<string>;

	private constructor(socket: WebSocket, clock: Clock) {
		this.#socket = socket;
		this.#clock = clock;
		this.#lastWord = clock.monotonic();
		this.closed = new Promise((resolve) => {
			socket.on("close", (code, reason) => {
				const why = `the relay's connection is closed: ${code} ${reason.toString()}`.trim();
				for (const { method, reject } of this.#waiting.values()) reject(new Error(`${method}: ${why}`));
				this.#waiting.clear();
				resolve(why);
			});
		});
		// "close" follows any error.
		socket.on("error", () => {});
		socket.on("ping", () => {
			this.#lastWord = this.#clock.monotonic();
		});
		socket.on("message", (data) => this.#take(data.toString()));
		this.#watch();
	}

	/** Connects to `url` (ws or wss). Rejects if that fails or takes more than five seconds. */
	static open(url: string, clock: Clock): Promise<RelaySocket> {
		return withDeadline(clock, "connection to the relay", CALL_MS, (signal) => {
			const socket = new WebSocket(url);
			signal.addEventListener("abort", () => socket.terminate());
			return new Promise((resolve, reject) => {
				socket.once("open", () => resolve(new RelaySocket(socket, clock)));
				socket.once("error", reject);
			});
		});
	}

	/**
	 * Makes a call, and returns its result. Rejects with {@link RelayRefusal}, or without an answer
	 * within five seconds.
	 */
	call(method: string, params: readonly unknown[]): Promise<unknown> {
		return this.#ask(method, params, (result) => result);
	}

	/**
	 * Subscribes; `listener` gets each notification's result, in order. Rejects like {@link call}.
	 */
	async subscribe(params: readonly unknown[], listener: (result: unknown) => void): Promise<Subscription> {
		// The first notification may arrive in the same packet as the answer, so the listener must be
		// set by then.
		const id = await this.#ask("eth_subscribe", params, (result) => {
			this.#listeners.set(String(result), listener);
			return String(result);
		});
		const end = async (): Promise<void> => {
			this.#listeners.delete(id);
			await this.call("eth_unsubscribe", [id]);
		};
		return { id, end };
	}

	/** Closes the connection and waits for its end. */
	async close(): Promise<void> {
		this.#socket.close();
		const timer = this.#clock.after(CALL_MS, () => this.#socket.terminate());
		await this.closed;
		timer.cancel();
	}

	/** Calls `read` with the answer before any later message is read. */
	async #ask<T>(method: string, params: readonly unknown[], read: (result: unknown) => T): Promise<T> {
		this.#lastId += 1;
		const id = this.#lastId;
		try {
			return await withDeadline(this.#clock, method, CALL_MS, () => {
				return new Promise<T>((resolve, reject) => {
					if (this.#socket.readyState !== WebSocket.OPEN) throw new Error(`${method}: not connected`);
					this.#waiting.set(id, { method, resolve: (result) => resolve(read(result)), reject });
					this.#socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
				});
			});
		} finally {
			this.#waiting.delete(id);
		}
	}

	#take(text: string): void {
		this.#lastWord = this.#clock.monotonic();
		const message = parse(text);
		if (message === null) return;
		const { id, result, error, params } = message;
		if (params !== undefined) {
			this.#listeners.get(params.subscription)?.(params.result);
			return;
		}
		const waiting = this.#waiting.get(id ?? 0);
		if (waiting === undefined) return;
		this.#waiting.delete(id ?? 0);
		if (error === undefined) waiting.resolve(result);
		else waiting.reject(new RelayRefusal(waiting.method, error.code, error.message));
	}

	#watch(): void {
		if (this.#socket.readyState !== WebSocket.OPEN) return;
		if (this.#clock.monotonic() - this.#lastWord > SILENCE_MS) this.#socket.terminate();
		this.#clock.after(SILENCE_MS / 2, () => this.#watch());
	}
}

function parse(text: string): Message | null {
	try {
		return JSON.parse(text) as Message;
	} catch {
		return null;
	}
}
