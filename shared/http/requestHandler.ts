// Handles HTTP requests: passes them to the POST handler, a route or the proxy, or refuses them
// (paths, verbs, sizes, content types), within limits by client. It knows no JSON-RPC methods.

import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { type ClientAddress, clientOf, type ReadAddress } from "../client.ts";
import { type Clock, within } from "../clock.ts";
import { RpcError } from "../jsonrpc/errors.ts";
import { type Logger, safeError } from "../log.ts";
import { REQUEST_ID, requestIdOf } from "../requestId.ts";
import { EventLoopQueue } from "../shares/scheduler.ts";
import { type OverShare, Shares } from "../shares/shares.ts";
import { ClientLife, readTarget } from "./callContext.ts";
import { Connections, type ConnectionsOptions } from "./connections.ts";
import { reconnectingStream } from "./eventStreams.ts";
import {
	asksForPage,
	busyAnswer,
	checkPost,
	declaredBytes,
	encoded,
	endUnread,
	FAILED_ANSWER,
	type HttpAnswer,
	hasBody,
	indented,
	jsonAnswer,
	limitedAnswer,
	notServingAnswer,
	rateLimitedAnswer,
	readWhole,
	toEachCall,
	tooLargeAnswer,
	tooManyRequestsAnswer,
	writeHead,
} from "./messages.ts";
import type { Exchange, OpenConnection } from "./openConnection.ts";
import type { RateLimiter } from "./rateLimit.ts";
import {
	costOf,
	createRouter,
	type PostHandler,
	type RequestProxy,
	type RouteMatch,
	type RouterOptions,
} from "./routes.ts";
import { OpenAnswer, ResponseStream, UnreadBytes } from "./unreadBytes.ts";

export interface RequestHandlerOptions extends RouterOptions, ConnectionsOptions {
	readonly maxBodyBytes: number;
	/** Maximum bytes of all bodies being read or handled; above it: refusal. Default 256 MiB. */
	readonly maxBufferedBytes?: number;
	/** The same for one client. Above it requests get 429. Default 32 MiB. */
	readonly maxBufferedBytesPerClient?: number;
	/** Maximum requests in flight. Above it requests are refused. Default 10,000. */
	readonly maxOpenRequests?: number;
	/** The answer that replaces all handling, whether the body is read or not; else null. */
	readonly refuse?: (from: ClientAddress) => HttpAnswer | null;
	/** Response headers that web pages may read. By default those that this server itself sends. */
	readonly exposedHeaders?: readonly string[];
	/** Makes an error a page for a browser that navigates. Without it such errors are JSON. */
	readonly errorPage?: (answer: HttpAnswer) => HttpAnswer;
	/**
	 * Default headers, in lower case, of every answer that is neither proxied nor a preflight.
	 * `answer` is null for raw answers (invalid requests, CONNECT, refused upgrades). Undefined if
	 * there are no headers to add.
	 */
	readonly headersFor?: (answer: HttpAnswer | null) => Readonly<Record<string, string>> | undefined;
}

export interface RequestHandlerDependencies {
	/** Handles POSTs on `rpcPaths`. Needed only if there are such paths. */
	readonly post?: PostHandler;
	/** Proxies requests that match no route, except preflights; if absent they get 404. */
	readonly proxy?: RequestProxy;
	readonly readAddress: ReadAddress;
	/** Charges each request, except calls and proxied requests, which others charge. */
	readonly limiter?: RateLimiter;
	/** Common counter of unread bytes. Pass it if other servers or websockets use it too. */
	readonly unread?: UnreadBytes;
	readonly log: Logger;
	readonly clock: Clock;
}

const MAX_BUFFERED_BYTES = 256 * 1024 * 1024;
const MAX_BUFFERED_BYTES_PER_CLIENT = 32 * 1024 * 1024;
const MAX_OPEN_REQUESTS = 10_000;
/**
 * Below the 30 s after which hosting routers (Heroku) give up. Routes have shorter deadlines; this
 * one catches their faults.
 */
const ROUTE_LIMIT_MS = 28_000;

/** How long to wait for the body of a refused request. */
const REFUSED_MS = 1_000;
/** Handling a larger body takes milliseconds: it is queued, and limited before it is read. */
const QUICK_BODY_BYTES = 64 * 1024;
/**
 * Up to this size, copying an answer is cheaper than writing it separately from the head. Only
 * larger ones count as unread.
 */
