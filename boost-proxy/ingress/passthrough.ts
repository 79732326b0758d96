// Streams to the relay, with the client's address, every request that boost does not serve itself: neither JSON-RPC on its own
// paths nor its routes and pages. Nothing is parsed, and nothing is sent to anybody else.

import { Agent, type ClientRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { Agent as TlsAgent } from "node:https";
import type { Socket } from "node:net";
import httpProxy from "http-proxy";
import type { Clock, Timer } from "../../shared/clock.ts";
import { type ReadAddress, readTarget } from "../../shared/http/callContext.ts";
import { type HttpAnswer, jsonAnswer } from "../../shared/http/messages.ts";
import type { Passing, PassThrough } from "../../shared/http/routes.ts";
import type { Logger } from "../../shared/log.ts";
import type { Breaker } from "../domain/ports.ts";
import type { RoutingInfo } from "../domain/request.ts";
import {
	outAnswer,
	type ProxyError,
	type ProxyOutcome,
	proxyError,
	routingHeaders,
	towardsClient,
	towardsRelay,
} from "./routingHeaders.ts";

export interface PassThroughOptions {
	/** The relay's, with credentials and a path where it has them; without a query. */
	readonly relayUrl: string;
	/** What makes the relay believe who the client is. */
	readonly boostSecret?: string | undefined;
}

export interface PassThroughDependencies {
	/** The relay's. */
	readonly breaker: Breaker;
	readonly readAddress: ReadAddress;
	readonly clock: Clock;
	readonly log: Logger;
	/** Told once of each request. */
	readonly onPassed: (outcome: ProxyOutcome) => void;
}

/** For a server of createHttpServer: its `pass`. */
export interface RelayPassThrough extends PassThrough {
	/** Ends what it keeps. */
	stop(): void;
}

/** When an answer that has not begun is given up: routers in front give it 30 s. What has begun may take its time. */
const FIRST_BYTE_MS = 28_000;
/** The relay keeps idle connections for 95 s: none is used that it may be about to close. */
const IDLE_MS = 30_000;
const MAX_IDLE = 256;

const BY_RELAY: RoutingInfo = { answeredBy: new Set(["relay"]), attempts: 1, dropped: new Set() };

/** Passes on to the relay; nothing is connected yet. Throws where `relayUrl` is no URL. */
export function createPassThrough(
	options: PassThroughOptions,
	dependencies: PassThroughDependencies,
): RelayPassThrough {
	const { boostSecret } = options;
	const { target, auth } = readRelayUrl(options.relayUrl);
	const agentOptions = { keepAlive: true, maxFreeSockets: MAX_IDLE, timeout: IDLE_MS };
	const agent = target.protocol === "https:" ? new TlsAgent(agentOptions) : new Agent(agentOptions);
	const proxy = httpProxy.createProxyServer({
		target,
		agent,
		changeOrigin: true,
		// The path as it came: a base is prepended, nothing is resolved or decoded.
		toProxy: true,
		selfHandleResponse: true,
		...(auth === undefined ? {} : { auth }),
	});
	// Each request has a handler of its own; without a listener the rest would end the process.
	proxy.on("error", () => {});
	const proxiedRequests = new WeakMap<IncomingMessage, ProxiedRequest>();
	proxy.on("proxyReq", (sent, request, _response, _options, socket) => {
		proxiedRequests.get(request)?.sending(sent, socket);
	});
	proxy.on("proxyRes", (answer, request) => proxiedRequests.get(request)?.answer(answer));
	const introduce = (request: IncomingMessage): void => {
		const { address } = dependencies.readAddress(request.headers, request.socket.remoteAddress);
		request.headers = towardsRelay(request.headers, { address, boostSecret });
		const { path, search } = readTarget(request.url ?? "/");
		request.url = search === "" ? path : `${path}?${search}`;
	};
	return {
		web(request, response, passing) {
			const refusal = judge(request, dependencies.breaker);
			if (refusal !== null) {
				dependencies.onPassed("unavailable");
				passing.refuse(refusal);
				return;
			}
			introduce(request);
			const proxied = new ProxiedRequest({ request, response, passing }, dependencies);
			proxiedRequests.set(request, proxied);
			proxied.begin((onError) => proxy.web(request, response, onError));
		},
		stop: () => forgetIdle(agent),
	};
}

/** From now on no connection is kept: those in use end with their answers. */
function forgetIdle(agent: Agent): void {
	agent.maxFreeSockets = 0;
	for (const sockets of Object.values(agent.freeSockets)) {
		for (const socket of [...(sockets ?? [])]) socket.destroy();
	}
}

/** Where the relay is, and the credentials for it, which http-proxy wants apart. */
function readRelayUrl(text: string): { readonly target: URL; readonly auth: string | undefined } {
	const target = new URL(text);
	const { username, password } = target;
	if (username === "" && password === "") return { target, auth: undefined };
	target.username = "";
	target.password = "";
	return { target, auth: `${decodeURIComponent(username)}:${decodeURIComponent(password)}` };
}

/** Why a request is not passed on, or null. */
function judge({ method, headers }: IncomingMessage, breaker: Breaker): HttpAnswer | null {
	if (breaker.isUnavailable) return outAnswer(method, breaker.retryMs);
	// http-proxy would say content-length 0 and send the body all the same: request smuggling.
	const isMisframed = method === "DELETE" && headers["transfer-encoding"] !== undefined;
	return isMisframed ? jsonAnswer(411, { error: "expected a content-length" }) : null;
}

interface ProxiedRequestParts {
	readonly request: IncomingMessage;
	readonly response: ServerResponse;
	readonly passing: Passing;
}

/** One request on its way to the relay, and its answer on the way back. */
class ProxiedRequest {
	readonly #parts: ProxiedRequestParts;
	readonly #dependencies: PassThroughDependencies;
	#send: (onError: () => void) => void = () => {};
	#sent: ClientRequest | null = null;
	#timer: Timer | null = null;
	#connected = false;
	#isOver = false;
	#again = false;

	constructor(parts: ProxiedRequestParts, dependencies: PassThroughDependencies) {
		this.#parts = parts;
		this.#dependencies = dependencies;
	}

	/** Sends the request by `send`, which calls back for each error. */
	begin(send: (onError: () => void) => void): void {
		const { response, passing } = this.#parts;
		this.#send = send;
		// A write that meets a connection that has just broken: its close is what counts.
		response.on("error", () => {});
		this.#timer = this.#dependencies.clock.after(FIRST_BYTE_MS, () => this.#failed("timeout"));
		passing.onGone(() => this.#gone());
		passing.goAhead();
		if (!this.#isOver) this.#attempt();
	}

	/** Its bytes are about to leave by `socket`. */
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
		const { request, response, passing } = this.#parts;
		this.#timer?.cancel();
		answer.on("error", () => {});
		if (this.#isOver) {
			answer.destroy();
			return;
		}
		let isEnded = false;
		const goesOn = isEventStream(answer) && request.method !== "HEAD";
		const end = (): void => {
			isEnded = true;
			answer.unpipe(response);
			response.end();
			answer.destroy();
		};
		const ours = routingHeaders(BY_RELAY, this.#dependencies.breaker.state);
		const headers = towardsClient(answer.headers, ours);
		if (!passing.begin(answer.statusCode ?? 502, headers, goesOn ? end : null)) {
			this.#drop("gone");
			answer.destroy();
			return;
		}
		this.#over("answered");
		answer.on("close", () => {
			// A part of an answer must not look like the whole.
			if (!answer.complete && !isEnded) response.destroy();
		});
		answer.pipe(response);
	}

	#attempt(): void {
		try {
			this.#send(() => this.#broken());
		} catch {
			// What node's parser takes and its client does not send.
			this.#drop("failed");
			this.#parts.passing.refuse(jsonAnswer(400, { error: "expected a request that can be passed on" }));
		}
	}

	/** The connection to the relay broke, or the client's. */
	#broken(): void {
		const { request, response } = this.#parts;
		// What the relay did not want of the body after its answer is no fault of the answer.
		if (this.#isOver) return;
		if (request.socket.destroyed || response.destroyed) this.#gone();
		else if (this.#mayGoAgain()) {
			this.#again = true;
			this.#connected = false;
			this.#attempt();
		} else this.#failed(this.#connected ? "reset" : "refused");
	}

	/** A connection that was kept may have been closed by the relay just then; what has no effect is sent once more. */
	#mayGoAgain(): boolean {
		const { method, headers } = this.#parts.request;
		const isBare = headers["content-length"] === undefined && headers["transfer-encoding"] === undefined;
		const isRead = method === "GET" || method === "HEAD";
		return isRead && isBare && !this.#again && this.#sent?.reusedSocket === true;
	}

	#failed(fault: ProxyError): void {
		if (this.#isOver) return;
		const { request, passing } = this.#parts;
		const { breaker, log } = this.#dependencies;
		const kind = this.#connected ? fault : "refused";
		this.#drop(kind === "refused" ? "unavailable" : "failed");
		if (kind === "refused") breaker.note({ outcome: "refused" });
		log.debug("not passed through", { upstream: "relay", reason: kind });
		// What http-proxy was reading is read and forgotten from here on.
		request.unpipe();
		request.resume();
		passing.refuse(proxyError(request.method, kind, breaker));
	}

	#gone(): void {
		if (!this.#isOver) this.#drop("gone");
		else this.#sent?.destroy();
	}

	/** Ends it without an answer of the relay's. */
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

function isEventStream({ headers }: IncomingMessage): boolean {
	return /^text\/event-stream\b/i.test(headers["content-type"] ?? "");
}
