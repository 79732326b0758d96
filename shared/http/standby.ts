// Keeps a server's port while the process waits for another one to let go of its store: it answers /livez
// and /readyz and holds other requests for a moment. The server that starts in its place takes over the port
// and all of them.

import type { Clock } from "../clock.ts";
import type { Logger } from "../log.ts";
import { addressReader } from "./callContext.ts";
import type { ConnectionsOptions } from "./connections.ts";
import { jsonAnswer, notServing } from "./messages.ts";
import type { PassThrough, Route } from "./routes.ts";
import { createHttpServer, type Handed, type HttpServer, startListening } from "./server.ts";

export interface StandbyOptions extends ConnectionsOptions {
	readonly host: string;
	/** Of the setting PORT. */
	readonly port: number;
	/** How long a request is held before it is refused, in ms: its client may have another server to go to. */
	readonly holdMs: number;
}

type HeldRequest = Handed["requests"][number];

/** Requests held at most; further ones are refused at once. */
const MAX_HELD = 1_000;
const WAITS = "another process has the store: this one waits for it to end";
const NOT_READY = { ready: false, draining: false, checks: { store: { ok: false, reason: WAITS } } };
const ROUTES: readonly Route[] = [
	{ path: "/livez", handle: () => jsonAnswer(200, { live: true }) },
	{ path: "/readyz", handle: () => jsonAnswer(503, NOT_READY) },
];

/** One place; nothing listens before {@link start}. */
export class Standby {
	readonly #options: StandbyOptions;
	readonly #with: { readonly clock: Clock; readonly log: Logger };
	/** What each is told instead of an answer where there is none. */
	readonly #held = new Map<HeldRequest, () => void>();
	#server: HttpServer | null = null;

	constructor(options: StandbyOptions, dependencies: { readonly clock: Clock; readonly log: Logger }) {
		this.#options = options;
		this.#with = dependencies;
	}

	/** The port it listens on; 0 where it does not. */
	get port(): number {
		return this.#server?.port ?? 0;
	}

	/** Listens; does nothing where it does already. Throws ListenError, which names PORT or HOST. */
	async start(): Promise<void> {
		if (this.#server !== null) return;
		const { trustProxy = 0 } = this.#options;
		const server = createHttpServer(
			{
				...{ ...this.#options, name: "standby", rpcPaths: [], routes: ROUTES },
				...{ maxBodyBytes: 0, announcement: "listening, not ready yet" },
			},
			{ ...this.#with, readAddress: addressReader({ trustProxy }), pass: this.#pass },
		);
		await startListening([server], { standby: ["PORT", this.#options.port] });
		this.#server = server;
	}

	readonly #pass: PassThrough = {
		web: (request, response, passing) => {
			const refuse = () => passing.refuse(notServing(request.method, WAITS));
			// A websocket's client is told at once: its request would be answered as one of HTTP.
			if (request.headers.upgrade?.toLowerCase() === "websocket" || this.#held.size >= MAX_HELD) {
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
			const timer = this.#with.clock.after(this.#options.holdMs, refuseHeld);
			this.#held.set(held, refuseHeld);
			passing.onGone(end);
		},
	};

	/** Gives the place away: nothing more is answered here. Undefined where it does not listen. */
	leave(): Handed | undefined {
		const requests = [...this.#held.keys()];
		const handed = this.#server?.leave();
		this.#server = null;
		return handed === undefined ? undefined : { ...handed, requests };
	}

	/** Refuses what is held and listens no more; does nothing where the place was given away. */
	async stop(): Promise<void> {
		const server = this.#server;
		this.#server = null;
		server?.drain();
		for (const refuse of [...this.#held.values()]) refuse();
		await server?.stop();
	}
}
