// Headers that show which upstream answered, and the errors if none did. Also filters the headers
// of passed-through requests: only boost sets the client's address, and headers that frame a body
// are kept.

import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import { clientHeaders } from "../../shared/client.ts";
import {
	errorAnswerTo,
	type HttpAnswer,
	isJsonType,
	type RequestHead,
	retryAfter,
} from "../../shared/http/messages.ts";
import { OUTGOING_HEADERS } from "../../shared/outgoing/headers.ts";
import { REQUEST_ID } from "../../shared/requestId.ts";
import type { Breaker, BreakerState } from "../domain/ports.ts";
import type { RoutingInfo } from "../domain/request.ts";

/** Response headers that CORS exposes. */
export const BOOST_HEADERS: readonly string[] = [
	"X-Boost-Upstream",
	"X-Boost-Breaker",
	"X-Boost-Attempts",
	"X-Boost-Dropped-Params",
	"Retry-After",
	"X-Request-Id",
];

/** If neither an upstream nor the journal answered, the header names boost. */
export function routingHeaders(routing: RoutingInfo, breaker: BreakerState): Record<string, string> {
	const { answeredBy, attempts, dropped } = routing;
	const headers: Record<string, string> = {
		"x-boost-upstream": answeredBy.size === 0 ? "boost" : [...answeredBy].join(", "),
		"x-boost-breaker": breaker,
		"x-boost-attempts": String(attempts),
	};
	if (dropped.size > 0) headers["x-boost-dropped-params"] = [...dropped].join(", ");
	return headers;
}

/** Whether an answer has routing headers already. */
export function hasRouting(answer: { readonly headers?: Readonly<Record<string, string>> } | null): boolean {
	return answer?.headers !== undefined && "x-boost-upstream" in answer.headers;
}

/** Routing headers of an answer that needed no request to an upstream. */
export function ownHeaders(breaker: BreakerState): Record<string, string> {
	return routingHeaders({ answeredBy: new Set(), attempts: 0, dropped: new Set() }, breaker);
}

/** Hop-by-hop headers: https://www.rfc-editor.org/rfc/rfc9110#section-7.6.1 */
const OF_CONNECTION: ReadonlySet<string> = new Set([
	"connection",
	"keep-alive",
	"proxy-authenticate",
	"proxy-authorization",
	"proxy-connection",
	"te",
	"trailer",
	"upgrade",
]);
/**
 * Kept even if the client names them in `Connection`. Without the framing headers, the relay would
 * read the body as the next request on the connection. The request id is boost's own by now.
 */
const KEPT: ReadonlySet<string> = new Set(["content-length", "transfer-encoding", "host", REQUEST_ID]);
/**
 * Headers that state the client's address, authenticate boost, or are trusted by the relay only
 * from boost.
 */
const CLIENT_HEADERS = /^(forwarded|x-real-ip|x-forwarded-.*|x-boost-.*|traceparent|tracestate)$/;

/**
 * A request's headers for the relay. Boost has already answered `Expect`. Any JSON content type
 * becomes application/json.
 */
export function towardsRelay(
	headers: IncomingHttpHeaders,
	/** `boostSecret`: makes the relay accept `address` as the client's. */
	{
		address,
		via,
		boostSecret,
	}: { readonly address: string; readonly via: string; readonly boostSecret: string | undefined },
): IncomingHttpHeaders {
	const kept: IncomingHttpHeaders = endToEnd(
		headers,
		(name) => name === "expect" || CLIENT_HEADERS.test(name),
	);
	const type = headers["content-type"];
	if (type !== undefined && isJsonType(type)) kept["content-type"] = "application/json";
	Object.assign(kept, OUTGOING_HEADERS);
	kept.via = via;
	Object.assign(kept, clientHeaders(address));
	if (boostSecret !== undefined) kept["x-boost-auth"] = boostSecret;
	return kept;
}

/**
 * An answer's headers for the client; `ours` override the relay's. Node frames the body again
 * unless its length is known.
 */
export function towardsClient(
	headers: IncomingHttpHeaders,
	ours: Readonly<Record<string, string>>,
): OutgoingHttpHeaders {
	return Object.assign(
		endToEnd(headers, (name) => name === "transfer-encoding"),
		ours,
	);
}

/** Without hop-by-hop headers, those that `Connection` names, and those that are `dropped`. */
function endToEnd(headers: IncomingHttpHeaders, dropped: (name: string) => boolean) {
	const named = new Set(headers.connection?.split(",").map((name) => name.trim().toLowerCase()));
	const kept: Record<string, string | string[]> = {};
	for (const [name, value] of Object.entries(headers)) {
		if (OF_CONNECTION.has(name) || dropped(name)) continue;
		if (value !== undefined && (!named.has(name) || KEPT.has(name))) kept[name] = value;
	}
	return kept;
}

/**
 * An error before the answer began. `refused`: no connection. `proxy`: a proxy answered instead of
 * the relay. For the others, bytes may have been sent.
 */
export type ProxyError = "refused" | "reset" | "timeout" | "proxy";

/** `status`: for requests that are not JSON-RPC. */
const FAULTS: Readonly<Record<ProxyError, { readonly status: number; readonly reason: string }>> = {
	refused: { status: 503, reason: "the relay cannot be reached" },
	reset: { status: 502, reason: "the relay ended the connection" },
	timeout: { status: 504, reason: "the relay did not answer in time" },
	proxy: { status: 503, reason: "the proxy in front of the relay reaches no relay" },
};

const TRIED: RoutingInfo = { answeredBy: new Set(), attempts: 1, dropped: new Set() };

/** The answer while the relay is unavailable; `retryMs`: for `Retry-After`. */
export function unavailableAnswer(request: RequestHead, retryMs: number): HttpAnswer {
	return answer(request, 503, "the relay is down", { "retry-after": retryAfter(retryMs) });
}

/** The answer to a request that failed by `fault`. */
export function proxyError(request: RequestHead, fault: ProxyError, breaker: Breaker): HttpAnswer {
	const { status, reason } = FAULTS[fault];
	return answer(request, status, reason, {
		"retry-after": retryAfter(breaker.retryMs),
		...routingHeaders(TRIED, breaker.state),
	});
}

function answer(
	request: RequestHead,
	status: number,
	reason: string,
	headers: Record<string, string>,
): HttpAnswer {
	return errorAnswerTo(request, "unavailable", status, ["", `no relay available: ${reason}`], headers);
}

/**
 * `answered`: by the relay. `unavailable`: the breaker was open or no connection could be made.
 * `failed`: the relay received the request and did not answer. `gone`: the client disconnected
 * first.
 */
export const PASS_OUTCOMES = ["answered", "unavailable", "failed", "gone"] as const;
export type ProxyOutcome = (typeof PASS_OUTCOMES)[number];
