// The only HTTP client: requests to nodes, builders, relays and fallbacks. A request's result is
// the answer, or the fault and whether any part of the request may have been sent. The client pools
// connections and enforces deadlines and sizes. It does not interpret answers and never retries.

import { type LookupFunction, Socket } from "node:net";
import type { Dispatcher } from "undici";
import buildConnector from "undici/lib/core/connect.js";
import Pool from "undici/lib/dispatcher/pool.js";
import type { Clock, Timer } from "../clock.ts";
import { joinChunks } from "../longText.ts";
import { type Symptom, systemCode } from "./advice.ts";
import { encodingsOf, firstOf, OUTGOING_HEADERS, TooLargeError, unpacked } from "./headers.ts";
import { readUpstreamUrl, type UpstreamUrl } from "./upstreamUrl.ts";

/** Header names in lower case. */
type Headers = Readonly<Record<string, string>>;

export interface HttpClientOptions {
	/** An http(s) URL; its path, query and credentials are used and never printed. */
	readonly url: string;
	/** Maximum connections. Further requests wait for one, within their deadlines. */
	readonly connections: number;
	/** Default 64 MiB. */
	readonly maxAnswerBytes?: number | undefined;
	/** Ms for connecting, TLS included, until it fails as `noConnection`. Default 10 s. */
	readonly connectMs?: number | undefined;
	/** Headers of each request, beside our name. */
	readonly headers?: Headers | undefined;
}

export interface HttpClientDependencies {
	readonly clock: Clock;
	/** Finds the upstream's addresses. Default: Node's own. */
	readonly lookup?: LookupFunction | undefined;
}

/** A body; a long one is made while it is sent. */
export type RequestBody = Buffer | string | (AsyncIterable<string> & { readonly byteLength: number });

export interface HttpRequest {
	readonly method: "GET" | "POST";
	/**
	 * Path and query, appended to the client's URL: "/fast?refundRecipient=0x…"; "" is the URL
	 * itself.
	 */
	readonly target: string;
	readonly headers: Headers;
	/** JSON; null for none. */
	readonly body: RequestBody | null;
	/** Ms for connecting, headers and body together, until it fails as `timeout`. */
	readonly deadlineMs: number;
	readonly abort?: Abort | undefined;
	/** Maximum bytes of the answer, instead of the client's own limit. */
	readonly maxBytes?: number | undefined;
	readonly check?: StartCheck | undefined;
	/** Called when the answer begins. */
	readonly onBegin?: (() => void) | undefined;
	/** Receives the answer piece by piece. The result then has no body. */
	readonly stream?: StreamReader | undefined;
}

export interface StartCheck {
	/**
	 * Called right before the request is written. If it returns false, the request fails as
	 * `unsent`. A request may have waited for a connection, and the process may have been
	 * suspended meanwhile.
	 */
	shouldSend?(): boolean;
	/** Called when the first byte is about to be written. */
	onSent?(): void;
}

/** Receives an answer that may continue for long. */
export interface StreamReader {
	/** Whether to read on. If not, the request ends here, as answered. */
	readonly accepts: (head: HttpHead) => boolean;
	readonly onBytes: (bytes: Buffer) => void;
	/**
	 * Ms without any bytes until it fails as `timeout`. The first bytes have the request's
	 * deadline.
	 */
	readonly silenceMs: number;
}

/** Signals a request that it must end. */
export interface Abort {
	readonly isAborted: boolean;
	/**
	 * Calls `listener` once on abort, at once if already aborted. Returns an unsubscribe function.
	 */
	onAbort(listener: () => void): () => void;
}

