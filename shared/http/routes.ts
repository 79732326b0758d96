// The router: decides by verb and path how a request is handled. JSON-RPC goes to the dispatcher,
// and a route to its handler. Anything else goes to the proxy or gets an error. Also the handler of
// JSON-RPC over HTTP, and the interface of a proxy.

import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { type ClientAddress, identify, recoveredBy, type VerifySignature } from "../client.ts";
import type { Dispatcher } from "../jsonrpc/dispatch.ts";
import type { RpcError } from "../jsonrpc/errors.ts";
import { type CallContext, callContext, type RequestLife, type RequestTarget } from "./callContext.ts";
import {
	asksForPage,
	errorAnswerTo,
	type HttpAnswer,
	httpAnswerOf,
	jsonAnswer,
	type PageFinder,
	type RequestHead,
} from "./messages.ts";
import type { RateLimiter, RequestCost } from "./rateLimit.ts";

/** A GET or HEAD request, or a POST whose body is not read. */
export interface RouteRequest {
	/** Without a trailing slash. */
	readonly path: string;
	/** The values of the path's placeholders, percent-decoded. */
	readonly params: Readonly<Record<string, string>>;
	readonly query: URLSearchParams;
	readonly headers: IncomingHttpHeaders;
	/** The client's IP address in its shortest form. */
	readonly address: string;
}

export interface Route {
	/** "/livez", or with placeholders for one segment each: "/tx/{hash}". */
	readonly path: string;
	/** Default GET, which includes HEAD. */
	readonly verb?: "GET" | "POST";
	/** Cost of a request in the client's rate limit. Default 1. */
	readonly weight?: number;
	/** Whether it is answered over the rate limit, too. It has its cost all the same. */
	readonly isAlwaysAnswered?: true;
	/** A thrown error becomes a 500 without details. */
	handle(request: RouteRequest): Promise<HttpAnswer> | HttpAnswer;
}

export interface RouteMatch {
	readonly route: Route;
	readonly params: Readonly<Record<string, string>>;
}

/**
 * How a request is handled: as JSON-RPC by the POST handler, by a route, by the proxy, or with a
 * fixed answer.
 */
export type Routing =
	| { readonly kind: "rpc" }
	| ({ readonly kind: "route" } & RouteMatch)
	| { readonly kind: "proxy" }
	| { readonly kind: "answer"; readonly answer: HttpAnswer };

/** The cost of a request. Null for calls and proxied requests: others charge them. */
export function costOf(routing: Routing, { method }: RequestHead): RequestCost | null {
	if (routing.kind === "rpc" || routing.kind === "proxy") return null;
	const { weight = 1, isAlwaysAnswered = false } = routing.kind === "route" ? routing.route : {};
	// Without its preflight a page could not read the refusal.
	return { weight, isWaived: isAlwaysAnswered || method === "OPTIONS" };
}

/** The allowed headers for a preflight that names none. */
const USUAL_HEADERS =
	"Content-Type, X-Flashbots-Signature, X-Leeward-Signature, X-Flashbots-Origin, X-Request-Id";
/** Maximum characters of the list of headers in a preflight. A longer list is ignored. */
const MAX_ASKED_CHARS = 4_096;
/** The name of a header: https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2 */
const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;

export interface RouterOptions {
	/** Paths of JSON-RPC over POST, without a trailing slash. */
	readonly rpcPaths: readonly string[];
	readonly routes: readonly Route[];
	/** Pages for browsers. */
	readonly pages?: PageFinder;
}

/**
 * The router of a server. With `hasProxy`, requests on foreign paths are proxied, except OPTIONS.
 * Throws if two handlers claim the same verb and path, or two routes the same path.
 */
