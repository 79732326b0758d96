// Creates the relay's servers for HTTP, websockets and metrics, which share one port unless
// settings separate them. Methods and routes are defined elsewhere.

import { addressReader, type VerifySignature } from "../../shared/client.ts";
import type { Clock } from "../../shared/clock.ts";
import { type CallContext, readTarget } from "../../shared/http/callContext.ts";
import { endWith, jsonAnswer, rawAnswer } from "../../shared/http/messages.ts";
import type { OperatorData } from "../../shared/http/operatorData.ts";
import {
	guardedMetricsRoute,
	openMetricsRoute,
	opsRoutes,
	type ReadinessCheck,
} from "../../shared/http/opsRoutes.ts";
import type { RateLimiter } from "../../shared/http/rateLimit.ts";
import { type Route, rpcOverHttp } from "../../shared/http/routes.ts";
import {
	createHttpServer,
	drainServers,
	type HttpServer,
	startListening,
	type UpgradeHandler,
} from "../../shared/http/server.ts";
import { UnreadBytes } from "../../shared/http/unreadBytes.ts";
import { RpcWebsocket } from "../../shared/http/websocket.ts";
import { type CallOutcome, JsonText } from "../../shared/jsonrpc/answers.ts";
import { createDispatcher, type Fallback } from "../../shared/jsonrpc/dispatch.ts";
import { boundTable, methodTable, type OpenRpcInfo, openRpc } from "../../shared/jsonrpc/method.ts";
import { COMPONENT_STOP_MS, type Component } from "../../shared/lifecycle.ts";
import type { Logger } from "../../shared/log.ts";
import type { Metrics } from "../../shared/metrics.ts";
import { createPages } from "../../shared/pages/pages.ts";
import { EDGE_PATH } from "../domain/endpoints.ts";
import type { EdgeServer } from "../edge/edgeServer.ts";
import type { MethodDependencies } from "./methodDependencies.ts";
import { CORE_METHODS, EDGE_METHODS, METHODS } from "./methods/index.ts";
import { RPC_PATHS } from "./methods/transactions.ts";
import { MEV_SHARE } from "./mevShareStream.ts";
import { operatorRoutes } from "./operators.ts";
import { type OperatorTables, operatorTables } from "./operatorTables.ts";
import { ENDPOINTS_TO_CHOOSE, NOT_READY, type PublicServerOptions, type WaitingServers } from "./waiting.ts";

export interface IngressOptions extends PublicServerOptions {
	/** Time over which websockets are closed once /readyz is 503, in ms; see drainServers. */
	readonly drainMs: number;
	/** The role and term that /readyz shows with its checks. */
	readonly place: () => object;
	/** The answer of `GET /info`. */
	readonly info: () => Promise<unknown>;
	/** Opens the operator's page; undefined: there is none. */
	readonly adminToken: string | undefined;
	/** The data of the operator's page, given the number of open websockets. */
	readonly operator: (websockets: () => number) => OperatorData;
	readonly tables: OperatorTables;
	/** The service's description in `rpc.discover`. */
	readonly about: OpenRpcInfo;
}

export interface IngressDependencies extends Omit<MethodDependencies, "describe"> {
	/** Reads that the node answers. */
	readonly reads: Fallback<CallContext>;
	/** The routes of transactions and bundles. */
	readonly recordRoutes: readonly Route[];
	/** The searchers' event stream, served on the same port as the websockets. */
	readonly searcherRoutes: readonly Route[];
	/** Open event streams of this process. */
	readonly streams: () => number;
	readonly checks: readonly ReadinessCheck[];
	/** Its head is null until the first one, and before that nothing can be judged. */
	readonly tip: { head(): unknown };
	readonly limiter: RateLimiter;
	/**
	 * Accepts the connections of other relays while this process is the core; null if no other
	 * relay can reach the store.
	 */
	readonly edges: (() => EdgeServer | null) | null;
	/**
	 * The secret that edges send while this process is the core. It makes the core trust their
	 * clients' addresses.
	 */
	readonly ownSecret: () => string | null;
	readonly registry: Metrics;
	readonly onCall: (call: { readonly method: string; readonly outcome: CallOutcome }) => void;
	/** Called after the drain, before the connections are closed. */
	readonly onStop: () => void;
	readonly verifySignature: VerifySignature;
	readonly clock: Clock;
	/** Answers on the ports until the servers start. */
	readonly waiting: WaitingServers;
	readonly log: Logger;
}

/** The servers as one component. */
export interface Ingress extends Component {
	/** The port of HTTP, once started. */
	readonly port: number;
	/** Turns /readyz to 503 and refuses new websockets; the rest of the stop may follow later. */
	leave(): void;
}

