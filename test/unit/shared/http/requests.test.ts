// What a request asks: the forms of its target, which verb on which path goes where, which Accept wants an event stream, and
// what a submission's query means and how much of it is kept; routes of POST and headers of every answer, over connections.

import assert from "node:assert/strict";
import { test } from "node:test";
import { readTarget } from "../../../../shared/http/callContext.ts";
import { asksForEvents } from "../../../../shared/http/eventStreams.ts";
import { createRouter, type Route } from "../../../../shared/http/routes.ts";
import {
	boundedQuery,
	MAX_REFERRER_LENGTH,
	readSubmissionQuery,
} from "../../../../shared/http/submissionQuery.ts";
import { postText, RawConnection, requestText } from "../../../support/clients.ts";
import { withTransport } from "../../../support/transportServer.ts";

test("a target is a path in one form and a query as text", () => {
	const rows: [string, string, string][] = [
		["/", "/", ""],
		["/fast", "/fast", ""],
		["/fast/", "/fast", ""],
		["/fast///", "/fast", ""],
		["//", "/", ""],
		["/fast?a=b", "/fast", "a=b"],
		["/fast/?a=b", "/fast", "a=b"],
		["/?a=/&b=?", "/", "a=/&b=?"],
		["/fast?", "/fast", ""],
		["/FAST", "/FAST", ""],
		["/f%61st", "/f%61st", ""],
		["http://relay.example/fast?a=b", "/fast", "a=b"],
		["HTTPS://relay.example:8080", "/", ""],
		["http://relay.example?a=b", "/", "a=b"],
		["*", "*", ""],
		["relay.example:443", "relay.example:443", ""],
		["", "", ""],
	];
	for (const [target, path, search] of rows) assert.deepEqual(readTarget(target), { path, search }, target);
});

function route(path: string): Route {
	return { path, handle: () => ({ status: 200, body: path }) };
}

const find = createRouter({
	rpcPaths: ["/", "/fast"],
	routes: [route("/livez"), route("/tx/{hash}"), route("/tx/{hash}/events"), route("/fast")],
});

test("POST goes to the POST handler on its paths, GET and HEAD to routes", () => {
	assert.deepEqual(find("POST", "/"), { kind: "post" });
	assert.deepEqual(find("POST", "/fast"), { kind: "post" });
	for (const verb of ["GET", "HEAD"]) {
		const routing = find(verb, "/tx/0xab%20c/events");
		assert.equal(routing.kind, "route");
		assert.ok(routing.kind === "route");
		assert.equal(routing.route.path, "/tx/{hash}/events");
		assert.deepEqual(routing.params, { hash: "0xab c" });
	}
	assert.equal(find("GET", "/fast").kind, "route");
});

test("unknown paths are 404, wrong verbs 405 with what is allowed", () => {
	const rows: [string, string, number, string | undefined][] = [
		["GET", "/nope", 404, undefined],
		["POST", "/nope", 404, undefined],
		["OPTIONS", "/nope", 404, undefined],
		["GET", "/tx", 404, undefined],
		["GET", "/tx/", 404, undefined],
		["GET", "/tx/a/b", 404, undefined],
		["GET", "/tx/%E0%A4%A", 404, undefined],
		["GET", "/tx/a/events/b", 404, undefined],
		["GET", "/__proto__", 404, undefined],
		["GET", "/", 405, "POST, OPTIONS"],
		["HEAD", "/", 405, "POST, OPTIONS"],
		["PUT", "/fast", 405, "GET, HEAD, POST, OPTIONS"],
		["POST", "/livez", 405, "GET, HEAD, OPTIONS"],
		["DELETE", "/tx/a", 405, "GET, HEAD, OPTIONS"],
		["post", "/", 405, "POST, OPTIONS"],
		["OPTIONS", "/", 204, "POST, OPTIONS"],
		["OPTIONS", "/fast", 204, "GET, HEAD, POST, OPTIONS"],
		["OPTIONS", "/tx/a", 204, "GET, HEAD, OPTIONS"],
	];
	for (const [verb, path, status, allow] of rows) {
		const routing = find(verb, path);
		assert.ok(routing.kind === "answer", `${verb} ${path}`);
		assert.equal(routing.answer.status, status, `${verb} ${path}`);
		assert.equal(routing.answer.headers?.allow, allow, `${verb} ${path}`);
	}
});

