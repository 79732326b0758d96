// Decides by verb and path who serves a request, or how it is refused: JSON-RPC over POST goes to a dispatcher, a route to its
// handler, and what is on no path to whoever passes it on, unread. The table is checked when it is made, so that no path is
// served twice.

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

/** A GET request (HEAD is answered like GET, without the body), or a POST whose body nobody reads. */
export interface RouteRequest {
	/** As matched, without a slash at its end. */
	readonly path: string;
	/** The placeholders' values, percent-decoded. */
	readonly params: Readonly<Record<string, string>>;
	readonly query: URLSearchParams;
	readonly headers: IncomingHttpHeaders;
	/** The client's address, see Client.address. */
	readonly address: string;
}

/** What is served at a path. */
export interface Route {
	/** "/livez", or with placeholders that take one segment each: "/tx/{hash}". */
	readonly path: string;
	/** GET unless said, which takes HEAD too. What a POST brings as its body is not read. */
	readonly verb?: "GET" | "POST";
	/** What a request weighs in the rate limit; 0 unless said: not limited. */
	readonly weight?: number;
	/** Answers; a fault that it throws becomes a 500 without details. */
	handle(request: RouteRequest): Promise<HttpAnswer> | HttpAnswer;
}

/** A route and the values of its placeholders. */
export interface RouteMatch {
	readonly route: Route;
	readonly params: Readonly<Record<string, string>>;
}

/** What to do with a request: give it to the POST handler, to a route, pass it on, or answer it at once. */
type Routing =
	| { readonly kind: "post" }
	| ({ readonly kind: "route" } & RouteMatch)
	| { readonly kind: "pass" }
	| { readonly kind: "answer"; readonly answer: HttpAnswer };

const PREFLIGHT = {
	"access-control-allow-headers": "Content-Type, X-Flashbots-Signature, X-Flashbots-Origin",
	"access-control-max-age": "86400",
};

/** What a server serves. */
export interface Served {
	/** Paths that take POST, without a slash at their end. */
	readonly rpcPaths: readonly string[];
	/** What is served beside that, by path. */
	readonly routes: readonly Route[];
	/** What browsers get where they ask for HTML. */
	readonly pages?: PageFinder;
}

/** The router of a server. `passes`: all that is on no path of a route is passed on, but for preflights. */
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
		// A GET on a path of JSON-RPC is passed on, too, and refused there: it is no verb to offer.
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

/** Finds routes by path. Throws at once where two routes have one path. */
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
	/** Who sent it, by its connection and headers. */
	readonly from: ClientAddress;
	/** As it came, at most as long as the server reads. */
	readonly body: Buffer;
	readonly life: RequestLife;
	/** Set while the server shuts down: the request shall be refused with it. */
	readonly refusal: RpcError | null;
}

/** Answers a POST; never rejects. */
export type PostHandler = (request: PostRequest) => Promise<HttpAnswer>;

interface RpcOverHttpDependencies {
	readonly dispatcher: Dispatcher<CallContext>;
	/** Takes what a body weighs. */
	readonly limiter: Pick<RateLimiter, "takeBody">;
	/** Where absent, the header `X-Flashbots-Signature` is refused. */
	readonly verifySignature?: VerifySignature;
	/** Why no request can be served well now, or null: answered with 503. */
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

/** Takes requests that the server has no route for. Websockets are an UpgradeHandler's. */
export interface PassThrough {
	/** Answers `request`, of whose body nothing was read, by `passing` and then on `response`. Never throws. */
	web(request: IncomingMessage, response: ServerResponse, passing: Passing): void;
}

/** A request that was handed over, as its server sees it. */
export interface Passing {
	/** Sends 100 Continue to a client that waits for it before it sends the body; it is sent here alone. */
	goAhead(): void;
	/** Calls `listener` once, when the client is gone or the request was answered, also before `begin`. */
	onGone(listener: () => void): void;
	/** Answers with `answer` instead; the rest of the body is read and forgotten. For before `begin`. */
	refuse(answer: HttpAnswer): void;
	/**
	 * Writes the answer's head; its body is then the caller's to write. `headers` are those of whoever answered, without
	 * those of that connection. `end` is given where the answer may never end: it then holds up no stop, which calls
	 * `end` instead. Returns false where the client is gone, or the answer may not go on: then the caller drops it.
	 */
	begin(status: number, headers: OutgoingHttpHeaders, end: (() => void) | null): boolean;
}
