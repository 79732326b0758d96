// Answers of what is passed through: none while the relay is out, one in words that clients can read where it fails, and
// otherwise the relay's own, of any length, whole and in the order of the requests.

import assert from "node:assert/strict";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { test } from "node:test";
import { RawConnection, requestText } from "../../../support/clients.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { until } from "../../../support/until.ts";
import { startPassFixture } from "./passFixture.ts";

test("while the relay is out nothing reaches it, and it is said in the client's language", async () => {
	let asked = 0;
	const fixture = await startPassFixture({ relay: (_, answer) => answer.end(String(asked++)) });
	fixture.breaker.state = "open";
	fixture.breaker.retryMs = 2_400;
	const post = await fetch(`${fixture.url}/fullprivacy`, { method: "POST", body: "{}" });
	assert.deepEqual(
		[post.status, await post.json()],
		[
			503,
			{ jsonrpc: "2.0", id: null, error: { code: -32603, message: "no relay available: the relay is out" } },
		],
	);
	const get = await fetch(`${fixture.url}/info`);
	assert.deepEqual([get.status, await get.json()], [503, { error: "no relay available: the relay is out" }]);
	for (const { headers } of [post, get]) {
		assert.deepEqual(
			["retry-after", "x-boost-upstream", "x-boost-breaker", "x-boost-attempts"].map((one) =>
				headers.get(one),
			),
			["3", "boost", "open", "0"],
		);
	}
	assert.equal((await fetch(`${fixture.url}/info`, { method: "OPTIONS" })).status, 204);
	assert.equal((await fetch(`${fixture.url}/own`)).status, 200);
	assert.equal(asked, 0);
	assert.deepEqual(fixture.passed, ["unavailable", "unavailable"]);
	await fixture.stop();
});

test("a relay that can't be reached is told to the breaker; one that hangs up or says nothing is not", async () => {
	const clock = new ManualClock();
	const fixture = await startPassFixture({
		clock,
		relay: (request) => {
			if (request.url === "/reset") request.socket.destroy();
		},
	});
	const reset = await fetch(`${fixture.url}/reset`, { method: "POST", body: "{}" });
	assert.equal(reset.status, 502);
	assert.match(await reset.text(), /-32603.*no relay available: the relay ended the connection/);
	const silent = fetch(`${fixture.url}/silent`);
	await until("it hangs", () => fixture.relaySockets.size === 1);
	await clock.advance(27_999);
	await clock.advance(1);
	assert.equal((await silent).status, 504);
	assert.deepEqual(fixture.breaker.notes, []);
	await until("nothing is left", () => fixture.relaySockets.size === 0);
	await fixture.killRelay();
	const refused = await fetch(`${fixture.url}/info`);
	assert.equal(refused.status, 503);
	assert.deepEqual(await refused.json(), { error: "no relay available: the relay cannot be reached" });
	assert.equal(refused.headers.get("x-boost-attempts"), "1");
	assert.deepEqual(fixture.breaker.notes, [{ outcome: "refused" }]);
	assert.deepEqual(fixture.passed, ["failed", "failed", "unavailable"]);
	await fixture.server.stop();
});

test("a relay that hangs up in the middle of a body: its client is answered, and asks on", async () => {
	const fixture = await startPassFixture({
		maxBodyBytes: 1_000_000,
		relay: (request, answer) => {
			if (request.method === "GET") answer.writeHead(200, { "content-length": "2" }).end("{}");
			else request.on("data", () => request.socket.destroy());
		},
	});
	const client = await RawConnection.open(fixture.port);
	client.write(requestText("POST", "/fullprivacy", { "Content-Length": "900000" }, "x".repeat(1000)));
	const failed = await client.answer();
	assert.deepEqual([failed.status, failed.headers.connection], [502, "keep-alive"]);
	client.write("x".repeat(899_000));
	client.write(requestText("GET", "/info"));
	assert.equal((await client.answer()).status, 200);
	client.destroy();
	await fixture.stop();
});

test("a relay that answers and hangs up in the middle of a body: its answer comes through", async () => {
	const fixture = await startPassFixture({
		relay: (request, answer) => {
			request.once("data", () => {
				answer.writeHead(400, { "content-length": "2", connection: "close" }).end("{}");
			});
		},
	});
	const client = await RawConnection.open(fixture.port);
	client.write(requestText("POST", "/fullprivacy", { "Content-Length": "3000000" }, "x".repeat(100_000)));
	const answer = await client.answer();
	assert.deepEqual([answer.status, answer.body, answer.headers.connection], [400, "{}", "close"]);
	await client.closed();
	assert.deepEqual(fixture.passed, ["answered"]);
	await fixture.stop();
});

test("a kept connection that the relay has just closed costs a read nothing", async () => {
	let asked = 0;
	const fixture = await startPassFixture({
		relay: (request, answer) => {
			asked++;
			// The second one meets a connection that ends as soon as it is used.
			if (asked === 2) request.socket.destroy();
			else answer.end("{}");
		},
	});
	assert.equal((await fetch(`${fixture.url}/info`)).status, 200);
	assert.equal((await fetch(`${fixture.url}/info`)).status, 200);
	assert.equal(asked, 3);
	await fixture.stop();
});

test("an answer that breaks off does not look whole", async () => {
	const fixture = await startPassFixture({
		relay: (request, answer) => {
			answer.writeHead(200, { "content-type": "text/plain" });
			answer.write("the first half");
			setImmediate(() => request.socket.destroy());
		},
	});
	const answer = await fetch(`${fixture.url}/info`);
	assert.equal(answer.status, 200);
	await assert.rejects(answer.text());
	await fixture.stop();
});

test("bodies and answers of any length go through bit by bit", async () => {
	const fixture = await startPassFixture({
		relay: (request, answer) => {
			answer.writeHead(200, { "content-type": "application/octet-stream" });
			request.pipe(answer);
		},
	});
	const sent = httpRequest(`${fixture.url}/echo`, { method: "PUT" });
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
	await fixture.stop();
});

test("requests in a row are answered in a row, our own among them", async () => {
	const held: (() => void)[] = [];
	const fixture = await startPassFixture({
		relay: ({ url }, answer) => {
			const end = () => answer.writeHead(200, { "content-length": "2", "x-path": String(url) }).end("{}");
			if (url === "/slow") held.push(end);
			else end();
		},
	});
	const connection = await RawConnection.open(fixture.port);
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
	await fixture.stop();
});
