// The headers that say what boost did: who answered, how the relay's breaker stood, how many requests were sent. What a
// request has left behind comes in, headers go out. Pure.

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
