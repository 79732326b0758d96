// The HTTP client of one upstream. A request's result is the response's bytes, or why there is none and whether a byte may have
// been sent. It pools connections and enforces deadlines; it does not interpret answers and never retries.

import { type LookupFunction, Socket } from "node:net";
import { buildConnector, type Dispatcher, Pool } from "undici";
import type { Clock, Timer } from "../../shared/clock.ts";
import { joinChunks } from "../../shared/jsonrpc/longText.ts";
import { type Symptom, systemCode } from "../../shared/outgoing/advice.ts";
import {
	authorizationOf,
	encodingsOf,
	firstOf,
	OUTGOING_HEADERS,
	TooLargeError,
	unpacked,
} from "../../shared/outgoing/headers.ts";
import { LOOP_HEADER, LOOP_STATUS } from "../domain/loops.ts";
import type { Abort, Post, Transport } from "../domain/ports.ts";
import type { ExchangeResult, Fault } from "../domain/request.ts";

export interface TransportOptions {
	/** An http(s) URL; its path, query and credentials are used and never printed. */
	readonly url: string;
	/** The most connections; further requests wait for one, within their deadlines. */
	readonly connections?: number;
	readonly maxAnswerBytes?: number;
	/** Ms for connecting, TLS included; then the request is `refused`. */
	readonly connectMs?: number;
	/** This boost's entry in `Via`, by which it knows its own requests if they come back. */
	readonly via?: string;
}

export interface TransportDependencies {
	readonly clock: Clock;
	/** Finds the upstream's addresses. Default: Node's own. */
	readonly lookup?: LookupFunction | undefined;
	/** Called for each exchange that failed, and for each answer that is not 200 with JSON. */
	readonly onSymptom?: ((symptom: Symptom) => void) | undefined;
}

const CONNECTIONS = 256;
/** A block with all its transactions is some MiB, an answer to a wide eth_getLogs some more. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
/** A lost SYN is sent again after one second, which must not count as an outage. */
const CONNECT_MS = 2_500;
/** How long an idle connection is kept, in ms. */
const IDLE_MS = 30_000;
/** Header values that HTTP can't carry are left out: undici would reject the request, which would count as a fault. */
const UNWRITABLE_HEADER = /[^\t\x20-\x7e\x80-\xff]/;

/** A transport over HTTP/1.1. `close` ends its connections; requests in progress end as `cut`. */
export class HttpTransport implements Transport {
	#pool: Pool;
	/** The current pool, and replaced ones until their last request has ended. */
	readonly #pools = new Set<Pool>();
	readonly #newPool: () => Pool;
	readonly #url: UpstreamUrl;
	readonly #clock: Clock;
	readonly #onSymptom: (symptom: Symptom) => void;
	readonly #maxAnswerBytes: number;
	readonly #isClosed = () => this.#closed;
	readonly #getHeaders: string[];
	readonly #postHeaders: string[];
	#closed = false;

	constructor(options: TransportOptions, dependencies: TransportDependencies) {
		const connectMs = options.connectMs ?? CONNECT_MS;
		this.#url = readUpstreamUrl(options.url);
		this.#clock = dependencies.clock;
		this.#onSymptom = dependencies.onSymptom ?? (() => {});
		this.#maxAnswerBytes = options.maxAnswerBytes ?? MAX_ANSWER_BYTES;
		const { authorization } = this.#url;
		this.#getHeaders = Object.entries(OUTGOING_HEADERS).flat();
		if (options.via !== undefined) this.#getHeaders.push("via", options.via);
		if (authorization !== null) this.#getHeaders.push("authorization", authorization);
		this.#postHeaders = ["content-type", "application/json", ...this.#getHeaders];
		this.#newPool = () => {
			const pool = new Pool(this.#url.origin, {
				connections: options.connections ?? CONNECTIONS,
				// One request per connection, so that aborting one does not end another.
				pipelining: 1,
				allowH2: false,
				connect: timedConnector(connectMs, dependencies),
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

	post({ target, body, headers, deadlineMs, abort }: Post): Promise<ExchangeResult> {
		return this.#exchange("POST", target, withMore(this.#postHeaders, headers), body, deadlineMs, abort);
	}

	get(target: string, deadlineMs: number): Promise<ExchangeResult> {
		return this.#exchange("GET", target, this.#getHeaders, null, deadlineMs, undefined);
	}

	/**
	 * Uses new connections from now on; the old ones end with their requests. To be called when an upstream is available again:
	 * it may never read from the connections that it accepted while it hung.
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

	#exchange(
		method: "GET" | "POST",
		target: string,
		headers: string[],
		body: Buffer | string | null,
		deadlineMs: number,
		abort: Post["abort"],
	): Promise<ExchangeResult> {
		if (this.#closed || abort?.isAborted === true) return Promise.resolve({ kind: "cut", sent: false });
		if (deadlineMs <= 0) return Promise.resolve({ kind: "failed", fault: "timeout", sent: false });
		return new Promise((resolve) => {
			// Not put together by spreads: for each request those cost as much as all else here.
			const exchange = new TransportExchange({
				deadlineMs,
				maxBytes: this.#maxAnswerBytes,
				abort,
				clock: this.#clock,
				onSymptom: this.#onSymptom,
				isClosed: this.#isClosed,
				resolve,
			});
			this.#pool.dispatch({ method, path: this.#url.pathOf(target), headers, body }, exchange);
		});
	}
}

/** undici's connector with our clock: its own timers are half a second off. */
function timedConnector(
	connectMs: number,
	{ clock, lookup }: TransportDependencies,
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
			if (socket instanceof Socket) socket.destroy(new Error("not connected in time"));
		});
	};
}

