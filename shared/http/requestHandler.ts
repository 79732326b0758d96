// The rules for HTTP requests: what comes in is a request, what goes out is the answer of the POST handler, of a route,
// whole or as a stream, or of whoever it is passed on to, or a refusal (paths, verbs, sizes, content types, CORS). It
// knows no method and owns no connection.

import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { withDeadline } from "../clock.ts";
import { RpcError } from "../jsonrpc/errors.ts";
import { safeError } from "../log.ts";
import { type OverShare, Shares } from "../shares/shares.ts";
import { type OpenAnswer, ResponseStream } from "./answerStream.ts";
import { type ClientAddress, clientOf } from "./clientIdentity.ts";
import type { Connections } from "./connections.ts";
import { EventLoopTurns, type Piece } from "./eventLoopTurns.ts";
import { type HttpAnswer, jsonAnswer, writeHead } from "./httpAnswer.ts";
import { type OpenRequest, OpenRequests } from "./openRequests.ts";
import { PassedStream, writePassedHead } from "./passThrough.ts";
import {
	BEHIND,
	BUSY,
	crowded,
	FAILED,
	HOARDING,
	judgePost,
	limited,
	shuttingDown,
	tooLarge,
} from "./refusals.ts";
import { declaredBytes, endUnread, hasBody, readWhole } from "./requestBody.ts";
import { ClientLife } from "./requestLife.ts";
import { type RequestTarget, readTarget } from "./requestTarget.ts";
import { createRouter, type RouteMatch, type Routing } from "./routes.ts";
import type { PostHandler } from "./rpcOverHttp.ts";
import type { HttpServerDependencies, HttpServerOptions } from "./server.ts";
import { UnreadBytes } from "./unreadBytes.ts";

const MAX_BUFFERED_BYTES = 256 * 1024 * 1024;
const MAX_BUFFERED_BYTES_PER_CLIENT = 32 * 1024 * 1024;
const MAX_OPEN_REQUESTS = 10_000;
/** Routers give a request 30 s. Routes have shorter deadlines of their own: this one is for their faults. */
const ROUTE_LIMIT_MS = 28_000;

/** To read a body of this size, decode its transaction and recover the sender takes milliseconds. */
const LARGE_BYTES = 64 * 1024;
/** Bytes of an answer up to which copying them is cheaper than writing them apart from the head. */
const SMALL_BYTES = 64 * 1024;

/** A request and its response, with what it holds. */
interface Exchange extends OpenRequest {
	readonly target: RequestTarget;
	/** Who sent it. */
	readonly from: ClientAddress;
	/** Ends its part of its client's share of the connections. */
	leave: () => void;
	/** True where the client waits for a word before it sends the body (`Expect: 100-continue`). */
	readonly awaitsContinue: boolean;
	/** Bytes of the body that are held for it. */
	bytes: number;
	/** Of a POST whose body was read, and of what is passed on. */
	life: ClientLife | null;
	/** What waits for a turn of the event loop: its handling, then its answer. */
	piece: Piece | null;
}

/** Handles the requests of one server. */
export class RequestHandler {
	readonly #route: (verb: string, path: string) => Routing;
	readonly #maxBodyBytes: number;
	readonly #tooLarge: HttpAnswer;
	readonly #takePost: PostHandler;
	readonly #buffered: Shares;
	readonly #unread: UnreadBytes;
	readonly #maxOpen: number;
	readonly #exposure: Readonly<Record<string, string>>;
	readonly #headersFor: HttpServerOptions["headersFor"];
	readonly #dependencies: HttpServerDependencies;
	readonly #open = new OpenRequests<Exchange>({ onEnd: (exchange) => this.#ended(exchange) });
	/** Answers that go on, by connection: under way for minutes, they hold up no stop and leave room for requests. */
	readonly #streams = new Map<Duplex, OpenAnswer>();
	readonly #turns: EventLoopTurns;
	#draining = false;
	#refusal: RpcError | null = null;
	#onIdle: (() => void)[] = [];

