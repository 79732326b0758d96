// Listens on a server's port while the process waits for its store: for another process to release it, or for the database. It
// answers /, /livez and /readyz and holds other requests for a moment; the server that starts afterwards takes over the port
// and the held requests.

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
	/** How long a request is held before it is refused, in ms, so that its client can try another server. */
	readonly holdMs: number;
	/** What its error pages are made with, and of. Without them errors are JSON. */
	readonly errorPage?: (answer: HttpAnswer) => HttpAnswer;
	readonly assets?: readonly Route[];
}

type HeldRequest = Handover["requests"][number];

/** Maximum requests held; further ones are refused at once. */
const MAX_HELD = 1_000;
/** To GET of `/`: a host that checks nothing else ends the other process only when this one is up. */
export const UP = jsonAnswer(200, { name: "leeward", ready: false }, VARY_ACCEPT);

export class Standby {
	readonly #options: StandbyOptions;
	readonly #dependencies: { readonly clock: Clock; readonly log: Logger };
	/** Each held request, and the function that refuses it. */
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
	 * Listens, and says why the process waits, which is public. Called again it only changes the reason. Throws ListenError,
	 * which names PORT or HOST.
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

	/** Holds the requests instead of proxying them. */
	readonly #holder: RequestProxy = {
		handle: (request, response, exchange) => {
			const refuse = () => exchange.refuse(notServingAnswer(request, this.#reason));
			const { method, url = "/", headers } = request;
			// Upgrades are refused at once: a held one would be answered as plain HTTP.
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
			// One that is refused is not handed on, however long its client goes on sending.
			const refuseHeld = () => {
				end();
				refuse();
			};
			const timer = this.#dependencies.clock.after(this.#options.holdMs, refuseHeld);
			this.#held.set(held, refuseHeld);
			exchange.onGone(end);
		},
	};

	/** Hands the port, connections and held requests over; undefined if it does not listen. */
	leave(): Handover | undefined {
		const held = [...this.#held.keys()];
		const handed = this.#server?.leave();
		this.#server = null;
		return handed === undefined ? undefined : { ...handed, requests: [...held, ...handed.requests] };
	}

	/** Refuses held requests and stops listening; does nothing after {@link leave}. */
	async stop(): Promise<void> {
		const server = this.#server;
		this.#server = null;
		server?.drain();
		for (const refuse of [...this.#held.values()]) refuse();
		await server?.stop();
	}
}