function withMore(base: string[], more: Readonly<Record<string, string>>): string[] {
	let headers = base;
	for (const name in more) {
		const value = more[name];
		if (value === undefined || UNWRITABLE_HEADER.test(value)) continue;
		if (headers === base) headers = base.slice();
		headers.push(name, value);
	}
	return headers;
}

interface ExchangeParts {
	/** Ms for connecting, headers and body together. */
	readonly deadlineMs: number;
	/** The largest answer. */
	readonly maxBytes: number;
	readonly abort: Abort | undefined;
	readonly clock: Clock;
	readonly onSymptom: (symptom: Symptom) => void;
	/** True once the transport was closed, which then is the cause of any end. */
	readonly isClosed: () => boolean;
	readonly resolve: (result: ExchangeResult) => void;
}

type Controller = Dispatcher.DispatchController;
type Headers = Record<string, string | string[] | undefined>;

/** Thrown into undici to keep it from writing. */
const ABANDONED = new Error("abandoned");

/**
 * A handler for undici, which calls `onRequestStart` synchronously before it writes the first byte (see writeH1 in its
 * client-h1.js). If it was not called, or throws, no byte was sent and the connection can be used again.
 */
class TransportExchange implements Dispatcher.DispatchHandler {
	readonly #parts: ExchangeParts;
	readonly #timer: Timer;
	readonly #unlisten: (() => void) | undefined;
	#controller: Controller | null = null;
	#isFinished = false;
	#sent = false;
	#status = 0;
	#retryAfterS: number | undefined;
	#type: string | undefined;
	#encoding: string | undefined;
	#location: string | undefined;
	#chunks: Buffer[] = [];
	#bytes = 0;

	constructor(parts: ExchangeParts) {
		this.#parts = parts;
		this.#timer = parts.clock.after(parts.deadlineMs, () => this.#fail("timeout"));
		this.#unlisten = parts.abort?.onAbort(() => this.#finish({ kind: "cut", sent: this.#sent }));
	}