test("routes of POST take nothing else, and no path is served twice", () => {
	const admin: Route = { ...route("/admin/open"), verb: "POST" };
	const routed = createRouter({ rpcPaths: ["/fast"], routes: [admin, route("/livez")] });
	assert.equal(routed("POST", "/admin/open").kind, "route");
	for (const [verb, status] of [
		["GET", 405],
		["HEAD", 405],
		["PUT", 405],
		["OPTIONS", 204],
	] as const) {
		const routing = routed(verb, "/admin/open");
		assert.ok(routing.kind === "answer", verb);
		assert.deepEqual([routing.answer.status, routing.answer.headers?.allow], [status, "POST, OPTIONS"], verb);
	}
	assert.throws(
		() => createRouter({ rpcPaths: [], routes: [route("/a/{b}"), route("/a/{c}")] }),
		/served twice/,
	);
	assert.throws(() => createRouter({ rpcPaths: [], routes: [admin, route("/admin/open")] }), /served twice/);
	assert.throws(() => createRouter({ rpcPaths: ["/admin/open"], routes: [admin] }), /served twice/);
});

test("where there is somebody to pass to, everything on no path of a route goes there, but for preflights", () => {
	const admin: Route = { ...route("/admin/open"), verb: "POST" };
	const passing = createRouter({ rpcPaths: ["/fast"], routes: [route("/tx/{hash}"), admin] }, true);
	const rows: [string, string, string][] = [
		["POST", "/fast", "post"],
		["GET", "/fast", "pass"],
		["PUT", "/fast", "pass"],
		["GET", "/tx/a", "route"],
		["HEAD", "/tx/a", "route"],
		["GET", "/tx/a/events", "pass"],
		["POST", "/fullprivacy", "pass"],
		["DELETE", "/", "pass"],
		["POST", "/admin/open", "route"],
		// A token on its way to a route of ours goes nowhere else.
		["GET", "/admin/open", "405 POST, OPTIONS"],
		["POST", "/tx/a", "405 GET, HEAD, OPTIONS"],
		["OPTIONS", "/fast", "204 POST, OPTIONS"],
		["OPTIONS", "/fullprivacy", "204 GET, HEAD, POST, OPTIONS"],
		["OPTIONS", "/tx/a", "204 GET, HEAD, OPTIONS"],
	];
	for (const [verb, path, expected] of rows) {
		const routing = passing(verb, path);
		const { kind } = routing;
		const told = kind === "answer" ? `${routing.answer.status} ${routing.answer.headers?.allow}` : kind;
		assert.equal(told, expected, `${verb} ${path}`);
	}
});

const ACCEPTS: readonly (readonly [accept: string | undefined, asks: boolean])[] = [
	["text/event-stream", true],
	["Text/Event-Stream", true],
	[" text/event-stream ; charset=utf-8", true],
	["text/event-stream, */*;q=0.1", true],
	["text/html, text/event-stream", true],
	["text/event-stream, application/json", true],
	[",, text/event-stream,", true],
	[undefined, false],
	["", false],
	["*/*", false],
	["text/*", false],
	["text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", false],
	["application/json", false],
	["application/json, text/event-stream", false],
	["text/event-streams", false],
	["event-stream", false],
	['x/y;a="text/event-stream"', false],
];

test("a stream is asked for by its full name, before JSON", () => {
	for (const [accept, asks] of ACCEPTS) assert.equal(asksForEvents(accept), asks, String(accept));
});

const NOTHING = { softCancellations: false, refundRecipient: null, referrer: null };
const ADDRESS = `0x${"Ab".repeat(20)}`;
const SMILES = "\u{1f600}".repeat(MAX_REFERRER_LENGTH);

