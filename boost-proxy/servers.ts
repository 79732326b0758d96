// Builds boost's HTTP servers. Submissions, reads and operators' routes are served here; all other
// requests are streamed to the relay.

import type { LookupFunction } from "node:net";
import type { Background } from "../shared/background.ts";
import { addressReader, type ClientAddress } from "../shared/client.ts";
import type { Clock } from "../shared/clock.ts";
import type { Fork } from "../shared/ethereum/forks.ts";
import { parseHash } from "../shared/ethereum/hex.ts";
import { verifyBody } from "../shared/ethereum/signatures.ts";
import type { SlotLength } from "../shared/ethereum/slots.ts";
import type { History } from "../shared/history.ts";
import { connectionsOf } from "../shared/http/connections.ts";
import { type HttpAnswer, jsonAnswer, retryAfter } from "../shared/http/messages.ts";
import { checkRunner, guardedMetricsRoute, openMetricsRoute, opsRoutes } from "../shared/http/opsRoutes.ts";
import { RateLimiter } from "../shared/http/rateLimit.ts";
import { type Route, type RouteRequest, UNKNOWN_PATH } from "../shared/http/routes.ts";
import { createHttpServer, drainServers, type HttpServer, startListening } from "../shared/http/server.ts";
import { SERVICE_PATH, serviceRoute } from "../shared/http/serviceRoute.ts";
import type { Standby } from "../shared/http/standby.ts";
import { UnreadBytes } from "../shared/http/unreadBytes.ts";
import { RpcWebsocket } from "../shared/http/websocket.ts";
import { RpcError } from "../shared/jsonrpc/errors.ts";
import type { SharedStore } from "../shared/kv/port.ts";
import { COMPONENT_STOP_MS, type Component } from "../shared/lifecycle.ts";
import type { Logger } from "../shared/log.ts";
import type { Metrics } from "../shared/metrics.ts";
import type { Pages } from "../shared/pages/pages.ts";
import type { Traces } from "../shared/tracing/traces.ts";
import type { Uptime } from "../shared/uptime.ts";
import type { Build } from "../shared/version.ts";
import type { BoostConfig } from "./config.ts";
import { loopAnswer, withVia } from "./domain/loops.ts";
import type { ChainReads, OtherBoosts, Upstreams } from "./domain/ports.ts";
import type { RoutingInfo } from "./domain/request.ts";
import { BoostIngress, WEBSOCKET_PATHS } from "./ingress/ingress.ts";
import {
	type Instances,
	instanceCheck,
	journalCheck,
	operatorRoutes,
	upstreamCheck,
} from "./ingress/operators.ts";
import { createPassThrough } from "./ingress/passthrough.ts";
import type { ReportedChain } from "./ingress/reportedChain.ts";
import { BOOST_HEADERS, hasRouting, ownHeaders, routingHeaders } from "./ingress/routingHeaders.ts";
import type { BoostMetrics } from "./metrics.ts";
import type { Observer } from "./reconcile/observer.ts";
import type { Reconciler } from "./reconcile/reconciler.ts";
import { Cancels } from "./requests/cancels.ts";
import { Failover } from "./requests/failover.ts";
import { Submissions } from "./requests/submissions.ts";
import type { Rows } from "./rows/rows.ts";
import { Subscriptions } from "./subscriptions/subscriptions.ts";
import type { ClientTrust } from "./upstream/clientTrust.ts";
import { createSyncWaits } from "./views/syncWait.ts";
import { Views } from "./views/views.ts";

export interface ServersModules {
	readonly rows: Rows;
	readonly upstreams: Upstreams;
	readonly chain: ChainReads;
	readonly reconciler: Reconciler;
	readonly observer: Observer;
	readonly clientTrust: ClientTrust;
	readonly reported: ReportedChain;
	readonly background: Background;
	readonly registry: Metrics;
	readonly metrics: BoostMetrics;
	/** Figures over time. */
	readonly history: History;
	readonly traces: Traces;
	/** Null until it is known. */
	readonly chainId: () => bigint | null;
	/** The fork whose rules apply in the next block. */
	readonly fork: () => Fork;
	/** This boost's entry in `Via`. */
	readonly via: string;
	/** Finds the relay's addresses. */
	readonly lookup: LookupFunction;
	readonly log: Logger;
	readonly slot: SlotLength;
	readonly build: Build;
	readonly clock: Clock;
	/** How long websockets are closed for once /readyz is 503, in ms; see drainServers. */
	readonly drainMs: number;
	/** Occupies the port until the server starts. */
	readonly standby: Standby;
	readonly pages: Pages;
	readonly others: OtherBoosts;
	readonly store: Pick<SharedStore, "trouble">;
	/** The service by quarter of an hour. */
	readonly uptime: Uptime;
	/** Null without a database. */
	readonly homes: Instances | null;
}

