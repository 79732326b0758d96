// A table of HTTP requests, each with its exact answer: content types, sizes, paths, verbs, preflights, signatures,
// and bytes that are no HTTP at all.

import { postText, requestText } from "../../support/clients.ts";
import { CALL, error, OK, type Row, testRows } from "../../support/transportServer.ts";

const JSON_TYPE = { "Content-Type": "application/json" };
const CHUNKED = { ...JSON_TYPE, "Transfer-Encoding": "chunked" };
const NO_JSON_TYPE = "invalid request: content-type: expected application/json";
const TOO_LONG = "limit exceeded: the body is longer than 4096 bytes";
const UNKNOWN_PATH = { error: "unknown path" };

/** A Content-Type of a good call. */
function type(contentType: string, status: number): Row {
	const send = requestText("POST", "/fast", { "Content-Type": contentType }, CALL);
	const expected = status === 200 ? OK : error(-32600, NO_JSON_TYPE);
	return { name: `content type ${contentType}`, send, status, body: expected };
}

/** A verb on a path, refused with what is allowed. */
function verb(name: string, path: string, allow: string): Row {
	const send = requestText(name, path);
	const expected = name === "HEAD" ? undefined : { error: `expected one of ${allow}` };
	return {
		name: `${name} ${path}`,
		send,
		status: 405,
		body: expected,
		headers: { allow },
		head: name === "HEAD",
	};
}

/** Bytes that are no request: the answer, then the close. */
function broken(name: string, send: string | Buffer, status: number, message: string): Row {
	return { name, send, status, body: error(-32600, message), closes: true };
}

const NO_HTTP = "invalid request: not HTTP/1.1";

