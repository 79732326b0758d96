// The rules for HTTP requests: which are answered by the POST handler, a route or whoever they are passed on to, and
// which are refused (paths, verbs, sizes, content types). It knows no JSON-RPC method and owns no connection.

import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { type Clock, withDeadline } from "../clock.ts";
import { RpcError } from "../jsonrpc/errors.ts";
import { type Logger, safeError } from "../log.ts";
import { EventLoopTurns } from "../shares/scheduler.ts";
import { type OverShare, Shares } from "../shares/shares.ts";
import { ClientLife, clientOf, type ReadAddress, readTarget } from "./callContext.ts";
import { Connections, type ConnectionsOptions, type Exchange } from "./connections.ts";
import {
	asksForPage,
	BEHIND,
	BUSY,
	crowded,
	declaredBytes,
	endUnread,
	FAILED,
	type HttpAnswer,
	hasBody,
	httpAnswerOf,
	indented,
	jsonAnswer,
	judgePost,
	limited,
	notServing,
	readWhole,
	tooLarge,
	writeHead,
} from "./messages.ts";
import type { RateLimiter } from "./rateLimit.ts";
import { createRouter, type PassThrough, type PostHandler, type RouteMatch, type Served } from "./routes.ts";
import { OpenAnswer, ResponseStream, UnreadBytes } from "./unreadBytes.ts";

export interface RequestHandlerOptions extends Served, ConnectionsOptions {
	/** Bytes of a body at most. */
	readonly maxBodyBytes: number;
	/** Bytes of all bodies that are read or worked on at a time; above it 503. 256 MiB unless said. */
	readonly maxBufferedBytes?: number;
	/** And of one client's; above it 429. 32 MiB unless said. */
	readonly maxBufferedBytesPerClient?: number;
	/** Requests under way at most; above it 503. 10,000 unless said. */
	readonly maxOpenRequests?: number;
	/** Headers of our own that web pages may read. */
	readonly exposedHeaders?: readonly string[];
	/**
	 * Headers of every answer of the server's own but preflights, unless the answer has them itself; undefined where it
	 * has them all. Null: of one that is not an answer to a request. Lower case.
	 */
	readonly headersFor?: (answer: HttpAnswer | null) => Readonly<Record<string, string>> | undefined;
}

export interface RequestHandlerDependencies {
	/** Answers POSTs on `rpcPaths`. */
	readonly post?: PostHandler;
	/** Takes what is on no path of a route, but for preflights; without one it is answered with 404. */
	readonly pass?: PassThrough;
	readonly readAddress: ReadAddress;
	/** Limits routes that have a weight. */
	readonly limiter?: RateLimiter;
	/** Of the process, where it has more readers than this server's. */
	readonly unread?: UnreadBytes;
	readonly log: Logger;
	readonly clock: Clock;
}

const MAX_BUFFERED_BYTES = 256 * 1024 * 1024;
const MAX_BUFFERED_BYTES_PER_CLIENT = 32 * 1024 * 1024;
const MAX_OPEN_REQUESTS = 10_000;
/** Routers give a request 30 s. Routes have shorter deadlines of their own: this one is for their faults. */
const ROUTE_LIMIT_MS = 28_000;

/** To read a body of this size, decode its transaction and recover the sender takes milliseconds. */
const LARGE_BYTES = 64 * 1024;
/** Bytes of an answer up to which copying them is cheaper than writing them apart from the head. */
const SMALL_BYTES = 64 * 1024;

/** Handles the requests of one server. */
export class RequestHandler {
	readonly connections: Connections;
	readonly #route: ReturnType<typeof createRouter>;
	readonly #options: RequestHandlerOptions;
	readonly #tooLarge: HttpAnswer;
	readonly #buffered: Shares;
	readonly #unread: UnreadBytes;
	readonly #exposure: Readonly<Record<string, string>>;
	readonly #with: RequestHandlerDependencies;
	readonly #turns: EventLoopTurns;
	/** Requests under way. Answers that go on are none: they hold up no stop and leave room for requests. */
	#open = 0;
	#draining = false;
	#refusal: RpcError | null = null;
	#onIdle: (() => void)[] = [];

