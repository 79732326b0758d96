// What is told of how a request was passed on: the headers that say who answered, and the errors where nobody did. Also the
// headers of what is passed through: nobody but boost names the client, and nothing that frames a body is lost on the way.

import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import { type HttpAnswer, jsonAnswer, retryAfter, rpcErrorAnswer } from "../../shared/http/messages.ts";
import type { Breaker, BreakerState } from "../domain/ports.ts";
import type { RoutingInfo } from "../domain/request.ts";

/** All that {@link routingHeaders} may answer, as CORS names them. */
export const BOOST_HEADERS: readonly string[] = [
	"X-Boost-Upstream",
	"X-Boost-Breaker",
	"X-Boost-Attempts",
	"X-Boost-Dropped-Params",
	"Retry-After",
];

/** The headers; where no upstream and no journal answered, boost did. */
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

/** Whether an answer has these headers already. */
export function hasRouting(answer: { readonly headers?: Readonly<Record<string, string>> } | null): boolean {
	return answer?.headers !== undefined && "x-boost-upstream" in answer.headers;
}

/** Those of an answer that no request left boost for. */
export function ownHeaders(breaker: BreakerState): Record<string, string> {
	return routingHeaders({ answeredBy: new Set(), attempts: 0, dropped: new Set() }, breaker);
}

/** Of one connection alone: https://www.rfc-editor.org/rfc/rfc9110#section-7.6.1 */
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
 * A client may not name these in `Connection` to have them dropped: without them its body would be taken for the next
 * request on the connection.
 */
const FRAMING: ReadonlySet<string> = new Set(["content-length", "transfer-encoding", "host"]);
/** What would name the client, or vouch for whoever does. */
const NAMING = /^(forwarded|x-real-ip|x-forwarded-.*|x-boost-.*)$/;

/** A request's headers as the relay gets them. The body's framing stays; `Expect` was answered here. */
export function towardsRelay(
	headers: IncomingHttpHeaders,
	/** What makes the relay believe the client's `address`; undefined where it need not. */
	{ address, boostSecret }: { readonly address: string; readonly boostSecret: string | undefined },
): IncomingHttpHeaders {
	const kept: IncomingHttpHeaders = endToEnd(headers, (name) => name === "expect" || NAMING.test(name));
	kept["x-forwarded-for"] = address;
	if (boostSecret !== undefined) kept["x-boost-auth"] = boostSecret;
	return kept;
}

/** An answer's headers as the client gets them, `ours` above the relay's. The body is framed anew unless its length is known. */
export function towardsClient(
	headers: IncomingHttpHeaders,
	ours: Readonly<Record<string, string>>,
): OutgoingHttpHeaders {
	return Object.assign(
		endToEnd(headers, (name) => name === "transfer-encoding"),
		ours,
	);
}

/** Without those of the connection alone, those that its `Connection` header names, and those that are `dropped`. */
function endToEnd(headers: IncomingHttpHeaders, dropped: (name: string) => boolean) {
	const named = new Set(headers.connection?.split(",").map((name) => name.trim().toLowerCase()));
	const kept: Record<string, string | string[]> = {};
	for (const [name, value] of Object.entries(headers)) {
		if (OF_CONNECTION.has(name) || dropped(name)) continue;
		if (value !== undefined && (!named.has(name) || FRAMING.has(name))) kept[name] = value;
	}
	return kept;
}

/** Before an answer began. `refused`: no connection could be had; else bytes may have left. */
export type ProxyError = "refused" | "reset" | "timeout";

const FAULTS: Readonly<Record<ProxyError, { readonly status: number; readonly reason: string }>> = {
	refused: { status: 503, reason: "the relay cannot be reached" },
	reset: { status: 502, reason: "the relay ended the connection" },
	timeout: { status: 504, reason: "the relay did not answer in time" },
};

const TRIED: RoutingInfo = { answeredBy: new Set(), attempts: 1, dropped: new Set() };

/** For what is not tried while the relay is out; `retryMs`: when it might go again. */
export function outAnswer(verb: string | undefined, retryMs: number): HttpAnswer {
	return answer(verb, 503, "the relay is out", { "retry-after": retryAfter(retryMs) });
}

/** For what was tried and failed by `fault`. */
export function proxyError(verb: string | undefined, fault: ProxyError, breaker: Breaker): HttpAnswer {
	const { status, reason } = FAULTS[fault];
	return answer(verb, status, reason, {
		"retry-after": retryAfter(breaker.retryMs),
		...routingHeaders(TRIED, breaker.state),
	});
}

function answer(
	verb: string | undefined,
	status: number,
	reason: string,
	headers: Record<string, string>,
): HttpAnswer {
	const message = `no relay available: ${reason}`;
	return verb === "POST"
		? rpcErrorAnswer("unavailable", status, message, headers)
		: jsonAnswer(status, { error: message }, headers);
}

/**
 * `answered` by the relay; `unavailable`: the relay was out or could not be reached; `failed`: it took the
 * request and did not answer; `gone`: its client went first.
 */
export const PASS_OUTCOMES = ["answered", "unavailable", "failed", "gone"] as const;
export type ProxyOutcome = (typeof PASS_OUTCOMES)[number];
