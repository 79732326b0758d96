// The bytes that the HTTP client sends: method, target, headers and body, for URLs of all kinds.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { systemClock } from "../../../../shared/clock.ts";
import { HttpClient, type RequestBody } from "../../../../shared/outgoing/httpClient.ts";
import { readUpstreamUrl } from "../../../../shared/outgoing/upstreamUrl.ts";
import { VERSION } from "../../../../shared/version.ts";
import { httpText, RawUpstream } from "../../../support/upstreams.ts";

const NO_HEADERS = {};
/** A POST to `target`. */
function post(target: string, body: RequestBody, headers: Readonly<Record<string, string>> = NO_HEADERS) {
	return { method: "POST", target, headers, body, deadlineMs: 20_000 } as const;
}

function clientOf(url: string): HttpClient {
	return new HttpClient({ url, connections: 4 }, { clock: systemClock });
}

async function withUpstream(run: (upstream: RawUpstream) => Promise<void>): Promise<void> {
	const upstream = await RawUpstream.start(({ socket }) => void socket.write(httpText("{}")));
	try {
		await run(upstream);
	} finally {
		await upstream.close();
	}
}

test("a POST has the given target, headers and body, the content type, our name and nothing else", () =>
	withUpstream(async (upstream) => {
		const client = clientOf(upstream.url);
		const headers = { "x-forwarded-for": "10.1.2.3", "x-boost-auth": "s3cret" };
		const body = Buffer.from('{"params":["0xé"]}');
		const result = await client.request(post("/fast?a=b", body, headers));
		assert.deepEqual(result, {
			kind: "answered",
			status: 200,
			headers: { "content-length": "2" },
			body: Buffer.from("{}"),
		});
		const lines = [
			"POST /fast?a=b HTTP/1.1",
			`host: 127.0.0.1:${upstream.port}`,
			"connection: keep-alive",
			"content-type: application/json",
			`user-agent: leeward/${VERSION}`,
			"accept-encoding: identity",
			"x-forwarded-for: 10.1.2.3",
			"x-boost-auth: s3cret",
			`content-length: ${body.length}`,
		];
		assert.equal(upstream.received, `${lines.join("\r\n")}\r\n\r\n${body.toString("latin1")}`);
		await client.close();
	}));

test("a body that is made while it is sent has its length", () =>
	withUpstream(async (upstream) => {
		const client = clientOf(upstream.url);
		const body = {
			byteLength: 6,
			async *[Symbol.asyncIterator]() {
				yield* ["[1,", "22]"];
			},
		};
		const result = await client.request({ ...post("", body), headers: { "x-one": "1" } });
		assert.equal(result.kind, "answered");
		assert.match(upstream.received, /x-one: 1\r\ncontent-length: 6\r\n\r\n\[1,22\]$/);
		// Nothing of it is left in the next request.
		await client.request(post("", "[]"));
		assert.match(upstream.received, /content-length: 2\r\n\r\n\[\]$/);
		await client.close();
	}));

test("the URL's credentials are sent as Basic, its path and query before the target's", () =>
	withUpstream(async (upstream) => {
		const url = `http://us%65r:p%40ss@127.0.0.1:${upstream.port}/base/?key=k`;
		const client = clientOf(url);
		await client.request(post("/fast?a=b", "{}"));
		const [request = ""] = upstream.requests;
		assert.match(request, /^POST \/base\/fast\?key=k&a=b HTTP\/1\.1\r\n/);
		assert.ok(request.includes(`authorization: Basic ${btoa("user:p@ss")}\r\n`), "the pair, decoded");
		await client.close();
	}));

test("any target or header is sent and answered: a client must not cause faults", () =>
	withUpstream(async (upstream) => {
		const client = clientOf(upstream.url);
		const text = fc.oneof(fc.string({ unit: "binary" }), fc.string(), fc.constant("\ud800\r\nx: y"));
		await fc.assert(
			fc.asyncProperty(text, text, async (query, value) => {
				const headers = { origin: value };
				const result = await client.request(post(`/fast?${query}`, "{}", headers));
				assert.equal(result.kind, "answered");
				const request = upstream.requests.at(-1) ?? "";
				assert.match(request, /^POST \/fast(\?[^ \r\n]*)? HTTP\/1\.1\r\nhost:/);
				assert.doesNotMatch(request, /\nx: y/);
			}),
			{ numRuns: 60 },
		);
		await client.close();
	}));

const PATHS: readonly (readonly [string, string, string])[] = [
	["http://h", "", "/"],
	["http://h", "/", "/"],
	["http://h", "/fast", "/fast"],
	["http://h/", "/fast", "/fast"],
	["http://h", "?a=b", "/?a=b"],
	["http://h/base", "/fast?a=b", "/base/fast?a=b"],
	["http://h/base/", "/fast", "/base/fast"],
	["http://h/base/", "/", "/base/"],
	["http://h/base", "/", "/base"],
	["http://h/base", "", "/base"],
	["http://h/v3/KEY", "?refund=0x1:90", "/v3/KEY?refund=0x1:90"],
	["https://h/", "/fast", "/fast"],
	["https://h/v3/KEY/?a=b", "", "/v3/KEY/?a=b"],
	["https://h/v3/KEY/", "/fast", "/v3/KEY/fast"],
	["http://h/?key=k", "/fast", "/fast?key=k"],
	["http://h/base?key=k", "/fast?a=b", "/base/fast?key=k&a=b"],
	["http://h/base?key=k", "", "/base?key=k"],
	["http://h/base?key=k", "?", "/base?key=k"],
	["https://protect.example/tx/", "/0xab", "/tx/0xab"],
	["https://protect.example/tx", "0xab", "/tx/0xab"],
	// Nothing leads elsewhere, and a query stays as it came.
	["http://h", "http://elsewhere/", "/http://elsewhere/"],
	["http://h", "/fast?a=%zz&&b=%41?c", "/fast?a=%zz&&b=%41?c"],
	["http://h", "/fast?a=\xe9", "/fast?a=\xe9"],
	["http://h", "/fast?a=b c\r\nx: y€", "/fast?a=b%20c%0D%0Ax:%20y%E2%82%AC"],
	["http://h", "/fast?a=\ud800", "/fast?a=%EF%BF%BD"],
];

test("the target's path is appended to the URL's, and queries are joined", () => {
	for (const [url, target, path] of PATHS) {
		assert.equal(readUpstreamUrl(url).pathOf(target), path, `${url} and ${JSON.stringify(target)}`);
	}
});

test("credentials are separated from the URL", () => {
	const url = readUpstreamUrl("https://user:a%3Ab@h:8443/base#part");
	assert.equal(url.origin, "https://h:8443");
	assert.equal(url.authorization, `Basic ${btoa("user:a:b")}`);
	assert.equal(url.pathOf("/fast"), "/base/fast");
	assert.equal(readUpstreamUrl("http://h").authorization, null);
	assert.equal(readUpstreamUrl("http://%zz@h").authorization, `Basic ${btoa("%zz:")}`);
});
