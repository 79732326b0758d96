// How a body of JSON-RPC is served: forwarded to one upstream, call by call by the dispatcher, or
// refused.

import { oversized } from "../../shared/jsonrpc/dispatch.ts";
import type { ReceivedCall, RpcBody } from "../../shared/jsonrpc/envelope.ts";
import { kindOf, maxParamsSizeOf, RELAY_ONLY } from "./methods.ts";

export type Route =
	| {
			readonly kind: "forward";
			/** The calls that are forwarded; the others get errors of their own. */
			readonly wanted: readonly ReceivedCall[];
			/** Whether only our relay may get them. */
			readonly relayOnly: boolean;
			/** Whether the dispatcher serves them if no upstream answers. */
			readonly mayDispatch: boolean;
	  }
	| { readonly kind: "dispatch" }
	/** Only the relay could serve it, and the relay is unavailable. */
	| { readonly kind: "refuse" };

interface RouteFacts {
	readonly isWebsocket: boolean;
	/** Whether only the relay has its path. Such a body is never served otherwise. */
	readonly isRelays: boolean;
	readonly isRelayUnavailable: boolean;
	/** Whether the fallback, if there is one, accepts arrays. */
	readonly fallbackBatches: boolean;
	/** Whether one upstream's answer to the call is complete. */
	isComplete(call: ReceivedCall): boolean;
}

const DISPATCH = { kind: "dispatch" } as const;

/**
 * A body is forwarded if every upstream understands each of its calls, or if a call gets an error
 * anyway.
 */
export function routeOf({ calls, batch }: Pick<RpcBody, "calls" | "batch">, facts: RouteFacts): Route {
	const { isWebsocket, isRelays, isRelayUnavailable } = facts;
	// On websockets these calls use the client's own connection to the relay, which keeps their
	// order.
	if (isWebsocket && !isRelays && calls.some(({ method }) => RELAY_ONLY.has(method))) return DISPATCH;
	if (!isRelays) {
		const isPassable = (one: ReceivedCall) => (isFaulty(one) ? batch : facts.isComplete(one));
		if (!calls.every(isPassable) || calls.every(({ id }) => id === undefined)) return DISPATCH;
	}
	const wanted = calls.filter((one) => !isFaulty(one));
	if (wanted.length === 0) return DISPATCH;
	const kinds = wanted.map(({ method }) => kindOf(method));
	const relayOnly = isRelays || kinds.includes("relay") || kinds.includes("byHash");
	const isOneByOne = batch && !relayOnly && !facts.fallbackBatches;
	if ((relayOnly || isOneByOne) && isRelayUnavailable) return isRelays ? { kind: "refuse" } : DISPATCH;
	const isMerged = !isRelays && kinds.includes("byHash") && !kinds.includes("relay");
	return { kind: "forward", wanted, relayOnly, mayDispatch: isMerged || isOneByOne };
}

/** Whether the dispatcher answers the call with an error without asking an upstream. */
export function isFaulty(call: ReceivedCall): boolean {
	const { fault, params, method } = call;
	return fault !== null || params === null || oversized(call, maxParamsSizeOf(method)) !== null;
}