/** The servers as one component. */
export interface Servers extends Component {
	/** The HTTP port, once started. */
	readonly port: number;
	/** Number of open websockets. */
	readonly websockets: number;
}

/** Paths whose JSON-RPC boost serves itself. */
const OWN_PATHS = ["/", "/fast", "/noreverts"];
/** Methods that may poll for a journaled transaction once a second without using the rate limit. */
const POLLED = new Set(["eth_getTransactionReceipt", "eth_getTransactionByHash"]);

const NO_HASH = jsonAnswer(400, { error: "expected a transaction hash of 32 bytes as 0x hex" });
const NOT_TAKEN = jsonAnswer(404, { error: "boost has accepted no transaction with this hash" });
/** Without PUBLIC_STATS, whatever the relay serves. */
const UNKNOWN_STATS: readonly Route[] = ["/stats", "/stats.json", "/stats/builders.json", SERVICE_PATH].map(
	(path) => ({ path, handle: () => UNKNOWN_PATH }),
);

/** Makes the servers; nothing listens yet. */
export function createServers(config: BoostConfig, modules: ServersModules): Servers {
	const { clock, log, drainMs, standby, pages, rows, others, upstreams, metrics, clientTrust } = modules;
	const { relay } = upstreams;
	const readAddress = withVia(addressReader({ trustProxy: config.TRUST_PROXY }));
	const isOwn = (hash: string): boolean => rows.has(hash);
	const limiter = new RateLimiter(
		{ rps: config.RATE_LIMIT_RPS },
		{
			clock,
			freePoll: (method, [hash]) =>
				POLLED.has(method) && typeof hash === "string" && isOwn(hash.toLowerCase()) ? hash : undefined,
		},
	);
	const failover = new Failover({ budgetMs: config.REQUEST_BUDGET_MS }, { upstreams, clock });
	const cancels = new Cancels({
		rows,
		upstreams,
		failover,
		others,
		clock,
		reconciler: modules.reconciler,
		relayKnowsClient: () => clientTrust.isBelieved,
	});
	const submissions = new Submissions({
		rows,
		upstreams,
		failover,
		others,
		reconciler: modules.reconciler,
		cancels,
		chainId: modules.chainId,
		fork: modules.fork,
		clock,
		log: log.child("submissions"),
		traces: modules.traces,
		onOutcome: (path, outcome) => metrics.submission({ path, outcome }),
	});
	const views = new Views({ ...modules, signatureHiding: config.SIGNATURE_HIDING });
	const syncWaits = createSyncWaits({ ...modules, clock });
	const subscriptions = new Subscriptions(
		{ relayUrl: config.RELAY_URL, boostSecret: config.BOOST_SECRET, via: modules.via },
		{
			breaker: relay.breaker,
			chain: modules.chain,
			background: modules.background,
			reported: modules.reported,
			lookup: modules.lookup,
			clock,
		},
	);
	const ingress = new BoostIngress(
		{ maxBatch: config.MAX_BATCH, budgetMs: config.REQUEST_BUDGET_MS },
		{
			submissions,
			cancels,
			views,
			syncWaits,
			failover,
			reported: modules.reported,
			upstreams,
			subscriptions,
			limiter,
			chainId: modules.chainId,
			clock,
			verifySignature: verifyBody,
			log: log.child("ingress"),
			onPassed: () => modules.observer.passed(),
			onCall: metrics.call,
		},
	);
	const headers = () => ownHeaders(relay.breaker.state);
	const headersFor = (answer: HttpAnswer | null) => (hasRouting(answer) ? undefined : headers());
	const pass = createPassThrough(
		{ relayUrl: config.RELAY_URL, boostSecret: config.BOOST_SECRET, via: modules.via },
		{
			breaker: relay.breaker,
			readAddress,
			lookup: modules.lookup,
			clock,
			log: log.child("pass"),
			onPassed(outcome) {
				metrics.passed({ outcome });
				modules.observer.passed();
			},
		},
	);
	const unread = new UnreadBytes({ clock });
	const websocket = new RpcWebsocket(
		{ paths: WEBSOCKET_PATHS, maxMessageBytes: config.MAX_BODY_BYTES },
		{ dispatcher: ingress.messages, limiter, unread, clock, headers },
	);
	const draining = (): boolean => servers.some((server) => server.draining);
	const status: Route = {
		path: "/tx/{hash}",
		// While the relay is unavailable, each may cause requests to a rate-limited third party.
		handle: refusable(async ({ params, address }) => {
			const hash = parseHash(params.hash ?? "");
			if (hash === null) return NO_HASH;
			const routing: RoutingInfo = { answeredBy: new Set(), attempts: 0, dropped: new Set() };
			const { status, body, by } = await views.status(hash, address, routing);
			if (by !== "boost") routing.answeredBy.add(by);
			return jsonAnswer(status, body, {
				...routingHeaders(routing, relay.breaker.state),
				...(status === 503 ? { "retry-after": retryAfter(relay.breaker.retryMs) } : {}),
			});
		}),
	};
	const journal: Route = {
		path: "/tx/{hash}/journal",
		handle: refusable(async ({ params, address }) => {
			const hash = parseHash(params.hash ?? "");
			if (hash === null) return NO_HASH;
			const report = await views.journal(hash, address);
			return report === null ? NOT_TAKEN : jsonAnswer(200, report);
		}),
	};
	const checks = [
		upstreamCheck(upstreams),
		clientTrust.check,
		journalCheck(modules.store, rows),
		...(modules.homes === null ? [] : [instanceCheck(modules.homes)]),
	];
	const routes: readonly Route[] = [
		status,
		journal,
		...(config.PUBLIC_STATS ? [serviceRoute(modules.uptime, clock)] : UNKNOWN_STATS),
		...operatorRoutes(
			{ adminToken: config.ADMIN_TOKEN, metricsToken: config.METRICS_TOKEN },
			{
				relay: relay.breaker,
				fallback: upstreams.fallback?.breaker ?? null,
				rows,
				homes: modules.homes,
				slot: modules.slot,
				build: modules.build,
				figures: modules.history,
				runChecks: checkRunner(checks, { clock, log }),
				clock,
			},
		),
		...opsRoutes({ checks, draining }, { clock, log }),
		// Always served here, so that the relay's metrics are never passed on instead.
		guardedMetricsRoute(modules.registry, config.METRICS_TOKEN),
		pages.root,
		...pages.routes,
	];
	const common = {
		...connectionsOf(config),
		host: config.HOST,
		maxBodyBytes: config.MAX_BODY_BYTES,
		exposedHeaders: BOOST_HEADERS,
		refuse: (from: ClientAddress) => loopAnswer(from, modules.via),
	};
	const dependencies = { readAddress, limiter, unread, log, clock };
	const main = createHttpServer(
		{
			...common,
			name: "http",
			port: config.PORT,
			rpcPaths: OWN_PATHS,
			routes,
			headersFor,
			pages: pages.find,
			errorPage: pages.error,
		},
		{ ...dependencies, post: (request) => ingress.post(request), proxy: pass, websocket, standby },
	);
	const servers: HttpServer[] = [main];
	if (config.METRICS_PORT !== undefined) {
		const port = config.METRICS_PORT;
		const open = [openMetricsRoute(modules.registry)];
		servers.push(
			createHttpServer({ ...common, name: "metrics", port, rpcPaths: [], routes: open }, dependencies),
		);
	}
	return {
		name: "servers",
		stopMs: drainMs + COMPONENT_STOP_MS,
		get port() {
			return main.port;
		},
		get websockets() {
			return websocket.size;
		},
		start: () =>
			startListening(servers, {
				http: ["PORT", config.PORT],
				metrics: ["METRICS_PORT", config.METRICS_PORT],
			}),
		async stop() {
			await drainServers(servers, websocket, drainMs, { clock, log });
			syncWaits.close();
			subscriptions.close();
			pass.stop();
			await Promise.all(servers.map((server) => server.stop()));
		},
	};
}

/** Answers an RpcError as HTTP: 429 where the client has reached a limit, else 503. */
function refusable(handle: (request: RouteRequest) => Promise<HttpAnswer>): Route["handle"] {
	return async (request) => {
		try {
			return await handle(request);
		} catch (thrown) {
			if (!(thrown instanceof RpcError)) throw thrown;
			const status = thrown.kind === "limit" ? 429 : 503;
			return jsonAnswer(status, { error: thrown.message }, { "retry-after": retryAfter(1_000) });
		}
	};
}
