// Decides by verb and path how a request is handled: JSON-RPC by the dispatcher, a route by its handler, anything else by the
// proxy or with an error. No path may be served twice, which is checked at the start.

import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Dispatcher } from "../jsonrpc/dispatch.ts";
import type { RpcError } from "../jsonrpc/errors.ts";
import {
	type CallContext,
	type ClientAddress,
	callContext,
	identify,
	type RequestLife,
	type RequestTarget,
	type VerifySignature,
} from "./callContext.ts";
import {
	asksForPage,
	type HttpAnswer,
	httpAnswerOf,
	jsonAnswer,
	type PageFinder,
	rpcErrorAnswer,
} from "./messages.ts";
import type { RateLimiter } from "./rateLimit.ts";

/** A GET or HEAD request, or a POST whose body is not read. */
export interface RouteRequest {
	/** Without a trailing slash. */
	readonly path: string;
	/** The placeholders' values, percent-decoded. */
	readonly params: Readonly<Record<string, string>>;
	readonly query: URLSearchParams;
	readonly headers: IncomingHttpHeaders;
	/** See Client.address. */
	readonly address: string;
}

export interface Route {
	/** "/livez", or with placeholders for one segment each: "/tx/{hash}". */
	readonly path: string;
	/** Default GET, which includes HEAD. The body of a POST is not read. */
	readonly verb?: "GET" | "POST";
	/** In the rate limit; default 0, which is not limited. */
	readonly weight?: number;
	/** A thrown error becomes a 500 without details. */
	handle(request: RouteRequest): Promise<HttpAnswer> | HttpAnswer;
}

export interface RouteMatch {
	readonly route: Route;
	readonly params: Readonly<Record<string, string>>;
}

/** How a request is handled: by the POST handler, a route, the proxy, or with a fixed answer. */
type Routing =
	| { readonly kind: "post" }
	| ({ readonly kind: "route" } & RouteMatch)
	| { readonly kind: "pass" }
	| { readonly kind: "answer"; readonly answer: HttpAnswer };

const PREFLIGHT = {
	"access-control-allow-headers": "Content-Type, X-Flashbots-Signature, X-Flashbots-Origin",
	"access-control-max-age": "86400",
};

export interface Served {
	/** Paths of JSON-RPC over POST, without a trailing slash. */
	readonly rpcPaths: readonly string[];
	readonly routes: readonly Route[];
	/** Pages for browsers. */
	readonly pages?: PageFinder;
}

/** The router of a server. With `passes` requests that match no route are proxied, except preflights. */
export function createRouter(
	{ rpcPaths, routes, pages }: Served,
	passes = false,
): (verb: string, path: string, accept?: string) => Routing {
	const posts = new Set(rpcPaths);
	const find = routeFinder(routes);
	for (const { verb, path } of routes) {
		if (verb === "POST" && posts.has(path)) throw new Error(`the path ${path} is served twice`);
	}
	return (verb, path, accept) => {
		const isRead = verb === "GET" || verb === "HEAD";
		const page = isRead && asksForPage(accept) ? (pages?.(path) ?? null) : null;
		if (page !== null) return { kind: "answer", answer: page };
		const takesRpc = posts.has(path);
		if (takesRpc && verb === "POST") return { kind: "post" };
		const match = find(path);
		const takesPost = match?.route.verb === "POST";
		if (match !== undefined && (takesPost ? verb === "POST" : isRead)) {
			return { kind: "route", ...match };
		}
		const isPassed = passes && match === undefined;
		if (isPassed && verb !== "OPTIONS") return { kind: "pass" };
		if (!isPassed && match === undefined && !takesRpc) return { kind: "answer", answer: unknownPath(verb) };
		// GET on a JSON-RPC path is proxied too, but not listed, since the upstream refuses it.
		const gets = match === undefined ? isPassed && !takesRpc : !takesPost;
		const verbs = `${gets ? "GET, HEAD, " : ""}${takesRpc || takesPost || isPassed ? "POST, " : ""}OPTIONS`;
		return { kind: "answer", answer: verb === "OPTIONS" ? preflight(verbs) : wrongVerb(verbs) };
	};
}

function unknownPath(verb: string): HttpAnswer {
	return verb === "POST"
		? rpcErrorAnswer("invalidRequest", 404, "invalid request: unknown path")
		: jsonAnswer(404, { error: "unknown path" });
}

function preflight(verbs: string): HttpAnswer {
	const headers = { ...PREFLIGHT, "access-control-allow-methods": verbs, allow: verbs };
	return { status: 204, body: null, headers };
}

function wrongVerb(verbs: string): HttpAnswer {
	return jsonAnswer(405, { error: `expected one of ${verbs}` }, { allow: verbs });
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
			const groups = Object.entries(pattern.exec(path)?.groups ?? {});
			const params = groups.map(([name, value]) => [name, decode(value)] as const);
			if (params.length > 0 && params.every(([, value]) => value !== null)) {
				return { route, params: Object.fromEntries(params) as Record<string, string> };
			}
		}
		return undefined;
	};
}

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
	readonly from: ClientAddress;
	/** Unchanged. */
	readonly body: Buffer;
	readonly life: RequestLife;
	/** Set while the server shuts down: the error to answer with. */
	readonly refusal: RpcError | null;
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
	return async ({ target, headers, from, body, life, refusal }) => {
		const limited = limiter.takeBody(from, body.length);
		if (limited !== null) return httpAnswerOf(limited);
		const { client, refused } = identify(headers, from, body, verifySignature);
		const origin = headers.origin ?? null;
		const context = callContext(target, client, origin, null, null, life);
		return httpAnswerOf(await dispatcher.dispatch(body, context, refusal ?? unavailable?.() ?? refused));
	};
}

/** Proxies requests that match no route. */
export interface PassThrough {
	/** Answers `request`, whose body is unread, with `passing` and `response`. Never throws. */
	web(request: IncomingMessage, response: ServerResponse, passing: Passing): void;
}

/** The server's side of a proxied request. */
export interface Passing {
	/** Sends 100 Continue if the client waits for it. Nothing else sends it. */
	goAhead(): void;
	/** Calls `listener` once, when the client has disconnected or the request was answered. */
	onGone(listener: () => void): void;
	/** Sends `answer` and discards the rest of the body. Only before `begin`. */
	refuse(answer: HttpAnswer): void;
	/**
	 * Writes the answer's head; the caller then writes its body. `headers` are the upstream's, without hop-by-hop ones. Give
	 * `end` for an answer that may never end: a stop calls it instead of waiting. Returns false if the client has disconnected
	 * or the connection can't hold a stream; the caller then drops the answer.
	 */
	begin(status: number, headers: OutgoingHttpHeaders, end: (() => void) | null): boolean;
}
