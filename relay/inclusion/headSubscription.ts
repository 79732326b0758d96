// Subscribes to the node's new heads over a websocket, and reconnects when the connection closes or
// stops answering pings. It reads no blocks.

import type { LookupFunction } from "node:net";
import { type RawData, WebSocket } from "ws";
import type { Clock, Timer } from "../../shared/clock.ts";
import type { Fields } from "../../shared/jsonrpc/fields.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import { OUTGOING_HEADERS } from "../../shared/outgoing/headers.ts";
import { fieldsOf, readHash } from "../domain/nodeJson.ts";

export interface HeadSubscriptionOptions {
	/** ws or wss; never printed, because it may contain a key. */
	readonly url: string;
	/** Interval of pings, in ms. The connection is closed if nothing arrives between two of them. */
	readonly pingMs?: number;
}

export interface HeadSubscriptionDependencies {
	/** The hash of a head that the node announced. */
	readonly onHead: (hash: string) => void;
	/** Called after `live` has changed. */
	readonly onChange: () => void;
	/** 0 to 1, to vary the pause before the next try. */
	readonly random: () => number;
	/** Default: Node's own. */
	readonly lookup?: LookupFunction | undefined;
	readonly clock: Clock;
	readonly log: Logger;
}

const PING_MS = 15_000;
/** Deadline from connecting to the confirmed subscription, in ms. */
const SETUP_MS = 5_000;
/** Pauses between two tries, doubled each time, in ms. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 10_000;
/** A header is 2 KB. */
const MAX_MESSAGE_BYTES = 1024 * 1024;
const SUBSCRIBE = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params: ["newHeads"] });

/** `eth_subscribe newHeads` on one connection at a time. */
export class HeadSubscription {
	readonly #options: HeadSubscriptionOptions;
	readonly #dependencies: HeadSubscriptionDependencies;
	#socket: WebSocket | null = null;
	/** The subscription's id, once the node has confirmed it. */
	#id: string | null = null;
	/** Closes, pings or reopens the connection. */
	#timer: Timer | null = null;
	#tries = 0;
	#isAnswering = false;
	#stopped = true;
	#isOutageLogged = false;

	constructor(options: HeadSubscriptionOptions, dependencies: HeadSubscriptionDependencies) {
		this.#options = options;
		this.#dependencies = dependencies;
	}

	/** Whether the node announces heads, as far as is known. */
	get live(): boolean {
		return this.#id !== null;
	}

	start(): void {
		this.#stopped = false;
		this.#connect();
	}

	/** Reconnects, for a connection that is open but announces nothing. */
	restart(): void {
		this.#socket?.terminate();
	}

	/** Ends the connection; resolves when it is closed. */
	async stop(): Promise<void> {
		this.#stopped = true;
		this.#timer?.cancel();
		const socket = this.#socket;
		if (socket === null) return;
		await new Promise<void>((resolve) => {
			socket.once("close", () => resolve());
			socket.terminate();
		});
	}

	#connect(): void {
		const { clock, lookup } = this.#dependencies;
		const socket = new WebSocket(this.#options.url, {
			perMessageDeflate: false,
			maxPayload: MAX_MESSAGE_BYTES,
			headers: OUTGOING_HEADERS,
			...(lookup === undefined ? {} : { lookup }),
		});
		this.#socket = socket;
		this.#timer = clock.after(SETUP_MS, () => socket.terminate());
		socket.on("open", () => socket.send(SUBSCRIBE));
		socket.on("message", (data) => this.#read(socket, data));
		socket.on("pong", () => {
			this.#isAnswering = true;
		});
		// A "close" follows every "error", so the error is logged there, once for each outage.
		let fault: unknown;
		socket.on("error", (error) => {
			fault = error;
		});
		socket.on("close", () => this.#closed(fault));
	}

	#read(socket: WebSocket, data: RawData): void {
		this.#isAnswering = true;
		const message = parse(data);
		if (message === null) return;
		if (message.id === 1) {
			if (typeof message.result === "string") this.#subscribed(socket, message.result);
			else socket.terminate();
			return;
		}
		const { subscription, result } = fieldsOf(message.params) ?? {};
		if (message.method !== "eth_subscription" || this.#id === null || subscription !== this.#id) return;
		const hash = readHash(fieldsOf(result)?.hash);
		if (hash !== null) this.#dependencies.onHead(hash);
	}

	#subscribed(socket: WebSocket, id: string): void {
		this.#timer?.cancel();
		this.#id = id;
		this.#tries = 0;
		this.#isOutageLogged = false;
		this.#dependencies.log.info("node announces heads");
		this.#ping(socket);
		this.#dependencies.onChange();
	}

	#ping(socket: WebSocket): void {
		this.#isAnswering = false;
		socket.ping();
		this.#timer = this.#dependencies.clock.after(this.#options.pingMs ?? PING_MS, () => {
			if (this.#isAnswering) this.#ping(socket);
			else socket.terminate();
		});
	}

	#closed(fault: unknown): void {
		const { clock, log, random, onChange } = this.#dependencies;
		this.#timer?.cancel();
		this.#socket = null;
		const wasLive = this.live;
		this.#id = null;
		if (this.#stopped) return;
		if (!this.#isOutageLogged) {
			this.#isOutageLogged = true;
			log.warn("node announces no heads: polling", {
				...(fault === undefined ? {} : { fault: safeError(fault) }),
			});
		}
		const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** this.#tries, LONGEST_PAUSE_MS);
		this.#tries = Math.min(this.#tries + 1, 16);
		// Half of it is random, so that many relays do not reconnect at the same time.
		this.#timer = clock.after(pauseMs * (0.5 + random() / 2), () => this.#connect());
		if (wasLive) onChange();
	}
}

function parse(data: RawData): Fields | null {
	try {
		return fieldsOf(JSON.parse(data.toString()));
	} catch {
		return null;
	}
}
