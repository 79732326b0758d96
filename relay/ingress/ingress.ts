// Creates the relay's servers for HTTP, websockets and metrics, which share one port unless settings separate them. Methods and
// routes are defined elsewhere.

import { addressReader, type VerifySignature } from "../../shared/client.ts";
import { pause } from "../../shared/clock.ts";
import type { CallContext } from "../../shared/http/callContext.ts";
import { EventStreams } from "../../shared/http/eventStreams.ts";
import {
	guardedMetricsRoute,
	metricsRoute,
	opsRoutes,
	type ReadinessCheck,
} from "../../shared/http/opsRoutes.ts";
import { RateLimiter } from "../../shared/http/rateLimit.ts";
import { rpcOverHttp } from "../../shared/http/routes.ts";
import { createHttpServer, type HttpServer, startListening } from "../../shared/http/server.ts";
import { UnreadBytes } from "../../shared/http/unreadBytes.ts";
import { RpcWebsocket } from "../../shared/http/websocket.ts";
import { type CallOutcome, JsonText } from "../../shared/jsonrpc/answers.ts";
import { createDispatcher, type Fallback } from "../../shared/jsonrpc/dispatch.ts";
import { methodTable, type OpenRpcInfo, openRpc } from "../../shared/jsonrpc/method.ts";
import type { Component } from "../../shared/lifecycle.ts";
import type { Logger } from "../../shared/log.ts";
import type { Metrics } from "../../shared/metrics.ts";
import { createPages } from "../../shared/pages/pages.ts";
import type { MethodDependencies } from "./methodDependencies.ts";
import { METHODS } from "./methods/index.ts";
import { RPC_PATHS } from "./methods/transactions.ts";
import { createReceiptWaits } from "./receiptWaits.ts";
import { type RecordViews, relayRoutes } from "./routes.ts";
import { type DoorOptions, ENDPOINTS_TO_CHOOSE, NOT_READY, type WaitingServers } from "./waiting.ts";

export interface IngressOptions extends DoorOptions {
	/** How long requests are still served after /readyz has turned 503, in ms. */
	readonly drainMs: number;
	/** The answer of `GET /info`. */
	readonly info: () => unknown;
	/** The service's description in `rpc.discover`. */
	readonly about: OpenRpcInfo;
}

export interface IngressDependencies
	extends Omit<MethodDependencies, "describe" | "charge" | "statusView" | "receipts"> {
	/** Reads that the node answers. */
	readonly reads: Fallback<CallContext>;
	readonly views: RecordViews;
	readonly checks: readonly ReadinessCheck[];
	/** Its head is null until the first one: nothing can be judged before. */
	readonly tip: { head(): unknown };
	/** Whether the relay holds the transaction with this hash: polling it once a second is free. */
	readonly isOwn: (hash: string) => boolean;
	readonly registry: Metrics;
	readonly onCall: (call: { readonly method: string; readonly outcome: CallOutcome }) => void;
	readonly verifySignature: VerifySignature;
	/** Answers on the ports until the servers start. */
	readonly waiting: WaitingServers;
	readonly log: Logger;
}

/** The servers as one component. */
export interface Ingress extends Component {
	/** The port of HTTP, once started. */
	readonly port: number;
}

/** Polls that are free once a second for transactions that the relay holds. */
const POLLED = new Set(["eth_getTransactionReceipt", "eth_getTransactionByHash"]);

/** Creates the servers; `start` makes them listen. */
export function createIngress(options: IngressOptions, dependencies: IngressDependencies): Ingress {
	const { clock, log, isOwn, registry } = dependencies;
	const { host, port, searcherPort, metricsPort, maxBodyBytes, maxBatch } = options;
	const limiter = new RateLimiter(
		{ rps: options.rateLimitRps },
		{
			clock,
			freePoll: (method, [hash]) =>
				POLLED.has(method) && typeof hash === "string" && isOwn(hash.toLowerCase()) ? hash : undefined,
		},
	);
	const receipts = createReceiptWaits(dependencies);
	let document: JsonText | null = null;
	const dispatcher = createDispatcher<CallContext>(
		{ maxBatch },
		{
			methods: methodTable(METHODS, {
				...dependencies,
				statusView: dependencies.views.status,
				receipts,
				charge: (client, weight) => limiter.charge(client, weight),
				describe: () => {
					document ??= new JsonText(JSON.stringify(openRpc(METHODS, options.about)));
					return document;
				},
			}),
			fallback: dependencies.reads,
			limiter,
			log,
			clock,
			onCall: (method, outcome) => dependencies.onCall({ method, outcome }),
		},
	);
	const readAddress = addressReader({
		trustProxy: options.trustProxy,
		...(options.boostSecret === undefined ? {} : { boostSecret: options.boostSecret }),
	});
	const post = rpcOverHttp({
		dispatcher,
		limiter,
		verifySignature: dependencies.verifySignature,
		unavailable: () => (dependencies.tip.head() === null ? NOT_READY : null),
	});
	const unread = new UnreadBytes();
	const websocket = new RpcWebsocket(
		{ paths: RPC_PATHS, maxMessageBytes: maxBodyBytes },
		{ dispatcher, limiter, unread, clock },
	);
	const draining = (): boolean => servers.some((server) => server.draining);
	const ops = opsRoutes({ checks: dependencies.checks, draining }, { clock, log });
	const streams = new EventStreams(dependencies);
	registry.gauge(
		"relay_event_streams",
		"Clients that follow a transaction by server-sent events",
		() => streams.size,
	);
	registry.gauge("relay_unread_bytes", "Bytes that wait for clients to read them", () => unread.bytes);
	const common = { ...options.connections, host, maxBodyBytes };
	const deps = { readAddress, limiter, unread, log, clock };
	const takeover = (name: string) => ({ leave: () => dependencies.waiting.leave(name) });
	const pages = createPages("relay", ENDPOINTS_TO_CHOOSE, null);
	const main = createHttpServer(
		{
			...common,
			name: "http",
			port,
			rpcPaths: RPC_PATHS,
			routes: [
				...relayRoutes({
					...dependencies,
					isOpen: isOwn,
					streams,
					info: options.info,
				}),
				...ops,
				guardedMetricsRoute(registry, options.metricsToken),
				pages.root,
				...pages.routes,
			],
			pages: pages.find,
		},
		{ ...deps, post, standby: takeover("http"), ...(searcherPort === undefined ? { websocket } : {}) },
	);
	const servers: HttpServer[] = [main];
	if (searcherPort !== undefined) {
		const searchers = {
			...common,
			name: "searchers",
			port: searcherPort,
			rpcPaths: [],
			routes: [pages.root],
		};
		servers.push(createHttpServer(searchers, { ...deps, websocket, standby: takeover("searchers") }));
	}
	if (metricsPort !== undefined) {
		const routes = [metricsRoute(registry)];
		const operators = { ...common, name: "metrics", port: metricsPort, rpcPaths: [], routes };
		servers.push(createHttpServer(operators, { ...deps, standby: takeover("metrics") }));
	}
	return {
		name: "ingress",
		get port() {
			return main.port;
		},
		start: () =>
			startListening(servers, {
				http: ["PORT", port],
				searchers: ["SEARCHER_PORT", searcherPort],
				metrics: ["METRICS_PORT", metricsPort],
			}),
		async stop() {
			for (const server of servers) server.drain();
			await pause(clock, options.drainMs);
			receipts.close();
			await Promise.all(servers.map((server) => server.stop()));
		},
	};
}