const TAKEN: readonly (readonly [string, object])[] = [
	["", {}],
	["?unknown=1&cancelSoftly=true", {}],
	["?softCancellations=true", { softCancellations: true }],
	["?softCancellations=1", { softCancellations: true }],
	["?softcancel=1", { softCancellations: true }],
	["?softcancel=true", { softCancellations: true }],
	["?softcancel=0&softCancellations=false", {}],
	["?softcancel=0&softCancellations=true", { softCancellations: true }],
	[`?refundRecipient=${ADDRESS}`, { refundRecipient: ADDRESS.toLowerCase() }],
	["?referrer=a%20wallet", { referrer: "a wallet" }],
	[
		`?REFUNDRECIPIENT=${ADDRESS}&SoftCancel=1`,
		{ softCancellations: true, refundRecipient: ADDRESS.toLowerCase() },
	],
	["?referrer=", {}],
	[`?referrer=${encodeURIComponent(SMILES)}`, { referrer: SMILES }],
];

test("of a submission's query each spelling is taken", () => {
	for (const [search, expected] of TAKEN) {
		assert.deepEqual(readSubmissionQuery(new URLSearchParams(search)), { ...NOTHING, ...expected }, search);
	}
});

test("a near miss of a known name is refused with the right one", () => {
	for (const [search, message] of [
		["?refundRecipent=0x12", "refundRecipent: expected the name refundRecipient"],
		["?softCancelation=true", "softCancelation: expected the name softCancellations"],
		["?referer=a", "referer: expected the name referrer"],
		["?REFERRER=a&referrer=b", "referrer: expected once"],
	] as const) {
		assert.throws(() => readSubmissionQuery(new URLSearchParams(search)), {
			kind: "invalidParams",
			message: `invalid params: ${message}`,
		});
	}
});

test("a query of ordinary length is kept as it came", () => {
	for (const search of ["", "softcancel=1", "%", "a&a&b=%zz", `x=${"y".repeat(1_022)}`]) {
		assert.equal(boundedQuery(search), search);
	}
});

test("of a longer one the known parameters are kept, and mean what they meant", () => {
	const address = `0x${"ab".repeat(20)}`;
	const search = `x=${"y".repeat(9_000)}&softcancel=1&refundRecipient=${address}&referrer=%C3%A9`;
	const kept = boundedQuery(search);
	assert.ok(kept.length < 200, kept);
	assert.deepEqual(readSubmissionQuery(new URLSearchParams(kept)), {
		softCancellations: true,
		refundRecipient: address,
		referrer: "é",
	});
});

test("what was refused in full is refused when it is cut", () => {
	const long = `x=${"y".repeat(2_000)}`;
	for (const bad of [`referrer=${"z".repeat(5_000)}`, "softcancel=1&softcancel=0", "refundRecipient=0x12"]) {
		const kept = boundedQuery(`${bad}&${long}`);
		assert.ok(kept.length <= 1_024, String(kept.length));
		assert.throws(() => readSubmissionQuery(new URLSearchParams(kept)), /invalid params/);
	}
});

const ROUTES: readonly Route[] = [
	{
		...{ path: "/act", verb: "POST" },
		handle: ({ query }) => ({ status: 200, body: JSON.stringify({ q: query.get("q") }) }),
	},
	{ path: "/page", handle: () => ({ status: 200, body: "{}", headers: { "x-who": "the page" } }) },
];

test("a route of POST is answered whatever its body is", () =>
	withTransport({ routes: ROUTES }, async ({ port }) => {
		const connection = await RawConnection.open(port);
		const ask = async (bytes: Buffer) => {
			connection.write(bytes);
			return connection.answer();
		};
		const plain = { "Content-Type": "text/plain" };
		assert.equal((await ask(requestText("POST", "/act?q=1", plain, "x".repeat(900)))).body, '{"q":"1"}');
		assert.equal((await ask(requestText("POST", "/act"))).body, '{"q":null}');
		// One that could be long is not waited for.
		const { status, headers } = await ask(requestText("POST", "/act", { "Content-Length": "1000000" }, "x"));
		assert.deepEqual([status, headers.connection], [200, "close"]);
		connection.destroy();
	}));

test("headers of every answer, but of preflights, unless the answer has its own", () => {
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
