// Answers on the relay's ports while it waits for its node. /livez, /metrics and pages answer as
// always, /readyz gives the reason, and JSON-RPC answers that the relay is not ready. The servers
// of the ingress then take over the ports and connections.

import { addressReader } from "../../shared/client.ts";
import type { Clock } from "../../shared/clock.ts";
import type { ConnectionsOptions } from "../../shared/http/connections.ts";
import { endWith, notServingAnswer, rawAnswer } from "../../shared/http/messages.ts";
import { guardedMetricsRoute, openMetricsRoute, opsRoutes } from "../../shared/http/opsRoutes.ts";
import { RateLimiter } from "../../shared/http/rateLimit.ts";
import { rpcOverHttp } from "../../shared/http/routes.ts";
import {
	createHttpServer,
	type Handover,
	type HttpServer,
	startListening,
	type UpgradeHandler,
} from "../../shared/http/server.ts";
import { UP } from "../../shared/http/standby.ts";
import { errorText } from "../../shared/jsonrpc/answers.ts";
import { createDispatcher } from "../../shared/jsonrpc/dispatch.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import type { Logger } from "../../shared/log.ts";
import type { Metrics } from "../../shared/metrics.ts";
import type { Endpoint } from "../../shared/pages/endpoints.ts";
import { createPages } from "../../shared/pages/pages.ts";
import { ENDPOINTS, type SubmissionPath } from "../domain/endpoints.ts";
import { RPC_PATHS } from "./methods/transactions.ts";

/** The relay's ports, and the limits of incoming connections and requests. */
export interface PublicServerOptions {
	readonly host: string;
	readonly port: number;
	/** Separate ports for the websocket and the metrics, if set. */
	readonly searcherPort: number | undefined;
	readonly metricsPort: number | undefined;
	readonly metricsToken: string | undefined;
	readonly connections: ConnectionsOptions;
	readonly trustProxy: number;
	readonly boostSecret: string | undefined;
	readonly maxBodyBytes: number;
	readonly maxBatch: number;
	readonly rateLimitRps: number;
	readonly explorerUrl: string | undefined;
	/** Whether the public statistics are served. */
	readonly publicStats: boolean;
}

interface WaitingDependencies {
	readonly registry: Metrics;
	readonly clock: Clock;
	readonly log: Logger;
}

const ABOUT: Readonly<Record<SubmissionPath, string>> = {
	fast: "the default: searchers may bid for the place behind you, and you get the refund",
	noreverts: "mined only if it succeeds; searchers may bid, and you get the refund",
	fullprivacy: "mined only if it succeeds, by chosen builders; searchers are shown nothing",
	maxbackruns: "shown to all searchers at once, for the most bids",
	nochecks: "sent without a simulation; searchers are shown nothing",
};

/** The submission paths, for the home page. */
export const ENDPOINTS_TO_CHOOSE: readonly Endpoint[] = Object.entries(ENDPOINTS).map(([name, policy]) => ({
	...policy,
	path: `/${name}`,
	about: ABOUT[name as SubmissionPath],
}));

/** The answer to every call before the first head: nothing can be judged yet. */
export const NOT_READY = new RpcError("unavailable", "internal error: not ready yet, try again");
const WHY = "not ready yet, try again";
const STARTING = "the node answers now: the relay starts";

const REFUSING_WEBSOCKET: UpgradeHandler = {
	upgrade(_request, socket) {
		const { code, message } = NOT_READY;
		endWith(socket, rawAnswer(503, errorText(null, code, message), ["retry-after: 1"]));
	},
	drain() {},
	stop: async () => {},
};

/** The waiting servers, under the names of the servers that take over from them. */
export class WaitingServers {
	readonly #options: PublicServerOptions;
	readonly #dependencies: WaitingDependencies;
	#servers: ReadonlyMap<string, HttpServer> = new Map();
	#reason = "";

	constructor(options: PublicServerOptions, dependencies: WaitingDependencies) {
		this.#options = options;
		this.#dependencies = dependencies;
	}

	/** Whether it listens. */
	get isListening(): boolean {
		return this.#servers.size > 0;
	}

	/**
	 * Listens, and shows the reason of the wait, which is public. A later call only changes the
	 * reason. Throws ListenError.
	 */
	async start(reason: string): Promise<void> {
		this.#reason = reason;
		if (this.#servers.size > 0) return;
		const { port, searcherPort, metricsPort } = this.#options;
		const servers = this.#create();
		this.#servers = new Map(servers.map((server) => [server.name, server]));
		await startListening(servers, {
			http: ["PORT", port],
			searchers: ["SEARCHER_PORT", searcherPort],
			metrics: ["METRICS_PORT", metricsPort],
		});
	}

	/** The wait is over, and the relay starts. */
	goOn(): void {
		this.#reason = STARTING;
	}

	/**
	 * Leaves the port and connections to the server of this name. Requests in flight are still
	 * answered here.
	 */
	leave(name: string): Handover | undefined {
		return this.#servers.get(name)?.leave(true);
	}

	/** Stops the servers that no other server has replaced. */
	async stop(): Promise<void> {
		const servers = [...this.#servers.values()];
		this.#servers = new Map();
		await Promise.all(servers.map((server) => server.stop()));
	}

	#create(): HttpServer[] {
		const { host, port, searcherPort, metricsPort, metricsToken, connections } = this.#options;
		const { maxBodyBytes, maxBatch, rateLimitRps, trustProxy, boostSecret } = this.#options;
		const { registry, clock, log } = this.#dependencies;
		const limiter = new RateLimiter({ rps: rateLimitRps }, { clock });
		const readAddress = addressReader({ trustProxy, ...(boostSecret === undefined ? {} : { boostSecret }) });
		const dispatcher = createDispatcher({ maxBatch }, { methods: new Map(), limiter, clock, log });
		const post = rpcOverHttp({ dispatcher, limiter, unavailable: () => NOT_READY });
		const node = { name: "node", check: () => ({ ok: false, reason: this.#reason }) as const };
		const pages = createPages(
			"relay",
			ENDPOINTS_TO_CHOOSE,
			null,
			this.#options.explorerUrl,
			this.#options.publicStats,
		);
		const common = {
			...connections,
			host,
			maxBodyBytes,
			rpcPaths: [],
			routes: [],
			announcement: "listening, not ready yet",
		};
		const dependencies = { readAddress, limiter, clock, log, websocket: REFUSING_WEBSOCKET };
		const main = createHttpServer(
			{
				...common,
				name: "http",
				port,
				rpcPaths: RPC_PATHS,
				pages: pages.find,
				errorPage: pages.error,
				routes: [
					...opsRoutes({ checks: [node], draining: () => false }, { clock, log }),
					guardedMetricsRoute(registry, metricsToken),
					{ path: "/", handle: () => UP },
					...pages.routes,
				],
			},
			{
				...dependencies,
				post,
				proxy: { handle: (request, _, { refuse }) => refuse(notServingAnswer(request, WHY)) },
			},
		);
		const servers = [main];
		if (searcherPort !== undefined) {
			servers.push(createHttpServer({ ...common, name: "searchers", port: searcherPort }, dependencies));
		}
		if (metricsPort !== undefined) {
			const routes = [openMetricsRoute(registry)];
			servers.push(createHttpServer({ ...common, name: "metrics", port: metricsPort, routes }, dependencies));
		}
		return servers;
	}
}
