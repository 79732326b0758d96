// Reads request bodies within limits. Makes and writes answers: on a response, or as raw bytes if
// Node gives no response. Every answer allows all origins (CORS).

import { type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { Clock } from "../clock.ts";
import { errorText, rateLimited, refusedAnswer, type WrittenAnswer } from "../jsonrpc/answers.ts";
import { RPC_ERRORS, RpcError, type RpcErrorKind } from "../jsonrpc/errors.ts";
import { REQUEST_ID } from "../requestId.ts";
import type { OverShare } from "../shares/shares.ts";
import type { AnswerStream } from "./unreadBytes.ts";

/** Header names are in lower case. */
type Headers = Readonly<Record<string, string>>;

export interface HttpAnswer {
	readonly status: number;
	/** Null: no body. */
	readonly body: string | Uint8Array | null;
	/** Default `application/json`. */
	readonly contentType?: string;
	readonly headers?: Headers;
	/**
	 * For a streamed answer, whose `body` is null: called once after the head was written, never for
	 * HEAD.
	 */
	readonly open?: (stream: AnswerStream) => void;
	/**
	 * The error in `body`, if the answer refuses a JSON-RPC request before its body is read. Its
	 * calls are then answered by their ids if possible.
	 */
	readonly refusal?: RpcError;
}

/** Header of an answer whose form depends on `Accept`: caches must keep the forms apart. */
export const VARY_ACCEPT = { vary: "accept" } as const;

/** The HTML page of a path, or null. */
export type PageFinder = (path: string) => HttpAnswer | null;

/**
 * Whether the `Accept` header names HTML, as browsers do when they navigate, and does not prefer
 * JSON.
 */
export function asksForPage(accept = ""): boolean {
	const html = weightOf(accept, "text/html");
	return html > 0 && html >= weightOf(accept, "application/json");
}

/**
 * The quality of a media type in an `Accept` header: 1 by default, 0 if the header does not name
 * the type.
 */
function weightOf(accept: string, type: string): number {
	for (const range of accept.toLowerCase().split(",")) {
		const [name = "", ...parameters] = range.split(";");
		if (name.trim() !== type) continue;
		const weight = parameters.find((one) => one.trim().startsWith("q="));
		return weight === undefined ? 1 : Number(weight.trim().slice(2));
	}
	return 0;
}

export function jsonAnswer(status: number, value: unknown, headers: Headers = {}): HttpAnswer {
	return { status, body: JSON.stringify(value), headers };
}

/** The answer with its JSON indented, for people. */
export function indented(answer: HttpAnswer): HttpAnswer {
	const { body, contentType } = answer;
	if (typeof body !== "string" || contentType !== undefined) return answer;
	return { ...answer, body: `${JSON.stringify(JSON.parse(body), null, 2)}\n` };
}

/**
 * A JSON-RPC error with id null, for a request whose body is not read. The HTTP status is the
 * kind's unless it is given.
 */
export function rpcErrorAnswer(
	kind: RpcErrorKind,
	message: string,
	headers: Headers = {},
	status: number = RPC_ERRORS[kind].status,
): HttpAnswer {
	return { status, body: errorText(null, RPC_ERRORS[kind].code, message), headers };
}

/** The header `Retry-After` for `ms`: whole seconds, at least one. */
export function retryAfter(ms: number): string {
	return String(Math.max(1, Math.ceil(ms / 1000)));
}

/**
 * Writes `answer`'s head, with the request's id. No cache may keep an answer unless the answer
 * allows it. `standing`: default headers of the server, which the answer may override.
 */
export function writeHead(
	response: ServerResponse,
	answer: HttpAnswer,
	close: boolean,
	standing: Headers,
	requestId: string,
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
	// A cache would return an old status, or another client's. No cache keeps an answer to a POST.
	if (response.req.method !== "POST") head["cache-control"] = "no-store";
	head[REQUEST_ID] = requestId;
	Object.assign(head, standing);
	if (close) head.connection = "close";
	if (headers !== undefined) Object.assign(head, headers);
	response.writeHead(status, head);
}

/** The bytes of an answer with a JSON body and `connection: close`. */
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

/** Sends `answer` on a connection without a response object, and closes it. */
export function endWith(socket: Duplex, answer: string): void {
	socket.on("error", () => socket.destroy());
	socket.end(answer, () => socket.destroy());
}

/**
 * The answer to an invalid HTTP request; `code` is Node's error code, `headers` are more header
 * lines.
 */
export function badRequestText(code: string | undefined, headers: readonly string[] = []): string {
	const [status, message] =
		code === "HPE_HEADER_OVERFLOW"
			? [431, "invalid request: the headers are too long"]
			: code === "ERR_HTTP_REQUEST_TIMEOUT"
				? [408, "invalid request: it took too long to arrive"]
				: [400, "invalid request: not HTTP/1.1"];
	return rawAnswer(status, errorText(null, RPC_ERRORS.invalidRequest.code, message), headers);
}

/** The bytes of `request` without its upgrade headers, followed by `head`. */
export function withoutUpgrade(request: IncomingMessage, head: Buffer): Buffer {
	const lines = [`${request.method} ${request.url} HTTP/${request.httpVersion}`];
	const { rawHeaders } = request;
	for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
		const name = rawHeaders[i] ?? "";
		if (!/^(upgrade|connection|http2-settings)$/i.test(name)) lines.push(`${name}: ${rawHeaders[i + 1]}`);
	}
	return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]);
}

