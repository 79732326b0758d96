// Bytes that are not HTTP, or contradict themselves, each on a connection of its own, with their exact answers.

import { GOOD, GOOD_ANSWER } from "./httpRows.ts";
import { type BytesRow, failure } from "./rows.ts";

const NOT_HTTP = { status: 400, answer: failure(null, -32600, "invalid request: not HTTP/1.1") } as const;
const LONG_HEAD = {
	...{ status: 431, answer: failure(null, -32600, "invalid request: the headers are too long") },
} as const;
const TOO_LONG = {
	status: 413,
	answer: failure(null, -32005, "limit exceeded: the body is longer than 2097152 bytes"),
} as const;

/** A request with these header lines beside `Host`. */
function post(lines: readonly string[], body = ""): string {
	return `${["POST / HTTP/1.1", "Host: x", ...lines].join("\r\n")}\r\n\r\n${body}`;
}

const LENGTH = `Content-Length: ${GOOD.length}`;
const CHUNKED = "Transfer-Encoding: chunked";

export const BROKEN_HTTP_ROWS: readonly BytesRow[] = [
	{ name: "a TLS greeting", bytes: Buffer.from("16030102000100", "hex"), ...NOT_HTTP },
	{ name: "the preface of HTTP/2", bytes: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ...NOT_HTTP },
	{ name: "JSON without HTTP", bytes: `${GOOD}\n`, ...NOT_HTTP },
	{ name: "random bytes", bytes: Buffer.from("00ff80c0deadbeef0d0a0d0a", "hex"), ...NOT_HTTP },
	{ name: "an unknown verb", bytes: "FOO / HTTP/1.1\r\nHost: x\r\n\r\n", ...NOT_HTTP },
	{ name: "a verb in lower case", bytes: "post / HTTP/1.1\r\nHost: x\r\n\r\n", ...NOT_HTTP },
	{ name: "an unknown version", bytes: "POST / HTTP/9.9\r\nHost: x\r\n\r\n", ...NOT_HTTP },
	{ name: "a target without a slash", bytes: "POST fast HTTP/1.1\r\nHost: x\r\n\r\n", ...NOT_HTTP },
	{ name: "a control character in the target", bytes: "POST /\x01 HTTP/1.1\r\nHost: x\r\n\r\n", ...NOT_HTTP },
	{ name: "a header without a colon", bytes: post(["Nonsense"]), ...NOT_HTTP },
	{ name: "a header with a NUL", bytes: post(["X: a\0b"]), ...NOT_HTTP },
	{ name: "no Host", bytes: "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", status: 400 },
	{ name: "two lengths", bytes: post(["Content-Length: 5", "Content-Length: 6"], "12345"), ...NOT_HTTP },
	{ name: "a length below zero", bytes: post(["Content-Length: -5"], "12345"), ...NOT_HTTP },
	{ name: "a length in hex", bytes: post(["Content-Length: 0x5"], "12345"), ...NOT_HTTP },
	{ name: "a length of 2^76", bytes: post([`Content-Length: ${2n ** 76n}`]), ...NOT_HTTP },
	{ name: "a length and chunks", bytes: post(["Content-Length: 5", CHUNKED], "0\r\n\r\n"), ...NOT_HTTP },
	{ name: "a transfer encoding of gzip", bytes: post(["Transfer-Encoding: gzip"], "x"), ...NOT_HTTP },
	{ name: "a chunk without a length", bytes: post([CHUNKED], "zz\r\n"), ...NOT_HTTP },
	{
		name: "a chunk that is longer than it says",
		bytes: post([CHUNKED], "2\r\nabcd\r\n0\r\n\r\n"),
		...NOT_HTTP,
	},
	{ name: "a header of 20 KB", bytes: post([`X: ${"a".repeat(20_000)}`]), ...LONG_HEAD },
	{
		name: "a target of 20 KB",
		bytes: `POST /${"a".repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
		...LONG_HEAD,
	},
	{
		name: "an announced body of 10 MB that never comes",
		bytes: post(["Content-Length: 9999999"]),
		...TOO_LONG,
	},
	{
		name: "an announced body of 10 MB whose sender waits to be told",
		bytes: post(["Content-Length: 9999999", "Expect: 100-continue"]),
		...TOO_LONG,
	},
	{
		name: "chunks without an end",
		bytes: Buffer.concat([Buffer.from(post([CHUNKED], "300000\r\n")), Buffer.alloc(0x300000, 0x20)]),
		...TOO_LONG,
	},
	{ name: "an unknown expectation", bytes: post(["Expect: nonsense", LENGTH], GOOD), status: 417 },
	{ name: "a body that ends early", bytes: post(["Content-Length: 100"], GOOD), half: true, ...NOT_HTTP },
	{ name: "a head that ends early", bytes: "POST / HTTP/1.1\r\nHost: x\r\n", half: true, ...NOT_HTTP },
	{ name: "nothing", bytes: "", half: true, silent: true, status: 0 },
	{
		name: "the verb CONNECT",
		bytes: "CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n",
		...{
			status: 405,
			answer: { error: "expected one of POST, OPTIONS" },
			headers: { allow: "POST, OPTIONS" },
		},
	},
	{
		name: "an upgrade to HTTP/2 is not taken up, the request is answered",
		bytes: post(
			["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk", LENGTH],
			GOOD,
		),
		...{ status: 200, answer: GOOD_ANSWER },
	},
	{
		name: "a sender that waits for a 100 gets it, and the answer",
		bytes: post(["Expect: 100-continue", LENGTH], GOOD),
		...{ status: 200, answer: GOOD_ANSWER },
	},
	{
		name: "HTTP/1.0 is served",
		bytes: `POST / HTTP/1.0\r\n${LENGTH}\r\n\r\n${GOOD}`,
		...{ status: 200, answer: GOOD_ANSWER },
	},
	{
		name: "a target with the server's name is served",
		bytes: `POST http://relay.example/fast HTTP/1.1\r\nHost: x\r\n${LENGTH}\r\n\r\n${GOOD}`,
		...{ status: 200, answer: GOOD_ANSWER },
	},
];
