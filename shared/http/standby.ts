// Listens on a server's port while the process waits for its store, because another process or the
// database does not give it yet. Answers /, /livez and /readyz, and delays other requests for a
// moment. The server that starts afterwards receives the port and the delayed requests.

import { addressReader } from "../client.ts";
import type { Clock } from "../clock.ts";
import type { Logger } from "../log.ts";
import { readTarget } from "./callContext.ts";
import type { ConnectionsOptions } from "./connections.ts";
import { type HttpAnswer, jsonAnswer, notServingAnswer, VARY_ACCEPT } from "./messages.ts";
import type { RequestProxy, Route } from "./routes.ts";
import { createHttpServer, type Handover, type HttpServer, startListening } from "./server.ts";

export interface StandbyOptions extends ConnectionsOptions {
	readonly host: string;
	readonly port: number;
	/**
	 * How long a request is delayed before it is refused, in ms. Its client can then try another
	 * server.
	 */
	readonly holdMs: number;
	/** Makes its error pages, which use `assets`. Without it errors are JSON. */
	readonly errorPage?: (answer: HttpAnswer) => HttpAnswer;
	readonly assets?: readonly Route[];
}

type HeldRequest = Handover["requests"][number];

/** Maximum delayed requests. Further ones are refused at once. */
const MAX_HELD = 1_000;
/**
 * The answer to GET of `/`. A host that checks nothing else ends the other process only when this
 * one is up.
 */
export const UP = jsonAnswer(200, { name: "leeward", ready: false }, VARY_ACCEPT);

export class Standby {
	readonly #options: StandbyOptions;
	readonly #dependencies: { readonly clock: Clock; readonly log: Logger };
	/** Each delayed request, and the function that refuses it. */
	readonly #held = new Map<HeldRequest, () => void>();
	readonly #routes: readonly Route[] = [
		{ path: "/livez", handle: () => jsonAnswer(200, { live: true }) },
		{
			path: "/readyz",
			handle: () => {
				const checks = { store: { ok: false, reason: this.#reason } };
				return jsonAnswer(503, { ready: false, draining: false, checks });
			},
		},
	];
	#reason = "";
	#server: HttpServer | null = null;

	constructor(options: StandbyOptions, dependencies: { readonly clock: Clock; readonly log: Logger }) {
		this.#options = options;
		this.#dependencies = dependencies;
	}

	/** The port it listens on, else 0. */
	get port(): number {
		return this.#server?.port ?? 0;
	}

	/**
	 * Listens, and reports why the process waits; the reason is public. Called again, it only
	 * changes the reason. Throws ListenError, which names PORT or HOST.
	 */
	async start(reason: string): Promise<void> {
		this.#reason = reason;
		if (this.#server !== null) return;
		const { trustProxy = 0 } = this.#options;
		const server = createHttpServer(
			{
				...this.#options,
				name: "standby",
				rpcPaths: [],
				routes: [...this.#routes, ...(this.#options.assets ?? [])],
				maxBodyBytes: 0,
				announcement: "listening, not ready yet",
			},
			{ ...this.#dependencies, readAddress: addressReader({ trustProxy }), proxy: this.#holder },
		);
		await startListening([server], { standby: ["PORT", this.#options.port] });
		this.#server = server;
	}

	/** Delays the requests instead of proxying them. */
	readonly #holder: RequestProxy = {
		handle: (request, response, exchange) => {
			const refuse = () => exchange.refuse(notServingAnswer(request, this.#reason));
			const { method, url = "/", headers } = request;
			// Upgrades are refused at once: a delayed one would be answered as plain HTTP.
			const isUpgrade = headers.upgrade?.toLowerCase() === "websocket";
			const isRead = (method === "GET" || method === "HEAD") && !isUpgrade;
			if (isRead && readTarget(url).path === "/") {
				exchange.refuse(UP);
				return;
			}
			if (isUpgrade || this.#held.size >= MAX_HELD) {
				refuse();
				return;
			}
			const held: HeldRequest = [request, response];
			const end = () => {
				timer.cancel();
				this.#held.delete(held);
			};
			// A refused request is not passed on, even if its client goes on sending.
			const refuseHeld = () => {
				end();
				refuse();
			};
			const timer = this.#dependencies.clock.after(this.#options.holdMs, refuseHeld);
			this.#held.set(held, refuseHeld);
			exchange.onGone(end);
		},
	};

	/**
	 * Gives up the port, connections and delayed requests, and returns them. Undefined if it does
	 * not listen.
	 */
	leave(): Handover | undefined {
		const held = [...this.#held.keys()];
		const handed = this.#server?.leave();
		this.#server = null;
		return handed === undefined ? undefined : { ...handed, requests: [...held, ...handed.requests] };
	}

	/** Refuses delayed requests and stops listening. Does nothing after {@link leave}. */
	async stop(): Promise<void> {
		const server = this.#server;
		this.#server = null;
		server?.drain();
		for (const refuse of [...this.#held.values()]) refuse();
		await server?.stop();
	}
}
