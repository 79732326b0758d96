// Proxies websockets to the relay. No frame is read, so none can be written: a connection that must end is cut.

import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ProxyServer } from "http-proxy";
import { type Clock, pause, type Timer } from "../../shared/clock.ts";
import { jsonAnswer } from "../../shared/http/httpAnswer.ts";
import type { UpgradeHandler } from "../../shared/http/server.ts";
import type { Breaker } from "../domain/breakerPorts.ts";
import { type OnPassed, outAnswer } from "./proxyErrors.ts";
import { refuseUpgrade, Tunnel } from "./tunnel.ts";

export interface TunnelsOptions {
	/** When an upgrade that is not answered is given up, in ms. */
	readonly firstByteMs: number;
	/** 10,000 unless said. */
	readonly maxWebsockets?: number | undefined;
}

export interface TunnelsDependencies {
	readonly proxy: ProxyServer;
	/** Makes a request's headers and target those for the relay. */
	readonly introduce: (request: IncomingMessage) => void;
	/** The relay's. */
	readonly breaker: Breaker;
	readonly clock: Clock;
	readonly onPassed?: OnPassed;
}

const MAX_WEBSOCKETS = 10_000;
/** The relay asks for a sign of life every 25 s; what came nothing of for two looks is dead. */
const LOOK_MS = 30_000;
/** How long the two ends may take to say goodbye at a stop. */
const GOODBYE_MS = 2_000;

/** The websockets of one server. */
export class Tunnels implements UpgradeHandler {
	readonly #options: TunnelsOptions;
	readonly #dependencies: TunnelsDependencies;
	/** By the request that asked for them. */
	readonly #open = new Map<IncomingMessage, Tunnel>();
	#onEmpty: (() => void)[] = [];
	#looking: Timer | null = null;
	#draining = false;

	constructor(options: TunnelsOptions, dependencies: TunnelsDependencies) {
		this.#options = options;
		this.#dependencies = dependencies;
		dependencies.proxy.on("proxyReqWs", (sent, request) => this.#open.get(request)?.asking(sent));
	}

	/** Those that are open or about to be. */
	get size(): number {
		return this.#open.size;
	}

	upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
		const { proxy, introduce, breaker, clock, onPassed } = this.#dependencies;
		const { firstByteMs, maxWebsockets = MAX_WEBSOCKETS } = this.#options;
		socket.on("error", () => socket.destroy());
		const reason = this.#draining
			? "shutting down"
			: this.#open.size >= maxWebsockets
				? "too many connections"
				: breaker.isOut
					? "the relay is out"
					: null;
		if (reason !== null) {
			onPassed?.("websocket", "unavailable");
			refuseUpgrade(socket, outAnswer("POST", breaker.retryMs, reason), breaker, 0);
			return;
		}
		if (request.method !== "GET") {
			// http-proxy would close it without a word.
			refuseUpgrade(socket, jsonAnswer(405, { error: "expected GET" }, { allow: "GET" }), breaker, 0);
			return;
		}
		introduce(request);
		request.headers.connection = "Upgrade";
		request.headers.upgrade = "websocket";
		// On an HTTP server's upgrade it is the connection itself.
		const client = socket as Socket;
		const tunnel = new Tunnel({ client, firstByteMs }, { breaker, clock, onPassed, onOver: () => over() });
		const over = (): void => this.#ended(request);
		this.#open.set(request, tunnel);
		this.#looking ??= clock.after(LOOK_MS, () => this.#look());
		// On a connection of its own: an upgraded one never comes back.
		try {
			proxy.ws(request, socket, head, { agent: undefined }, () => tunnel.broken());
		} catch {
			// What node's parser takes and its client does not send.
			tunnel.cut();
		}
	}

	drain(): void {
		this.#draining = true;
	}

	async stop(deadlineMs: number): Promise<void> {
		this.#draining = true;
		const { clock } = this.#dependencies;
		const empty =
			this.#open.size === 0 ? Promise.resolve() : new Promise<void>((resolve) => this.#onEmpty.push(resolve));
		for (const tunnel of [...this.#open.values()]) tunnel.finish();
		await Promise.race([empty, pause(clock, Math.min(deadlineMs, GOODBYE_MS))]);
		for (const tunnel of [...this.#open.values()]) tunnel.cut();
		await empty;
		this.#looking?.cancel();
	}

	#ended(request: IncomingMessage): void {
		this.#open.delete(request);
		if (this.#open.size > 0) return;
		for (const resolve of this.#onEmpty.splice(0)) resolve();
	}

	#look(): void {
		for (const tunnel of [...this.#open.values()]) tunnel.look();
		this.#looking =
			this.#open.size === 0 ? null : this.#dependencies.clock.after(LOOK_MS, () => this.#look());
	}
}
