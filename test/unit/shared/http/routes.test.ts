// Routing: which verb on which path goes where, and the answers to what goes nowhere.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createRouter, type Route } from "../../../../shared/http/routes.ts";

function route(path: string): Route {
	return { path, handle: () => ({ status: 200, body: path }) };
}

const find = createRouter(
	["/", "/fast"],
	[route("/livez"), route("/tx/{hash}"), route("/tx/{hash}/events"), route("/fast")],
);

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

test("placeholders cannot reach a prototype", () => {
	const routing = createRouter([], [route("/x/{__proto__}")])("GET", "/x/a");
	assert.ok(routing.kind === "route");
	assert.deepEqual(Object.entries(routing.params), [["__proto__", "a"]]);
	assert.equal(Object.getPrototypeOf(routing.params), Object.prototype);
});

test("two routes of one path are refused at once, whatever their placeholders are called", () => {
	assert.throws(() => createRouter([], [route("/a"), route("/a")]), /the path \/a is served twice/);
	assert.throws(() => createRouter([], [route("/a/{b}"), route("/a/{c}")]), /is served twice/);
});

test("routes of POST take nothing else, and no path is served twice", () => {
	const admin: Route = { ...route("/admin/open"), verb: "POST" };
	const routed = createRouter(["/fast"], [admin, route("/livez")]);
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
	assert.throws(() => createRouter([], [admin, route("/admin/open")]), /served twice/);
	assert.throws(() => createRouter(["/admin/open"], [admin]), /served twice/);
});

test("where there is somebody to pass to, everything on no path of a route goes there, but for preflights", () => {
	const admin: Route = { ...route("/admin/open"), verb: "POST" };
	const passing = createRouter(["/fast"], [route("/tx/{hash}"), admin], true);
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
