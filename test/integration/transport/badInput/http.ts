// Bad HTTP with its exact answers: bytes that are not HTTP or contradict themselves, and bodies,
// verbs, paths, types, lengths and signatures that are not served; and what is just right.

import { gzipSync } from "node:zlib";
import { createBodySigner } from "../../../../shared/ethereum/signatures.ts";
import { type BytesRow, type Expected, failure, type HttpRow, success } from "./fixture.ts";
import type { WireRequest } from "./wire.ts";

/** The relay's limit unless a setting says otherwise, in bytes. */
const MAX_BODY_BYTES = 2 * 1024 * 1024;

/** A call that is always answered, and its answer on the test chain. */
export const GOOD = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}';
export const GOOD_ANSWER = success(1, "0x7a69");

const SERVED: Expected = { status: 200, answer: GOOD_ANSWER };
const closing = (status: number, message: string, code = -32600): Expected => ({
	...{ status, answer: failure(null, code, message), headers: { connection: "close" } },
});
const NOT_HTTP = closing(400, "invalid request: not HTTP/1.1");
const LONG_HEAD = closing(431, "invalid request: the headers are too long");
const TOO_LONG = closing(413, `limit exceeded: the body is longer than ${MAX_BODY_BYTES} bytes`, -32005);
const NOT_JSON: Expected = { status: 400, answer: failure(null, -32700, "parse error: not JSON") };
const NOT_UTF8: Expected = { status: 400, answer: failure(null, -32700, "parse error: not UTF-8") };
const WRONG_TYPE = refusedPost(415, "content-type: expected application/json", 1);
const WRONG_CODING = refusedPost(415, "content-encoding: expected none");
const NO_PATH = refusedPost(404, "unknown path", 1);
const NO_PAGE: Expected = { status: 404, answer: { error: "unknown path" } };

/** `id`: that of the call in the body, if it is read. */
function refusedPost(status: number, what: string, id: number | null = null): Expected {
	return { status, answer: failure(id, -32600, `invalid request: ${what}`) };
}

/** A request with these header lines beside `Host`. */
function post(lines: readonly string[], body = "", target = "/"): string {
	return `${[`POST ${target} HTTP/1.1`, "Host: x", ...lines].join("\r\n")}\r\n\r\n${body}`;
}

const LENGTH = `Content-Length: ${GOOD.length}`;
const HUGE = "Content-Length: 9999999";
const TYPE = "Content-Type: application/json";
const CHUNKED = "Transfer-Encoding: chunked";
const WAITS = "Expect: 100-continue";
const ENDLESS = Buffer.concat([Buffer.from(post([CHUNKED], "300000\r\n")), Buffer.alloc(0x300000, 0x20)]);
const OFFER = ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk", LENGTH];

function bytes(expected: Expected, rows: Readonly<Record<string, string | Buffer>>): BytesRow[] {
	return Object.entries(rows).map(([name, sent]) => ({ name, bytes: sent, ...expected }));
}

