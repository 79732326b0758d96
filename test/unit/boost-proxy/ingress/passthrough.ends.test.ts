// How passed-through requests end: errors while the relay is unavailable or fails, streams, and
// clients that disconnect.

import assert from "node:assert/strict";
import type { RequestListener, ServerResponse } from "node:http";
import { test } from "node:test";
import { EventStreamReader, RawConnection, requestText } from "../../../support/clients.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { until } from "../../../support/until.ts";
import { startPassFixture } from "./passFixture.ts";

const EVENTS = { "content-type": "text/event-stream", "cache-control": "no-store" };

test("clients that disconnect at any moment leave no connection to the relay", async () => {
	const answers: ServerResponse[] = [];
	const relay: RequestListener = (request, answer) => {
		answers.push(answer);
		if (request.url === "/begun") answer.writeHead(200).write("a part");
		if (request.url === "/events") answer.writeHead(200, EVENTS).write("data: {}\n\n");
	};
	const fixture = await startPassFixture({ relay });
	const rows: [string, Buffer][] = [
		["before the answer", requestText("GET", "/silent")],
		["in the body", requestText("POST", "/silent", { "Content-Length": "100" }, "half")],
		[
			"in a chunked body",
			requestText("POST", "/silent", { "Transfer-Encoding": "chunked" }, "5\r\nhello\r\n"),
		],
		["in the answer", requestText("GET", "/begun")],
		["in a stream", requestText("GET", "/events")],
		[
			"with another one behind it",
			Buffer.concat([requestText("GET", "/silent"), requestText("GET", "/begun")]),
		],
		["behind our own", Buffer.concat([requestText("GET", "/own"), requestText("POST", "/silent", {}, "x")])],
	];
	for (const [what, bytes] of rows) {
		const before = answers.length;
		const client = await RawConnection.open(fixture.port);
		client.write(bytes);
		await until(`the relay has it: ${what}`, () => answers.length === before + 1);
		assert.equal(fixture.relaySockets.size, 1, what);
		client.destroy();
		await until(`nothing is left at the relay: ${what}`, () => fixture.relaySockets.size === 0);
	}
	assert.deepEqual(fixture.breaker.notes, []);
	// Nobody counts twice, and none of it holds up the stop.
	const outcomes = [...fixture.passed];
	assert.deepEqual(
		[outcomes.length, outcomes.filter((one) => one === "failed" || one === "unavailable")],
		[answers.length, []],
	);
	await fixture.stop();
});

test("a stream ends when the server drains, and does not delay the shutdown", async () => {
	const clock = new ManualClock();
	const fixture = await startPassFixture({
		clock,
		relay: (_, answer) => answer.writeHead(200, EVENTS).write("data: {}\n\n"),
	});
	const reader = await EventStreamReader.open(`${fixture.url}/tx/0x1/events`);
	await reader.come(1);
	fixture.server.drain();
	assert.equal(await reader.over(), "end");
	await until("the relay's is closed", () => fixture.relaySockets.size === 0);
	// A stream that begins while it drains gets what there is, and ends.
	const late = await EventStreamReader.open(`${fixture.url}/tx/0x1/events`);
	assert.equal(late.status, 200);
	assert.equal(late.headers.connection, "close");
	assert.equal(await late.over(), "end");
	const stopping = fixture.stop();
	await clock.advance(100);
	await stopping;
});

test("a stream that the relay aborts is aborted for its client", async () => {
	const fixture = await startPassFixture({
		relay: (_, answer) => answer.writeHead(200, EVENTS).write("data: {}\n\n"),
	});
	const reader = await EventStreamReader.open(`${fixture.url}/tx/0x1/events`);
	await reader.come(1);
	await fixture.killRelay();
	assert.equal(await reader.over(), "cut");
	await fixture.server.stop();
});

test("while the relay is unavailable nothing reaches it, and the error fits the request", async () => {
	let asked = 0;
	const fixture = await startPassFixture({ relay: (_, answer) => answer.end(String(asked++)) });
	fixture.breaker.state = "open";
	fixture.breaker.retryMs = 2_400;
	const post = await fetch(`${fixture.url}/fullprivacy`, { method: "POST", body: "{}" });
	assert.deepEqual(
		[post.status, await post.json()],
		[
			200,
			{ jsonrpc: "2.0", id: null, error: { code: -32603, message: "no relay available: the relay is down" } },
		],
	);
	const get = await fetch(`${fixture.url}/info`);
	assert.deepEqual([get.status, await get.json()], [503, { error: "no relay available: the relay is down" }]);
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

test("the breaker counts a refused connection, but no reset and no time-out", async () => {
	const clock = new ManualClock();
	const fixture = await startPassFixture({
		clock,
		relay: (request) => {
			if (request.url === "/reset") request.socket.destroy();
		},
	});
	const reset = await fetch(`${fixture.url}/reset`, { method: "POST", body: "{}" });
	assert.equal(reset.status, 200);
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

const CALL = { jsonrpc: "2.0", id: "7", method: "eth_call", params: [] };
const ENDED = { code: -32603, message: "no relay available: the relay ended the connection" };
/** Bodies that the relay has had when it ends the connection, and the ids of the errors. */
const DYING: readonly (readonly [name: string, body: string, ids: readonly unknown[]])[] = [
	["a call", JSON.stringify(CALL), ["7"]],
	["a batch", JSON.stringify([CALL, { ...CALL, id: 8 }, { ...CALL, id: null }]), ["7", 8, null]],
	["a call of 60 kB", JSON.stringify({ ...CALL, params: ["x".repeat(60_000)] }), ["7"]],
	["one that is too long to be kept", JSON.stringify({ ...CALL, params: ["x".repeat(70_000)] }), [null]],
];

test("calls keep their ids when the relay ends the connection with their request", async () => {
	const fixture = await startPassFixture({
		relay: async (request) => {
			for await (const _ of request);
			request.socket.destroy();
		},
	});
	for (const [name, body, ids] of DYING) {
		const answer = await fetch(`${fixture.url}/fullprivacy`, { method: "POST", body });
		const errors = [(await answer.json()) as unknown].flat() as { id: unknown; error: unknown }[];
		assert.deepEqual(
			errors.map(({ id, error }) => [id, error]),
			ids.map((id) => [id, ENDED]),
			name,
		);
	}
	await fixture.stop();
});

test("the error page of a proxy in front of the relay becomes an error that the client can read", async () => {
	const fixture = await startPassFixture({
		relay: async (request, answer) => {
			for await (const _ of request);
			answer.writeHead(503, { "content-type": "text/html" }).end("<html>no server is available</html>");
		},
	});
	const message = "no relay available: the proxy in front of the relay reaches no relay";
	const post = await fetch(`${fixture.url}/fullprivacy`, { method: "POST", body: JSON.stringify(CALL) });
	assert.deepEqual(
		[post.status, await post.json()],
		[200, { jsonrpc: "2.0", id: "7", error: { code: -32603, message } }],
	);
	const get = await fetch(`${fixture.url}/info`);
	assert.deepEqual([get.status, await get.json()], [503, { error: message }]);
	const stream = await fetch(`${fixture.url}/mev-share`, { headers: { accept: "text/event-stream" } });
	assert.deepEqual(
		[stream.status, stream.headers.get("content-type")],
		[200, "text/event-stream; charset=utf-8"],
	);
	assert.match(await stream.text(), /^retry: \d+/);
	await fixture.stop();
});

test("a read is retried if the relay has just closed an idle connection", async () => {
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

test("a truncated answer does not look complete", async () => {
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