export function createRouter(
	{ rpcPaths, routes, pages }: RouterOptions,
	hasProxy = false,
): (request: RequestHead, path: string) => Routing {
	const rpc = new Set(rpcPaths);
	const find = routeFinder(routes);
	for (const { verb, path } of routes) {
		if (verb === "POST" && rpc.has(path)) throw new Error(`the path ${path} is served twice`);
	}
	return (request, path) => {
		const { method: verb, headers } = request;
		const isRpcPath = rpc.has(path);
		if (isRpcPath && verb === "POST") return { kind: "rpc" };
		const isRead = verb === "GET" || verb === "HEAD";
		const page = isRead && asksForPage(headers.accept) ? (pages?.(path) ?? null) : null;
		if (page !== null) return { kind: "answer", answer: page };
		const match = find(path);
		const isPostRoute = match?.route.verb === "POST";
		if (match !== undefined && (isPostRoute ? verb === "POST" : isRead)) {
			return { kind: "route", ...match };
		}
		const isOwn = match !== undefined || isRpcPath;
		if (!isOwn && hasProxy && verb !== "OPTIONS") return { kind: "proxy" };
		if (!isOwn && !hasProxy && !asksForAny(request, path)) {
			return { kind: "answer", answer: unknownPathAnswer(request) };
		}
		const allowsReads = match === undefined ? !isOwn : !isPostRoute;
		const allowsPost = isRpcPath || isPostRoute || !isOwn;
		const allowed = `${allowsReads ? "GET, HEAD, " : ""}${allowsPost ? "POST, " : ""}OPTIONS`;
		if (verb === "OPTIONS") return { kind: "answer", answer: preflight(allowed, headers) };
		return {
			kind: "answer",
			answer: refusal(request, 405, `expected one of ${allowed}`, { allow: allowed }),
		};
	};
}

/** The answer of a route that is switched off: that of a GET of an unknown path. */
export const UNKNOWN_PATH = jsonAnswer(404, { error: "unknown path" });

/** HTTP 404, in the form that the client reads. */
export function unknownPathAnswer(request: RequestHead): HttpAnswer {
	return refusal(request, 404, "unknown path");
}

function refusal(
	request: RequestHead,
	status: 404 | 405,
	message: string,
	headers?: HttpAnswer["headers"],
): HttpAnswer {
	return errorAnswerTo(request, "invalidRequest", status, ["invalid request: ", message], headers);
}

/**
 * Whether it is a web page's preflight, or asks about the server (`*`). A preflight must pass so
 * that the page can read the 404.
 */
function asksForAny({ method, headers }: RequestHead, path: string): boolean {
	const isPreflight = headers.origin !== undefined && headers["access-control-request-method"] !== undefined;
	return method === "OPTIONS" && (isPreflight || path === "*");
}

/**
 * Grants every requested header. Scripts that trace requests add their own, and no header gives a
 * page any right. `Access-Control-Allow-Private-Network` is not granted, since browsers ask the
 * user instead.
 */
function preflight(verbs: string, asked: IncomingHttpHeaders): HttpAnswer {
	const headers = {
		"access-control-allow-headers": grantedHeaders(asked["access-control-request-headers"]),
		"access-control-allow-methods": verbs,
		"access-control-max-age": "86400",
		allow: verbs,
		vary: "Access-Control-Request-Headers",
	};
	return { status: 204, body: null, headers };
}

function grantedHeaders(asked = ""): string {
	if (asked.length > MAX_ASKED_CHARS) return USUAL_HEADERS;
	const names = asked.split(",").map((name) => name.trim());
	return names.filter((name) => TOKEN.test(name)).join(", ") || USUAL_HEADERS;
}

/** Finds routes by path. Throws if two routes have the same path. */
function routeFinder(routes: readonly Route[]): (path: string) => RouteMatch | undefined {
	const exact = new Map<string, RouteMatch>();
	const patterns: { readonly pattern: RegExp; readonly route: Route }[] = [];
	const seen = new Set<string>();
	for (const route of routes) {
		const shape = route.path.replace(/\{\w+\}/g, "{}");
		if (seen.has(shape)) throw new Error(`the path ${route.path} is served twice`);
		seen.add(shape);
		if (shape === route.path) exact.set(route.path, { route, params: {} });
		else
			patterns.push({ pattern: new RegExp(`^${route.path.replace(/\{(\w+)\}/g, "(?<$1>[^/]+)")}$`), route });
	}
	return (path) => {
		const found = exact.get(path);
		if (found !== undefined) return found;
		for (const { pattern, route } of patterns) {
			const matched = pattern.exec(path);
			if (matched === null) continue;
			const groups = Object.entries(matched.groups ?? {});
			const params = groups.map(([name, value]) => [name, decode(value)] as const);
			if (params.every(([, value]) => value !== null)) {
				return { route, params: Object.fromEntries(params) as Record<string, string> };
			}
		}
		return undefined;
	};
}