export interface HttpHead {
	readonly status: number;
	readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** A whole answer, unpacked. */
export interface HttpAnswered extends HttpHead {
	readonly kind: "answered";
	readonly body: Buffer;
}

/**
 * Why there is no usable answer. `noConnection`: no connection could be made. `reset`: it ended
 * midway. `timeout`: none before the deadline. `unreadable`: no HTTP, or in an encoding that can't
 * be read. `tooLarge`: more bytes than the limit. `unsent`: `shouldSend` returned false.
 */
export type HttpFault = "noConnection" | "reset" | "timeout" | "unreadable" | "tooLarge" | "unsent";

export interface HttpFailed {
	readonly kind: "failed";
	readonly fault: HttpFault;
	/** Whether bytes of the request may have been sent, so that the upstream may have it. */
	readonly sent: boolean;
	/** The head of the answer; null if none arrived. */
	readonly head: HttpHead | null;
	/** The system's error code ("ECONNREFUSED"), if there is one. */
	readonly reason: string | undefined;
}

/**
 * Ended by the {@link Abort} of the request, or because the client was closed. Not the upstream's
 * fault.
 */
export interface HttpAborted {
	readonly kind: "aborted";
	/** As in {@link HttpFailed}. */
	readonly sent: boolean;
}

export type HttpResult = HttpAnswered | HttpFailed | HttpAborted;

/** The symptoms, for {@link advice}. */
export function symptomOf(result: HttpAnswered | HttpFailed): Symptom {
	const head = result.kind === "answered" ? result : result.head;
	if (head === null) return { reason: result.kind === "failed" ? result.reason : undefined };
	const { status, headers } = head;
	const type = firstOf(headers["content-type"]);
	const location = firstOf(headers.location);
	if (result.kind === "answered") return { status, type, location };
	return { status, type, encoding: firstOf(headers["content-encoding"]), location };
}

/**
 * A block with all its transactions has some MiB, and an answer to a wide eth_getLogs a few more.
 */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
const CONNECT_MS = 10_000;
/** How long an idle connection is kept, in ms. */
const IDLE_MS = 30_000;
/**
 * Header values that HTTP can't carry are omitted. undici would reject the request, which would
 * count as a fault.
 */
const UNWRITABLE_HEADER = /[^\t\x20-\x7e\x80-\xff]/;

/**
 * A client of one upstream over HTTP/1.1. `close` ends its connections; requests in progress end as
 * `aborted`.
 */
export class HttpClient {
	/** Host and port of the upstream. */
	readonly host: string;
	#pool: Pool;
	/** The current pool, and replaced ones until their last request has ended. */
	readonly #pools = new Set<Pool>();
	readonly #newPool: () => Pool;
	readonly #url: UpstreamUrl;
	readonly #clock: Clock;
	readonly #maxAnswerBytes: number;
	readonly #isClosed = () => this.#closed;
	readonly #getHeaders: string[];
	readonly #postHeaders: string[];
	#closed = false;

