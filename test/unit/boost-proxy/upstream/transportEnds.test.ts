// The ways in which an exchange with an upstream ends: whatever the other side does, one result comes, and `sent` is false
// only where a server that watches every byte saw none.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { gzipSync } from "node:zlib";
import type { ExchangeResult } from "../../../../boost-proxy/domain/request.ts";
import { AbortSwitch } from "../../../../boost-proxy/health/breaker.ts";
import { HttpTransport, type TransportOptions } from "../../../../boost-proxy/upstream/transport.ts";
import { type Clock, systemClock } from "../../../../shared/clock.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { resetSocket } from "../../../support/tcpProxy.ts";
import { until } from "../../../support/until.ts";
import { httpText, type RawScript, RawUpstream } from "../../../support/upstreams.ts";

const BODY = '{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0x02"]}';
const LONG_MS = 60_000;
const post = (deadlineMs = LONG_MS, body = BODY) => ({ target: "/fast", body, headers: {}, deadlineMs });
const failed = (fault: string, sent: boolean) => ({ kind: "failed", fault, sent });

const ENDS: readonly (readonly [string, RawScript, (result: ExchangeResult) => void])[] = [
	["a reset", ({ socket }) => resetSocket(socket), is("reset")],
	["an end without a byte", ({ socket }) => socket.end(), is("reset")],
	["an end within the headers", ({ socket }) => socket.end("HTTP/1.1 200 OK\r\ncontent-le"), is("reset")],
	[
		"an end within a body of known length",
		({ socket }) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"jsonrpc"'),
		is("reset"),
	],
	[
		"an end within a chunked body",
		({ socket }) => socket.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"jso\r\n'),
		is("reset"),
	],
	[
		"a reset within a body",
		({ socket }) => {
			socket.write("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{", () => resetSocket(socket));
		},
		is("reset"),
	],
	["bytes that are no HTTP", ({ socket }) => socket.write("SSH-2.0-OpenSSH_9.6\r\n"), is("notJsonRpc")],
	[
		"headers beyond all measure",
		({ socket }) => socket.write(`HTTP/1.1 200 OK\r\nx: ${"x".repeat(40_000)}\r\n\r\n`),
		is("notJsonRpc"),
	],
	[
		"a compressed body that nobody asked for",
		({ socket }) => {
			const zipped = gzipSync('{"jsonrpc":"2.0","id":1,"result":"0x1"}');
			socket.write(`HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${zipped.length}\r\n\r\n`);
			socket.write(zipped);
		},
		is("notJsonRpc"),
	],
	[
		"a body that says it is too long",
		({ socket }) => socket.write(httpText("x".repeat(2_000))),
		is("tooLarge"),
	],
	[
		"a body that turns out too long",
		({ socket }) => {
			const chunk = `200\r\n${"x".repeat(512)}\r\n`;
			socket.write(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunk}${chunk}${chunk}`);
		},
		is("tooLarge"),
	],
	[
		"an answer behind early ones",
		({ socket }) => socket.write(`HTTP/1.1 103 Early Hints\r\nretry-after: 9\r\n\r\n${httpText("{}")}`),
		answered(200, "{}", undefined),
	],
	[
		"a body that the end delimits",
		({ socket }) => socket.end("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{}"),
		answered(200, "{}", undefined),
	],
	[
		"an identity encoding",
		reply("{}", "200 OK", "content-encoding: identity"),
		answered(200, "{}", undefined),
	],
	["an empty body", reply("", "204 No Content"), answered(204, "", undefined)],
	["a redirect, not followed", reply("", "302 Found", "location: /elsewhere"), answered(302, "", undefined)],
	["a 503 with seconds", reply("busy", "503 Busy", "retry-after: 7"), answered(503, "busy", 7)],
	[
		"a 429 with a date",
		reply("{}", "429 Too Many Requests", "retry-after: Thu, 01 Jan 2026 00:00:30 GMT"),
		answered(429, "{}", 30),
	],
	[
		"a date that has passed",
		reply("{}", "429 Too Many Requests", "retry-after: Thu, 01 Jan 2015 00:00:30 GMT"),
		answered(429, "{}", 0),
	],
	[
		"a Retry-After that says nothing",
		reply("{}", "200 OK", "retry-after: -5.5"),
		answered(200, "{}", undefined),
	],
];

for (const [what, script, check] of ENDS) {
	test(`an exchange ends by ${what}`, async (t) => {
		const upstream = await upstreamOf(t, script);
		const transport = transportOf(t, { url: upstream.url, maxAnswerBytes: 1_024 }, new ManualClock());
		check(await transport.post(post()));
	});
}

test("a deadline ends silence, slow headers and a slow body alike, and the connection with them", async (t) => {
	const starts = ["", "HTTP/1.1 200 OK\r\nx-slow: ", 'HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"id"'];
	for (const start of starts) {
		const clock = new ManualClock();
		const upstream = await upstreamOf(t, ({ socket }) => void socket.write(start));
		const transport = transportOf(t, { url: upstream.url }, clock);
		const pending = transport.post(post(4_000));
		await upstream.sawRequests(1);
		const peer = upstream.peers[0];
		// A drip each second must not put the deadline off.
		for (let i = 0; i < 4; i++) {
			if (start !== "") peer?.socket.write("x");
			await clock.advance(1_000);
		}
		assert.deepEqual(await pending, failed("timeout", true), `after ${JSON.stringify(start)}`);
		await until("the connection is ended", () => peer?.closed);
		assert.equal(clock.timers, 0, "no timer is left");
	}
});

test("refused connections: no byte left, for those behind the limit as well", async (t) => {
	const closed = await upstreamOf(t);
	const { url } = closed;
	await closed.close();
	const transport = transportOf(t, { url, connections: 1 });
	const results = await Promise.all(Array.from({ length: 5 }, () => transport.post(post())));
	for (const result of results) assert.deepEqual(result, failed("refused", false));
});

test("behind the limit: what was given up is never sent, though its turn comes", async (t) => {
	const clock = new ManualClock();
	const upstream = await upstreamOf(t);
	const transport = transportOf(t, { url: upstream.url, connections: 1 }, clock);
	const first = transport.post(post(LONG_MS, '"first"'));
	await upstream.sawRequests(1);
	const abort = new AbortSwitch();
	const late = transport.post(post(500, '"late"'));
	const unwanted = transport.post({ ...post(LONG_MS, '"unwanted"'), abort });
	const last = transport.post(post(LONG_MS, '"last"'));
	await clock.advance(500);
	abort.abort();
	assert.deepEqual(await late, failed("timeout", false));
	assert.deepEqual(await unwanted, { kind: "cut", sent: false });
	upstream.peers[0]?.socket.write(httpText("1"));
	await upstream.sawRequests(2);
	upstream.peers[0]?.socket.write(httpText("2"));
	assert.equal((await first).kind, "answered");
	assert.equal((await last).kind, "answered");
	assert.doesNotMatch(upstream.received, /late|unwanted/);
	assert.equal(upstream.peers.length, 1, "the connection was kept");
});

test("a reused connection that dies under a request is a reset, and may have had it", async (t) => {
	const upstream = await upstreamOf(t, ({ socket }, _, nth) => {
		if (nth === 2) resetSocket(socket);
		else socket.write(httpText("{}"));
	});
	const transport = transportOf(t, { url: upstream.url });
	assert.equal((await transport.post(post())).kind, "answered");
	assert.deepEqual(await transport.post(post()), failed("reset", true));
	assert.equal((await transport.post(post())).kind, "answered", "by a new connection");
	assert.equal(upstream.peers.length, 2);
	assert.equal(upstream.requests.length, 3, "nothing was sent twice");
});

test("an abort ends a request under way, and one that was answered no more", async (t) => {
	const upstream = await upstreamOf(t, ({ socket }, _, nth) => {
		if (nth === 2) socket.write(httpText("{}"));
	});
	const clock = new ManualClock();
	const transport = transportOf(t, { url: upstream.url }, clock);
	const abort = new AbortSwitch();
	const pending = transport.post({ ...post(), abort });
	await upstream.sawRequests(1);
	const later = countingAbort();
	const done = await transport.post({ ...post(), abort: later });
	assert.equal(later.listeners, 0, "nobody listens for one that is over");
	abort.abort();
	assert.deepEqual(await pending, { kind: "cut", sent: true });
	assert.equal(done.kind, "answered");
	await until("the aborted one's connection is ended", () => upstream.peers[0]?.closed);
	assert.equal(upstream.peers[1]?.closed, false, "the other one stays");
	assert.deepEqual(await transport.post({ ...post(), abort }), { kind: "cut", sent: false });
	assert.deepEqual(await transport.post(post(0)), failed("timeout", false));
	assert.equal(clock.timers, 0, "no timer is left");
	assert.equal(upstream.requests.length, 2);
});

test("after it was renewed no connection of before is used, while what is under way on one ends in its time", async (t) => {
	const answers: (() => void)[] = [];
	const upstream = await upstreamOf(t, ({ socket }, _, nth) => {
		if (nth === 2) answers.push(() => socket.write(httpText('"late"')));
		else socket.write(httpText("{}"));
	});
	const transport = transportOf(t, { url: upstream.url });
	await transport.post(post());
	const slow = transport.post(post());
	await upstream.sawRequests(2);
	const old = [...upstream.peers];
	transport.renew();
	assert.equal((await transport.post(post())).kind, "answered");
	assert.equal(upstream.peers.length, old.length + 1, "one more connection");
	for (const answer of answers) answer();
	assert.equal((await slow).kind, "answered");
	await until("the old ones are ended", () => old.every(({ closed }) => closed));
	assert.equal(upstream.peers.at(-1)?.closed, false);
});

function is(fault: string): (result: ExchangeResult) => void {
	return (result) => assert.deepEqual(result, failed(fault, true));
}

function answered(status: number, text: string, retryAfterS: number | undefined) {
	return (result: ExchangeResult) =>
		assert.deepEqual(result, { kind: "answered", status, retryAfterS, body: Buffer.from(text) });
}

function reply(body: string, status: string, ...headers: string[]): RawScript {
	return ({ socket }) => void socket.write(httpText(body, status, headers));
}

/** Closed behind the test, whatever became of it: a server that is left would keep the process. */
async function upstreamOf(t: TestContext, script?: RawScript): Promise<RawUpstream> {
	const upstream = await RawUpstream.start(script);
	t.after(() => upstream.close());
	return upstream;
}

function transportOf(t: TestContext, options: TransportOptions, clock: Clock = systemClock): HttpTransport {
	const transport = new HttpTransport(options, { clock });
	t.after(() => transport.close());
	return transport;
}

/** An abort that is never made. */
function countingAbort() {
	const abort = {
		isAborted: false,
		listeners: 0,
		onAbort() {
			abort.listeners += 1;
			return () => {
				abort.listeners -= 1;
			};
		},
	};
	return abort;
}