export const BROKEN_HTTP_ROWS: readonly BytesRow[] = [
	...bytes(NOT_HTTP, {
		"a TLS greeting": Buffer.from("16030102000100", "hex"),
		"the preface of HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"JSON without HTTP": `${GOOD}\n`,
		"random bytes": Buffer.from("00ff80c0deadbeef0d0a0d0a", "hex"),
		"an unknown verb": "FOO / HTTP/1.1\r\nHost: x\r\n\r\n",
		"a verb in lower case": "post / HTTP/1.1\r\nHost: x\r\n\r\n",
		"an unknown version": "POST / HTTP/9.9\r\nHost: x\r\n\r\n",
		"a target without a slash": post([], "", "fast"),
		"a control character in the target": post([], "", "/\x01"),
		"a header without a colon": post(["Nonsense"]),
		"a space before the colon": post(["Nonsense : x"]),
		"a header with a NUL": post(["X: a\0b"]),
		"two lengths": post(["Content-Length: 5", "Content-Length: 6"], "12345"),
		"a length below zero": post(["Content-Length: -5"], "12345"),
		"a length in hex": post(["Content-Length: 0x5"], "12345"),
		"a length of 2^76": post([`Content-Length: ${2n ** 76n}`]),
		"a length and chunks": post(["Content-Length: 5", CHUNKED], "0\r\n\r\n"),
		"a transfer encoding of gzip": post(["Transfer-Encoding: gzip"], "x"),
		"a chunk without a length": post([CHUNKED], "zz\r\n"),
		"a chunk that is longer than it says": post([CHUNKED], "2\r\nabcd\r\n0\r\n\r\n"),
	}),
	...bytes(LONG_HEAD, {
		"a header of 20 KB": post([`X: ${"a".repeat(20_000)}`]),
		"a target of 20 KB": post([], "", `/${"a".repeat(20_000)}`),
	}),
	...bytes(TOO_LONG, {
		"an announced body of 10 MB that never comes": post([HUGE]),
		"an announced body of 10 MB whose sender waits for a go-ahead": post([HUGE, WAITS]),
		"chunks without an end": ENDLESS,
	}),
	{ name: "no Host", bytes: "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", status: 400 },
	{ name: "an unknown expectation", bytes: post(["Expect: nonsense", LENGTH], GOOD), status: 417 },
	{ name: "a body that ends early", bytes: post(["Content-Length: 100"], GOOD), half: true, ...NOT_HTTP },
	{ name: "a head that ends early", bytes: "POST / HTTP/1.1\r\nHost: x\r\n", half: true, ...NOT_HTTP },
	{ name: "nothing", bytes: "", half: true, silent: true, status: 0 },
	{
		name: "the verb CONNECT",
		bytes: "CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n",
		...notAllowed("POST, OPTIONS"),
	},
	...["OPTIONS * HTTP/1.1\r\nHost: x", "OPTIONS * HTTP/1.0"].map((head) => ({
		...{ name: head.replace("\r\n", ", "), bytes: `${head}\r\n\r\n`, status: 204 },
		headers: { allow: "GET, HEAD, POST, OPTIONS" },
	})),
	// HAProxy's request by default.
	{
		...{ name: "OPTIONS / without a Host", bytes: "OPTIONS / HTTP/1.0\r\n\r\n", status: 204 },
		headers: { allow: "GET, HEAD, POST, OPTIONS" },
	},
	...bytes(SERVED, {
		"an upgrade to HTTP/2 is not taken up, the request is answered": post(OFFER, GOOD),
		"a sender that waits for a 100 gets it, and the answer": post([WAITS, LENGTH], GOOD),
		"the content type twice is served": post([TYPE, TYPE, LENGTH], GOOD),
		"HTTP/1.0 is served": `POST / HTTP/1.0\r\n${LENGTH}\r\n\r\n${GOOD}`,
		"a target with the server's name is served": post([LENGTH], GOOD, "http://relay.example/fast"),
	}),
];

const good = (name: string, send: WireRequest): HttpRow => ({
	...{ name: `${name} is taken`, send: { body: GOOD, ...send }, ...SERVED },
});

function bodies(expected: Expected, rows: Readonly<Record<string, string | Uint8Array>>): HttpRow[] {
	return Object.entries(rows).map(([name, body]) => ({ name, send: { body }, ...expected }));
}

