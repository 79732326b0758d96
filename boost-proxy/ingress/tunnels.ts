// Proxies websockets to the relay. http-proxy moves the bytes; what it leaves open is closed here, so that neither connection
// outlives the other by more than a moment. No frame is read, so none can be written: a connection that must end is cut.

import type { ClientRequest, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ProxyServer } from "http-proxy";
import { type Clock, pause, type Timer } from "../../shared/clock.ts";
import { type HttpAnswer, jsonAnswer, rawAnswer } from "../../shared/http/httpAnswer.ts";
import type { UpgradeHandler } from "../../shared/http/server.ts";
import type { Breaker } from "../domain/ports.ts";
import type { RoutingInfo } from "../domain/request.ts";
import {
	type OnPassed,
	outAnswer,
	type ProxyError,
	type ProxyOutcome,
	proxyError,
	routingHeaders,
	towardsClient,
} from "./routingHeaders.ts";

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
				: breaker.isUnavailable
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

export interface TunnelOptions {
	/** The client's connection, which asked for an upgrade. */
	readonly client: Socket;
	/** When the relay's answer to it is given up, in ms. */
	readonly firstByteMs: number;
}

export interface TunnelDependencies {
	/** The relay's. */
	readonly breaker: Breaker;
	readonly clock: Clock;
	readonly onPassed: OnPassed | undefined;
	/** Called once, when both connections are closed. */
	readonly onOver: () => void;
}

/** Once one side has ended, how long the other may take, in ms. */
const CLOSE_MS = 5_000;
const SILENT_LOOKS = 2;
const BY_RELAY: RoutingInfo = { answeredBy: new Set(["relay"]), attempts: 1, dropped: new Set() };

/** Two connections as one. */
export class Tunnel {
	readonly #client: Socket;
	readonly #dependencies: TunnelDependencies;
	#sent: ClientRequest | null = null;
	#relay: Socket | null = null;
	#timer: Timer;
	#connected = false;
	#told = false;
	#over = false;
	/** Bytes that had come from the relay at the last look, and for how many looks there were no more. */
	#heard = 0;
	#silent = 0;

	constructor({ client, firstByteMs }: TunnelOptions, dependencies: TunnelDependencies) {
		this.#client = client;
		this.#dependencies = dependencies;
		this.#timer = dependencies.clock.after(firstByteMs, () => this.#refuse("timeout"));
		client.on("end", () => this.#closing());
		client.on("close", () => {
			this.#tell("gone");
			// Before the relay's answer http-proxy would wait for it, and then keep its connection for good.
			if (this.#relay === null) this.#sent?.destroy();
			this.#closing();
			this.#check();
		});
	}

	/** The upgrade is about to be asked of the relay. Before http-proxy listens to the answer. */
	asking(sent: ClientRequest): void {
		this.#sent = sent;
		sent.on("socket", (socket) => {
			socket.once("connect", () => {
				this.#connected = true;
			});
		});
		sent.on("upgrade", (answer, relay) => this.#upgraded(answer, relay));
		sent.on("response", (answer) => this.#refused(answer));
	}

	/** The connection to the relay failed, or the client's broke. Before http-proxy ends the client's. */
	broken(): void {
		this.#refuse("reset");
		this.#closing();
	}

	/** Ends both, each after what is still to be written to it. */
	finish(): void {
		this.#refuse("timeout", "shutting down");
		this.#relay?.unpipe(this.#client);
		this.#client.end();
		this.#relay?.end();
		this.#closing();
	}

	/** Cuts both. */
	cut(): void {
		this.#sent?.destroy();
		this.#relay?.destroy();
		this.#client.destroy();
	}

	/** Cuts it where the relay has been silent since the look before the last one. */
	look(): void {
		if (this.#relay === null) return;
		const { bytesRead } = this.#relay;
		this.#silent = bytesRead === this.#heard ? this.#silent + 1 : 0;
		this.#heard = bytesRead;
		if (this.#silent >= SILENT_LOOKS) this.cut();
	}

	#upgraded(answer: IncomingMessage, relay: Socket): void {
		this.#timer.cancel();
		this.#relay = relay;
		relay.on("error", () => relay.destroy());
		relay.on("end", () => this.#closing());
		relay.on("close", () => {
			this.#closing();
			this.#check();
		});
		const { connection, upgrade } = answer.headers;
		this.#readdress(answer);
		Object.assign(answer.headers, { connection, upgrade });
		this.#tell("answered");
	}

	/** The relay answers otherwise: as it is, and then the connection ends. */
	#refused(answer: IncomingMessage): void {
		this.#timer.cancel();
		this.#readdress(answer);
		answer.headers.connection = "close";
		answer.on("error", () => {});
		answer.on("close", () => this.#client.destroySoon());
		this.#tell("answered");
	}

	/** Makes the answer's headers those for the client: http-proxy writes them as they then are. */
	#readdress(answer: IncomingMessage): void {
		const ours = routingHeaders(BY_RELAY, this.#dependencies.breaker.state);
		answer.headers = towardsClient(answer.headers, ours) as IncomingMessage["headers"];
	}

	/** Answers the upgrade of our own accord, where nothing was answered yet. */
	#refuse(fault: ProxyError, reason?: string): void {
		if (this.#told) return;
		const { breaker } = this.#dependencies;
		const kind = this.#connected ? fault : "refused";
		this.#tell(kind === "refused" ? "unavailable" : "failed");
		if (kind === "refused" && reason === undefined) breaker.note({ outcome: "refused" });
		refuseUpgrade(this.#client, proxyError("POST", kind, breaker, reason), breaker, 1);
		this.#sent?.destroy();
	}

	/** One side ends: the other gets a moment. */
	#closing(): void {
		if (this.#over) return;
		this.#timer.cancel();
		this.#timer = this.#dependencies.clock.after(CLOSE_MS, () => this.cut());
		this.#check();
	}

	#check(): void {
		const isClosed = this.#client.destroyed && (this.#relay === null || this.#relay.destroyed);
		if (this.#over || !isClosed) return;
		this.#over = true;
		this.#timer.cancel();
		this.#dependencies.onOver();
	}

	#tell(outcome: ProxyOutcome): void {
		if (this.#told) return;
		this.#told = true;
		this.#timer.cancel();
		this.#dependencies.onPassed?.("websocket", outcome);
	}
}

/** Answers an upgrade with `answer` and ends the connection. `attempts`: requests that were sent to the relay for it. */
export function refuseUpgrade(
	socket: Duplex,
	{ status, body, headers }: HttpAnswer,
	breaker: Breaker,
	attempts: number,
): void {
	const ours = routingHeaders({ answeredBy: new Set(), attempts, dropped: new Set() }, breaker.state);
	const lines = Object.entries({ ...headers, ...ours }).map(([name, value]) => `${name}: ${value}`);
	socket.end(rawAnswer(status, String(body ?? ""), lines), () => socket.destroy());
}
