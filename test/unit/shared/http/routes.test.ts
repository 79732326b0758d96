// Which route answers a verb and path, preflights, POST routes and default headers; the last two
// over real connections.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createRouter, type Route } from "../../../../shared/http/routes.ts";
import { postText, RawConnection, requestText } from "../../../support/clients.ts";
import { withTransport } from "../../../support/transportServer.ts";

function route(path: string): Route {
	return { path, handle: () => ({ status: 200, body: path }) };
}

const admin: Route = { ...route("/admin/open"), verb: "POST" };
const ROUTERS = {
	serving: createRouter({
		rpcPaths: ["/", "/fast"],
		routes: [route("/livez"), route("/tx/{hash}"), route("/tx/{hash}/events"), route("/fast"), admin],
	}),
	proxying: createRouter({ rpcPaths: ["/fast"], routes: [route("/tx/{hash}"), admin] }, true),
};

/** How verbs on a path are handled: `rpc`, a route, `proxy`, or a status with the allowed verbs. */
const ROUTED: readonly [router: keyof typeof ROUTERS, verbs: string, path: string, expected: string][] = [
	["serving", "POST", "/", "rpc"],
	["serving", "POST", "/fast", "rpc"],
	["serving", "GET HEAD", "/fast", "/fast"],
	["serving", "GET HEAD", "/tx/0xab%20c/events", '/tx/{hash}/events {"hash":"0xab c"}'],
	["serving", "POST", "/admin/open", "/admin/open"],
	["serving", "GET POST OPTIONS", "/nope", "404"],
	...["/tx", "/tx/", "/tx/a/b", "/tx/%E0%A4%A", "/tx/a/events/b", "/__proto__"].map(
		(path): (typeof ROUTED)[number] => ["serving", "GET", path, "404"],
	),
	["serving", "GET HEAD post", "/", "405 POST, OPTIONS"],
	["serving", "PUT", "/fast", "405 GET, HEAD, POST, OPTIONS"],
	["serving", "POST", "/livez", "405 GET, HEAD, OPTIONS"],
	["serving", "GET HEAD PUT", "/admin/open", "405 POST, OPTIONS"],
	["serving", "OPTIONS", "/", "204 POST, OPTIONS"],
	["serving", "OPTIONS", "/fast", "204 GET, HEAD, POST, OPTIONS"],
	["serving", "OPTIONS", "/tx/a", "204 GET, HEAD, OPTIONS"],
	["serving", "OPTIONS", "*", "204 GET, HEAD, POST, OPTIONS"],
	["proxying", "OPTIONS", "*", "204 GET, HEAD, POST, OPTIONS"],
	// Requests on other paths are proxied, except preflights; requests to a route never are, since
	// they may hold a token.
	["proxying", "POST", "/fast", "rpc"],
	["proxying", "GET PUT", "/fast", "405 POST, OPTIONS"],
	["proxying", "GET HEAD", "/tx/a", '/tx/{hash} {"hash":"a"}'],
	["proxying", "GET", "/tx/a/events", "proxy"],
	["proxying", "POST", "/fullprivacy", "proxy"],
	["proxying", "GET", "/admin/open", "405 POST, OPTIONS"],
	["proxying", "POST", "/tx/a", "405 GET, HEAD, OPTIONS"],
	["proxying", "OPTIONS", "/fast", "204 POST, OPTIONS"],
	["proxying", "OPTIONS", "/fullprivacy", "204 GET, HEAD, POST, OPTIONS"],
];

test("verb and path decide who answers, or the refusal; no path is served twice", () => {
	for (const [router, verbs, path, expected] of ROUTED) {
		for (const verb of verbs.split(" ")) {
			const routing = ROUTERS[router]({ method: verb, headers: {} }, path);
			const params = routing.kind === "route" ? JSON.stringify(routing.params) : "{}";
			const actual =
				routing.kind === "answer"
					? `${routing.answer.status} ${routing.answer.headers?.allow ?? ""}`
					: routing.kind === "route"
						? `${routing.route.path} ${params === "{}" ? "" : params}`
						: routing.kind;
			assert.equal(actual.trim(), expected, `${verb} ${path}`);
		}
	}
	for (const routes of [
		[route("/a/{b}"), route("/a/{c}")],
		[admin, route("/admin/open")],
	]) {
		assert.throws(() => createRouter({ rpcPaths: [], routes }), /served twice/);
	}
	assert.throws(() => createRouter({ rpcPaths: ["/admin/open"], routes: [admin] }), /served twice/);
});

