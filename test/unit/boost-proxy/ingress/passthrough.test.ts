// A request that is passed through arrives unchanged but for the client's address and the name of
// its content type, and so does its answer. No body can become a second request.

import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";
import { OUTGOING_HEADERS } from "../../../../shared/outgoing/headers.ts";
import { RawConnection, requestText } from "../../../support/clients.ts";
import { startPassFixture, VIA } from "./passFixture.ts";

async function bodyOf(request: IncomingMessage): Promise<string> {
	let body = "";
	for await (const chunk of request.setEncoding("latin1")) body += chunk;
	return body;
}

test("a request arrives unchanged but for the client's address and another name of JSON", async () => {
	const seen: { url: string; headers: IncomingMessage["headers"]; body: string; verb: string }[] = [];
	const fixture = await startPassFixture({
		boostSecret: "sesame",
		relay: async (request, answer) => {
			const { url = "", headers, method: verb = "" } = request;
			seen.push({ url, headers, body: await bodyOf(request), verb });
			answer.writeHead(201, {
				"content-type": "text/plain",
				"set-cookie": ["a=1", "b=2"],
				"x-own": "yes",
				"access-control-expose-headers": "X-Own",
				"x-boost-upstream": "fallback",
				connection: "keep-alive, x-hop",
				"x-hop": "for boost alone",
			});
			answer.end("done");
		},
	});
	const connection = await RawConnection.open(fixture.port);
	const headers = {
		"Content-Type": "Application/JSON-RPC; Charset=UTF-8",
		"X-Flashbots-Signature": "0xab:0xcd",
		"X-Forwarded-For": "6.6.6.6, 7.7.7.7",
		"X-Forwarded-Host": "evil",
		Forwarded: "for=6.6.6.6",
		"X-Real-IP": "6.6.6.6",
		"X-Boost-Auth": "stolen",
		"X-Boost-Signer": "0x1",
		"X-Request-Id": "mine-1",
		Connection: "keep-alive, X-Private, X-Request-Id, Content-Length, X-Forwarded-For, X-Boost-Auth",
		"X-Private": "for boost alone",
		TE: "trailers",
		"Proxy-Authorization": "Basic eA==",
	};
	connection.write(requestText("POST", "/fullprivacy//x/../y%2F?a=1&b=%20#c", headers, '{"a":1}'));
	const answer = await connection.answer(true);
	const [got] = seen;
	assert.ok(got !== undefined, "nothing arrived");
	assert.deepEqual([got.verb, got.url, got.body], ["POST", "/fullprivacy/x/../y%2F?a=1&b=%20#c", '{"a":1}']);
	const { connection: _, ...rest } = got.headers;
	assert.deepEqual(rest, {
		host: `127.0.0.1:${fixture.relayPort}`,
		"content-type": "application/json",
		"content-length": "7",
		"x-flashbots-signature": "0xab:0xcd",
		"x-forwarded-for": "127.0.0.1",
		"x-boost-auth": "sesame",
		"x-request-id": "mine-1",
		...OUTGOING_HEADERS,
		via: VIA,
	});
	assert.equal(answer.status, 201);
	assert.deepEqual(
		["x-own", "content-type", "x-boost-upstream", "x-boost-breaker", "x-boost-attempts", "x-hop"].map(
			(name) => answer.headers[name],
		),
		["yes", "text/plain", "relay", "closed", "1", undefined],
	);
	assert.equal(
		answer.headers["access-control-expose-headers"],
		"X-Own, X-Boost-Upstream, X-Boost-Breaker, X-Boost-Attempts, X-Boost-Dropped-Params, Retry-After, X-Request-Id",
	);
	assert.deepEqual(fixture.passed, ["answered"]);
	connection.destroy();
	await fixture.stop();
});

test("without a secret there is no boost header, and a proxy in front is trusted as configured", async () => {
	const seen: IncomingMessage["headers"][] = [];
	const fixture = await startPassFixture({
		trustProxy: 1,
		relay: ({ headers }, answer) => {
			seen.push(headers);
			answer.end("{}");
		},
	});
	const headers = {
		"X-Boost-Auth": "guess",
		"X-Forwarded-For": "6.6.6.6, 2001:DB8::1",
		Expect: "100-continue",
	};
	assert.equal((await fetch(`${fixture.url}/info`, { headers: { "x-boost-auth": "guess" } })).status, 200);
	const connection = await RawConnection.open(fixture.port);
	connection.write(requestText("POST", "/maxbackruns", headers, "{}"));
	assert.equal((await connection.answer(true)).status, 100);
	assert.equal((await connection.answer(true)).status, 200);
	assert.deepEqual(
		seen.map((one) => [one["x-boost-auth"], one["x-forwarded-for"], one.expect]),
		[
			[undefined, "127.0.0.1", undefined],
			[undefined, "2001:db8::1", undefined],
		],
	);
	connection.destroy();
	await fixture.stop();
});

test("a relay with credentials and a path, and targets in absolute form", async () => {
	const seen: (string | undefined)[][] = [];
	const fixture = await startPassFixture({
		relay: ({ url, headers }, answer) => {
			seen.push([url, headers.authorization]);
			answer.end("{}");
		},
	});
	const relayUrl = `http://me:s%40me@127.0.0.1:${fixture.relayPort}/base`;
	const other = await startPassFixture({ relayUrl });
	for (const target of ["/tx/0x1/events?x=1", `http://elsewhere.test/info/?y`, "//evil.test/x"]) {
		const connection = await RawConnection.open(other.port);
		connection.write(requestText("GET", target, { Authorization: "Bearer mine" }));
		assert.equal((await connection.answer(true)).status, 200, target);
		connection.destroy();
	}
	const basic = `Basic ${Buffer.from("me:s@me").toString("base64")}`;
	assert.deepEqual(seen, [
		["/base/tx/0x1/events?x=1", basic],
		["/base/info?y", basic],
		["/base/evil.test/x", basic],
	]);
	await other.stop();
	await fixture.stop();
});

test("no body can become a second request", async () => {
	const seen: (string | undefined)[][] = [];
	const fixture = await startPassFixture({
		relay: async (request, answer) => {
			seen.push([request.method, request.url, await bodyOf(request)]);
			answer.end("{}");
		},
	});
	const inner = "POST /smuggled HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
	const chunked = `${Buffer.byteLength(inner).toString(16)}\r\n${inner}\r\n0\r\n\r\n`;
	const rows: [string, Record<string, string>, string, number][] = [
		["DELETE", { "Transfer-Encoding": "chunked" }, chunked, 411],
		["DELETE", {}, inner, 200],
		["GET", { Connection: "content-length" }, inner, 200],
		["GET", { "Transfer-Encoding": "chunked", Connection: "transfer-encoding" }, chunked, 200],
		["PUT", { Connection: "close, content-length" }, inner, 200],
	];
	for (const [verb, headers, body, status] of rows) {
		const connection = await RawConnection.open(fixture.port);
		connection.write(requestText(verb, "/x", headers, body));
		assert.equal((await connection.answer(true)).status, status, `${verb} ${JSON.stringify(headers)}`);
		connection.destroy();
	}
	assert.deepEqual(
		seen,
		["DELETE", "GET", "GET", "PUT"].map((verb) => [verb, "/x", inner]),
	);
	await fixture.stop();
});
