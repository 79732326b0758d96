// The fixture for pass-through: a server in front of a scripted relay, with a fake breaker.

import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Attempted, Breaker, BreakerState } from "../../../../boost-proxy/domain/ports.ts";
import { createPassThrough, type RelayPassThrough } from "../../../../boost-proxy/ingress/passthrough.ts";
import {
	BOOST_HEADERS,
	ownHeaders,
	type ProxyOutcome,
} from "../../../../boost-proxy/ingress/routingHeaders.ts";
import { addressReader } from "../../../../shared/client.ts";
import { type Clock, systemClock } from "../../../../shared/clock.ts";
import type { Route } from "../../../../shared/http/routes.ts";
import { createHttpServer, type HttpServer } from "../../../../shared/http/server.ts";
import { silentLogger } from "../../../../shared/log.ts";

/** A breaker whose state a test sets. */
export class PlayedBreaker implements Breaker {
	readonly upstream;
	state: BreakerState = "closed";
	retryMs = 0;
	readonly notes: Attempted[] = [];
	readonly forced: ("open" | "closed" | null)[] = [];

	constructor(upstream: Breaker["upstream"] = "relay") {
		this.upstream = upstream;
	}

	get isUnavailable(): boolean {
		return this.state !== "closed";
	}

	run(): Promise<never> {
		throw new Error("nothing is run here");
	}

	note(attempted: Attempted): void {
		this.notes.push(attempted);
	}

	onChange(): void {}

	status() {
		const { state } = this;
		const reason = state === "closed" ? null : ("refused" as const);
		const since = "2026-01-01T00:00:00.000Z";
		return { state, reason, hint: null, since, nextProbeAt: null, inFlight: 3, oldestInFlightMs: 20 };
	}

	force(state: "open" | "closed" | null): void {
		this.forced.push(state);
	}
}

export const VIA = "1.1 boost-0123456789abcdef";

export interface PassFixtureOptions {
	/** Answers requests to the relay. */
	readonly relay?: RequestListener;
	/** The URL of another relay, instead of the played one's. */
	readonly relayUrl?: string;
	readonly boostSecret?: string;
	readonly trustProxy?: number;
	readonly clock?: Clock;
	readonly routes?: readonly Route[];
}

export interface PassFixture {
	/** Boost's. */
	readonly port: number;
	readonly url: string;
	readonly relayPort: number;
	readonly server: HttpServer;
	readonly pass: RelayPassThrough;
	readonly breaker: PlayedBreaker;
	/** Connections that the relay has now. */
	readonly relaySockets: ReadonlySet<Socket>;
	readonly passed: ProxyOutcome[];
	/** Ends the relay at once. */
	killRelay(): Promise<void>;
	stop(): Promise<void>;
}

/** Starts both; the caller stops them. */
export async function startPassFixture(options: PassFixtureOptions = {}): Promise<PassFixture> {
	const relaySockets = new Set<Socket>();
	const relay = createServer(
		{ keepAliveTimeout: 95_000 },
		options.relay ?? ((_, answer) => answer.end("{}")),
	);
	relay.on("connection", (socket) => {
		relaySockets.add(socket);
		socket.on("close", () => relaySockets.delete(socket));
	});
	const relayPort = await listen(relay);
	const breaker = new PlayedBreaker();
	const passed: ProxyOutcome[] = [];
	const { clock = systemClock, boostSecret, trustProxy = 0 } = options;
	const readAddress = addressReader({ trustProxy });
	const pass = createPassThrough(
		{
			relayUrl: options.relayUrl ?? `http://127.0.0.1:${relayPort}`,
			boostSecret,
			via: VIA,
		},
		{
			breaker,
			readAddress,
			clock,
			log: silentLogger,
			onPassed: (outcome) => passed.push(outcome),
		},
	);
	const server = createHttpServer(
		{
			name: "test",
			host: "127.0.0.1",
			port: 0,
			rpcPaths: ["/fast"],
			routes: [{ path: "/own", handle: () => ({ status: 200, body: "{}" }) }, ...(options.routes ?? [])],
			maxBodyBytes: 4096,
			exposedHeaders: BOOST_HEADERS,
			headersFor: () => ownHeaders(breaker.state),
		},
		{
			post: async ({ body }) => ({ status: 200, body: `{"bytes":${body.length}}` }),
			...{ proxy: pass, readAddress, clock, log: silentLogger },
		},
	);
	await server.start();
	const killRelay = async (): Promise<void> => {
		const closed = new Promise<void>((resolve) => relay.close(() => resolve()));
		for (const socket of relaySockets) socket.destroy();
		await closed;
	};
	return {
		port: server.port,
		url: `http://127.0.0.1:${server.port}`,
		...{ relayPort, server, pass, breaker, relaySockets, passed, killRelay },
		async stop() {
			await server.stop();
			await killRelay();
		},
	};
}

async function listen(server: Server): Promise<number> {
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	return (server.address() as AddressInfo).port;
}
