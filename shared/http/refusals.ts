// What a server says of its own accord: the answers that refuse a request before anybody served it, as constants, and
// which of them fits the head of a POST. It writes nothing.

import type { IncomingMessage } from "node:http";
import type { RpcErrorKind } from "../jsonrpc/errors.ts";
import { type HttpAnswer, jsonAnswer, retryAfter, rpcErrorAnswer } from "./httpAnswer.ts";
import { declaredBytes, isJson, isPlain } from "./requestBody.ts";

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

const NOT_JSON = rpcErrorAnswer(
	"invalidRequest",
	415,
	"invalid request: content-type: expected application/json",
);
const ENCODED = rpcErrorAnswer("invalidRequest", 415, "invalid request: content-encoding: expected none");
const AWAY = "shutting down";

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
export const HOARDING: HttpAnswer = rpcErrorAnswer(
	"rateLimit",
	429,
	"limit exceeded: too many bytes under way for this client",
	{ "retry-after": "1" },
);

/** The server goes away: in JSON-RPC where `verb` is that of JSON-RPC. */
export function shuttingDown(verb: string | undefined): HttpAnswer {
	return inVerb(verb, "unavailable", 503, verb === "POST" ? `internal error: ${AWAY}` : AWAY);
}

/** In JSON-RPC where `verb` is that of JSON-RPC; it may come again in a second. */
function inVerb(verb: string | undefined, kind: RpcErrorKind, status: number, message: string): HttpAnswer {
	const headers = { "retry-after": "1" };
	return verb === "POST"
		? rpcErrorAnswer(kind, status, message, headers)
		: jsonAnswer(status, { error: message }, headers);
}

/** What is wrong with a POST of JSON before its body is read, or null; `long` is the answer to one that is too long. */
export function judgePost(request: IncomingMessage, maxBytes: number, long: HttpAnswer): HttpAnswer | null {
	const { headers } = request;
	if (!isJson(headers["content-type"])) return NOT_JSON;
	if (!isPlain(headers["content-encoding"])) return ENCODED;
	return (declaredBytes(request) ?? 0) > maxBytes ? long : null;
}
