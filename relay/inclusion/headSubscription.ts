// Subscribes to the node's new heads over a websocket, and reconnects when the connection ends. It
// reads no blocks.

import type { LookupFunction } from "node:net";
import type { Clock } from "../../shared/clock.ts";
import type { Fields } from "../../shared/jsonrpc/fields.ts";
import { Link, LinkError } from "../../shared/link/link.ts";
import { reconnect } from "../../shared/link/reconnect.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import { fieldsOf, readHash } from "../domain/nodeJson.ts";

export interface HeadSubscriptionOptions {
	/** ws or wss; never printed, because it may contain a key. */
	readonly url: string;
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

const LINK = {
	/** A header is 2 KB. */
	maxMessageBytes: 1024 * 1024,
	openMs: 5_000,
	silenceMs: 15_000,
	pings: "client",
} as const;
/** How long the node may take to confirm the subscription, in ms. */
const ANSWER_MS = 5_000;

/** `eth_subscribe newHeads` on one connection at a time. */
export class HeadSubscription {
	readonly #options: HeadSubscriptionOptions;
	readonly #dependencies: HeadSubscriptionDependencies;
	readonly #stopping = new AbortController();
	#running: Promise<void> = Promise.resolve();
	#link: Link | null = null;
	/** The subscription's id, once the node has confirmed it. */
	#id: string | null = null;
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

	/** Follows the heads on one connection to its end. Resolves to whether it had a subscription. */
	async #follow(): Promise<boolean> {
		const { log, onChange } = this.#dependencies;
		const fault = await this.#readHeads();
		this.#link = null;
		const wasLive = this.live;
		this.#id = null;
		if (this.#stopping.signal.aborted) return wasLive;
		if (!this.#isOutageLogged)
			log.warn("node announces no heads: polling", fault === null ? {} : { fault: safeError(fault) });
		this.#isOutageLogged = true;
		if (wasLive) onChange();
		return wasLive;
	}

	/** Resolves to the connection's fault at its end. */
	#readHeads(): Promise<Error | null> {
		return new Promise((resolve) => {
			const begin = (link: Link): void => {
				this.#link = link;
				link.listen({
					onMessage: (message) => this.#read(link, message),
					onEnd: (_code, fault) => resolve(fault),
				});
				const refused = (): void => link.close();
				const confirmed = (id: unknown): void => (typeof id === "string" ? this.#subscribed(id) : refused());
				link.call("eth_subscribe", ["newHeads"], { resolve: confirmed, reject: refused }, ANSWER_MS);
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
		const hash = readHash(fieldsOf(result)?.hash);
		if (hash !== null) this.#dependencies.onHead(hash);
	}

	#subscribed(id: string): void {
		this.#id = id;
		this.#isOutageLogged = false;
		this.#dependencies.log.info("node announces heads");
		this.#dependencies.onChange();
	}
}

function parse(data: Buffer): Fields | null {
	try {
		return fieldsOf(JSON.parse(data.toString("utf8")));
	} catch {
		return null;
	}
}
