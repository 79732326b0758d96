// Decides by verb and path who serves a request, or how it is refused. The table is checked when it is made,
// so that no path is served twice.

import type { IncomingHttpHeaders } from "node:http";
import { type HttpAnswer, jsonAnswer, rpcErrorAnswer } from "./httpAnswer.ts";

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
export type Routing =
	| { readonly kind: "post" }
	| ({ readonly kind: "route" } & RouteMatch)
	| { readonly kind: "pass" }
	| { readonly kind: "answer"; readonly answer: HttpAnswer };

const POST: Routing = { kind: "post" };
const PASS: Routing = { kind: "pass" };
const PREFLIGHT = {
	"access-control-allow-headers": "Content-Type, X-Flashbots-Signature, X-Flashbots-Origin",
	"access-control-max-age": "86400",
};

/**
 * The router of a server that takes POST on `rpcPaths`, and what its routes take. `passes`: all that is on no path of a
 * route is passed on, but for preflights.
 */
export function createRouter(
	rpcPaths: readonly string[],
	routes: readonly Route[],
	passes = false,
): (verb: string, path: string) => Routing {
	const posts = new Set(rpcPaths);
	const find = routeFinder(routes);
	for (const { verb, path } of routes) {
		if (verb === "POST" && posts.has(path)) throw new Error(`the path ${path} is served twice`);
	}
	return (verb, path) => {
		const takesRpc = posts.has(path);
		if (takesRpc && verb === "POST") return POST;
		const match = find(path);
		const takesPost = match?.route.verb === "POST";
		if (match !== undefined && (takesPost ? verb === "POST" : verb === "GET" || verb === "HEAD")) {
			return { kind: "route", ...match };
		}
		const isPassed = passes && match === undefined;
		if (isPassed && verb !== "OPTIONS") return PASS;
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

const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({});

/** Finds routes by path. Throws at once where two routes have one path. */
function routeFinder(routes: readonly Route[]): (path: string) => RouteMatch | undefined {
	const exact = new Map<string, RouteMatch>();
	const patterns: { segments: readonly string[]; route: Route }[] = [];
	const seen = new Set<string>();
	for (const route of routes) {
		const shape = route.path.replace(/\{\w+\}/g, "{}");
		if (seen.has(shape)) throw new Error(`the path ${route.path} is served twice`);
		seen.add(shape);
		if (shape === route.path) exact.set(route.path, { route, params: NO_PARAMS });
		else patterns.push({ segments: route.path.split("/"), route });
	}
	return (path) => {
		const found = exact.get(path);
		if (found !== undefined || patterns.length === 0) return found;
		const given = path.split("/");
		for (const { segments, route } of patterns) {
			const params = match(segments, given);
			if (params !== undefined) return { route, params };
		}
		return undefined;
	};
}

function match(segments: readonly string[], given: readonly string[]): Record<string, string> | undefined {
	if (segments.length !== given.length) return undefined;
	const entries: [string, string][] = [];
	for (const [i, segment] of segments.entries()) {
		const value = given[i] ?? "";
		const name = /^\{(\w+)\}$/.exec(segment)?.[1];
		if (name === undefined) {
			if (segment !== value) return undefined;
			continue;
		}
		const decoded = decode(value);
		if (decoded === undefined || decoded === "") return undefined;
		entries.push([name, decoded]);
	}
	return Object.fromEntries(entries);
}

function decode(segment: string): string | undefined {
	try {
		return decodeURIComponent(segment);
	} catch {
		return undefined;
	}
}