const ROWS: readonly Row[] = [
	// Content types and encodings.
	type("application/json; charset=utf-8", 200),
	type("Application/JSON", 200),
	type("application/vnd.api+json", 200),
	type("application/json-rpc", 415),
	type("text/plain", 415),
	type("text/json", 415),
	type("application/x-www-form-urlencoded", 415),
	type("multipart/form-data; boundary=application/json", 415),
	{ name: "no content type", send: requestText("POST", "/fast", {}, CALL), status: 200, body: OK },
	{
		name: "an empty content type",
		send: requestText("POST", "/fast", { "Content-Type": "" }, CALL),
		status: 200,
		body: OK,
	},
	{
		name: "a compressed body",
		send: requestText("POST", "/fast", { ...JSON_TYPE, "Content-Encoding": "gzip" }, CALL),
		status: 415,
		body: error(-32600, "invalid request: content-encoding: expected none"),
	},
	{
		name: "an encoding that is none",
		send: requestText("POST", "/fast", { ...JSON_TYPE, "Content-Encoding": "identity" }, CALL),
		status: 200,
		body: OK,
	},
	// Sizes.
	{
		name: "a body of the greatest length",
		send: postText("/fast", CALL.padEnd(4096)),
		status: 200,
		body: OK,
	},
	{
		name: "a body one byte longer",
		send: postText("/fast", CALL.padEnd(4097)),
		status: 413,
		body: error(-32005, TOO_LONG),
		closes: true,
	},
	{
		name: "a length that is only announced",
		send: requestText("POST", "/fast", { ...JSON_TYPE, "Content-Length": "999999999" }),
		status: 413,
		body: error(-32005, TOO_LONG),
	},
	// Paths and verbs.
	{ name: "the root", send: postText("/", CALL), status: 200, body: OK },
	{ name: "a slash at the end", send: postText("/noreverts/", CALL), status: 200, body: OK },
	{ name: "a query", send: postText("/fast?softCancellations=true", CALL), status: 200, body: OK },
	{ name: "an absolute target", send: postText("http://relay.test/fast", CALL), status: 200, body: OK },
	{
		name: "POST on an unknown path",
		send: postText("/slow", CALL),
		status: 404,
		body: error(-32600, "invalid request: unknown path"),
	},
	{
		name: "POST on a path in other letters",
		send: postText("/FAST", CALL),
		status: 404,
		body: error(-32600, "invalid request: unknown path"),
	},
	{
		name: "POST out of the tree",
		send: postText("/../fast", CALL),
		status: 404,
		body: error(-32600, "invalid request: unknown path"),
	},
	{ name: "GET on an unknown path", send: requestText("GET", "/slow"), status: 404, body: UNKNOWN_PATH },
	{ name: "GET on a half path", send: requestText("GET", "/echo/"), status: 404, body: UNKNOWN_PATH },
	{
		name: "GET with broken percent signs",
		send: requestText("GET", "/echo/%zz"),
		status: 404,
		body: UNKNOWN_PATH,
	},
	verb("GET", "/", "POST, OPTIONS"),
	verb("GET", "/fast", "POST, OPTIONS"),
	verb("HEAD", "/fast", "POST, OPTIONS"),
	verb("PUT", "/fast", "POST, OPTIONS"),
	verb("DELETE", "/fast", "POST, OPTIONS"),
	verb("PATCH", "/livez", "GET, HEAD, OPTIONS"),
	verb("TRACE", "/fast", "POST, OPTIONS"),
	verb("POST", "/livez", "GET, HEAD, OPTIONS"),
	{
		name: "a route",
		send: requestText("GET", "/echo/a%20b/?x=1&y"),
		status: 200,
		body: { path: "/echo/a%20b", params: { word: "a b" }, query: { x: "1", y: "" }, address: "127.0.0.1" },
	},
	{
		name: "a route's fault",
		send: requestText("GET", "/fault"),
		status: 500,
		body: { error: "internal error" },
	},
	{
		name: "HEAD on a route",
		send: requestText("HEAD", "/livez"),
		status: 200,
		head: true,
		headers: { "content-length": "13" },
	},
	// Preflights.
	{
		name: "a preflight",
		send: requestText("OPTIONS", "/fast", {
			Origin: "https://app.test",
			"Access-Control-Request-Method": "POST",
		}),
		status: 204,
		headers: {
			"access-control-allow-methods": "POST, OPTIONS",
			"access-control-allow-headers": "Content-Type, X-Flashbots-Signature, X-Flashbots-Origin",
			"access-control-max-age": "86400",
			"content-length": undefined,
		},
	},
	{
		name: "a preflight of a route",
		send: requestText("OPTIONS", "/echo/a"),
		status: 204,
		headers: { "access-control-allow-methods": "GET, HEAD, OPTIONS" },
	},
	{ name: "a preflight of nothing", send: requestText("OPTIONS", "/slow"), status: 404, body: UNKNOWN_PATH },
	// Signatures: the test's checker wants "address:length of the body".
	{
		name: "a signature that is none",
		send: postText("/fast", CALL, { "X-Flashbots-Signature": "x" }),
		status: 200,
		body: error(-32600, "invalid request: X-Flashbots-Signature does not verify: malformed", 1),
	},
	{
		name: "a signature of something else",
		send: postText("/fast", `[${CALL},5]`, { "X-Flashbots-Signature": "0xab:1" }),
		status: 200,
		body: [
			error(-32600, "invalid request: X-Flashbots-Signature does not verify: mismatch", 1),
			error(-32600, "invalid request: X-Flashbots-Signature does not verify: mismatch"),
		],
	},
	{
		name: "a good signature",
		send: postText("/fast", CALL, { "X-Flashbots-Signature": `0xab:${CALL.length}` }),
		status: 200,
		body: OK,
	},
	// Bytes that are no HTTP.
	broken("no HTTP at all", "hello relay\r\n\r\n", 400, NO_HTTP),
	broken("TLS on a plain port", Buffer.from("16030100c8010000c403030000", "hex"), 400, NO_HTTP),
	broken("HTTP/2 by prior knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, NO_HTTP),
	broken(
		"a length that is no number",
		"POST /fast HTTP/1.1\r\nHost: x\r\nContent-Length: 1x\r\n\r\n",
		400,
		NO_HTTP,
	),
	broken("a chunk without a length", requestText("POST", "/fast", CHUNKED, "zz\r\n{}\r\n"), 400, NO_HTTP),
	broken(
		"two lengths",
		"POST /fast HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
		400,
		NO_HTTP,
	),
	broken(
		"a length and chunks",
		"POST /fast HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		400,
		NO_HTTP,
	),
	broken("a space before the colon", "POST /fast HTTP/1.1\r\nHost : x\r\n\r\n", 400, NO_HTTP),
	broken(
		"headers without end",
		`GET /livez HTTP/1.1\r\nHost: x\r\nX: ${"y".repeat(20_000)}\r\n\r\n`,
		431,
		"invalid request: the headers are too long",
	),
	// Upgrades that are not to a websocket are offers, which may be ignored.
	{
		name: "an offer of HTTP/2",
		send: postText("/fast", CALL, {
			Connection: "Upgrade, HTTP2-Settings",
			Upgrade: "h2c",
			"HTTP2-Settings": "AAMAAABkAARAAAAAAAIAAAAA",
		}),
		status: 200,
		body: OK,
	},
];

testRows(ROWS);
