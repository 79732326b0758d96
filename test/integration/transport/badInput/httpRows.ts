// Bad HTTP: bodies, verbs, paths, types and lengths that are not served, with their exact answers, and what is just
// right.

import { gzipSync } from "node:zlib";
import { createBodySigner } from "../../../../shared/ethereum/signatures.ts";
import { failure, type HttpRow, success } from "./rows.ts";
import type { WireRequest } from "./wire.ts";

/** The relay's limit unless a setting says otherwise, in bytes. */
const MAX_BODY_BYTES = 2 * 1024 * 1024;

/** A call that is always answered, and its answer on the test chain. */
export const GOOD = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}';
export const GOOD_ANSWER = success(1, "0x7a69");

const NOT_JSON = failure(null, -32700, "parse error: not JSON");
const NOT_UTF8 = failure(null, -32700, "parse error: not UTF-8");
const TOO_LONG = failure(null, -32005, `limit exceeded: the body is longer than ${MAX_BODY_BYTES} bytes`);
const WRONG_TYPE = failure(null, -32600, "invalid request: content-type: expected application/json");
const WRONG_CODING = failure(null, -32600, "invalid request: content-encoding: expected none");
const NO_PATH = failure(null, -32600, "invalid request: unknown path");

const good = (name: string, send: WireRequest): HttpRow => ({
	...{ name: `${name} is taken`, send: { body: GOOD, ...send }, status: 200, answer: GOOD_ANSWER },
});

function unparsable(name: string, body: string | Uint8Array, answer = NOT_JSON): HttpRow {
	return { name, send: { body }, status: 400, answer };
}

const UNPARSABLE: readonly HttpRow[] = [
	{ name: "no body at all", send: {}, status: 400, answer: NOT_JSON },
	unparsable("an empty body", ""),
	unparsable("spaces", "  \r\n\t"),
	unparsable("JSON that was cut off", GOOD.slice(0, -1)),
	unparsable("JSON that was cut off in a string", GOOD.slice(0, 20)),
	unparsable("something behind the JSON", `${GOOD}x`),
	unparsable("two documents", GOOD + GOOD),
	unparsable("a byte order mark before the JSON", `\ufeff${GOOD}`),
	unparsable("a NUL behind the JSON", `${GOOD}\0`),
	unparsable("a lone brace", "{"),
	unparsable("four thousand opening brackets", "[".repeat(4_000)),
	unparsable("a word cut off", "nul"),
	unparsable("NaN", "NaN"),
	unparsable("single quotes", "{'id':1,'method':'eth_chainId'}"),
	unparsable("names without quotes", '{id:1,method:"eth_chainId"}'),
	unparsable("a comma too many", `[${GOOD},]`),
	unparsable("a comment", `/* */${GOOD}`),
	unparsable("a number with a leading zero", '{"id":01,"method":"eth_chainId"}'),
	unparsable("a line break in a string", '{"id":"a\nb","method":"eth_chainId"}'),
	unparsable("an unknown escape", '{"id":"\\x41","method":"eth_chainId"}'),
	unparsable("a form", "method=eth_chainId&id=1"),
	unparsable("XML", "<?xml version='1.0'?><methodCall/>"),
	unparsable("bytes that are no UTF-8", Buffer.from([0x7b, 0xff, 0xfe, 0x7d]), NOT_UTF8),
	unparsable("an overlong UTF-8 form", Buffer.from([0x22, 0xc0, 0x80, 0x22]), NOT_UTF8),
	unparsable("a surrogate as UTF-8", Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), NOT_UTF8),
	unparsable("UTF-8 cut off in a character", Buffer.from([0x22, 0xe2, 0x82, 0x22]), NOT_UTF8),
	unparsable("Latin-1", Buffer.from('{"id":"\xe9","method":"eth_chainId"}', "latin1"), NOT_UTF8),
	unparsable("UTF-16", Buffer.from(GOOD, "utf16le")),
	unparsable("UTF-16 with its mark", Buffer.from(`\ufeff${GOOD}`, "utf16le"), NOT_UTF8),
	unparsable("gzip without saying so", gzipSync(GOOD), NOT_UTF8),
	unparsable("zeros", Buffer.alloc(1_000)),
];

function typed(type: string): HttpRow {
	const send = { body: GOOD, headers: { "content-type": type } };
	return { name: `content type ${type}`, send, status: 415, answer: WRONG_TYPE };
}

function coded(coding: string, body: string | Uint8Array): HttpRow {
	const send = { body, headers: { "content-encoding": coding } };
	return { name: `content encoding ${coding}`, send, status: 415, answer: WRONG_CODING };
}

const TYPES: readonly HttpRow[] = [
	...["text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded"].map(typed),
	...["multipart/form-data; boundary=x", "application/octet-stream", "application/jsonx", "json"].map(typed),
	...["*/*", ",", "application/json, text/plain", "text/application/json", "application"].map(typed),
	coded("gzip", gzipSync(GOOD)),
	coded("deflate", "x"),
	coded("br", "x"),
	coded("identity, gzip", "x"),
	coded("nonsense", GOOD),
	good("the content type with a charset", { headers: { "content-type": "application/json; charset=utf-8" } }),
	good("the content type in capitals", { headers: { "content-type": "APPLICATION/JSON" } }),
	good("an empty content type", { headers: { "content-type": "" } }),
	good("a content type that ends in +json", { headers: { "content-type": "application/vnd.api+json" } }),
	good("the content encoding identity", { headers: { "content-encoding": "identity" } }),
];

