// What is passed through arrives as it was sent, but for what names the client, and so does the answer. A client that goes
// away leaves nothing behind, and a relay that is out is told of in words that clients can read.

import assert from "node:assert/strict";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { test } from "node:test";
import { ManualClock } from "../../support/manualClock.ts";
import { RawConnection, requestText } from "../../support/rawHttp.ts";
import { until } from "../../support/until.ts";
import { startPassScene } from "./passScene.ts";

async function bodyOf(request: IncomingMessage): Promise<string> {
	let body = "";
	for await (const chunk of request.setEncoding("latin1")) body += chunk;
	return body;
}

test("a request arrives as it was sent, but for who the client is", async () => {
	const seen: { url: string; headers: IncomingMessage["headers"]; body: string; verb: string }[] = [];
	const scene = await startPassScene({
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
	const connection = await RawConnection.open(scene.port);
	const headers = {
		"Content-Type": "application/json",
		"X-Flashbots-Signature": "0xab:0xcd",
		"X-Forwarded-For": "6.6.6.6, 7.7.7.7",
		"X-Forwarded-Host": "evil",
		Forwarded: "for=6.6.6.6",
		"X-Real-IP": "6.6.6.6",
		"X-Boost-Auth": "stolen",
		"X-Boost-Signer": "0x1",
		Connection: "keep-alive, X-Private, Content-Length, X-Forwarded-For, X-Boost-Auth",
		"X-Private": "for boost alone",
		TE: "trailers",
		"Proxy-Authorization": "Basic eA==",
	};
	connection.write(requestText("POST", "/fullprivacy//x/../y%2F?a=1&b=%20#c", headers, '{"a":1}'));
	const answer = await connection.answer(true);
	const [got] = seen;
	assert.ok(got !== undefined, "nothing arrived");
	assert.deepEqual([got.verb, got.url, got.body], ["POST", "/fullprivacy//x/../y%2F?a=1&b=%20#c", '{"a":1}']);
	const { connection: _, ...rest } = got.headers;
	assert.deepEqual(rest, {
		host: `127.0.0.1:${scene.relayPort}`,
		"content-type": "application/json",
		"content-length": "7",
		"x-flashbots-signature": "0xab:0xcd",
		"x-forwarded-for": "127.0.0.1",
		"x-boost-auth": "sesame",
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
		"X-Own, X-Boost-Upstream, X-Boost-Breaker, X-Boost-Attempts, X-Boost-Dropped-Params, Retry-After",
	);
	assert.deepEqual(scene.passed, [["http", "answered"]]);
	connection.destroy();
	await scene.stop();
});

test("without a secret nobody vouches, and a proxy in front is believed as far as it may be", async () => {
	const seen: IncomingMessage["headers"][] = [];
	const scene = await startPassScene({
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
	assert.equal((await fetch(`${scene.url}/info`, { headers: { "x-boost-auth": "guess" } })).status, 200);
	const connection = await RawConnection.open(scene.port);
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
	await scene.stop();
});

test("a relay with credentials and a path, and targets in absolute form", async () => {
	const seen: (string | undefined)[][] = [];
	const scene = await startPassScene({
		relay: ({ url, headers }, answer) => {
			seen.push([url, headers.authorization]);
			answer.end("{}");
		},
	});
	const relayUrl = `http://me:s%40me@127.0.0.1:${scene.relayPort}/base`;
	const other = await startPassScene({ relayUrl });
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
		["/base//evil.test/x", basic],
	]);
	await other.stop();
	await scene.stop();
});

test("no body can become a request of its own", async () => {
	const seen: (string | undefined)[][] = [];
	const scene = await startPassScene({
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
		const connection = await RawConnection.open(scene.port);
		connection.write(requestText(verb, "/x", headers, body));
		assert.equal((await connection.answer(true)).status, status, `${verb} ${JSON.stringify(headers)}`);
		connection.destroy();
	}
	assert.deepEqual(
		seen,
		["DELETE", "GET", "GET", "PUT"].map((verb) => [verb, "/x", inner]),
	);
	await scene.stop();
});

test("while the relay is out nothing reaches it, and it is said in the client's language", async () => {
	let asked = 0;
	const scene = await startPassScene({ relay: (_, answer) => answer.end(String(asked++)) });
	scene.breaker.state = "open";
	scene.breaker.retryMs = 2_400;
	const post = await fetch(`${scene.url}/fullprivacy`, { method: "POST", body: "{}" });
	assert.deepEqual(
		[post.status, await post.json()],
		[
			503,
			{ jsonrpc: "2.0", id: null, error: { code: -32603, message: "no relay available: the relay is out" } },
		],
	);
	const get = await fetch(`${scene.url}/info`);
	assert.deepEqual([get.status, await get.json()], [503, { error: "no relay available: the relay is out" }]);
	for (const { headers } of [post, get]) {
		assert.deepEqual(
			["retry-after", "x-boost-upstream", "x-boost-breaker", "x-boost-attempts"].map((one) =>
				headers.get(one),
			),
			["3", "boost", "open", "0"],
		);
	}
	assert.equal((await fetch(`${scene.url}/info`, { method: "OPTIONS" })).status, 204);
	assert.equal((await fetch(`${scene.url}/own`)).status, 200);
	assert.equal(asked, 0);
	assert.deepEqual(scene.passed, [
		["http", "unavailable"],
		["http", "unavailable"],
	]);
	await scene.stop();
});

test("a relay that can't be reached is told to the breaker; one that hangs up or says nothing is not", async () => {
	const clock = new ManualClock();
	const scene = await startPassScene({
		clock,
		relay: (request) => {
			if (request.url === "/reset") request.socket.destroy();
		},
	});
	const reset = await fetch(`${scene.url}/reset`, { method: "POST", body: "{}" });
	assert.equal(reset.status, 502);
	assert.match(await reset.text(), /-32603.*no relay available: the relay ended the connection/);
	const silent = fetch(`${scene.url}/silent`);
	await until("it hangs", () => scene.relaySockets.size === 1);
	await clock.advance(27_999);
	await clock.advance(1);
	assert.equal((await silent).status, 504);
	assert.deepEqual(scene.breaker.notes, []);
	await until("nothing is left", () => scene.relaySockets.size === 0);
	await scene.killRelay();
	const refused = await fetch(`${scene.url}/info`);
	assert.equal(refused.status, 503);
	assert.deepEqual(await refused.json(), { error: "no relay available: the relay cannot be reached" });
	assert.equal(refused.headers.get("x-boost-attempts"), "1");
	assert.deepEqual(scene.breaker.notes, [{ outcome: "refused" }]);
	assert.deepEqual(scene.passed, [
		["http", "failed"],
		["http", "failed"],
		["http", "unavailable"],
	]);
	await scene.server.stop();
});

test("a kept connection that the relay has just closed costs a read nothing", async () => {
	let asked = 0;
	const scene = await startPassScene({
		relay: (request, answer) => {
			asked++;
			// The second one meets a connection that ends as soon as it is used.
			if (asked === 2) request.socket.destroy();
			else answer.end("{}");
		},
	});
	assert.equal((await fetch(`${scene.url}/info`)).status, 200);
	assert.equal((await fetch(`${scene.url}/info`)).status, 200);
	assert.equal(asked, 3);
	await scene.stop();
});

test("an answer that breaks off does not look whole", async () => {
	const scene = await startPassScene({
		relay: (request, answer) => {
			answer.writeHead(200, { "content-type": "text/plain" });
			answer.write("the first half");
			setImmediate(() => request.socket.destroy());
		},
	});
	const answer = await fetch(`${scene.url}/info`);
	assert.equal(answer.status, 200);
	await assert.rejects(answer.text());
	await scene.stop();
});

test("bodies and answers of any length go through bit by bit", async () => {
	const scene = await startPassScene({
		relay: (request, answer) => {
			answer.writeHead(200, { "content-type": "application/octet-stream" });
			request.pipe(answer);
		},
	});
	const sent = httpRequest(`${scene.url}/echo`, { method: "PUT" });
	const answered = new Promise<IncomingMessage>((resolve) => sent.on("response", resolve));
	const chunk = Buffer.alloc(256 * 1024, 7);
	sent.write(chunk);
	// It answers while the request is still being sent.
	const answer = await answered;
	let bytes = 0;
	answer.on("data", (part: Buffer) => {
		bytes += part.length;
	});
	for (let i = 1; i < 32; i++) sent.write(chunk);
	sent.end();
	await new Promise((resolve) => answer.on("end", resolve));
	assert.equal(bytes, 32 * chunk.length);
	await scene.stop();
});

test("requests in a row are answered in a row, our own among them", async () => {
	const held: (() => void)[] = [];
	const scene = await startPassScene({
		relay: ({ url }, answer) => {
			const end = () => answer.writeHead(200, { "content-length": "2", "x-path": String(url) }).end("{}");
			if (url === "/slow") held.push(end);
			else end();
		},
	});
	const connection = await RawConnection.open(scene.port);
	connection.write(
		Buffer.concat([
			requestText("GET", "/slow"),
			requestText("GET", "/own"),
			requestText("POST", "/fast", { "Content-Type": "application/json" }, "{}"),
			requestText("GET", "/quick"),
		]),
	);
	await until("the first one waits", () => held.length === 1);
	held[0]?.();
	const answers = [];
	for (let i = 0; i < 4; i++) answers.push(await connection.answer());
	assert.deepEqual(
		answers.map(({ headers, body }) => [headers["x-path"], headers["x-boost-upstream"], body]),
		[
			["/slow", "relay", "{}"],
			[undefined, "boost", "{}"],
			[undefined, "boost", '{"bytes":2}'],
			["/quick", "relay", "{}"],
		],
	);
	connection.destroy();
	await scene.stop();
});
