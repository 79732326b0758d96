// Streams every request that boost does not serve itself to the relay, unparsed and with the
// client's address. No other upstream gets these requests.

import { Agent, type ClientRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { Agent as TlsAgent } from "node:https";
import type { LookupFunction, Socket } from "node:net";
import httpProxy from "http-proxy";
import type { ReadAddress } from "../../shared/client.ts";
import type { Clock, Timer } from "../../shared/clock.ts";
import { readTarget } from "../../shared/http/callContext.ts";
import { errorAnswerTo, type HttpAnswer, isJsonType } from "../../shared/http/messages.ts";
import { type ProxiedExchange, type RequestProxy, unknownPathAnswer } from "../../shared/http/routes.ts";
import type { Logger } from "../../shared/log.ts";
import { REQUEST_ID } from "../../shared/requestId.ts";
import { viaFor } from "../domain/loops.ts";
import type { Breaker } from "../domain/ports.ts";
import type { RoutingInfo } from "../domain/request.ts";
import { isOperatorPath, isRelayPath } from "./relayPaths.ts";
import {
	type ProxyError,
	type ProxyOutcome,
	proxyError,
	routingHeaders,
	towardsClient,
	towardsRelay,
	unavailableAnswer,
} from "./routingHeaders.ts";

export interface PassThroughOptions {
	/** The relay's URL, which may have credentials and a path but no query. */
	readonly relayUrl: string;
	/** Authenticates boost to the relay, which then accepts the client's address. */
	readonly boostSecret?: string | undefined;
	/** This boost's entry in `Via`. */
	readonly via: string;
}

export interface PassThroughDependencies {
	/** The relay's. */
	readonly breaker: Breaker;
	readonly readAddress: ReadAddress;
	/** Finds the relay's addresses. Default: Node's own. */
	readonly lookup?: LookupFunction | undefined;
	readonly clock: Clock;
	readonly log: Logger;
	/** Called once for each request. */
	readonly onPassed: (outcome: ProxyOutcome) => void;
}

/** The `proxy` of createHttpServer. */
export interface RelayPassThrough extends RequestProxy {
	/** Closes idle connections, and the others after their answers. */
	stop(): void;
}

/**
 * Deadline for the first byte of an answer: routers in front allow 30 s. An answer that has begun
 * has no deadline.
 */
const FIRST_BYTE_MS = 28_000;
/**
 * Well below the 95 s for which the relay keeps idle connections. So boost uses none that the relay
 * is about to close.
 */
const IDLE_MS = 30_000;
const MAX_IDLE = 256;

const BY_RELAY: RoutingInfo = { answeredBy: new Set(["relay"]), attempts: 1, dropped: new Set() };

/** Makes no connection yet. Throws if `relayUrl` is not a URL. */
export function createPassThrough(
	options: PassThroughOptions,
	dependencies: PassThroughDependencies,
): RelayPassThrough {
	const { boostSecret } = options;
	const { target, auth } = readRelayUrl(options.relayUrl);
	const { lookup } = dependencies;
	const agentOptions = {
		keepAlive: true,
		maxFreeSockets: MAX_IDLE,
		timeout: IDLE_MS,
		...(lookup === undefined ? {} : { lookup }),
	};
	const agent = target.protocol === "https:" ? new TlsAgent(agentOptions) : new Agent(agentOptions);
	const proxy = httpProxy.createProxyServer({
		target,
		agent,
		changeOrigin: true,
		// The path stays as sent: a base is prepended, and nothing is resolved or decoded.
		toProxy: true,
		selfHandleResponse: true,
		...(auth === undefined ? {} : { auth }),
	});
	// Each request handles its own errors; without a listener other errors would end the process.
	proxy.on("error", () => {});
	const proxiedRequests = new WeakMap<IncomingMessage, ProxiedRequest>();
	proxy.on("proxyReq", (sent, request, _response, _options, socket) => {
		proxiedRequests.get(request)?.sending(sent, socket);
	});
	proxy.on("proxyRes", (answer, request) => proxiedRequests.get(request)?.answer(answer));
	const setClient = (request: IncomingMessage): void => {
		const { address, via } = dependencies.readAddress(request.headers, request.socket.remoteAddress);
		const sent = { address, via: viaFor(via, options.via), boostSecret };
		request.headers = towardsRelay(request.headers, sent);
		const { path, search } = readTarget(request.url ?? "/");
		request.url = search === "" ? path : `${path}?${search}`;
	};
	return {
		handle(request, response, passing) {
			const refusal = judge(request, dependencies.breaker);
			if (refusal !== null) {
				dependencies.onPassed("unavailable");
				passing.refuse(refusal);
				return;
			}
			setClient(request);
			const proxied = new ProxiedRequest({ request, response, passing }, dependencies);
			proxiedRequests.set(request, proxied);
			proxied.begin((onError) => proxy.web(request, response, onError));
		},
		stop: () => forgetIdle(agent),
	};
}

/** Keeps no idle connection from now on; those in use end with their answers. */
function forgetIdle(agent: Agent): void {
	agent.maxFreeSockets = 0;
	for (const sockets of Object.values(agent.freeSockets)) {
		for (const socket of [...(sockets ?? [])]) socket.destroy();
	}
}

/** The relay's URL and its credentials, which http-proxy wants separately. */
function readRelayUrl(text: string): { readonly target: URL; readonly auth: string | undefined } {
	const target = new URL(text);
	const { username, password } = target;
	if (username === "" && password === "") return { target, auth: undefined };
	target.username = "";
	target.password = "";
	return { target, auth: `${decodeURIComponent(username)}:${decodeURIComponent(password)}` };
}

/** The answer to a request that can't be forwarded; null if it can. */
function judge(request: IncomingMessage, breaker: Breaker): HttpAnswer | null {
	const { method, headers } = request;
	if (breaker.isUnavailable) {
		const { path } = readTarget(request.url ?? "/");
		if (!isOperatorPath(path))
			return isRelayPath(path) ? unavailableAnswer(request, breaker.retryMs) : unknownPathAnswer(request);
	}
	// http-proxy would set content-length 0 and still send the body, which allows request smuggling.
	const isMisframed = method === "DELETE" && headers["transfer-encoding"] !== undefined;
	return isMisframed ? refusalOf(request, 411, "expected a content-length") : null;
}

function refusalOf(request: IncomingMessage, status: number, message: string): HttpAnswer {
	return errorAnswerTo(request, "invalidRequest", status, ["invalid request: ", message]);
}

interface ProxiedExchangeOptions {
	readonly request: IncomingMessage;
	readonly response: ServerResponse;
	readonly passing: ProxiedExchange;
}

/** One request to the relay and its answer. */
class ProxiedRequest {
	readonly #options: ProxiedExchangeOptions;
	readonly #dependencies: PassThroughDependencies;
	#send: (onError: () => void) => void = () => {};
	#sent: ClientRequest | null = null;
	#timer: Timer | null = null;
	#connected = false;
	#isOver = false;
	#isRetry = false;

	constructor(options: ProxiedExchangeOptions, dependencies: PassThroughDependencies) {
		this.#options = options;
		this.#dependencies = dependencies;
	}

	/** Sends the request with `send`, which calls `onError` for each error. */
	begin(send: (onError: () => void) => void): void {
		const { response, passing } = this.#options;
		this.#send = send;
		// A write to a broken connection: its close event is handled instead.
		response.on("error", () => {});
		this.#timer = this.#dependencies.clock.after(FIRST_BYTE_MS, () => this.#failed("timeout"));
		passing.onGone(() => this.#gone());
		passing.goAhead();
		if (!this.#isOver) this.#attempt();
	}

	/** Its bytes are about to be sent over `socket`. */
	sending(sent: ClientRequest, socket: Socket): void {
		this.#sent = sent;
		if (this.#isOver) sent.destroy();
		else if (!socket.connecting) this.#connected = true;
		else {
			socket.once("connect", () => {
				this.#connected = true;
			});
		}
	}

	/** The relay's answer has begun. */
	answer(answer: IncomingMessage): void {
		const { request, response, passing } = this.#options;
		this.#timer?.cancel();
		answer.on("error", () => {});
		if (this.#isOver) {
			answer.destroy();
			return;
		}
		if (isProxys(answer)) {
			answer.destroy();
			this.#failed("proxy");
			return;
		}
		let isEnded = false;
		const isStream = isEventStream(answer) && request.method !== "HEAD";
		const end = (): void => {
			isEnded = true;
			answer.unpipe(response);
			response.end();
			answer.destroy();
		};
		const ours = routingHeaders(BY_RELAY, this.#dependencies.breaker.state);
		const headers = towardsClient(answer.headers, ours);
		if (!passing.begin(answer.statusCode ?? 502, headers, isStream ? end : null)) {
			this.#drop("gone");
			answer.destroy();
			return;
		}
		this.#over("answered");
		answer.on("close", () => {
			// A truncated answer must not look complete.
			if (!answer.complete && !isEnded) response.destroy();
		});
		answer.pipe(response);
	}

	#attempt(): void {
		try {
			this.#send(() => this.#broken());
		} catch {
			// Node's parser accepts some requests that its client does not send.
			this.#drop("failed");
			const { request, passing } = this.#options;
			passing.refuse(refusalOf(request, 400, "expected a request that can be passed on"));
		}
	}

	/** The connection to the relay or to the client broke. */
	#broken(): void {
		const { request, response } = this.#options;
		// After its answer the relay may close without reading the rest of the body.
		if (this.#isOver) return;
		if (request.socket.destroyed || response.destroyed) this.#gone();
		else if (this.#mayRetry()) {
			this.#isRetry = true;
			this.#connected = false;
			this.#attempt();
		} else this.#failed(this.#connected ? "reset" : "refused");
	}

	/**
	 * The relay may have just closed an idle connection, so a request without effects is sent once
	 * more.
	 */
	#mayRetry(): boolean {
		const { method, headers } = this.#options.request;
		const isBare = headers["content-length"] === undefined && headers["transfer-encoding"] === undefined;
		const isRead = method === "GET" || method === "HEAD";
		return isRead && isBare && !this.#isRetry && this.#sent?.reusedSocket === true;
	}

	#failed(fault: ProxyError): void {
		if (this.#isOver) return;
		const { request, passing } = this.#options;
		const { breaker, log } = this.#dependencies;
		const kind = this.#connected ? fault : "refused";
		this.#drop(kind === "refused" ? "unavailable" : "failed");
		if (kind === "refused") breaker.note({ outcome: "refused" });
		log.debug("request not passed through", { upstream: "relay", reason: kind });
		// Discards the rest of the body that http-proxy was reading.
		request.unpipe();
		request.resume();
		passing.refuse(proxyError(request, kind, breaker));
	}

	#gone(): void {
		if (!this.#isOver) this.#drop("gone");
		else this.#sent?.destroy();
	}

	/** Ends it without an answer from the relay. */
	#drop(outcome: ProxyOutcome): void {
		this.#timer?.cancel();
		this.#over(outcome);
		this.#sent?.destroy();
	}

	#over(outcome: ProxyOutcome): void {
		if (this.#isOver) return;
		this.#isOver = true;
		this.#dependencies.onPassed(outcome);
	}
}

/**
 * Whether it is an error of a proxy in front of the relay, which the relay's clients could not
 * parse. The relay's own answers have a request id.
 */
function isProxys({ statusCode = 0, headers }: IncomingMessage): boolean {
	return (
		statusCode >= 500 &&
		headers[REQUEST_ID] === undefined &&
		!isJsonType(headers["content-type"] ?? "text/html")
	);
}

function isEventStream({ headers }: IncomingMessage): boolean {
	return /^text\/event-stream\b/i.test(headers["content-type"] ?? "");
}
