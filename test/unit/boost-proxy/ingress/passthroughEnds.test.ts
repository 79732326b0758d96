// How what is passed through ends: by a client that goes away, at whatever moment, and by the server's own stop. Nothing is
// left at the relay, and what goes on for good holds up no stop.

import assert from "node:assert/strict";
import type { RequestListener, ServerResponse } from "node:http";
import { test } from "node:test";
import { EventStreamReader, RawConnection, requestText } from "../../../support/clients.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { until } from "../../../support/until.ts";
import { startPassFixture } from "./passFixture.ts";

const EVENTS = { "content-type": "text/event-stream", "cache-control": "no-store" };

test("clients that go away leave no connection behind, at whatever moment they do", async () => {
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
		["with two in a row", Buffer.concat([requestText("GET", "/silent"), requestText("GET", "/begun")])],
		["behind our own", Buffer.concat([requestText("GET", "/own"), requestText("POST", "/silent", {}, "x")])],
	];
	for (const [what, bytes] of rows) {
		const wanted = what === "with two in a row" ? 2 : 1;
		const before = answers.length;
		const client = await RawConnection.open(fixture.port);
		client.write(bytes);
		await until(`the relay has it: ${what}`, () => answers.length === before + wanted);
		assert.ok(fixture.relaySockets.size >= wanted, what);
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

test("a hundred aborted clients leave nothing", async () => {
	const fixture = await startPassFixture({
		relay: (request, answer) => {
			if (Number(request.url?.slice(1)) % 2 === 0) answer.writeHead(200, EVENTS).write(": hello\n\n");
		},
	});
	const clients = await Promise.all(
		Array.from({ length: 100 }, async (_, i) => {
			const client = await RawConnection.open(fixture.port);
			client.write(requestText("GET", `/${i}`));
			return client;
		}),
	);
	await until("the relay has all", () => fixture.relaySockets.size === 100);
	for (const client of clients) client.destroy();
	await until("nothing is left", () => fixture.relaySockets.size === 0);
	assert.equal(fixture.passed.length, 100);
	await fixture.stop();
});

test("events come one by one as they are sent", async () => {
	const answers: ServerResponse[] = [];
	const fixture = await startPassFixture({
		relay: (_, answer) => answers.push(answer.writeHead(200, EVENTS)),
	});
	const opening = EventStreamReader.open(`${fixture.url}/tx/0x1/events`);
	await until("it is asked", () => answers.length === 1);
	answers[0]?.flushHeaders();
	const reader = await opening;
	assert.equal(reader.headers["x-boost-upstream"], "relay");
	for (let i = 1; i <= 3; i++) {
		answers[0]?.write(`id: ${i}\ndata: {"i":${i}}\n\n`);
		await reader.come(i);
	}
	answers[0]?.end();
	assert.equal(await reader.over(), "end");
	await fixture.stop();
});

test("a stream ends when the server drains, and holds up no stop", async () => {
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
	// One that comes while it drains is told what there is, and ends.
	const late = await EventStreamReader.open(`${fixture.url}/tx/0x1/events`);
	assert.equal(late.status, 200);
	assert.equal(late.headers.connection, "close");
	assert.equal(await late.over(), "end");
	const stopping = fixture.stop();
	await clock.advance(100);
	await stopping;
});

test("a stream that the relay cuts is cut for its client, who then comes back", async () => {
	const fixture = await startPassFixture({
		relay: (_, answer) => answer.writeHead(200, EVENTS).write("data: {}\n\n"),
	});
	const reader = await EventStreamReader.open(`${fixture.url}/tx/0x1/events`);
	await reader.come(1);
	await fixture.killRelay();
	assert.equal(await reader.over(), "cut");
	await fixture.server.stop();
});

test("a stream behind another request is refused, and what comes behind a stream is cut off", async () => {
	const held: ServerResponse[] = [];
	const fixture = await startPassFixture({
		relay: ({ url }, answer) => {
			if (url === "/slow") held.push(answer);
			else answer.writeHead(200, EVENTS).write("data: {}\n\n");
		},
	});
	const behind = await RawConnection.open(fixture.port);
	behind.write(Buffer.concat([requestText("GET", "/slow"), requestText("GET", "/events")]));
	await until("both are there", () => held.length === 1 && fixture.passed.length === 1);
	held[0]?.writeHead(200, { "content-length": "2" }).end("{}");
	assert.equal((await behind.answer()).status, 200);
	const refused = await behind.answer();
	assert.equal(refused.status, 503);
	assert.match(refused.body, /expected a connection on which no answer is due/);
	assert.equal(refused.headers["x-boost-upstream"], "boost");
	behind.destroy();
	const before = await RawConnection.open(fixture.port);
	before.write(requestText("GET", "/events"));
	await before.answer(true);
	before.write(requestText("GET", "/own"));
	await before.closed();
	await until("nothing is left", () => fixture.relaySockets.size === 0);
	await fixture.stop();
});

test("a stop waits for what is under way, refuses what is new, and cuts what is slow", async () => {
	const clock = new ManualClock();
	const answers: ServerResponse[] = [];
	const fixture = await startPassFixture({
		clock,
		stopMs: 5_000,
		relay: (_, answer) => answers.push(answer),
	});
	const quick = await RawConnection.open(fixture.port);
	quick.write(requestText("POST", "/fullprivacy", {}, "{}"));
	const slow = await RawConnection.open(fixture.port);
	slow.write(requestText("GET", "/info"));
	const half = await RawConnection.open(fixture.port);
	const late = requestText("POST", "/fullprivacy", {}, "{}");
	half.write(late.subarray(0, 20));
	await until("both are asked", () => answers.length === 2);
	let stopped = false;
	const stopping = fixture.server.stop().then(() => {
		stopped = true;
	});
	half.write(late.subarray(20));
	const refused = await half.answer();
	assert.equal(refused.status, 503);
	assert.match(refused.body, /-32603.*shutting down/);
	answers.find(({ req }) => req.url === "/fullprivacy")?.end("{}");
	const answer = await quick.answer(true);
	assert.deepEqual([answer.status, answer.headers.connection], [200, "close"]);
	await clock.advance(4_999);
	assert.equal(stopped, false);
	await clock.advance(1);
	await stopping;
	assert.equal(await slow.closed(), "");
	fixture.pass.stop();
	await until("nothing is left", () => fixture.relaySockets.size === 0);
	await fixture.killRelay();
});

test("a body that the relay does not want to the end: its answer comes through", async () => {
	const fixture = await startPassFixture({
		relay: (request, answer) => {
			answer.writeHead(413, { connection: "close" });
			answer.write("{}");
			request.on("end", () => answer.end());
			request.resume();
		},
	});
	const client = await RawConnection.open(fixture.port);
	client.write(requestText("POST", "/fullprivacy", { "Content-Length": "3000000" }, "x".repeat(100_000)));
	const answer = await client.answer(true);
	assert.deepEqual([answer.status, answer.headers.connection], [413, "close"]);
	client.write("x".repeat(2_900_000));
	assert.match(await client.closed(), /\{\}/);
	await fixture.stop();
});

test("while the relay is out a long body is read and forgotten, and the answer still arrives", async () => {
	const fixture = await startPassFixture();
	fixture.breaker.state = "open";
	const client = await RawConnection.open(fixture.port);
	client.write(requestText("POST", "/fullprivacy", { "Content-Length": "3000000" }, "x".repeat(100_000)));
	assert.equal((await client.answer()).status, 503);
	client.write("x".repeat(2_900_000));
	await client.closed();
	const waiting = await RawConnection.open(fixture.port);
	waiting.write(requestText("POST", "/fullprivacy", { Expect: "100-continue", "Content-Length": "9" }));
	assert.equal((await waiting.answer()).status, 503, "no 100 first");
	waiting.destroy();
	await fixture.stop();
});
