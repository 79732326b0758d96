// The rules for HTTP requests: what comes in is a request, what goes out is the answer of the POST handler or of a
// route, whole or as a stream, or a refusal (paths, verbs, sizes, content types, CORS). It knows no method and owns no
// connection.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { type Clock, withDeadline } from "../clock.ts";
import { RpcError } from "../jsonrpc/errors.ts";
import { type Logger, safeError } from "../log.ts";
import { ResponseStream } from "./answerStream.ts";
import type { ReadAddress } from "./clientIdentity.ts";
import { type HttpAnswer, jsonAnswer, retryAfter, rpcErrorAnswer, writeHead } from "./httpAnswer.ts";
import { type OpenRequest, OpenRequests } from "./openRequests.ts";
import type { RateLimiter } from "./rateLimit.ts";
import { declaredBytes, hasBody, isJson, isPlain, readWhole } from "./requestBody.ts";
import { ClientLife } from "./requestLife.ts";
import { type RequestTarget, readTarget } from "./requestTarget.ts";
import { createRouter, type Route, type RouteMatch, type Routing } from "./routes.ts";
import type { PostHandler } from "./rpcOverHttp.ts";

export interface RequestHandlerOptions {
	readonly rpcPaths: readonly string[];
	readonly routes: readonly Route[];
	readonly maxBodyBytes: number;
	readonly maxBufferedBytes?: number;
	readonly maxOpenRequests?: number;
	readonly exposedHeaders?: readonly string[];
}

export interface RequestHandlerDependencies {
	readonly post?: PostHandler;
	readonly readAddress: ReadAddress;
	readonly limiter?: RateLimiter;
	readonly log: Logger;
	readonly clock: Clock;
}

const MAX_BUFFERED_BYTES = 256 * 1024 * 1024;
const MAX_OPEN_REQUESTS = 10_000;
/** Routers give a request 30 s. Routes have shorter deadlines of their own: this one is for their faults. */
const ROUTE_LIMIT_MS = 28_000;
/** How long the rest of a body that is not wanted is read and forgotten, so that its sender reads the answer. */
const LINGER_MS = 1_000;

const FAILED: HttpAnswer = rpcErrorAnswer("internal", 500, "internal error");
const BUSY: HttpAnswer = rpcErrorAnswer("unavailable", 503, "internal error: too many requests under way", {
	"retry-after": "1",
});
const NOT_JSON = rpcErrorAnswer(
	"invalidRequest",
	415,
	"invalid request: content-type: expected application/json",
);
const ENCODED = rpcErrorAnswer("invalidRequest", 415, "invalid request: content-encoding: expected none");

const BEHIND = jsonAnswer(
	503,
	{ error: "expected a connection on which no answer is due" },
	{ "retry-after": "1" },
);

/** A request and its response, with what it holds. */
interface Exchange extends OpenRequest {
	readonly target: RequestTarget;
	/** True where the client waits for a word before it sends the body (`Expect: 100-continue`). */
	readonly awaitsContinue: boolean;
	/** Bytes of the body that are held for it. */
	bytes: number;
	/** Of a POST whose body was read. */
	life: ClientLife | null;
}

/** Handles the requests of one server. */
export class RequestHandler {
	readonly #route: (verb: string, path: string) => Routing;
	readonly #maxBodyBytes: number;
	readonly #tooLarge: HttpAnswer;
	readonly #takePost: PostHandler;
	readonly #maxBufferedBytes: number;
	readonly #maxOpen: number;
	readonly #exposed: string;
	readonly #dependencies: RequestHandlerDependencies;
	readonly #open = new OpenRequests<Exchange>({ onEnd: (exchange) => this.#ended(exchange) });
	/** Answers that go on, by connection: under way for minutes, they hold up no stop and leave room for requests. */
	readonly #streams = new Map<Duplex, ResponseStream>();
	#bufferedBytes = 0;
	#draining = false;
	#refusal: RpcError | null = null;
	#onIdle: (() => void)[] = [];