const HEADERS = "Content-Type, X-Flashbots-Signature, X-Leeward-Signature, X-Flashbots-Origin, X-Request-Id";
/** The headers that a preflight asks for, and those that it is granted. */
const ASKED: readonly (readonly [asked: string | undefined, granted: string])[] = [
	[undefined, HEADERS],
	["", HEADERS],
	["content-type", "content-type"],
	[
		"baggage,content-type,sentry-trace,traceparent,x-dapp",
		"baggage, content-type, sentry-trace, traceparent, x-dapp",
	],
	["X-A , X-B", "X-A, X-B"],
	["x-a,,x b,x:c,\u00e9,x-d\r\nset-cookie: a=1,*", "x-a, *"],
	[`x-${"a".repeat(5_000)}`, HEADERS],
];

test("a preflight is granted the headers that it asks for, on any path; none may carry credentials", () => {
	const page = { origin: "https://dapp.test", "access-control-request-method": "POST" };
	for (const [asked, granted] of ASKED) {
		const more = asked === undefined ? {} : { "access-control-request-headers": asked };
		for (const [router, path, verbs] of [
			["serving", "/fast", "GET, HEAD, POST, OPTIONS"],
			["serving", "/nope", "GET, HEAD, POST, OPTIONS"],
			["serving", "/livez", "GET, HEAD, OPTIONS"],
			["proxying", "/fast", "POST, OPTIONS"],
			["proxying", "/nope", "GET, HEAD, POST, OPTIONS"],
		] as const) {
			const routing = ROUTERS[router]({ method: "OPTIONS", headers: { ...page, ...more } }, path);
			assert.ok(routing.kind === "answer");
			assert.deepEqual(routing.answer, {
				...{ status: 204, body: null },
				headers: {
					"access-control-allow-headers": granted,
					"access-control-allow-methods": verbs,
					"access-control-max-age": "86400",
					allow: verbs,
					vary: "Access-Control-Request-Headers",
				},
			});
		}
	}
});

const ROUTES: readonly Route[] = [
	{
		...{ path: "/act", verb: "POST" },
		handle: ({ query }) => ({ status: 200, body: JSON.stringify({ q: query.get("q") }) }),
	},
	{ path: "/page", handle: () => ({ status: 200, body: "{}", headers: { "x-who": "the page" } }) },
];

test("a POST route is answered whatever its body is", () =>
	withTransport({ routes: ROUTES }, async ({ port }) => {
		const connection = await RawConnection.open(port);
		const ask = async (bytes: Buffer) => {
			connection.write(bytes);
			return connection.answer();
		};
		const plain = { "Content-Type": "text/plain" };
		assert.equal((await ask(requestText("POST", "/act?q=1", plain, "x".repeat(900)))).body, '{"q":"1"}');
		assert.equal((await ask(requestText("POST", "/act"))).body, '{"q":null}');
		// A body that may be long is not read to its end.
		const { status, headers } = await ask(requestText("POST", "/act", { "Content-Length": "1000000" }, "x"));
		assert.deepEqual([status, headers.connection], [200, "close"]);
		connection.destroy();
	}));

test("default headers are in every answer except preflights, unless the answer has its own", () => {
	let count = 0;
	const headersFor = () => ({ "x-who": `server ${++count}` });
	const rows: [Buffer | string, number, string | undefined][] = [
		[requestText("GET", "/nowhere"), 404, "server 1"],
		[requestText("GET", "/fast"), 405, "server 2"],
		[requestText("POST", "/fast", { "Content-Type": "text/html" }, "{}"), 415, "server 3"],
		[requestText("POST", "/fast", {}, "x".repeat(5_000)), 413, "server 4"],
		[postText("/fast", {}), 200, "server 5"],
		[requestText("GET", "/page"), 200, "the page"],
		[requestText("OPTIONS", "/fast"), 204, undefined],
		["nonsense\r\n\r\n", 400, "server 7"],
		[requestText("CONNECT", "elsewhere.test:80"), 405, "server 8"],
	];
	return withTransport({ routes: ROUTES, headersFor, exposedHeaders: ["X-Who"] }, async ({ port }) => {
		for (const [bytes, status, who] of rows) {
			const connection = await RawConnection.open(port);
			connection.write(bytes);
			const answer = await connection.answer();
			assert.deepEqual([answer.status, answer.headers["x-who"]], [status, who], String(bytes).slice(0, 40));
			connection.destroy();
		}
	});
});
