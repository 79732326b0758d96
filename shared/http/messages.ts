// The bodies of requests, read whole and never beyond the limit, and answers as data: those that refuse a request before
// anybody served it, and how they are written, on a response or as raw bytes on connections for which node has none. Every
// one allows all origins (CORS).

import { type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { Clock } from "../clock.ts";
import { errorText, type RpcAnswer } from "../jsonrpc/envelope.ts";
import { RPC_ERRORS, type RpcErrorKind } from "../jsonrpc/errors.ts";
import type { OverShare } from "../shares/shares.ts";
import type { AnswerStream } from "./unreadBytes.ts";

/** An answer. */
export interface HttpAnswer {
	readonly status: number;
	/** Null for an answer without a body. */
	readonly body: string | Uint8Array | null;
	/** `application/json` unless said. */
	readonly contentType?: string;
	/** More headers, names in lower case. */
	readonly headers?: Readonly<Record<string, string>>;
	/** Where set the answer goes on, and `body` is null: called once, when the head was written; never for HEAD. */
	readonly open?: (stream: AnswerStream) => void;
}

/** Finds the page of a path, for who asks for HTML; null: there is none. */
export type PageFinder = (path: string) => HttpAnswer | null;

/** Whether a request would rather have HTML: a browser that was sent to an address. */
export function asksForPage(accept: string | undefined): boolean {
	return accept?.includes("text/html") === true;
}

/** An answer of JSON. */
export function jsonAnswer(status: number, value: unknown, headers?: Record<string, string>): HttpAnswer {
	return { status, body: JSON.stringify(value), ...(headers === undefined ? {} : { headers }) };
}

/** An answer of JSON as people read it. */
export function indented(answer: HttpAnswer): HttpAnswer {
	const { body, contentType } = answer;
	if (typeof body !== "string" || contentType !== undefined) return answer;
	return { ...answer, body: `${JSON.stringify(JSON.parse(body), null, 2)}\n` };
}

/** A JSON-RPC error with id null, for what is refused before it could be read. */
export function rpcErrorAnswer(
	kind: RpcErrorKind,
	status: number,
	message: string,
	headers?: Record<string, string>,
): HttpAnswer {
	const body = errorText(null, RPC_ERRORS[kind].code, message);
	return { status, body, ...(headers === undefined ? {} : { headers }) };
}

/** `Retry-After` for a wait of `ms`, in whole seconds, one at least. */
export function retryAfter(ms: number): string {
	return String(Math.max(1, Math.ceil(ms / 1000)));
}

/** Writes `answer`'s head; `standing` are headers that every answer of the server has, unless it has them itself. */
export function writeHead(
	response: ServerResponse,
	answer: HttpAnswer,
	close: boolean,
	standing: Readonly<Record<string, string>>,
): void {
	const { status, body, headers, open } = answer;
	const head: OutgoingHttpHeaders = {};
	if (body !== null || open !== undefined) {
		head["content-type"] = answer.contentType ?? "application/json";
	}
	if (body !== null) {
		head["content-length"] = typeof body === "string" ? Buffer.byteLength(body) : body.byteLength;
	}
	head["access-control-allow-origin"] = "*";
	Object.assign(head, standing);
	if (close) head.connection = "close";
	if (headers !== undefined) Object.assign(head, headers);
	response.writeHead(status, head);
}

/** A whole answer with a JSON body, after which the connection is closed. */
export function rawAnswer(status: number, body: string, headers: readonly string[] = []): string {
	const head = [
		`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
		"content-type: application/json",
		`content-length: ${Buffer.byteLength(body)}`,
		"access-control-allow-origin: *",
		"connection: close",
		...headers,
	];
	return `${head.join("\r\n")}\r\n\r\n${body}`;
}

/** Ends a connection with `answer`, where node has no response for it. */
export function endWith(socket: Duplex, answer: string): void {
	socket.on("error", () => socket.destroy());
	socket.end(answer, () => socket.destroy());
}

/** The answer to what is no HTTP request; `code` is node's, `headers` are lines of more headers. */
export function badRequestText(code: string | undefined, headers: readonly string[] = []): string {
	const [status, message] =
		code === "HPE_HEADER_OVERFLOW"
			? [431, "invalid request: the headers are too long"]
			: code === "ERR_HTTP_REQUEST_TIMEOUT"
				? [408, "invalid request: it took too long to arrive"]
				: [400, "invalid request: not HTTP/1.1"];
	return rawAnswer(status, errorText(null, RPC_ERRORS.invalidRequest.code, message), headers);
}

/** The bytes of `request` as if it had not asked for an upgrade, followed by `head`, what came behind it. */
export function withoutUpgrade(request: IncomingMessage, head: Buffer): Buffer {
	const lines = [`${request.method} ${request.url} HTTP/${request.httpVersion}`];
	const { rawHeaders } = request;
	for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
		const name = rawHeaders[i] ?? "";
		if (!/^(upgrade|connection|http2-settings)$/i.test(name)) lines.push(`${name}: ${rawHeaders[i + 1]}`);
	}
	return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]);
}

/** A handler is at fault itself. */
export const FAILED: HttpAnswer = rpcErrorAnswer("internal", 500, "internal error");

/** There is no room. */
export const BUSY: HttpAnswer = rpcErrorAnswer(
	"unavailable",
	503,
	"internal error: too many requests under way",
	{ "retry-after": "1" },
);

/** An answer that goes on may not stand behind another one. */
export const BEHIND: HttpAnswer = jsonAnswer(
	503,
	{ error: "expected a connection on which no answer is due" },
	{ "retry-after": "1" },
);

/** The body is longer than `maxBytes`. */
export function tooLarge(maxBytes: number): HttpAnswer {
	return rpcErrorAnswer("tooLarge", 413, `limit exceeded: the body is longer than ${maxBytes} bytes`);
}

/** The rate limit's answer to a request for a page: it may come again in `waitMs`. */
export function limited(waitMs: number): HttpAnswer {
	const seconds = retryAfter(waitMs);
	const message = `limit exceeded: try again in ${seconds} s`;
	return jsonAnswer(429, { error: message }, { "retry-after": seconds });
}

/** A client has `max` requests and websockets under way already. */
export function crowded(verb: string | undefined, max: number): HttpAnswer {
	return inVerb(verb, "rateLimit", 429, `limit exceeded: ${max} requests under way for each client`);
}

/** A client's bodies are as many bytes as one client may have under way. */
const HOARDING: HttpAnswer = rpcErrorAnswer(
	"rateLimit",
	429,
	"limit exceeded: too many bytes under way for this client",
	{ "retry-after": "1" },
);

/** The server cannot serve anything now because of `why`: in JSON-RPC where `verb` is that of JSON-RPC. */
export function notServing(verb: string | undefined, why: string): HttpAnswer {
	return inVerb(verb, "unavailable", 503, verb === "POST" ? `internal error: ${why}` : why);
}

/** In JSON-RPC where `verb` is that of JSON-RPC; it may come again in a second. */
function inVerb(verb: string | undefined, kind: RpcErrorKind, status: number, message: string): HttpAnswer {
	const headers = { "retry-after": "1" };
	return verb === "POST"
		? rpcErrorAnswer(kind, status, message, headers)
		: jsonAnswer(status, { error: message }, headers);
}

/** A call's answer as HTTP: without a text it has no body, and who shall come again is told when. */
export function httpAnswerOf({ status, text, retryMs }: RpcAnswer): HttpAnswer {
	if (status === 429 || status === 503) {
		return { status, body: text, headers: { "retry-after": retryAfter(retryMs) } };
	}
	return { status: text === null && status === 200 ? 204 : status, body: text };
}

interface BodyLimits {
	/** Bytes at most, and the answer to a body that has more. */
	readonly maxBytes: number;
	readonly tooLarge: HttpAnswer;
	/** Takes room for `bytes` more, or says against whom there is none. The caller keeps count and gives it back. */
	readonly reserve: (bytes: number) => OverShare | null;
}

/** How long the rest of a body that is not wanted is read and forgotten, so that its sender reads the answer. */
const LINGER_MS = 1_000;
const MIN_GROWN_BYTES = 16 * 1024;
const EMPTY = Buffer.alloc(0);

/** The `Content-Length` of `request` in bytes; undefined where it has none (no body, or a chunked one). */
export function declaredBytes(request: IncomingMessage): number | undefined {
	const text = request.headers["content-length"];
	return text === undefined ? undefined : Number(text);
}

/**
 * Reads the body and calls `done` once with it, or with the answer that refuses it as soon as there is one to give.
 * A client that goes away before the end is not told of: whoever holds the response learns of it there.
 */
export function readWhole(
	request: IncomingMessage,
	limits: BodyLimits,
	done: (body: Buffer | HttpAnswer) => void,
): void {
	const body = new Body(request, limits);
	request.on("data", (chunk: Buffer) => {
		if (body.fault !== null) return;
		body.take(chunk);
		if (body.fault === null) return;
		request.pause();
		done(body.fault);
	});
	request.on("end", () => {
		if (body.fault === null) done(body.whole());
	});
}

/** A body as far as it has come. */
class Body {
	readonly #request: IncomingMessage;
	readonly #limits: BodyLimits;
	#bytes: Buffer = EMPTY;
	#length = 0;
	fault: HttpAnswer | null = null;

	constructor(request: IncomingMessage, limits: BodyLimits) {
		this.#request = request;
		this.#limits = limits;
	}

	take(chunk: Buffer): void {
		const total = this.#length + chunk.length;
		if (total > this.#limits.maxBytes) this.fault = this.#limits.tooLarge;
		else {
			const refusal = this.#limits.reserve(chunk.length);
			if (refusal === null) this.#keep(chunk, total);
			else this.fault = refusal === "client" ? HOARDING : BUSY;
		}
	}

	#keep(chunk: Buffer, total: number): void {
		// One piece, as nearly always, is kept as it is. More are copied together at once: a body that comes byte by
		// byte would otherwise cost a hundred times its length in objects.
		if (this.#length === 0) this.#bytes = chunk;
		else this.#append(chunk, total);
		this.#length = total;
	}

	whole(): Buffer {
		return this.#length === this.#bytes.length ? this.#bytes : this.#bytes.subarray(0, this.#length);
	}

	#append(chunk: Buffer, total: number): void {
		if (total > this.#bytes.length) {
			const room = Math.max(declaredBytes(this.#request) ?? 0, total * 2, MIN_GROWN_BYTES);
			const grown = Buffer.allocUnsafe(Math.min(room, this.#limits.maxBytes));
			this.#bytes.copy(grown, 0, 0, this.#length);
			this.#bytes = grown;
		}
		chunk.copy(this.#bytes, this.#length);
	}
}

/** Ends `response`, whose head was written, with `text`, although the rest of the request's body is not wanted. */
export function endUnread(
	request: IncomingMessage,
	response: ServerResponse,
	text: string | Uint8Array | null,
	clock: Clock,
): void {
	// The answer is complete with this; ending it would close the connection while its sender is still writing, who
	// would then see a reset instead of the answer.
	response.write(text ?? "");
	const end = (): void => {
		timer.cancel();
		if (!response.writableEnded) response.end();
	};
	const timer = clock.after(LINGER_MS, end);
	request.on("end", end);
	request.on("close", end);
	request.resume();
}

/** Whether `request` has a body at all. */
export function hasBody(request: IncomingMessage): boolean {
	return request.headers["transfer-encoding"] !== undefined || (declaredBytes(request) ?? 0) > 0;
}

/** Whether a `Content-Type` may be JSON: absent, `application/json` or `application/…+json`, parameters or not. */
function isJson(contentType: string | undefined): boolean {
	if (contentType === undefined || contentType === "" || contentType === "application/json") return true;
	return /^\s*application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(contentType);
}

/** Whether a `Content-Encoding` leaves the body as it is. */
function isPlain(contentEncoding: string | undefined): boolean {
	return contentEncoding === undefined || contentEncoding === "" || /^identity$/i.test(contentEncoding);
}

const NOT_JSON = rpcErrorAnswer(
	"invalidRequest",
	415,
	"invalid request: content-type: expected application/json",
);
const ENCODED = rpcErrorAnswer("invalidRequest", 415, "invalid request: content-encoding: expected none");

/** What is wrong with a POST of JSON before its body is read, or null; `long` is the answer to one that is too long. */
export function judgePost(request: IncomingMessage, maxBytes: number, long: HttpAnswer): HttpAnswer | null {
	const { headers } = request;
	if (!isJson(headers["content-type"])) return NOT_JSON;
	if (!isPlain(headers["content-encoding"])) return ENCODED;
	return (declaredBytes(request) ?? 0) > maxBytes ? long : null;
}