/** Creates the servers; `start` makes them listen. */
export function createIngress(options: IngressOptions, dependencies: IngressDependencies): Ingress {
	const { clock, log, limiter, registry, streams, core, edges } = dependencies;
	const { host, port, searcherPort, metricsPort, maxBodyBytes, maxBatch } = options;
	let document: JsonText | null = null;
	const dispatcher = createDispatcher<CallContext>(
		{ maxBatch },
		{
			methods: new Map([
				...methodTable(EDGE_METHODS, {
					...dependencies,
					describe: () => {
						document ??= new JsonText(JSON.stringify(openRpc(METHODS, options.about)));
						return document;
					},
				}),
				...boundTable(CORE_METHODS, (method, params, context) => core.run(method, params, context)),
			]),
			fallback: dependencies.reads,
			limiter,
			log,
			requestOf: ({ requestId }) => requestId,
			clock,
			onCall: (method, outcome) => dependencies.onCall({ method, outcome }),
		},
	);
	const readAddress = addressReader({
		trustProxy: options.trustProxy,
		...(options.boostSecret === undefined ? {} : { boostSecret: options.boostSecret }),
		ownSecret: dependencies.ownSecret,
	});
	const post = rpcOverHttp({
		dispatcher,
		limiter,
		verifySignature: dependencies.verifySignature,
		unavailable: () => (dependencies.tip.head() === null ? NOT_READY : null),
	});
	const unread = new UnreadBytes({ clock });
	const websocket = new RpcWebsocket(
		{ paths: RPC_PATHS, maxMessageBytes: maxBodyBytes },
		{ dispatcher, limiter, unread, clock },
	);
	const draining = (): boolean => servers.some((server) => server.draining);
	const ops = opsRoutes({ checks: dependencies.checks, draining, place: options.place }, { clock, log });
	registry.gauge("relay_event_streams", "Clients that follow a transaction by server-sent events", () =>
		streams(),
	);
	registry.gauge("relay_unread_bytes", "Bytes that wait for clients to read them", () => unread.bytes);
	const common = { ...options.connections, host, maxBodyBytes };
	const shared = { readAddress, limiter, unread, log, clock };
	const takeover = (name: string) => ({ leave: () => dependencies.waiting.leave(name) });
	const { adminToken } = options;
	const pages = createPages(
		"relay",
		ENDPOINTS_TO_CHOOSE,
		adminToken === undefined ? null : {},
		options.explorerUrl,
		options.publicStats,
	);
	const main = createHttpServer(
		{
			...common,
			name: "http",
			port,
			rpcPaths: RPC_PATHS,
			routes: [
				...dependencies.recordRoutes,
				...(searcherPort === undefined ? dependencies.searcherRoutes : []),
				{ path: "/info", handle: async () => jsonAnswer(200, await options.info()) },
				...operatorRoutes(
					adminToken,
					options.operator(() => websocket.size),
					{ clock },
				),
				...operatorTables(adminToken, options.tables),
				...ops,
				guardedMetricsRoute(registry, options.metricsToken),
				pages.root,
				...pages.routes,
			],
			pages: pages.find,
			errorPage: pages.error,
		},
		{
			...shared,
			post,
			standby: takeover("http"),
			...websocketOf(searcherPort === undefined ? websocket : null, edges),
		},
	);
	const servers: HttpServer[] = [main];
	if (searcherPort !== undefined) {
		const searchers = {
			...common,
			name: "searchers",
			port: searcherPort,
			rpcPaths: [],
			routes: [
				pages.root,
				...dependencies.searcherRoutes,
				...dependencies.recordRoutes.filter(({ path }) => path.startsWith(MEV_SHARE)),
			],
		};
		servers.push(createHttpServer(searchers, { ...shared, websocket, standby: takeover("searchers") }));
	}
	if (metricsPort !== undefined) {
		const routes = [openMetricsRoute(registry)];
		const operators = { ...common, name: "metrics", port: metricsPort, rpcPaths: [], routes };
		servers.push(createHttpServer(operators, { ...shared, standby: takeover("metrics") }));
	}
	return {
		name: "ingress",
		stopMs: options.drainMs + COMPONENT_STOP_MS,
		get port() {
			return main.port;
		},
		start: () =>
			startListening(servers, {
				http: ["PORT", port],
				searchers: ["SEARCHER_PORT", searcherPort],
				metrics: ["METRICS_PORT", metricsPort],
			}),
		leave() {
			for (const server of servers) server.drain();
		},
		async stop() {
			await drainServers(servers, websocket, options.drainMs, { clock, log });
			dependencies.onStop();
			await Promise.all(servers.map((server) => server.stop()));
		},
	};
}

/** The websockets of a server, and on a path of their own the connections of other relays. */
function websocketOf(
	websocket: UpgradeHandler | null,
	edges: IngressDependencies["edges"],
): { readonly websocket?: UpgradeHandler } {
	if (edges === null) return websocket === null ? {} : { websocket };
	return {
		websocket: {
			upgrade(request, socket, head, from) {
				const { path } = readTarget(request.url ?? "/");
				const server = path === EDGE_PATH ? edges() : null;
				if (server !== null) server.upgrade(request, socket, head);
				else if (websocket !== null && path !== EDGE_PATH) websocket.upgrade(request, socket, head, from);
				else endWith(socket, rawAnswer(404, JSON.stringify({ error: "unknown path" })));
			},
			drain: () => websocket?.drain(),
			stop: async (deadlineMs) => websocket?.stop(deadlineMs),
		},
	};
}