const padded = (bytes: number): string => GOOD.padEnd(bytes, " ");
const tooLong = (name: string, send: WireRequest): HttpRow => ({ name, send, status: 413, answer: TOO_LONG });

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

function unknownPath(path: string): HttpRow {
	return { name: `path ${path}`, send: { path, body: GOOD }, status: 404, answer: NO_PATH };
}

const PATHS: readonly HttpRow[] = [
	...["/nope", "/rpc", "/v1", "/FAST", "/Fast", "/fast/x", "//fast", "/./fast", "/fast/..", "/fast%2f"].map(
		unknownPath,
	),
	...["/%66ast", "/fast;a=b", "/tx", "/tx/", "/__proto__", "/constructor", "/fast%00", "/%", "/%ff"].map(
		unknownPath,
	),
	good("a slash at the end", { path: "/fast/" }),
	good("a question mark at the end", { path: "/fast?" }),
	...["/fast", "/noreverts", "/fullprivacy", "/maxbackruns", "/nochecks"].map((path) => good(path, { path })),
];

const WRONG_VERB = { error: "expected one of POST, OPTIONS" };
const GET_ONLY = { error: "expected one of GET, HEAD, OPTIONS" };

function wrongVerb(verb: string, path: string): HttpRow {
	const headers = { allow: "POST, OPTIONS" };
	const answer = verb === "HEAD" ? {} : { answer: WRONG_VERB };
	return { name: `${verb} ${path}`, send: { verb, path }, status: 405, ...answer, headers };
}

function getOnly(verb: string, path: string, body?: string): HttpRow {
	const send = { verb, path, ...(body === undefined ? {} : { body }) };
	const headers = { allow: "GET, HEAD, OPTIONS" };
	return { name: `${verb} ${path}`, send, status: 405, answer: GET_ONLY, headers };
}

function preflight(path: string, verbs: string): HttpRow {
	const headers = {
		"access-control-allow-origin": "*",
		"access-control-allow-headers": "Content-Type, X-Flashbots-Signature, X-Flashbots-Origin",
		"access-control-allow-methods": verbs,
		allow: verbs,
	};
	return { name: `OPTIONS ${path} is answered`, send: { verb: "OPTIONS", path }, status: 204, headers };
}

const HASH = `0x${"ab".repeat(32)}`;
const UNKNOWN_GET = { error: "unknown path" };

const VERBS: readonly HttpRow[] = [
	...["GET", "HEAD", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "SEARCH"].map((verb) =>
		wrongVerb(verb, "/"),
	),
	...["/fast", "/noreverts", "/fullprivacy", "/maxbackruns", "/nochecks", "/ws"].map((path) =>
		wrongVerb("GET", path),
	),
	...["/info", "/livez", "/readyz", "/metrics", `/tx/${HASH}`, `/tx/${HASH}/events`].map((path) =>
		getOnly("POST", path, GOOD),
	),
	...["PUT", "DELETE", "PATCH"].map((verb) => getOnly(verb, `/tx/${HASH}`)),
	...["/nope", "/tx", "/tx/", `/txs/${HASH}`, `/tx/${HASH}/event`, `/tx/${HASH}/events/x`].map(
		(path): HttpRow => ({
			name: `GET ${path}`,
			send: { verb: "GET", path },
			status: 404,
			answer: UNKNOWN_GET,
		}),
	),
	{ name: "OPTIONS on no path", send: { verb: "OPTIONS", path: "/nope" }, status: 404, answer: UNKNOWN_GET },
	preflight("/", "POST, OPTIONS"),
	preflight("/noreverts", "POST, OPTIONS"),
	preflight(`/tx/${HASH}`, "GET, HEAD, OPTIONS"),
];

function signed(name: string, signature: string, reason: string): HttpRow {
	const message = `invalid request: X-Flashbots-Signature does not verify: ${reason}`;
	const send = { body: GOOD, headers: { "x-flashbots-signature": signature } };
	return { name: `X-Flashbots-Signature: ${name}`, send, status: 200, answer: failure(1, -32600, message) };
}

const KEY = `0x${"42".repeat(32)}`;
const SIGNATURE = createBodySigner(KEY).sign(GOOD);
const SIGNER = SIGNATURE.slice(0, 42);
const OTHER = `0x${"12".repeat(20)}`;

const SIGNATURES: readonly HttpRow[] = [
	signed("empty", "", "malformed"),
	signed("an address alone", SIGNER, "malformed"),
	signed("a signature of 64 bytes", SIGNATURE.slice(0, -2), "malformed"),
	signed("a signature without 0x", SIGNATURE.replace(":0x", ":"), "malformed"),
	signed("a comma for the colon", SIGNATURE.replace(":", ","), "malformed"),
	signed("v of 17", `${SIGNATURE.slice(0, -2)}11`, "invalid"),
	signed("r and s of zero", `${SIGNER}:0x${"00".repeat(64)}1b`, "invalid"),
	signed("another's address", SIGNATURE.replace(SIGNER, OTHER), "mismatch"),
	signed("of another body", createBodySigner(KEY).sign(`${GOOD} `), "mismatch"),
	good("X-Flashbots-Signature that verifies", { headers: { "x-flashbots-signature": SIGNATURE } }),
];

export const HTTP_ROWS: readonly HttpRow[] = [
	...UNPARSABLE,
	...TYPES,
	...LENGTHS,
	...PATHS,
	...VERBS,
	...SIGNATURES,
];