const UNPARSABLE: readonly HttpRow[] = [
	{ name: "no body at all", send: {}, ...NOT_JSON },
	...bodies(NOT_JSON, {
		"an empty body": "",
		spaces: "  \r\n\t",
		"JSON that was cut off": GOOD.slice(0, -1),
		"JSON that was cut off in a string": GOOD.slice(0, 20),
		"something behind the JSON": `${GOOD}x`,
		"two documents": GOOD + GOOD,
		"a byte order mark before the JSON": `\ufeff${GOOD}`,
		"a NUL behind the JSON": `${GOOD}\0`,
		"a lone brace": "{",
		"four thousand opening brackets": "[".repeat(4_000),
		"a word cut off": "nul",
		NaN: "NaN",
		"single quotes": "{'id':1,'method':'eth_chainId'}",
		"names without quotes": '{id:1,method:"eth_chainId"}',
		"a comma too many": `[${GOOD},]`,
		"a comment": `/* */${GOOD}`,
		"a number with a leading zero": '{"id":01,"method":"eth_chainId"}',
		"a line break in a string": '{"id":"a\nb","method":"eth_chainId"}',
		"an unknown escape": '{"id":"\\x41","method":"eth_chainId"}',
		"a form": "method=eth_chainId&id=1",
		XML: "<?xml version='1.0'?><methodCall/>",
		"UTF-16": Buffer.from(GOOD, "utf16le"),
		zeros: Buffer.alloc(1_000),
	}),
	...bodies(NOT_UTF8, {
		"bytes that are no UTF-8": Buffer.from([0x7b, 0xff, 0xfe, 0x7d]),
		"an overlong UTF-8 form": Buffer.from([0x22, 0xc0, 0x80, 0x22]),
		"a surrogate as UTF-8": Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]),
		"UTF-8 cut off in a character": Buffer.from([0x22, 0xe2, 0x82, 0x22]),
		"Latin-1": Buffer.from('{"id":"\xe9","method":"eth_chainId"}', "latin1"),
		"UTF-16 with its mark": Buffer.from(`\ufeff${GOOD}`, "utf16le"),
		"gzip without saying so": gzipSync(GOOD),
	}),
];

const typed = (type: string) => ({ headers: { "content-type": type } });

function coded(coding: string, body: string | Uint8Array): HttpRow {
	const send = { body, headers: { "content-encoding": coding } };
	return { name: `content encoding ${coding}`, send, ...WRONG_CODING };
}

const TYPES: readonly HttpRow[] = [
	...[
		...["text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded", "text/json"],
		...["multipart/form-data; boundary=application/json", "application/octet-stream", "application/jsonx"],
		...["json", "*/*", ",", "application/json, text/plain", "text/application/json", "application"],
		...[
			"application/json-rpcs",
			"application/jsonrequests",
			"application/json, ",
			"application/json-rpc+xml",
		],
	].map((type) => ({ name: `content type ${type}`, send: { body: GOOD, ...typed(type) }, ...WRONG_TYPE })),
	coded("gzip", gzipSync(GOOD)),
	coded("deflate", "x"),
	coded("br", "x"),
	coded("identity, gzip", "x"),
	coded("nonsense", GOOD),
	good("the content type with a charset", typed("application/json; charset=utf-8")),
	...[
		...["APPLICATION/JSON", "Application/JSON; Charset=UTF-8", "application/json;charset=utf-8"],
		...["application/json ;  charset = utf-8", "application/json;", 'application/json\t; charset="utf-8"'],
		...["application/json-rpc", "Application/JSON-RPC;charset=utf-8", "application/jsonrequest"],
		// The value that fetch sends for a header that is given in two spellings.
		"application/json, application/json",
	].map((type) => good(`content type ${type}`, typed(type))),
	good("an empty content type", typed("")),
	good("a content type that ends in +json", typed("application/vnd.api+json")),
	good("the content encoding identity", { headers: { "content-encoding": "identity" } }),
];

const padded = (bytes: number): string => GOOD.padEnd(bytes, " ");
const tooLong = (name: string, send: WireRequest): HttpRow => ({ name, send, ...TOO_LONG });

