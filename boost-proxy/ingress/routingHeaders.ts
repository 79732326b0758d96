// Headers that say what boost did, and headers of what is passed through. Each connection keeps its own, nobody but boost names
// the client, and nothing that frames a body is lost on the way.

import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import type { BreakerState } from "../domain/breakerPorts.ts";
import type { Trail } from "../domain/request.ts";

/** All that {@link trailHeaders} may answer, as CORS names them. */
export const BOOST_HEADERS: readonly string[] = [
	"X-Boost-Upstream",
	"X-Boost-Breaker",
	"X-Boost-Attempts",
	"X-Boost-Dropped-Params",
	"Retry-After",
];

/** The headers; where no upstream and no journal answered, boost did. */
export function trailHeaders(trail: Trail, breaker: BreakerState): Record<string, string> {
	const { answeredBy, attempts, dropped } = trail;
	const headers: Record<string, string> = {
		"x-boost-upstream": answeredBy.size === 0 ? "boost" : [...answeredBy].join(", "),
		"x-boost-breaker": breaker,
		"x-boost-attempts": String(attempts),
	};
	if (dropped.size > 0) headers["x-boost-dropped-params"] = [...dropped].join(", ");
	return headers;
}

/** Whether an answer has these headers already. */
export function hasTrail(answer: { readonly headers?: Readonly<Record<string, string>> } | null): boolean {
	return answer?.headers !== undefined && "x-boost-upstream" in answer.headers;
}

/** Those of an answer that no request left boost for. */
export function ownHeaders(breaker: BreakerState): Record<string, string> {
	return trailHeaders({ answeredBy: new Set(), attempts: 0, dropped: new Set() }, breaker);
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

export interface Introduction {
	/** The client's address. */
	readonly address: string;
	/** What makes the relay believe it; undefined where it need not. */
	readonly boostSecret: string | undefined;
}

/** A request's headers as the relay gets them. The body's framing stays; `Expect` was answered here. */
export function towardsRelay(
	headers: IncomingHttpHeaders,
	{ address, boostSecret }: Introduction,
): IncomingHttpHeaders {
	const named = namedIn(headers.connection);
	const kept: IncomingHttpHeaders = {};
	for (const [name, value] of Object.entries(headers)) {
		if (OF_CONNECTION.has(name) || name === "expect" || NAMING.test(name)) continue;
		if (value !== undefined && (!named.has(name) || FRAMING.has(name))) kept[name] = value;
	}
	kept["x-forwarded-for"] = address;
	if (boostSecret !== undefined) kept["x-boost-auth"] = boostSecret;
	return kept;
}

/** An answer's headers as the client gets them, `ours` above the relay's. The body is framed anew unless its length is known. */
export function towardsClient(
	headers: IncomingHttpHeaders,
	ours: Readonly<Record<string, string>>,
): OutgoingHttpHeaders {
	const named = namedIn(headers.connection);
	const kept: OutgoingHttpHeaders = {};
	for (const [name, value] of Object.entries(headers)) {
		if (OF_CONNECTION.has(name) || name === "transfer-encoding") continue;
		if (value !== undefined && (!named.has(name) || FRAMING.has(name))) kept[name] = value;
	}
	return Object.assign(kept, ours);
}

/** The headers that a `Connection` header names, in lower case. */
function namedIn(connection: string | undefined): ReadonlySet<string> {
	if (connection === undefined) return new Set();
	return new Set(connection.split(",").map((name) => name.trim().toLowerCase()));
}