const RETRY_SOON = { "retry-after": "1" };

export const FAILED_ANSWER = rpcErrorAnswer("internal", "internal error");

const BUSY = "too many requests under way";
const BUSY_ANSWER = rpcErrorAnswer("unavailable", `internal error: ${BUSY}`, RETRY_SOON);

/** The server has reached its limit of requests in flight. */
export function busyAnswer(request: RequestHead): HttpAnswer {
	return notServingAnswer(request, BUSY);
}

/** A client's bodies exceed its quota of the request buffers. */
const CLIENT_BUSY_ANSWER = rpcErrorAnswer(
	"rateLimit",
	"limit exceeded: too many bytes under way for this client",
	RETRY_SOON,
);

export function tooLargeAnswer(maxBytes: number): HttpAnswer {
	return rpcErrorAnswer("tooLarge", `limit exceeded: the body is longer than ${maxBytes} bytes`);
}

/** The rate limit's answer to a request that is not JSON-RPC. */
export function rateLimitedAnswer(waitMs: number): HttpAnswer {
	const seconds = retryAfter(waitMs);
	return jsonAnswer(429, { error: `limit exceeded: try again in ${seconds} s` }, { "retry-after": seconds });
}

/** The rate limit's answer to a JSON-RPC request whose body was not read. */
export function limitedAnswer(waitMs: number): HttpAnswer {
	return rpcErrorAnswer("rateLimit", rateLimited(waitMs).message, { "retry-after": retryAfter(waitMs) });
}

/** The client has `max` requests and websockets in flight already. */
export function tooManyRequestsAnswer(request: RequestHead, max: number): HttpAnswer {
	const message = `limit exceeded: ${max} requests under way for each client`;
	return errorAnswerTo(request, "rateLimit", 429, ["", message], RETRY_SOON);
}

/** The server can't serve requests now because of `why`. */
export function notServingAnswer(request: RequestHead, why: string): HttpAnswer {
	return errorAnswerTo(request, "unavailable", 503, ["internal error: ", why], RETRY_SOON);
}

/** The part of a request that is known before its body. */
export type RequestHead = Pick<IncomingMessage, "method" | "headers">;

/**
 * A JSON-RPC error with id null for a JSON-RPC request: a POST, or a request with a JSON body and
 * another verb. Otherwise plain JSON, without the `opening` of the message.
 */
export function errorAnswerTo(
	request: RequestHead,
	kind: RpcErrorKind,
	status: number,
	[opening, message]: readonly [opening: string, message: string],
	headers: Headers = {},
): HttpAnswer {
	const speaksJsonRpc =
		request.method === "POST" || (hasBody(request) && isJsonType(request.headers["content-type"]));
	if (!speaksJsonRpc) return jsonAnswer(status, { error: message }, headers);
	// A wallet's requests have a body. A POST without one comes from an operator, whose script
	// relies on the status.
	if (!hasBody(request)) return rpcErrorAnswer(kind, opening + message, headers, status);
	const refusal = new RpcError(kind, opening + message);
	return {
		...rpcErrorAnswer(kind, refusal.message, headers, kind === "unavailable" ? 200 : status),
		refusal,
	};
}

/**
 * `answer` for each of the calls in `body`, by its id, since clients do not match an error without
 * an id to their call. Unchanged if there are no calls.
 */
export function toEachCall(answer: HttpAnswer, body: Buffer): HttpAnswer {
	if (answer.refusal === undefined) return answer;
	return { ...answer, body: refusedAnswer(body, answer.refusal, 0).text };
}

/** A JSON-RPC answer as an HTTP answer. */
export function httpAnswerOf({ status, text, retryMs }: WrittenAnswer): HttpAnswer {
	const answer = { status: text === null && status === 200 ? 204 : status, body: text };
	return retryMs === 0 ? answer : { ...answer, headers: { "retry-after": retryAfter(retryMs) } };
}

/**
 * The answer with a long text as bytes. Counting the bytes of a text takes as long as making them:
 * some milliseconds. Many requests may wait for the same read.
 */
export function encoded(answer: HttpAnswer): HttpAnswer {
	const { body } = answer;
	if (typeof body !== "string" || body.length <= LONG_TEXT) return answer;
	return { ...answer, body: Buffer.from(body) };
}