/** Null if its percent-encoding is invalid. */
function decode(segment: string): string | null {
	try {
		return decodeURIComponent(segment);
	} catch {
		return null;
	}
}

/** A POST on one of the JSON-RPC paths. */
export interface PostRequest {
	readonly target: RequestTarget;
	readonly headers: IncomingHttpHeaders;
	/** See requestId.ts. */
	readonly requestId: string;
	readonly from: ClientAddress;
	/** The raw bytes, which the signature covers. */
	readonly body: Buffer;
	readonly life: RequestLife;
	/** The error to answer with while the server shuts down; else null. */
	readonly shutdownError: RpcError | null;
}

/** Never rejects. */
export type PostHandler = (request: PostRequest) => Promise<HttpAnswer>;

interface RpcOverHttpDependencies {
	readonly dispatcher: Dispatcher<CallContext>;
	/** Rate limits bodies by size. */
	readonly limiter: Pick<RateLimiter, "takeBody">;
	/** If absent, requests with the header `X-Flashbots-Signature` are refused. */
	readonly verifySignature?: VerifySignature;
	/** Why no request can be served now, answered with 503; else null. */
	readonly unavailable?: () => RpcError | null;
}

/** The handler of POSTs on the JSON-RPC paths. */
export function rpcOverHttp(dependencies: RpcOverHttpDependencies): PostHandler {
	const { dispatcher, limiter, unavailable, verifySignature } = dependencies;
	return async ({ target, headers, requestId, from, body, life, shutdownError }) => {
		const limited = limiter.takeBody(from, body, life);
		if (limited !== null) return httpAnswerOf(limited);
		const { client, signatureError } = identify(headers, from, body, verifySignature);
		const origin = headers.origin ?? null;
		// HTTP has neither a connection nor a message, hence the nulls. Only trusted senders may
		// name a trace: others could have all their requests traced.
		const { traceparent } = headers;
		const trace = from.vouched && typeof traceparent === "string" ? traceparent : null;
		const error = shutdownError ?? unavailable?.() ?? signatureError;
		const reading = dispatcher.read(body);
		const read = reading instanceof Promise ? await reading : reading;
		// In a batch, several calls could submit a transaction.
		const recovered = "calls" in read && !read.batch ? recoveredBy(headers, from) : undefined;
		const context = callContext(target, client, origin, null, null, life, requestId, trace, recovered);
		// Not awaited, so that the body is free once the calls have read it.
		return dispatcher.dispatch(read, context, error).then(httpAnswerOf);
	};
}

/** Proxies requests that match no route. */
export interface RequestProxy {
	/**
	 * Answers the client's `request`, whose body is unread. Either calls `exchange.refuse`, or
	 * `exchange.begin` for the head and then writes the body to `response`. Never throws.
	 */
	handle(request: IncomingMessage, response: ServerResponse, exchange: ProxiedExchange): void;
}

/** The means by which a proxy answers a request of one of the server's clients. */
export interface ProxiedExchange {
	/** Tells a client that waits for 100 Continue to send its body. Nothing else does. */
	goAhead(): void;
	/** Calls `listener` once, when the client has disconnected or the request was answered. */
	onGone(listener: () => void): void;
	/**
	 * Sends the client `answer` instead of an upstream's, and discards the rest of its body. Only
	 * before `begin`.
	 */
	refuse(answer: HttpAnswer): void;
	/**
	 * Writes the head of an upstream's answer to the client; the proxy then writes the body.
	 * `headers` are the upstream's, without hop-by-hop ones. `end` ends an answer that may never
	 * end: the server's shutdown calls it instead of waiting. It is null for other answers. Returns
	 * false if the client has disconnected, or if other requests would wait behind such an answer
	 * on the same connection. The proxy then drops the answer.
	 */
	begin(status: number, headers: OutgoingHttpHeaders, end: (() => void) | null): boolean;
}