const COPIED_ANSWER_BYTES = 64 * 1024;

export class RequestHandler {
	readonly connections: Connections;
	readonly #route: ReturnType<typeof createRouter>;
	readonly #options: RequestHandlerOptions;
	readonly #tooLarge: HttpAnswer;
	readonly #buffered: Shares;
	readonly #unread: UnreadBytes;
	readonly #exposed: readonly string[];
	readonly #exposure: { readonly "access-control-expose-headers": string };
	readonly #dependencies: RequestHandlerDependencies;
	readonly #queue: EventLoopQueue;
	/** Requests in flight. Streamed answers don't count, so a shutdown does not wait for them. */
	#open = 0;
	#draining = false;
	#shutdownError: RpcError | null = null;
	#onIdle: (() => void)[] = [];

	constructor(options: RequestHandlerOptions, dependencies: RequestHandlerDependencies) {
		this.connections = new Connections(options, (exchange) => this.end(exchange));
		this.#route = createRouter(options, dependencies.proxy !== undefined);
		this.#options = options;
		this.#tooLarge = tooLargeAnswer(options.maxBodyBytes);
		this.#buffered = new Shares({
			total: options.maxBufferedBytes ?? MAX_BUFFERED_BYTES,
			perClient: options.maxBufferedBytesPerClient ?? MAX_BUFFERED_BYTES_PER_CLIENT,
		});
		this.#unread = dependencies.unread ?? new UnreadBytes(dependencies);
		this.#queue = new EventLoopQueue(dependencies);
		this.#exposed = options.exposedHeaders ?? ["Retry-After", "X-Request-Id"];
		this.#exposure = { "access-control-expose-headers": this.#exposed.join(", ") };
		this.#dependencies = dependencies;
	}

	/**
	 * Closes connections after their next answer. Ends streams, whose clients reconnect elsewhere.
	 */
	drain(): void {
		this.#draining = true;
		for (const { stream } of [...this.connections.all()]) stream?.end();
	}

	/** Refuses further requests. */
	refuseAll(): void {
		this.#shutdownError = new RpcError("unavailable", "internal error: shutting down");
	}

	/** Resolves when no request is in flight; streams don't count. */
	idle(): Promise<void> {
		if (this.#open === 0) return Promise.resolve();
		return new Promise((resolve) => this.#onIdle.push(resolve));
	}

	handle(request: IncomingMessage, response: ServerResponse): void {
		const { socket, headers } = request;
		const connection = this.connections.of(socket);
		// Behind a stream it would wait until the stream ends.
		if (connection !== undefined && connection.stream !== null) socket.destroy();
		if (connection === undefined || socket.destroyed) return;
		if (connection.exchange !== null) {
			connection.hold([request, response]);
			return;
		}
		const from = this.#dependencies.readAddress(headers, socket.remoteAddress);
		const [isOverLimit, releaseSlot] = this.connections.begin(connection, from);
		const target = readTarget(request.url ?? "/");
		const requestId = requestIdOf(headers[REQUEST_ID]);
		// Code that forwards the headers then forwards the valid id.
		headers[REQUEST_ID] = requestId;
		const exchange: Exchange = {
			request,
			response,
			target,
			requestId,
			from,
			connection,
			releaseSlot,
			awaitsContinue: headers.expect !== undefined && awaitsContinue(request),
			bytes: 0,
			life: null,
			work: null,
			quickBody: null,
		};
		connection.begin(exchange);
		this.#open += 1;
		response.on("close", () => this.end(exchange));
		const routing = this.#route(request, target.path);
		const wait = this.#dependencies.limiter?.takeRequest(from, costOf(routing, request)) ?? 0;
		const refusal = this.#options.refuse?.(from) ?? null;
		if (refusal !== null) this.#answerUnread(exchange, refusal);
		else if (isOverLimit)
			this.#answerUnread(exchange, tooManyRequestsAnswer(request, this.connections.maxPerClient));
		else if (this.#open > (this.#options.maxOpenRequests ?? MAX_OPEN_REQUESTS))
			this.#answerUnread(exchange, busyAnswer(request));
		else if (wait > 0) this.#answerUnread(exchange, rateLimitedAnswer(wait));
		else if (routing.kind === "rpc") this.#readPost(exchange);
		else if (routing.kind === "route") this.#serve(exchange, routing);
		else if (routing.kind === "proxy") this.#proxy(exchange);
		else this.#refuse(exchange, routing.answer);
	}

	/** Releases all resources of a request. May be called repeatedly. */
	end(exchange: Exchange): void {
		const { connection } = exchange;
		if (connection.exchange !== exchange) return;
		this.#open -= 1;
		this.#buffered.release(clientOf(exchange.from.address), exchange.bytes);
		exchange.releaseSlot();
		exchange.work?.drop();
		exchange.life?.end();
		connection.end();
		if (connection.hasMore) {
			// Answers may come at once, so these requests could otherwise block the event loop.
			this.#queue.run(clientOf(exchange.from.address), () => this.#goOn(connection));
		}
		if (this.#open > 0) return;
		for (const resolve of this.#onIdle.splice(0)) resolve();
	}

	/** Handles the next request of a connection that has none in progress. */
	#goOn(connection: OpenConnection): void {
		const next = connection.exchange === null ? connection.next() : undefined;
		if (next !== undefined) this.handle(...next);
	}

	#serve(exchange: Exchange, { route, params }: RouteMatch): void {
		const { log, clock } = this.#dependencies;
		const { path, search } = exchange.target;
		const { headers } = exchange.request;
		const { address } = exchange.from;
		const query = new URLSearchParams(search);
		const handling = new Promise<HttpAnswer>((settle) =>
			settle(route.handle({ path, params, query, headers, address })),
		);
		within(clock, route.path, ROUTE_LIMIT_MS, handling).then(
			(answer) => this.#answerRoute(exchange, asksForPage(headers.accept) ? indented(answer) : answer),
			(thrown: unknown) => {
				log.error("route failed", {
					path: route.path,
					request: exchange.requestId,
					fault: safeError(thrown),
				});
				this.#answerWhole(exchange, jsonAnswer(500, { error: "internal error" }));
			},
		);
	}

	#proxy(exchange: Exchange): void {
		const { request, response, awaitsContinue } = exchange;
		if (this.#shutdownError !== null) {
			this.#refuse(exchange, notServingAnswer(request, "shutting down"));
			return;
		}
		// The body is streamed, so none of its bytes stay in memory.
		const life = new ClientLife(0);
		exchange.life = life;
		this.#dependencies.proxy?.handle(request, response, {
			goAhead: () => {
				if (awaitsContinue) response.writeContinue();
				// For the ids of its calls, in case the proxy refuses it later.
				if (hasBody(request)) exchange.quickBody = this.#readBody(exchange, QUICK_BODY_BYTES);
			},
			onGone: (listener) => life.onGone(listener),
			refuse: (answer) => this.#refuse(exchange, answer),
			begin: (status, headers, end) => this.#beginProxied(exchange, status, headers, end),
		});
	}

	/** Refuses a request. A JSON-RPC error waits a moment for the body, whose ids it names. */
	#refuse(exchange: Exchange, answer: HttpAnswer): void {
		const { response, awaitsContinue, quickBody } = exchange;
		if (answer.refusal === undefined || (awaitsContinue && quickBody === null)) {
			this.#answerUnread(exchange, answer);
			return;
		}
		const timer = this.#dependencies.clock.after(REFUSED_MS, () =>
			this.#answerUnread(exchange, answer, true),
		);
		response.on("close", () => timer.cancel());
		// Even a server that accepts no bodies reads them for the ids.
		const maxBytes = Math.max(QUICK_BODY_BYTES, this.#options.maxBodyBytes);
		(quickBody ?? this.#readBody(exchange, maxBytes)).then((body) => {
			timer.cancel();
			if (body === null) this.#answerUnread(exchange, answer, true);
			else this.#send(exchange, toEachCall(answer, body));
		});
	}

	/** The body, even while a proxy streams it. Null if too long or over the memory limits. */
	#readBody(exchange: Exchange, maxBytes: number): Promise<Buffer | null> {
		const { request, from } = exchange;
		const limits = { maxBytes, tooLarge: this.#tooLarge };
		const reserve = this.#reserve.bind(this, exchange, clientOf(from.address));
		return new Promise((resolve) => {
			readWhole(request, limits, reserve, (result) => resolve(Buffer.isBuffer(result) ? result : null));
		});
	}

	/** Writes a proxied head, see {@link ProxiedExchange.begin}. `end` is null if it surely ends. */
	#beginProxied(
		exchange: Exchange,
		status: number,
		headers: OutgoingHttpHeaders,
		end: (() => void) | null,
	): boolean {
		const { request, response } = exchange;
		if (response.headersSent || response.destroyed || request.socket.destroyed) return false;
		if (end !== null && !this.#claimStream(exchange)) return false;
		const head = { ...headers };
		const theirs = String(head["access-control-expose-headers"] ?? "").split(/\s*,\s*/);
		const exposed = [
			...theirs.filter((name) => name !== "" && !this.#exposed.includes(name)),
			...this.#exposed,
		];
		head["access-control-expose-headers"] = exposed.join(", ");
		head[REQUEST_ID] = exchange.requestId;
		// The rest of the request's body will not be read, so the connection can't be reused.
		if (this.#draining || !request.complete) head.connection = "close";
		response.writeHead(status, head);
		if (end === null) return true;
		const stream = new OpenAnswer(response, end);
		this.#startStream(exchange, stream);
		if (this.#draining) stream.end();
		return true;
	}

	#readPost(exchange: Exchange): void {
		const { request, response, from, awaitsContinue } = exchange;
		const { maxBodyBytes: maxBytes } = this.#options;
		const tooLarge = this.#tooLarge;
		const fault = checkPost(request, maxBytes, tooLarge) ?? this.#checkLarge(exchange);
		if (fault !== null) {
			this.#dependencies.limiter?.charge(from, 1);
			this.#refuse(exchange, fault);
			return;
		}
		if (awaitsContinue) response.writeContinue();
		const client = clientOf(from.address);
		const reserve = this.#reserve.bind(this, exchange, client);
		readWhole(request, { maxBytes, tooLarge }, reserve, (result) => {
			if (!Buffer.isBuffer(result)) {
				this.#answerUnread(exchange, result, true);
				return;
			}
			exchange.work = this.#queue.run(client, () => this.#post(exchange, client, result));
		});
	}

	/** No listener here has the body: the handler may need it only for a moment. */
	#post(exchange: Exchange, client: string, body: Buffer): void {
		const { request, target, requestId, from } = exchange;
		// The default is never used, since a server without a handler has no JSON-RPC paths.
		const { log, post = () => Promise.resolve(FAILED_ANSWER) } = this.#dependencies;
		const life = new ClientLife(body.length);
		exchange.life = life;
		exchange.work = null;
		const { headers } = request;
		post({ target, headers, requestId, from, body, shutdownError: this.#shutdownError, life }).then(
			(answer) => {
				exchange.work = this.#queue.run(client, () => this.#send(exchange, encoded(answer)));
			},
			(thrown: unknown) => {
				log.error("request failed", { path: target.path, request: requestId, fault: safeError(thrown) });
				this.#send(exchange, FAILED_ANSWER);
			},
		);
	}

	/** Counts `bytes` of a body for its client, or returns the exceeded limit. */
	#reserve(exchange: Exchange, client: string, bytes: number): OverShare | null {
		const over = this.#buffered.take(client, bytes);
		if (over === null) exchange.bytes += bytes;
		return over;
	}

	/** Refuses a large body unread if its client is over its rate limit: reading it costs memory. */
	#checkLarge({ request, from }: Exchange): HttpAnswer | null {
		const bytes = declaredBytes(request) ?? 0;
		const waitMs = bytes > QUICK_BODY_BYTES ? (this.#dependencies.limiter?.peekBody(from, bytes) ?? 0) : 0;
		return waitMs === 0 ? null : limitedAnswer(waitMs);
	}

	/** Sends a route's answer: complete, or as a stream. */
	#answerRoute(exchange: Exchange, answer: HttpAnswer): void {
		const { request, response } = exchange;
		if (answer.open === undefined || request.method === "HEAD" || response.destroyed) {
			this.#answerWhole(exchange, answer);
			return;
		}
		if (!this.#claimStream(exchange)) return;
		this.#writeHead(exchange, answer, this.#draining);
		const stream = new ResponseStream(response, exchange.from.address, this.#unread);
		this.#startStream(exchange, stream);
		try {
			answer.open(stream);
		} catch (thrown) {
			const { target, requestId } = exchange;
			const fields = { path: target.path, request: requestId, fault: safeError(thrown) };
			this.#dependencies.log.error("stream failed", fields);
			stream.end();
		}
		if (this.#draining) stream.end();
	}

	/** Sends a route's complete answer. The body of a POST was not read. */
	#answerWhole(exchange: Exchange, answer: HttpAnswer): void {
		if (exchange.request.method === "POST") this.#answerUnread(exchange, answer);
		else this.#send(exchange, answer);
	}

	/** Whether it may be streamed. If not, disconnects: other requests wait behind it. */
	#claimStream({ connection }: Exchange): boolean {
		if (connection.hasWaiting) connection.socket.destroy();
		return !connection.hasWaiting;
	}

	/** Called after the head of a streamed answer was written. */
	#startStream(exchange: Exchange, stream: OpenAnswer): void {
		const { connection, releaseSlot } = exchange;
		exchange.response.flushHeaders();
		exchange.life = null;
		// Keeps the client's slot until the stream closes.
		exchange.releaseSlot = () => {};
		connection.stream = stream;
		this.end(exchange);
		stream.onClose(() => {
			connection.stream = null;
			releaseSlot();
		});
	}

	#writeHead({ request, response, requestId }: Exchange, answer: HttpAnswer, close: boolean): void {
		const more = request.method === "OPTIONS" ? undefined : this.#options.headersFor?.(answer);
		const standing = more === undefined ? this.#exposure : { ...this.#exposure, ...more };
		writeHead(response, answer, close, standing, requestId);
	}

	/** Turns an error into a page or an event stream, if the client asks for one. */
	#forReader({ request, target }: Exchange, answer: HttpAnswer): HttpAnswer {
		if (answer.status < 400) return answer;
		const stream = reconnectingStream(request, target.path, answer);
		if (stream !== null) return stream;
		const { errorPage } = this.#options;
		if (errorPage === undefined) return answer;
		const isRead = request.method === "GET" || request.method === "HEAD";
		return isRead && asksForPage(request.headers.accept) ? errorPage(answer) : answer;
	}

	/**
	 * Sends a complete answer. The request's body was read, or is short enough for Node to discard
	 * it.
	 */
	#send(exchange: Exchange, given: HttpAnswer): void {
		const { response, from, releaseSlot } = exchange;
		if (response.headersSent || response.destroyed) return;
		const answer = this.#forReader(exchange, given);
		this.#writeHead(exchange, answer, this.#draining);
		const { body } = answer;
		// Node sends text together with the head, but bytes separately. Latin-1 keeps every byte
		// unchanged.
		if (Buffer.isBuffer(body) && body.length <= COPIED_ANSWER_BYTES) {
			response.end(body.toString("latin1"), "latin1");
			return;
		}
		if (body !== null && body.length > COPIED_ANSWER_BYTES) {
			// Nothing can be added to a complete answer, so it can only be cut off.
			const cut = () => response.destroy();
			const reader = this.#unread.reader(from.address, { close: cut, cut });
			reader.write(Buffer.byteLength(body));
			exchange.releaseSlot = () => {
				reader.gone();
				releaseSlot();
			};
		}
		response.end(body);
	}

	/**
	 * Answers a request whose body is not fully read. If the rest may be long, closes the connection
	 * instead of reading it.
	 */
	#answerUnread(exchange: Exchange, answer: HttpAnswer, isPartlyRead = false): void {
		const { request, response, awaitsContinue } = exchange;
		const bytes = declaredBytes(request) ?? Number.POSITIVE_INFINITY;
		const canReadRest = !isPartlyRead && !awaitsContinue && bytes <= this.#options.maxBodyBytes;
		if (canReadRest || !hasBody(request) || (!isPartlyRead && request.complete)) this.#send(exchange, answer);
		else if (!response.headersSent && !response.destroyed) {
			this.#writeHead(exchange, answer, true);
			endUnread(request, response, answer.body, this.#dependencies.clock);
		}
	}
}

function awaitsContinue({ httpVersionMinor, headers }: IncomingMessage): boolean {
	return httpVersionMinor > 0 && /(?:^|\W)100-continue(?:$|\W)/i.test(headers.expect ?? "");
}