	constructor(options: HttpServerOptions, dependencies: HttpServerDependencies) {
		this.#route = createRouter(options.rpcPaths, options.routes, dependencies.pass !== undefined);
		this.#maxBodyBytes = options.maxBodyBytes;
		this.#tooLarge = tooLarge(options.maxBodyBytes);
		this.#takePost = dependencies.post ?? (() => Promise.resolve(BUSY));
		this.#buffered = new Shares({
			total: options.maxBufferedBytes ?? MAX_BUFFERED_BYTES,
			perClient: options.maxBufferedBytesPerClient ?? MAX_BUFFERED_BYTES_PER_CLIENT,
		});
		this.#unread = dependencies.unread ?? new UnreadBytes();
		this.#turns = new EventLoopTurns(dependencies);
		this.#maxOpen = options.maxOpenRequests ?? MAX_OPEN_REQUESTS;
		const exposed = (options.exposedHeaders ?? []).join(", ");
		this.#exposure = exposed === "" ? {} : { "access-control-expose-headers": exposed };
		this.#headersFor = options.headersFor;
		this.#dependencies = dependencies;
	}

	/** From now on each connection is closed behind its next answer, and streams end: their clients come back elsewhere. */
	drain(): void {
		this.#draining = true;
		for (const stream of [...this.#streams.values()]) stream.end();
	}

	/** From now on requests are refused with 503. */
	refuseAll(): void {
		this.#refusal = new RpcError("unavailable", "internal error: shutting down");
	}

	/** Resolves when no request is under way; streams don't count. */
	idle(): Promise<void> {
		if (this.#open.size === 0) return Promise.resolve();
		return new Promise((resolve) => this.#onIdle.push(resolve));
	}

	/** Whether a request that came whole on `socket` is not answered yet, or an answer is being written to it. */
	isBusy(socket: Duplex): boolean {
		const isWhole = ({ request, response }: Exchange) => request.complete || response.headersSent;
		return this.#streams.has(socket) || [...this.#open.of(socket)].some(isWhole);
	}

	/** Answers `request`, which came by one of `connections`. */
	handle(
		request: IncomingMessage,
		response: ServerResponse,
		awaitsContinue: boolean,
		connections: Connections,
	): void {
		const { socket, headers, method } = request;
		// One in a row behind what has just been cut.
		if (socket.destroyed) return;
		// Behind an answer that goes on it would wait for that one's end, as long as its client likes.
		if (this.#streams.has(socket)) {
			socket.destroy();
			return;
		}
		const from = this.#dependencies.readAddress(headers, socket.remoteAddress);
		const { isOver, end } = connections.begin(socket, from);
		const target = readTarget(request.url ?? "/");
		const exchange: Exchange = {
			...{ request, response, target, from, awaitsContinue, bytes: 0, life: null, piece: null },
			leave: end,
		};
		// What waits for its turn holds up those behind it on its connection, and only so many may be.
		for (const before of [...this.#open.of(socket)]) if (before.bytes < LARGE_BYTES) before.piece?.hurry();
		this.#open.add(exchange);
		const routing = this.#route(method ?? "", target.path);
		if (socket.destroyed) this.#open.end(exchange);
		else if (isOver) this.#refuse(exchange, crowded(method, connections.maxPerClient));
		else if (this.#open.size > this.#maxOpen) this.#refuse(exchange, BUSY);
		else if (routing.kind === "post") this.#post(exchange);
		else if (routing.kind === "route") this.#serve(exchange, routing);
		else if (routing.kind === "pass") this.#pass(exchange);
		else this.#refuse(exchange, routing.answer);
	}

	#ended(exchange: Exchange): void {
		this.#buffered.give(clientOf(exchange.from.address), exchange.bytes);
		exchange.leave();
		exchange.piece?.drop();
		exchange.life?.end();
		if (this.#open.size > 0) return;
		for (const resolve of this.#onIdle.splice(0)) resolve();
	}

	#serve(exchange: Exchange, match: RouteMatch): void {
		const { limiter } = this.#dependencies;
		const { weight } = match.route;
		const wait = weight === undefined ? 0 : (limiter?.takeFrom(exchange.from, weight) ?? 0);
		if (wait > 0) this.#refuse(exchange, limited(wait));
		else this.#runRoute(exchange, match);
	}

	#runRoute(exchange: Exchange, { route, params }: RouteMatch): void {
		const { log, clock } = this.#dependencies;
		const { path, search } = exchange.target;
		const { headers } = exchange.request;
		const { address } = exchange.from;
		const query = new URLSearchParams(search);
		withDeadline(clock, route.path, ROUTE_LIMIT_MS, async () =>
			route.handle({ path, params, query, headers, address }),
		).then(
			(answer) => this.#answer(exchange, answer),
			(thrown: unknown) => {
				log.error("a route failed", { path: route.path, fault: safeError(thrown) });
				this.#whole(exchange, jsonAnswer(500, { error: "internal error" }));
			},
		);
	}

	#pass(exchange: Exchange): void {
		const { request, response, awaitsContinue } = exchange;
		if (this.#refusal !== null) {
			this.#refuse(exchange, shuttingDown(request.method));
			return;
		}
		const life = new ClientLife(0);
		exchange.life = life;
		this.#dependencies.pass?.web(request, response, {
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
		// What is left of the body is of no use to whoever has answered already.
		const close = this.#draining || !request.complete;
		writePassedHead(response, status, headers, close, this.#exposure);
		if (end === null) return true;
		const stream = new PassedStream(response, end);
		this.#goesOn(exchange, stream);
		if (this.#draining) stream.end();
		return true;
	}

	#post(exchange: Exchange): void {
		const { request, response, target, awaitsContinue } = exchange;
		const { headers } = request;
		const fault = judgePost(request, this.#maxBodyBytes, this.#tooLarge);
		if (fault !== null) {
			this.#refuse(exchange, fault);
			return;
		}
		if (awaitsContinue) response.writeContinue();
		const maxBytes = this.#maxBodyBytes;
		readWhole(request, { maxBytes, reserve: (bytes) => this.#reserve(exchange, bytes) }, (body) => {
			if (body === "tooLarge") this.#refuse(exchange, this.#tooLarge, true);
			else if (body === "noRoom") this.#refuse(exchange, BUSY, true);
			else if (body === "hoarding") this.#refuse(exchange, HOARDING, true);
			else {
				const { from } = exchange;
				const life = new ClientLife(body.length);
				exchange.life = life;
				const client = clientOf(from.address);
				const take = (): void => {
					this.#takePost({ target, headers, from, body, refusal: this.#refusal, life }).then(
						(answer) => {
							exchange.piece = this.#turns.run(client, () => this.#send(exchange, answer));
						},
						(thrown: unknown) => this.#failed(exchange, thrown),
					);
				};
				exchange.piece = this.#turns.run(client, take);
			}
		});
	}

	#reserve(exchange: Exchange, bytes: number): OverShare | null {
		const refusal = this.#buffered.take(clientOf(exchange.from.address), bytes);
		if (refusal === null) exchange.bytes += bytes;
		return refusal;
	}

	/** A POST handler that rejects is at fault itself. */
	#failed(exchange: Exchange, thrown: unknown): void {
		const { path } = exchange.target;
		this.#dependencies.log.error("a request failed", { path, fault: safeError(thrown) });
		this.#send(exchange, FAILED);
	}

	/** A route's answer: at once and whole, or from now on. */
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
			this.#dependencies.log.error("a stream failed", {
				path: exchange.target.path,
				fault: safeError(thrown),
			});
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
		const { socket } = exchange.request;
		const [first] = this.#open.of(socket);
		if (first !== exchange) this.#send(exchange, BEHIND);
		else if (this.#open.of(socket).size > 1) socket.destroy();
		else return true;
		return false;
	}

	/** The head of an answer was written that goes on, until `stream` is ended or its client goes. */
	#goesOn(exchange: Exchange, stream: OpenAnswer): void {
		const { socket } = exchange.request;
		const { leave } = exchange;
		exchange.response.flushHeaders();
		exchange.life = null;
		// It is one of its client's until its end.
		exchange.leave = () => {};
		this.#open.end(exchange);
		this.#streams.set(socket, stream);
		stream.onClose(() => {
			this.#streams.delete(socket);
			leave();
		});
	}

	#head({ request, response }: Exchange, answer: HttpAnswer, close: boolean): void {
		const more = request.method === "OPTIONS" ? undefined : this.#headersFor?.(answer);
		writeHead(response, answer, close, more === undefined ? this.#exposure : { ...this.#exposure, ...more });
	}

	#send(exchange: Exchange, answer: HttpAnswer): void {
		const { response } = exchange;
		if (response.headersSent || response.destroyed) return;
		this.#head(exchange, answer, this.#draining);
		const { body } = answer;
		// Text goes out with the head in one piece, bytes would be a second one. Latin-1 is every byte as it is.
		if (Buffer.isBuffer(body) && body.length <= SMALL_BYTES) response.end(body.toString("latin1"), "latin1");
		else {
			if (body !== null && body.length > SMALL_BYTES) this.#waits(exchange, Buffer.byteLength(body));
			response.end(body);
		}
	}

	/** So many bytes are about to be written as one answer. */
	#waits(exchange: Exchange, bytes: number): void {
		const { response, from, leave } = exchange;
		const cut = () => response.destroy();
		const reader = this.#unread.reader(from.address, { close: cut, cut });
		reader.write(bytes);
		exchange.leave = () => {
			reader.gone();
			leave();
		};
	}

	/** Answers though the body is not read. One that could be long is not waited for: the connection ends. */
	#refuse(exchange: Exchange, answer: HttpAnswer, midway = false): void {
		const { request, response, awaitsContinue } = exchange;
		const bytes = declaredBytes(request) ?? Number.POSITIVE_INFINITY;
		const small = !midway && !awaitsContinue && bytes <= this.#maxBodyBytes;
		if (small || !hasBody(request) || (!midway && request.complete)) this.#send(exchange, answer);
		else if (!response.headersSent && !response.destroyed) {
			this.#head(exchange, answer, true);
			endUnread(request, response, answer.body, this.#dependencies.clock);
		}
	}
}