const LENGTHS: readonly HttpRow[] = [
	good("a body of the longest length", { body: padded(MAX_BODY_BYTES) }),
	good("a chunked body of the longest length", { body: padded(MAX_BODY_BYTES), chunked: true }),
	good("a chunked body", { chunked: true }),
	tooLong("a body of one byte more", { body: padded(MAX_BODY_BYTES + 1) }),
	tooLong("a chunked body of one byte more", { body: padded(MAX_BODY_BYTES + 1), chunked: true }),
	tooLong("a body of three times the length", { body: padded(3 * MAX_BODY_BYTES) }),
	tooLong("a chunked body of three times the length", { body: padded(3 * MAX_BODY_BYTES), chunked: true }),
	tooLong("a body that is long and no JSON", { body: Buffer.alloc(MAX_BODY_BYTES + 1, 0xff) }),
];

const PATHS: readonly HttpRow[] = [
	...[
		...[
			"/nope",
			"/rpc",
			"/v1",
			"/v1/KEY",
			"//v1",
			"/FAST",
			"/Fast",
			"/fast/x",
			"/./fast",
			"/fast/..",
			"/../fast",
		],
		...[
			"/fast%2f",
			"/fast%2F",
			"/%66ast",
			"/fast;a=b",
			"/tx",
			"/tx/",
			"/__proto__",
			"/constructor",
			"/fast%00",
			"/%",
		],
		"/%ff",
	].flatMap((path) => [
		{ name: `path ${path}`, send: { path, body: GOOD }, ...NO_PATH },
		{ name: `PUT ${path}`, send: { verb: "PUT", path, body: GOOD }, ...NO_PATH },
	]),
	good("a slash at the end", { path: "/fast/" }),
	...["//fast", "/fast//", "//", "//noreverts///?a=//"].map((path) => good(`path ${path}`, { path })),
	good("a question mark at the end", { path: "/fast?" }),
	...["/fast", "/noreverts", "/fullprivacy", "/maxbackruns", "/nochecks"].map((path) => good(path, { path })),
];

const POSTED = "POST, OPTIONS";
const READ = "GET, HEAD, OPTIONS";
const ANY = "GET, HEAD, POST, OPTIONS";

function notAllowed(allow: string): Expected {
	return { status: 405, answer: { error: `expected one of ${allow}` }, headers: { allow } };
}

const wrongVerb = (verb: string, path: string, allow: string): HttpRow => ({
	...{ name: `${verb} ${path}`, send: { verb, path }, ...notAllowed(allow) },
	...(verb === "HEAD" ? { answer: undefined } : {}),
});

/** JSON-RPC with a verb that the path does not take: the error is one of JSON-RPC. */
const wrongCall = (path: string, allow: string, verb = "POST"): HttpRow => ({
	...{ name: `${verb} ${path} with JSON-RPC`, send: { verb, path, body: GOOD } },
	...refusedPost(405, `expected one of ${allow}`, 1),
	headers: { allow },
});

function preflight(path: string, verbs: string): HttpRow {
	const headers = {
		"access-control-allow-origin": "*",
		"access-control-allow-headers":
			"Content-Type, X-Flashbots-Signature, X-Leeward-Signature, X-Flashbots-Origin, X-Request-Id",
		"access-control-allow-methods": verbs,
		"access-control-max-age": "86400",
		allow: verbs,
		vary: "Access-Control-Request-Headers",
	};
	return { name: `OPTIONS ${path} is answered`, send: { verb: "OPTIONS", path }, status: 204, headers };
}

const TX = `/tx/0x${"ab".repeat(32)}`;