	constructor(options: RequestHandlerOptions, dependencies: RequestHandlerDependencies) {
		this.connections = new Connections(options);
		this.#route = createRouter(options, dependencies.pass !== undefined);
		this.#options = options;
		this.#tooLarge = tooLarge(options.maxBodyBytes);
		this.#buffered = new Shares({
			total: options.maxBufferedBytes ?? MAX_BUFFERED_BYTES,
			perClient: options.maxBufferedBytesPerClient ?? MAX_BUFFERED_BYTES_PER_CLIENT,
		});
		this.#unread = dependencies.unread ?? new UnreadBytes();
		this.#turns = new EventLoopTurns(dependencies);
		const exposed = (options.exposedHeaders ?? []).join(", ");
		this.#exposure = exposed === "" ? {} : { "access-control-expose-headers": exposed };
		this.#with = dependencies;
	}

	/** From now on each connection is closed behind its next answer, and streams end: their clients come back elsewhere. */
	drain(): void {
		this.#draining = true;
		for (const { stream } of [...this.connections.all()]) stream?.end();
	}

	/** From now on requests are refused with 503. */
	refuseAll(): void {
		this.#refusal = new RpcError("unavailable", "internal error: shutting down");
	}

	/** Resolves when no request is under way; streams don't count. */
	idle(): Promise<void> {
		if (this.#open === 0) return Promise.resolve();
		return new Promise((resolve) => this.#onIdle.push(resolve));
	}

	/** Answers `request`, which came by one of the connections. */
	handle(request: IncomingMessage, response: ServerResponse): void {
		const { socket, headers, method } = request;
		const connection = this.connections.of(socket);
		// A pipelined request would wait until the stream before it ends, which is up to its client.
		if (connection !== undefined && connection.stream !== null) socket.destroy();
		// Also one in a row behind what has just been cut.
		if (connection === undefined || socket.destroyed) return;
		const from = this.#with.readAddress(headers, socket.remoteAddress);
		const { isOver, end: leave } = this.connections.begin(connection, from);
		const { requests } = connection;
		// A pipelined request would wait, too, behind one that waits for its turn; a connection may have only a few.
		for (const before of [...requests]) if (before.bytes < LARGE_BYTES) before.piece?.hurry();
		const target = readTarget(request.url ?? "/");
		const exchange: Exchange = {
			request,
			response,
			target,
			from,
			connection,
			leave,
			awaitsContinue:
				request.httpVersionMinor > 0 && /(?:^|\W)100-continue(?:$|\W)/i.test(headers.expect ?? ""),
			bytes: 0,
			life: null,
			piece: null,
			end: () => this.#end(exchange),
		};
		requests.push(exchange);
		this.#open += 1;
		response.on("close", exchange.end);
		const routing = this.#route(method ?? "", target.path, headers.accept);
		if (socket.destroyed) exchange.end();
		else if (isOver) this.#refuse(exchange, crowded(method, this.connections.maxPerClient));
		else if (this.#open > (this.#options.maxOpenRequests ?? MAX_OPEN_REQUESTS)) this.#refuse(exchange, BUSY);
		else if (routing.kind === "post") this.#post(exchange);
		else if (routing.kind === "route") this.#serve(exchange, routing);
		else if (routing.kind === "pass") this.#pass(exchange);
		else this.#refuse(exchange, routing.answer);
	}

	#end(exchange: Exchange): void {
		const { requests } = exchange.connection;
		const at = requests.indexOf(exchange);
		if (at === -1) return;
		requests.splice(at, 1);
		this.#open -= 1;
		this.#buffered.give(clientOf(exchange.from.address), exchange.bytes);
		exchange.leave();
		exchange.piece?.drop();
		exchange.life?.end();
		if (this.#open > 0) return;
		for (const resolve of this.#onIdle.splice(0)) resolve();
	}

	#serve(exchange: Exchange, { route, params }: RouteMatch): void {
		const { limiter, log, clock } = this.#with;
		const { weight } = route;
		const wait = weight === undefined ? 0 : (limiter?.takeFrom(exchange.from, weight) ?? 0);
		if (wait > 0) {
			this.#refuse(exchange, limited(wait));
			return;
		}
		const { path, search } = exchange.target;
		const { headers } = exchange.request;
		const { address } = exchange.from;
		const query = new URLSearchParams(search);
		withDeadline(clock, route.path, ROUTE_LIMIT_MS, async () =>
			route.handle({ path, params, query, headers, address }),
		).then(
			(answer) => this.#answer(exchange, asksForPage(headers.accept) ? indented(answer) : answer),
			(thrown: unknown) => {
				log.error("a route failed", { path: route.path, fault: safeError(thrown) });
				this.#whole(exchange, jsonAnswer(500, { error: "internal error" }));
			},
		);
	}

	#pass(exchange: Exchange): void {
		const { request, response, awaitsContinue } = exchange;
		if (this.#refusal !== null) {
			this.#refuse(exchange, notServing(request.method, "shutting down"));
			return;
		}
		const life = new ClientLife(0);
		exchange.life = life;
		this.#with.pass?.web(request, response, {
			goAhead: () => {
				if (awaitsContinue) response.writeContinue();
			},
			onGone: (listener) => life.onGone(listener),
			refuse: (answer) => this.#refuse(exchange, answer),
			begin: (status, headers, end) => this.#begin(exchange, status, headers, end),
		});
	}

	/** The head of an answer from elsewhere: see Passing. */
	#begin(
		exchange: Exchange,
		status: number,
		headers: OutgoingHttpHeaders,
		end: (() => void) | null,
	): boolean {
		const { request, response } = exchange;
		if (response.headersSent || response.destroyed || request.socket.destroyed) return false;
		if (end !== null && !this.#mayGoOn(exchange)) return false;
		const head = { ...headers };
		const exposed = this.#exposure["access-control-expose-headers"];
		if (exposed !== undefined) {
			const theirs = head["access-control-expose-headers"] || null;
			head["access-control-expose-headers"] = theirs === null ? exposed : `${theirs}, ${exposed}`;
		}
		// Whoever has answered already does not read the rest of the body.
		if (this.#draining || !request.complete) head.connection = "close";
		response.writeHead(status, head);
		if (end === null) return true;
		const stream = new OpenAnswer(response, end);
		this.#goesOn(exchange, stream);
		if (this.#draining) stream.end();
		return true;
	}

	#post(exchange: Exchange): void {
		const { request, response, target, from, awaitsContinue } = exchange;
		const { headers } = request;
		const { log, post = () => Promise.resolve(BUSY) } = this.#with;
		const { maxBodyBytes: maxBytes } = this.#options;
		const tooLarge = this.#tooLarge;
		const fault = judgePost(request, maxBytes, tooLarge) ?? this.#judgeLarge(exchange);
		if (fault !== null) {
			this.#refuse(exchange, fault);
			return;
		}
		if (awaitsContinue) response.writeContinue();
		const client = clientOf(from.address);
		const reserve = (bytes: number): OverShare | null => {
			const refusal = this.#buffered.take(client, bytes);
			if (refusal === null) exchange.bytes += bytes;
			return refusal;
		};
		readWhole(request, { maxBytes, tooLarge, reserve }, (body) => {
			if (!Buffer.isBuffer(body)) {
				this.#refuse(exchange, body, true);
				return;
			}
			const life = new ClientLife(body.length);
			exchange.life = life;
			exchange.piece = this.#turns.run(client, () => {
				post({ target, headers, from, body, refusal: this.#refusal, life }).then(
					(answer) => {
						exchange.piece = this.#turns.run(client, () => this.#send(exchange, answer));
					},
					(thrown: unknown) => {
						log.error("a request failed", { path: target.path, fault: safeError(thrown) });
						this.#send(exchange, FAILED);
					},
				);
			});
		});
	}

	/** A large body for which its client has no allowance left is not read: reading it alone costs memory. */
	#judgeLarge({ request, from }: Exchange): HttpAnswer | null {
		const bytes = declaredBytes(request) ?? 0;
		const limited = bytes > LARGE_BYTES ? (this.#with.limiter?.judgeBody(from, bytes) ?? null) : null;
		return limited === null ? null : httpAnswerOf(limited);
	}

	/** Sends a route's answer: complete, or as a stream. */
	#answer(exchange: Exchange, answer: HttpAnswer): void {
		const { request, response } = exchange;
		if (answer.open === undefined || request.method === "HEAD" || response.destroyed) {
			this.#whole(exchange, answer);
			return;
		}
		if (!this.#mayGoOn(exchange)) return;
		this.#head(exchange, answer, this.#draining);
		const stream = new ResponseStream(response, exchange.from.address, this.#unread);
		this.#goesOn(exchange, stream);
		try {
			answer.open(stream);
		} catch (thrown) {
			const { path } = exchange.target;
			this.#with.log.error("a stream failed", { path, fault: safeError(thrown) });
			stream.end();
		}
		if (this.#draining) stream.end();
	}

	/** The answer of a route: nobody read the body that a POST may have. */
	#whole(exchange: Exchange, answer: HttpAnswer): void {
		if (exchange.request.method === "POST") this.#refuse(exchange, answer);
		else this.#send(exchange, answer);
	}

	/** Whether nothing else is due on its connection; where something is, it is refused, or its client cut. */
	#mayGoOn(exchange: Exchange): boolean {
		const { socket, requests } = exchange.connection;
		if (requests[0] !== exchange) this.#send(exchange, BEHIND);
		else if (requests.length > 1) socket.destroy();
		else return true;
		return false;
	}

	/** The head of an answer was written that goes on, until `stream` is ended or its client goes. */
	#goesOn(exchange: Exchange, stream: OpenAnswer): void {
		const { connection, leave } = exchange;
		exchange.response.flushHeaders();
		exchange.life = null;
		// It counts as one of its client's until the stream ends.
		exchange.leave = () => {};
		exchange.end();
		connection.stream = stream;
		stream.onClose(() => {
			connection.stream = null;
			leave();
		});
	}

	#head({ request, response }: Exchange, answer: HttpAnswer, close: boolean): void {
		const more = request.method === "OPTIONS" ? undefined : this.#options.headersFor?.(answer);
		writeHead(response, answer, close, more === undefined ? this.#exposure : { ...this.#exposure, ...more });
	}

	#send(exchange: Exchange, answer: HttpAnswer): void {
		const { response, from, leave } = exchange;
		if (response.headersSent || response.destroyed) return;
		this.#head(exchange, answer, this.#draining);
		const { body } = answer;
		// Text goes out with the head in one piece, bytes would be a second one. Latin-1 is every byte as it is.
		if (Buffer.isBuffer(body) && body.length <= SMALL_BYTES) {
			response.end(body.toString("latin1"), "latin1");
			return;
		}
		if (body !== null && body.length > SMALL_BYTES) {
			const cut = () => response.destroy();
			const reader = this.#unread.reader(from.address, { close: cut, cut });
			reader.write(Buffer.byteLength(body));
			exchange.leave = () => {
				reader.gone();
				leave();
			};
		}
		response.end(body);
	}

	/** Answers though the body is not read. One that could be long is not waited for: the connection ends. */
	#refuse(exchange: Exchange, answer: HttpAnswer, midway = false): void {
		const { request, response, awaitsContinue } = exchange;
		const bytes = declaredBytes(request) ?? Number.POSITIVE_INFINITY;
		const small = !midway && !awaitsContinue && bytes <= this.#options.maxBodyBytes;
		if (small || !hasBody(request) || (!midway && request.complete)) this.#send(exchange, answer);
		else if (!response.headersSent && !response.destroyed) {
			this.#head(exchange, answer, true);
			endUnread(request, response, answer.body, this.#with.clock);
		}
	}
}
