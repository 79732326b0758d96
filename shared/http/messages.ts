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

/** Names in lower case. */
type Headers = Readonly<Record<string, string>>;

/** An answer. */
export interface HttpAnswer {
	readonly status: number;
	/** Null for an answer without a body. */
	readonly body: string | Uint8Array | null;
	/** `application/json` unless said. */
	readonly contentType?: string;
	/** More headers. */
	readonly headers?: Headers;
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
export function jsonAnswer(status: number, value: unknown, headers: Headers = {}): HttpAnswer {
	return { status, body: JSON.stringify(value), headers };
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
	headers: Headers = {},
): HttpAnswer {
	return { status, body: errorText(null, RPC_ERRORS[kind].code, message), headers };
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
	standing: Headers,
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

const RETRY_SOON = { "retry-after": "1" };

/** A handler is at fault itself. */
export const FAILED = rpcErrorAnswer("internal", 500, "internal error");

/** There is no room. */
export const BUSY = rpcErrorAnswer(
	"unavailable",
	503,
	"internal error: too many requests under way",
	RETRY_SOON,
);

/** An answer that goes on may not stand behind another one. */
export const BEHIND = jsonAnswer(
	503,
	{ error: "expected a connection on which no answer is due" },
	RETRY_SOON,
);

/** A client's bodies are as many bytes as one client may have under way. */
const HOARDING = rpcErrorAnswer(
	"rateLimit",
	429,
	"limit exceeded: too many bytes under way for this client",
	RETRY_SOON,
);

/** The body is longer than `maxBytes`. */
export function tooLarge(maxBytes: number): HttpAnswer {
	return rpcErrorAnswer("tooLarge", 413, `limit exceeded: the body is longer than ${maxBytes} bytes`);
}

/** The rate limit's answer to a request for a page: it may come again in `waitMs`. */
export function limited(waitMs: number): HttpAnswer {
	const seconds = retryAfter(waitMs);
	return jsonAnswer(429, { error: `limit exceeded: try again in ${seconds} s` }, { "retry-after": seconds });
}

/** A client has `max` requests and websockets under way already. */
export function crowded(verb: string | undefined, max: number): HttpAnswer {
	return inVerb(verb, "rateLimit", 429, `limit exceeded: ${max} requests under way for each client`);
}

/** The server cannot serve anything now because of `why`. */
export function notServing(verb: string | undefined, why: string): HttpAnswer {
	return inVerb(verb, "unavailable", 503, verb === "POST" ? `internal error: ${why}` : why);
}

/** In JSON-RPC where `verb` is that of JSON-RPC; it may come again in a second. */
function inVerb(verb: string | undefined, kind: RpcErrorKind, status: number, message: string): HttpAnswer {
	return verb === "POST"
		? rpcErrorAnswer(kind, status, message, RETRY_SOON)
		: jsonAnswer(status, { error: message }, RETRY_SOON);
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
	{ maxBytes, tooLarge, reserve }: BodyLimits,
	done: (body: Buffer | HttpAnswer) => void,
): void {
	let bytes: Buffer = Buffer.alloc(0);
	let length = 0;
	let isRefused = false;
	request.on("data", (chunk: Buffer) => {
		if (isRefused) return;
		const total = length + chunk.length;
		const over = total > maxBytes ? null : reserve(chunk.length);
		if (total > maxBytes || over !== null) {
			isRefused = true;
			request.pause();
			done(over === null ? tooLarge : over === "client" ? HOARDING : BUSY);
			return;
		}
		// One piece, as nearly always, is kept as it is. More are copied together at once: a body that comes byte by
		// byte would otherwise cost a hundred times its length in objects.
		if (length === 0) bytes = chunk;
		else {
			if (total > bytes.length) {
				const room = Math.max(declaredBytes(request) ?? 0, total * 2, MIN_GROWN_BYTES);
				const grown = Buffer.allocUnsafe(Math.min(room, maxBytes));
				bytes.copy(grown, 0, 0, length);
				bytes = grown;
			}
			chunk.copy(bytes, length);
		}
		length = total;
	});
	request.on("end", () => {
		if (!isRefused) done(bytes.subarray(0, length));
	});
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

const NOT_JSON = rpcErrorAnswer(
	"invalidRequest",
	415,
	"invalid request: content-type: expected application/json",
);
const ENCODED = rpcErrorAnswer("invalidRequest", 415, "invalid request: content-encoding: expected none");

/** What is wrong with a POST of JSON before its body is read, or null; `long` is the answer to one that is too long. */
export function judgePost(request: IncomingMessage, maxBytes: number, long: HttpAnswer): HttpAnswer | null {
	const { "content-type": type = "", "content-encoding": encoding = "" } = request.headers;
	const isJson = type === "application/json" || JSON_TYPE.test(type);
	if (!isJson) return NOT_JSON;
	if (encoding !== "" && !/^identity$/i.test(encoding)) return ENCODED;
	return (declaredBytes(request) ?? 0) > maxBytes ? long : null;
}

/** None at all, `application/json` or `application/…+json`, parameters or not. */
const JSON_TYPE = /^$|^\s*application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;