/** Characters. A shorter text is written together with the head. */
const LONG_TEXT = 64 * 1024;

interface BodyLimits {
	/** Maximum bytes, and the answer to a longer body. */
	readonly maxBytes: number;
	readonly tooLarge: HttpAnswer;
}

/**
 * How long the rest of a refused body is read and discarded, so that its sender can read the
 * answer.
 */
const LINGER_MS = 1_000;
const MIN_GROWN_BYTES = 16 * 1024;
/** So the largest transaction without blobs, which arrives in chunks of 64 KiB, is copied once. */
const GROWTH = 3;
const NO_BYTES: Buffer = Buffer.alloc(0);

/** The `Content-Length` of `request`; undefined if it has none (no body, or a chunked one). */
export function declaredBytes(request: RequestHead): number | undefined {
	const text = request.headers["content-length"];
	return text === undefined ? undefined : Number(text);
}

/**
 * Reads the body and calls `done` once, with it or with the answer that refuses it. If the client
 * disconnects before the end, `done` is not called; the response's "close" event reports that.
 * `reserve` claims that many more bytes, or returns the limit that they would exceed. The caller
 * counts and releases them.
 */
export function readWhole(
	request: IncomingMessage,
	{ maxBytes, tooLarge }: BodyLimits,
	reserve: (bytes: number) => OverShare | null,
	done: (body: Buffer | HttpAnswer) => void,
): void {
	let bytes = NO_BYTES;
	let length = 0;
	let isRefused = false;
	request.on("data", (chunk: Buffer) => {
		if (isRefused) return;
		const total = length + chunk.length;
		const over = total > maxBytes ? null : reserve(chunk.length);
		if (total > maxBytes || over !== null) {
			isRefused = true;
			bytes = NO_BYTES;
			done(over === null ? tooLarge : over === "client" ? CLIENT_BUSY_ANSWER : BUSY_ANSWER);
			return;
		}
		// A body in one chunk, the usual case, is not copied. More chunks are copied into one
		// buffer at once. Otherwise a body that arrives byte by byte would cost a hundred times its
		// length in objects.
		if (length === 0) bytes = chunk;
		else {
			if (total > bytes.length) {
				// By the received length, not by the declared one, which costs the client nothing.
				const room = Math.max(total * GROWTH, MIN_GROWN_BYTES);
				const grown = Buffer.allocUnsafe(Math.min(room, declaredBytes(request) ?? maxBytes, maxBytes));
				bytes.copy(grown, 0, 0, length);
				bytes = grown;
			}
			chunk.copy(bytes, length);
		}
		length = total;
	});
	request.on("end", () => {
		if (isRefused) return;
		const body = length === bytes.length ? bytes : bytes.subarray(0, length);
		// The request has this listener until it is answered.
		bytes = NO_BYTES;
		done(body);
	});
}

/**
 * Ends `response`, whose head was written, with `text`, and discards the rest of the request's
 * body.
 */
export function endUnread(
	request: IncomingMessage,
	response: ServerResponse,
	text: string | Uint8Array | null,
	clock: Clock,
): void {
	// This completes the answer. Ending the response now would close the connection while the
	// client is still sending. The client would then see a reset instead of the answer.
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

export function hasBody(request: RequestHead): boolean {
	return request.headers["transfer-encoding"] !== undefined || (declaredBytes(request) ?? 0) > 0;
}

const WRONG_TYPE = new RpcError("invalidRequest", "invalid request: content-type: expected application/json");
const NOT_JSON: HttpAnswer = {
	...rpcErrorAnswer("invalidRequest", WRONG_TYPE.message, {}, 415),
	refusal: WRONG_TYPE,
};
const ENCODED = rpcErrorAnswer("invalidRequest", "invalid request: content-encoding: expected none", {}, 415);

/**
 * Checks the headers of a JSON POST: the answer that refuses it, or null. `tooLarge` is for a body
 * over `maxBytes`.
 */
export function checkPost(
	request: IncomingMessage,
	maxBytes: number,
	tooLarge: HttpAnswer,
): HttpAnswer | null {
	const { "content-type": type, "content-encoding": encoding = "" } = request.headers;
	if (!isJsonType(type)) return NOT_JSON;
	if (encoding !== "" && !/^identity$/i.test(encoding)) return ENCODED;
	return (declaredBytes(request) ?? 0) > maxBytes ? tooLarge : null;
}

/** With or without parameters. go-ethereum accepts the last two as well. */
const JSON_TYPE = /^\s*application\/(?:(?:[\w.+-]+\+)?json|json-rpc|jsonrequest)\s*(?:;|$)/i;

/**
 * Whether a `Content-Type` is JSON, or absent. If it is given in two spellings, fetch sends it
 * twice, with a comma between.
 */
export function isJsonType(type = ""): boolean {
	if (type === "application/json" || type === "") return true;
	return type.split(",").every((one) => JSON_TYPE.test(one));
}