	constructor(options: RequestHandlerOptions, dependencies: RequestHandlerDependencies) {
		this.#route = createRouter(options.rpcPaths, options.routes);
		this.#maxBodyBytes = options.maxBodyBytes;
		const limit = `limit exceeded: the body is longer than ${options.maxBodyBytes} bytes`;
		this.#tooLarge = rpcErrorAnswer("tooLarge", 413, limit);
		this.#takePost = dependencies.post ?? (() => Promise.resolve(BUSY));
		this.#maxBufferedBytes = options.maxBufferedBytes ?? MAX_BUFFERED_BYTES;
		this.#maxOpen = options.maxOpenRequests ?? MAX_OPEN_REQUESTS;
		this.#exposed = (options.exposedHeaders ?? []).join(", ");
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

	/** Answers `request`. */
	handle(request: IncomingMessage, response: ServerResponse, awaitsContinue: boolean): void {
		// Behind an answer that goes on it would wait for that one's end, as long as its client likes.
		if (this.#streams.has(request.socket)) {
			request.socket.destroy();
			return;
		}
		const target = readTarget(request.url ?? "/");
		const exchange: Exchange = { request, response, target, awaitsContinue, bytes: 0, life: null };
		this.#open.add(exchange);
		const routing = this.#route(request.method ?? "", target.path);
		if (this.#open.size > this.#maxOpen) this.#refuse(exchange, BUSY);
		else if (routing.kind === "post") this.#post(exchange);
		else if (routing.kind === "get") this.#get(exchange, routing);
		else this.#refuse(exchange, routing.answer);
	}

	#ended(exchange: Exchange): void {
		this.#bufferedBytes -= exchange.bytes;
		exchange.life?.end();
		if (this.#open.size > 0) return;
		for (const resolve of this.#onIdle.splice(0)) resolve();
	}

	#get(exchange: Exchange, match: RouteMatch): void {
		const { readAddress, limiter } = this.#dependencies;
		const { headers, socket } = exchange.request;
		const { address } = readAddress(headers, socket.remoteAddress);
		const { weight } = match.route;
		const wait = weight === undefined ? 0 : (limiter?.takeFrom({ address, signer: null }, weight) ?? 0);
		if (wait > 0) {
			const seconds = retryAfter(wait);
			const message = `limit exceeded: try again in ${seconds} s`;
			this.#refuse(exchange, jsonAnswer(429, { error: message }, { "retry-after": seconds }));
		} else this.#runRoute(exchange, match, address);
	}

	#runRoute(exchange: Exchange, { route, params }: RouteMatch, address: string): void {
		const { log, clock } = this.#dependencies;
		const { path, search } = exchange.target;
		const { headers } = exchange.request;
		const query = new URLSearchParams(search);
		withDeadline(clock, route.path, ROUTE_LIMIT_MS, async () =>
			route.handle({ path, params, query, headers, address }),
		).then(
			(answer) => this.#answer(exchange, answer),
			(thrown: unknown) => {
				log.error("a route failed", { path: route.path, fault: safeError(thrown) });
				this.#send(exchange, jsonAnswer(500, { error: "internal error" }));
			},
		);
	}

	#post(exchange: Exchange): void {
		const { request, response, target, awaitsContinue } = exchange;
		const { headers } = request;
		const fault = this.#judge(request);
		if (fault !== null) {
			this.#refuse(exchange, fault);
			return;
		}
		if (awaitsContinue) response.writeContinue();
		const maxBytes = this.#maxBodyBytes;
		readWhole(request, { maxBytes, reserve: (bytes) => this.#reserve(exchange, bytes) }, (body) => {
			if (body === "tooLarge") this.#refuse(exchange, this.#tooLarge, true);
			else if (body === "noRoom") this.#refuse(exchange, BUSY, true);
			else {
				const socketAddress = request.socket.remoteAddress;
				const refusal = this.#refusal;
				const life = new ClientLife(body.length);
				exchange.life = life;
				this.#takePost({ target, headers, socketAddress, body, refusal, life }).then(
					(answer) => this.#send(exchange, answer),
					(thrown: unknown) => this.#failed(exchange, thrown),
				);
			}
		});
	}

	/** What is wrong with a POST before its body is read, or null. */
	#judge(request: IncomingMessage): HttpAnswer | null {
		const { headers } = request;
		if (!isJson(headers["content-type"])) return NOT_JSON;
		if (!isPlain(headers["content-encoding"])) return ENCODED;
		return (declaredBytes(request) ?? 0) > this.#maxBodyBytes ? this.#tooLarge : null;
	}

	#reserve(exchange: Exchange, bytes: number): boolean {
		if (this.#bufferedBytes + bytes > this.#maxBufferedBytes) return false;
		this.#bufferedBytes += bytes;
		exchange.bytes += bytes;
		return true;
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
		const { socket } = request;
		if (answer.open === undefined || request.method === "HEAD" || response.destroyed) {
			this.#send(exchange, answer);
			return;
		}
		const [first] = this.#open.of(socket);
		if (first !== exchange) {
			this.#send(exchange, BEHIND);
			return;
		}
		if (this.#open.of(socket).size > 1) {
			socket.destroy();
			return;
		}
		writeHead(response, answer, this.#draining, this.#exposed);
		response.flushHeaders();
		this.#open.end(exchange);
		const stream = new ResponseStream(response);
		this.#streams.set(socket, stream);
		stream.onClose(() => this.#streams.delete(socket));
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

	#send({ response }: Exchange, answer: HttpAnswer): void {
		if (response.headersSent || response.destroyed) return;
		writeHead(response, answer, this.#draining, this.#exposed);
		response.end(answer.body);
	}

	/** Answers though the body is not read. One that could be long is not waited for: the connection ends. */
	#refuse(exchange: Exchange, answer: HttpAnswer, midway = false): void {
		const { request, response, awaitsContinue } = exchange;
		const bytes = declaredBytes(request) ?? Number.POSITIVE_INFINITY;
		const small = !midway && !awaitsContinue && bytes <= this.#maxBodyBytes;
		if (small || !hasBody(request)) this.#send(exchange, answer);
		else if (!response.headersSent && !response.destroyed) {
			writeHead(response, answer, true, this.#exposed);
			// The answer is complete with this; ending it would close the connection while its sender is still
			// writing, who would then see a reset instead of the answer.
			response.write(answer.body ?? "");
			const end = (): void => {
				timer.cancel();
				if (!response.writableEnded) response.end();
			};
			const timer = this.#dependencies.clock.after(LINGER_MS, end);
			request.on("end", end);
			request.on("close", end);
			request.resume();
		}
	}
}