const VERBS: readonly HttpRow[] = [
	...["PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "SEARCH"].map((verb) => wrongVerb(verb, "/", ANY)),
	...["GET", "HEAD", "PUT"].map((verb) => wrongVerb(verb, "/noreverts", POSTED)),
	...["/fast", "/noreverts", "/fullprivacy", "/maxbackruns", "/nochecks", "/ws"].map((path) =>
		wrongVerb("GET", path, POSTED),
	),
	...["/info", "/livez", "/readyz", "/metrics", TX, `//${TX}//events`].map((path) => wrongCall(path, READ)),
	...["PUT", "DELETE", "PATCH"].flatMap((verb) => [wrongVerb(verb, TX, READ), wrongCall(TX, READ, verb)]),
	...["/fast", "/ws", "//noreverts"].map((path) => wrongCall(path, POSTED, "PUT")),
	wrongCall("/", ANY, "PUT"),
	wrongCall("/fast", POSTED, "GET"),
	{
		...wrongCall("/info", READ),
		name: "POST /info without a body",
		send: { path: "/info" },
		...refusedPost(405, `expected one of ${READ}`),
	},
	{
		...wrongVerb("PUT", "/fast", POSTED),
		name: "PUT /fast with something else",
		send: { verb: "PUT", path: "/fast", body: GOOD, headers: { "content-type": "text/plain" } },
	},
	...["/nope", "/tx", "/tx/", TX.replace("tx", "txs"), `${TX}/event`, `${TX}/events/x`].map((path) => ({
		...{ name: `GET ${path}`, send: { verb: "GET", path }, ...NO_PAGE },
	})),
	{
		name: "HEAD of a page is answered",
		send: { verb: "HEAD", path: "/livez" },
		status: 200,
		headers: { "content-length": "13" },
	},
	{
		name: "the preflight of a page on no path",
		send: {
			...{ verb: "OPTIONS", path: "/nope" },
			headers: {
				origin: "https://dapp.test",
				"access-control-request-method": "POST",
				"access-control-request-headers": "baggage,sentry-trace",
			},
		},
		status: 204,
		headers: { allow: ANY, "access-control-allow-headers": "baggage, sentry-trace" },
	},
	{ name: "OPTIONS on no path", send: { verb: "OPTIONS", path: "/nope" }, ...NO_PAGE },
	preflight("/", ANY),
	preflight("/noreverts", POSTED),
	preflight(TX, READ),
];

const KEY = `0x${"42".repeat(32)}`;
const SIGNATURE = createBodySigner(KEY).sign(GOOD);
const SIGNER = SIGNATURE.slice(0, 42);

function signed(name: string, signature: string, reason: string, body = GOOD): HttpRow {
	const refused = (id: unknown) =>
		failure(id, -32600, `invalid request: X-Flashbots-Signature does not verify: ${reason}`);
	const send = { body, headers: { "x-flashbots-signature": signature } };
	const answer = body === GOOD ? refused(1) : [refused(1), refused(null)];
	return { name: `X-Flashbots-Signature: ${name}`, send, status: 200, answer };
}

const SIGNATURES: readonly HttpRow[] = [
	signed("empty", "", "malformed"),
	signed("an address alone", SIGNER, "malformed"),
	signed("a signature of 64 bytes", SIGNATURE.slice(0, -2), "malformed"),
	signed("a signature without 0x", SIGNATURE.replace(":0x", ":"), "malformed"),
	signed("a comma for the colon", SIGNATURE.replace(":", ","), "malformed"),
	signed("v of 17", `${SIGNATURE.slice(0, -2)}11`, "invalid"),
	signed("r and s of zero", `${SIGNER}:0x${"00".repeat(64)}1b`, "invalid"),
	signed("another's address", SIGNATURE.replace(SIGNER, `0x${"12".repeat(20)}`), "mismatch"),
	signed("of another body", createBodySigner(KEY).sign(`${GOOD} `), "mismatch"),
	signed("of something else than the batch", SIGNATURE, "mismatch", `[${GOOD},5]`),
	good("X-Flashbots-Signature that verifies", { headers: { "x-flashbots-signature": SIGNATURE } }),
];

export const HTTP_ROWS: readonly HttpRow[] = [
	...[UNPARSABLE, TYPES, LENGTHS, PATHS, VERBS, SIGNATURES].flat(),
];
