// Subscribes at the node over a websocket, to new heads or to the public mempool, and reconnects
// when the connection ends.

import type { LookupFunction } from "node:net";
import type { Clock } from "../../shared/clock.ts";
import type { Fields } from "../../shared/jsonrpc/fields.ts";
import { Link, LinkError } from "../../shared/link/link.ts";
import { reconnect } from "../../shared/link/reconnect.ts";
import { fieldsOf } from "../domain/nodeJson.ts";

export interface NodeSubscriptionOptions {
	/** ws or wss; never printed, because it may contain a key. */
	readonly url: string;
	readonly topic: "newHeads" | "newPendingTransactions";
}

export interface NodeSubscriptionDependencies {
	/** Called with each announcement. */
	readonly onResult: (result: unknown) => void;
	/** The node has confirmed the subscription. */
	readonly onLive: () => void;
	/**
	 * The connection has ended, or could not be made. `isNew`: it is the first time since it was
	 * live.
	 */
	readonly onAway: (isNew: boolean, fault: Error | null) => void;
	/** 0 to 1, to vary the pause before the next try. */
	readonly random: () => number;
	/** Default: Node's own. */
	readonly lookup?: LookupFunction | undefined;
	readonly clock: Clock;
}

const LINK = {
	/** A header is 2 KB. */
	maxMessageBytes: 1024 * 1024,
	openMs: 5_000,
	silenceMs: 15_000,
	pings: "client",
} as const;
/** How long the node may take to confirm the subscription, in ms. */
const ANSWER_MS = 5_000;

/** `eth_subscribe` on one connection at a time. */
export class NodeSubscription {
	readonly #options: NodeSubscriptionOptions;
	readonly #dependencies: NodeSubscriptionDependencies;
	readonly #stopping = new AbortController();
	#running: Promise<void> = Promise.resolve();
	#link: Link | null = null;
	/** The subscription's id, once the node has confirmed it. */
	#id: string | null = null;
	#isAwayReported = false;

	constructor(options: NodeSubscriptionOptions, dependencies: NodeSubscriptionDependencies) {
		this.#options = options;
		this.#dependencies = dependencies;
	}

	/** Whether the node announces what was subscribed to, as far as is known. */
	get live(): boolean {
		return this.#id !== null;
	}

	start(): void {
		this.#running = reconnect(() => this.#follow(), this.#stopping.signal, this.#dependencies);
	}

	/** Reconnects, for a connection that is open but announces nothing. */
	restart(): void {
		this.#link?.close();
	}

	/** Ends the connection; resolves when it is closed. */
	async stop(): Promise<void> {
		this.#stopping.abort();
		await this.#running;
	}

	/** Follows one connection to its end. Resolves to whether it had a subscription. */
	async #follow(): Promise<boolean> {
		const fault = await this.#readAll();
		this.#link = null;
		const wasLive = this.live;
		this.#id = null;
		if (this.#stopping.signal.aborted) return wasLive;
		this.#dependencies.onAway(!this.#isAwayReported, fault);
		this.#isAwayReported = true;
		return wasLive;
	}

	/** Resolves to the connection's fault at its end. */
	#readAll(): Promise<Error | null> {
		return new Promise((resolve) => {
			const begin = (link: Link): void => {
				this.#link = link;
				link.listen({
					onMessage: (message) => this.#read(link, message),
					onEnd: (_code, fault) => resolve(fault),
				});
				const refused = (): void => link.close();
				const confirmed = (id: unknown): void => (typeof id === "string" ? this.#subscribed(id) : refused());
				link.call("eth_subscribe", [this.#options.topic], { resolve: confirmed, reject: refused }, ANSWER_MS);
			};
			const dependencies = { ...this.#dependencies, stopped: this.#stopping.signal };
			Link.open({ ...LINK, url: this.#options.url }, dependencies, begin).catch((thrown: unknown) =>
				resolve(thrown instanceof LinkError ? thrown.fault : null),
			);
		});
	}

	#read(link: Link, data: Buffer): void {
		const message = parse(data);
		if (message === null) return;
		if (typeof message.id === "number") link.take(message.id)?.resolve(message.result);
		const { subscription, result } = fieldsOf(message.params) ?? {};
		if (message.method !== "eth_subscription" || this.#id === null || subscription !== this.#id) return;
		this.#dependencies.onResult(result);
	}

	#subscribed(id: string): void {
		this.#id = id;
		this.#isAwayReported = false;
		this.#dependencies.onLive();
	}
}

function parse(data: Buffer): Fields | null {
	try {
		return fieldsOf(JSON.parse(data.toString("utf8")));
	} catch {
		return null;
	}
}