	constructor(options: HttpClientOptions, dependencies: HttpClientDependencies) {
		this.#url = readUpstreamUrl(options.url);
		this.host = this.#url.host;
		this.#clock = dependencies.clock;
		this.#maxAnswerBytes = options.maxAnswerBytes ?? MAX_ANSWER_BYTES;
		const { authorization } = this.#url;
		this.#getHeaders = Object.entries({ ...OUTGOING_HEADERS, ...options.headers }).flat();
		if (authorization !== null) this.#getHeaders.push("authorization", authorization);
		this.#postHeaders = ["content-type", "application/json", ...this.#getHeaders];
		this.#newPool = () => {
			const pool = new Pool(this.#url.origin, {
				connections: options.connections,
				// One request per connection, so that aborting one does not end another.
				pipelining: 1,
				allowH2: false,
				connect: timedConnector(options.connectMs ?? CONNECT_MS, dependencies),
				keepAliveTimeout: IDLE_MS,
				keepAliveMaxTimeout: IDLE_MS,
				// Each request has a deadline of its own instead.
				headersTimeout: 0,
				bodyTimeout: 0,
			});
			this.#pools.add(pool);
			return pool;
		};
		this.#pool = this.#newPool();
	}

	/** Never rejects. */
	request(request: HttpRequest): Promise<HttpResult> {
		const { method, target, headers: more, body, deadlineMs, abort } = request;
		if (this.#closed || abort?.isAborted === true) return Promise.resolve({ kind: "aborted", sent: false });
		if (deadlineMs <= 0) return Promise.resolve(TOO_LATE);
		const isLong = body !== null && typeof body !== "string" && !Buffer.isBuffer(body);
		const added = isLong ? { ...more, "content-length": String(body.byteLength) } : more;
		const headers = withMore(method === "POST" ? this.#postHeaders : this.#getHeaders, added);
		return new Promise((resolve) => {
			const handler = new RequestHandler(request, {
				maxBytes: request.maxBytes ?? this.#maxAnswerBytes,
				clock: this.#clock,
				isClosed: this.#isClosed,
				resolve,
			});
			// undici sends any iterable, which its types don't say.
			const sent = body as NonNullable<Dispatcher.DispatchOptions["body"]> | null;
			this.#pool.dispatch({ method, path: this.#url.pathOf(target), headers, body: sent }, handler);
		});
	}

	/**
	 * Uses new connections from now on. The old ones end with their requests. Must be called when
	 * an upstream is available again, since it may never read from connections that it accepted
	 * while it hung.
	 */
	renew(): void {
		if (this.#closed) return;
		const old = this.#pool;
		this.#pool = this.#newPool();
		old.close(() => this.#pools.delete(old));
	}

	async close(): Promise<void> {
		this.#closed = true;
		await Promise.all([...this.#pools].map((pool) => pool.destroy()));
	}
}

const TOO_LATE: HttpFailed = { kind: "failed", fault: "timeout", sent: false, head: null, reason: undefined };

/** undici's connector with our clock, since its own timers are half a second off. */
function timedConnector(
	connectMs: number,
	{ clock, lookup }: HttpClientDependencies,
): buildConnector.connector {
	const connect: (...args: Parameters<buildConnector.connector>) => unknown = buildConnector({
		timeout: 0,
		allowH2: false,
		// By default Node tries the next address after 250 ms, which is too short for distant hosts.
		autoSelectFamily: true,
		autoSelectFamilyAttemptTimeout: Math.max(10, Math.min(1_000, Math.floor(connectMs / 2))),
		...(lookup === undefined ? {} : { lookup }),
	});
	return (options, callback) => {
		const socket = connect(options, (...result) => {
			timer.cancel();
			callback(...result);
		});
		const timer = clock.after(connectMs, () => {
			if (socket instanceof Socket) socket.destroy(new ConnectTimeout());
		});
	};
}

class ConnectTimeout extends Error {
	readonly code = "ETIMEDOUT";
	constructor() {
		super("connection timed out");
		this.name = "ConnectTimeout";
	}
}

function withMore(base: string[], more: Headers): string[] {
	let headers = base;
	for (const name in more) {
		const value = more[name];
		if (value === undefined || UNWRITABLE_HEADER.test(value)) continue;
		if (headers === base) headers = base.slice();
		headers.push(name, value);
	}
	return headers;
}

interface HandlerOptions {
	/** The largest answer. */
	readonly maxBytes: number;
	readonly clock: Clock;
	/** True once the client was closed. That is then the cause of any end. */
	readonly isClosed: () => boolean;
	readonly resolve: (result: HttpResult) => void;
}

type Controller = Dispatcher.DispatchController;

/** Thrown into undici to keep it from writing. */
const ABANDONED = new Error("abandoned");

/**
 * A handler for undici, which calls `onRequestStart` synchronously before it writes the first byte
 * (see writeH1 in its client-h1.js). If it was not called, or throws, no byte was sent and the
 * connection can be reused.
 */
class RequestHandler implements Dispatcher.DispatchHandler {
	readonly #request: HttpRequest;
	readonly #options: HandlerOptions;
	readonly #unlisten: (() => void) | undefined;
	/** In monotonic ms. */
	readonly #until: number;
	#timer: Timer;
	#controller: Controller | null = null;
	#isFinished = false;
	#sent = false;
	#head: HttpHead | null = null;
	#chunks: Buffer[] = [];
	#bytes = 0;

	constructor(request: HttpRequest, options: HandlerOptions) {
		this.#request = request;
		this.#options = options;
		this.#until = options.clock.monotonic() + request.deadlineMs;
		this.#timer = options.clock.after(request.deadlineMs, () => this.#fail("timeout"));
		this.#unlisten = request.abort?.onAbort(() => this.#finish({ kind: "aborted", sent: this.#sent }));
	}

	onRequestStart(controller: Controller): void {
		// A second start would send the request twice.
		if (this.#isFinished || this.#sent) throw ABANDONED;
		// If the process was suspended, a connection that was made meanwhile is noticed before the
		// deadline.
		const isLate = this.#options.clock.monotonic() > this.#until;
		if (isLate || this.#request.check?.shouldSend?.() === false) {
			this.#fail(isLate ? "timeout" : "unsent");
			throw ABANDONED;
		}
		this.#sent = true;
		this.#controller = controller;
		this.#request.check?.onSent?.();
	}

	onResponseStart(_: Controller, status: number, headers: HttpHead["headers"]): void {
		// Informational responses come before the answer.
		if (status < 200 || this.#isFinished) return;
		this.#head = { status, headers };
		const { stream, onBegin } = this.#request;
		onBegin?.();
		if (stream !== undefined) {
			if (!stream.accepts(this.#head)) this.#answered(this.#head, NOTHING);
		} else if (Number(firstOf(headers["content-length"])) > this.#options.maxBytes) this.#fail("tooLarge");
	}

	onResponseData(_: Controller, chunk: Buffer): void {
		if (this.#isFinished) return;
		const { stream } = this.#request;
		if (stream !== undefined) {
			this.#timer.cancel();
			this.#timer = this.#options.clock.after(stream.silenceMs, () => this.#fail("timeout"));
			stream.onBytes(chunk);
			return;
		}
		this.#bytes += chunk.length;
		if (this.#bytes > this.#options.maxBytes) this.#fail("tooLarge");
		else this.#chunks.push(chunk);
	}

	onResponseEnd(): void {
		// The connection is free for other requests and must not be aborted.
		this.#controller = null;
		const head = this.#head;
		if (head === null) return;
		const body = joinChunks(this.#chunks, this.#bytes);
		if (body instanceof Promise) void body.then((whole) => this.#unpack(head, whole));
		else this.#unpack(head, body);
	}

	onResponseError(_: Controller, error: Error): void {
		this.#controller = null;
		if (this.#options.isClosed()) this.#finish({ kind: "aborted", sent: this.#sent });
		else this.#fail(this.#sent ? faultOf(error) : "noConnection", systemCode(error));
	}

	/** We request no encoding, but proxies in between use one all the same. */
	#unpack(head: HttpHead, body: Buffer): void {
		const encoding = firstOf(head.headers["content-encoding"]);
		if (encoding === undefined) {
			this.#answered(head, body);
			return;
		}
		unpacked(body, encodingsOf(encoding), this.#options.maxBytes).then(
			(plain) => this.#answered(head, plain),
			(thrown: unknown) => this.#fail(thrown instanceof TooLargeError ? "tooLarge" : "unreadable"),
		);
	}

	#answered({ status, headers }: HttpHead, body: Buffer): void {
		this.#finish({ kind: "answered", status, headers, body });
	}

	/** `reason`: the system's error code, if there is one. */
	#fail(fault: HttpFault, reason?: string): void {
		this.#finish({ kind: "failed", fault, sent: this.#sent, head: this.#head, reason });
	}

	#finish(result: HttpResult): void {
		if (this.#isFinished) return;
		this.#isFinished = true;
		this.#timer.cancel();
		this.#unlisten?.();
		this.#chunks = [];
		this.#options.resolve(result);
		// Ends the connection: the rest of the answer would be read as that of the next request.
		this.#controller?.abort(ABANDONED);
		this.#controller = null;
	}
}

const NOTHING = Buffer.alloc(0);

/**
 * The fault for an error after the start. undici's parser errors have no codes, so their name is
 * checked.
 */
function faultOf(error: Error): HttpFault {
	const { code, name, data } = error as { code?: unknown; name: string; data?: unknown };
	// With data, the bytes were not HTTP. Without, the answer ended early.
	const isNoHttp = name === "HTTPParserError" && data !== undefined && data !== "";
	return isNoHttp || code === "UND_ERR_HEADERS_OVERFLOW" ? "unreadable" : "reset";
}