	onRequestStart(controller: Controller): void {
		// A second start would send the request twice.
		if (this.#isFinished || this.#sent) throw ABANDONED;
		this.#sent = true;
		this.#controller = controller;
	}

	onResponseStart(_: Controller, status: number, headers: Headers): void {
		// Informational responses come before the answer.
		if (status < 200 || this.#isFinished) return;
		this.#status = status;
		this.#retryAfterS = secondsOf(firstOf(headers["retry-after"]), this.#parts.clock);
		this.#type = firstOf(headers["content-type"]);
		this.#encoding = firstOf(headers["content-encoding"]);
		this.#location = firstOf(headers.location);
		if (status === LOOP_STATUS && headers[LOOP_HEADER] !== undefined) this.#fail("loop");
		else if (Number(firstOf(headers["content-length"])) > this.#parts.maxBytes) this.#fail("tooLarge");
	}

	onResponseData(_: Controller, chunk: Buffer): void {
		if (this.#isFinished) return;
		this.#bytes += chunk.length;
		if (this.#bytes > this.#parts.maxBytes) this.#fail("tooLarge");
		else this.#chunks.push(chunk);
	}

	onResponseEnd(): void {
		// The connection is free for other requests and must not be aborted.
		this.#controller = null;
		const body = joinChunks(this.#chunks, this.#bytes);
		if (body instanceof Promise) void body.then((whole) => this.#decode(whole));
		else this.#decode(body);
	}

	/** No encoding was asked for, but proxies in between use one all the same. */
	#decode(body: Buffer): void {
		if (this.#encoding === undefined) {
			this.#answered(body);
			return;
		}
		unpacked(body, encodingsOf(this.#encoding), this.#parts.maxBytes).then(
			(plain) => {
				this.#encoding = undefined;
				this.#answered(plain);
			},
			(thrown: unknown) => this.#fail(thrown instanceof TooLargeError ? "tooLarge" : "notJsonRpc"),
		);
	}

	#answered(body: Buffer): void {
		this.#finish({ kind: "answered", status: this.#status, retryAfterS: this.#retryAfterS, body });
		if (this.#status !== 200 || !isJson(this.#type)) this.#note(undefined);
	}

	#note(reason: string | undefined): void {
		const isAnswer = this.#status !== 0;
		this.#parts.onSymptom({
			status: isAnswer ? this.#status : undefined,
			type: this.#type,
			encoding: this.#encoding,
			location: this.#location,
			reason: isAnswer ? undefined : reason,
		});
	}

	onResponseError(_: Controller, error: Error): void {
		this.#controller = null;
		if (this.#parts.isClosed()) this.#finish({ kind: "cut", sent: this.#sent });
		else this.#fail(this.#sent ? faultOf(error) : "refused", systemCode(error));
	}

	/** `reason`: the system's error code, if there is one. */
	#fail(fault: Fault, reason?: string): void {
		if (!this.#isFinished) this.#note(reason);
		this.#finish({ kind: "failed", fault, sent: this.#sent });
	}

	#finish(result: ExchangeResult): void {
		if (this.#isFinished) return;
		this.#isFinished = true;
		this.#timer.cancel();
		this.#unlisten?.();
		this.#chunks = [];
		this.#parts.resolve(result);
		// Ends the connection: the rest of the answer would be read as that of the next request.
		this.#controller?.abort(ABANDONED);
		this.#controller = null;
	}
}

/** The fault for an error after the start. undici's parser errors have no codes, so their name is checked. */
function faultOf(error: Error): Fault {
	const { code, name, data } = error as { code?: unknown; name: string; data?: unknown };
	// With data the bytes were not HTTP; without, the answer ended early.
	const isNoHttp = name === "HTTPParserError" && data !== undefined && data !== "";
	return isNoHttp || code === "UND_ERR_HEADERS_OVERFLOW" ? "notJsonRpc" : "reset";
}

/** Some servers name no type. */
function isJson(type: string | undefined): boolean {
	return type === undefined || type.startsWith("application/json");
}

/** Seconds of a `Retry-After`: a number, or a date (https://www.rfc-editor.org/rfc/rfc9110#field.retry-after). */
function secondsOf(value: string | undefined, clock: Clock): number | undefined {
	if (value === undefined) return undefined;
	const text = value.trim();
	if (/^\d{1,9}$/.test(text)) return Number(text);
	const at = /[a-z]/i.test(text) ? Date.parse(text) : Number.NaN;
	return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - clock.now()) / 1_000));
}

/** Characters that undici rejects in a request line, or that Node would not write as one byte. */
const UNWRITABLE = /[^\x21-\xff]/g;

/** A URL in parts. */
export interface UpstreamUrl {
	/** Scheme, host and port. */
	readonly origin: string;
	/** `Basic …`, or null if the URL has no credentials. */
	readonly authorization: string | null;
	/**
	 * Path and query of a request to `target`: its path is appended to the URL's, and the queries are joined. "" and "/" are
	 * the URL itself; "?…" only adds a query.
	 */
	pathOf(target: string): string;
}

/** Parses a URL. Throws TypeError if `text` is none. */
export function readUpstreamUrl(text: string): UpstreamUrl {
	const url = new URL(text);
	const { origin, pathname, search } = url;
	const stem = pathname.replace(/\/+$/, "");
	const own = search.slice(1);
	return {
		origin,
		authorization: authorizationOf(url),
		pathOf(target) {
			const mark = target.indexOf("?");
			const path = mark === -1 ? target : target.slice(0, mark);
			const query = mark === -1 ? "" : target.slice(mark + 1);
			const behind = path.startsWith("/") ? stem + path : `${stem}/${path}`;
			const whole = path === "" || path === "/" ? pathname : behind;
			const joined = own === "" || query === "" ? own + query : `${own}&${query}`;
			return writable(joined === "" ? whole : `${whole}?${joined}`);
		},
	};
}

/** Encodes characters that can't be sent. Queries come from clients and must not cause faults. */
function writable(path: string): string {
	if (path.search(UNWRITABLE) === -1) return path;
	return path.toWellFormed().replace(/[^\x21-\xff]+/g, encodeURIComponent);
}
