// The operator's routes. With the token of ADMIN_TOKEN they serve the operator. If no token is set,
// they do not exist.

import { bearerCheck } from "../client.ts";
import { jsonAnswer } from "./messages.ts";
import { type Route, UNKNOWN_PATH } from "./routes.ts";

/** A route whose handler is only called for the operator. */
export interface AdminRoute extends Pick<Route, "handle"> {
	readonly path: string;
	readonly verb: "GET" | "POST";
}

/**
 * Cost in the rate limit. An answer goes through all pending transactions, and tokens can't be
 * tried out fast.
 */
export const ADMIN_WEIGHT = 1;

/** `routes` of `service` below a path, guarded by `token`. Undefined if no token is set. */
export function adminRoutes(
	service: "relay" | "boost",
	token: string | undefined,
	routes: readonly AdminRoute[],
): Route[] {
	const isAllowed = bearerCheck(token);
	const unauthorized = jsonAnswer(
		401,
		{ error: "expected Authorization: Bearer with the token of ADMIN_TOKEN" },
		{ "www-authenticate": `Bearer realm="${service}"` },
	);
	return routes.map(({ path, verb, handle }) => ({
		path,
		verb,
		weight: ADMIN_WEIGHT,
		handle(request) {
			if (isAllowed === null) return UNKNOWN_PATH;
			return isAllowed(request.headers.authorization) ? handle(request) : unauthorized;
		},
	}));
}
