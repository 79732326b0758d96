// How an exchange with an upstream ends: there is exactly one result, and `sent` is false only if no byte was sent.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { AbortSwitch } from "../../../../boost-proxy/health/breaker.ts";
import { HttpTransport, type TransportOptions } from "../../../../boost-proxy/upstream/transport.ts";
import { type Clock, systemClock } from "../../../../shared/clock.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { until } from "../../../support/until.ts";
import { httpText, type RawScript, RawUpstream } from "../../../support/upstreams.ts";

const BODY = '{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0x02"]}';
const LONG_MS = 60_000;
const post = (deadlineMs = LONG_MS, body = BODY) => ({ target: "/fast", body, headers: {}, deadlineMs });
const failed = (fault: string, sent: boolean) => ({ kind: "failed", fault, sent });

const ENCODERS: Readonly<Record<string, (body: Buffer) => Buffer>> = {
	gzip: (body) => gzipSync(body),
	br: (body) => brotliCompressSync(body),
	deflate: (body) => deflateSync(body),
	"GZIP, deflate": (body) => deflateRawSync(gzipSync(body)),
};
const encodedText = (encoding: string, body: Buffer): Buffer => {
	const lines = ["HTTP/1.1 200 OK", `content-encoding: ${encoding}`, `content-length: ${body.length}`];
	return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`), body]);
};

/** What the upstream writes, whether it then closes, and the result. Faults of the wire are in test/faults. */
const ENDS: readonly (readonly [string, string | Buffer, boolean, object])[] = [
	["an end without a byte", "", true, failed("reset", true)],
	[
		"an end within a chunked body",
		head("transfer-encoding: chunked", '5\r\n{"jso\r\n'),
		true,
		failed("reset", true),
	],
	["bytes that are no HTTP", "SSH-2.0-OpenSSH_9.6\r\n", false, failed("notJsonRpc", true)],
	["headers that are too long", head(`x: ${"x".repeat(40_000)}`, ""), false, failed("notJsonRpc", true)],
	[
		"a body that is said to be compressed",
		httpText("zipped", "200 OK", ["content-encoding: gzip"]),
		false,
		failed("notJsonRpc", true),
	],
	[
		"an encoding that is not known",
		httpText("zipped", "200 OK", ["content-encoding: zstd"]),
		false,
		failed("notJsonRpc", true),
	],
	...Object.entries(ENCODERS).flatMap(
		([encoding, encode]) =>
			[
				[
					`a body in ${encoding}`,
					encodedText(encoding, encode(Buffer.from('{"a":1}'))),
					...([false, answered(200, '{"a":1}')] as const),
				],
				[
					`a small body in ${encoding} that grows beyond the limit`,
					encodedText(encoding, encode(Buffer.alloc(100_000, " "))),
					...([false, failed("tooLarge", true)] as const),
				],
			] as const,
	),
	["a length beyond the limit", httpText("x".repeat(2_000)), false, failed("tooLarge", true)],
	[
		"chunks beyond the limit",
		head("transfer-encoding: chunked", `200\r\n${"x".repeat(512)}\r\n`.repeat(3)),
		...([false, failed("tooLarge", true)] as const),
	],
	[
		"an answer after early hints",
		`HTTP/1.1 103 Early Hints\r\nretry-after: 9\r\n\r\n${httpText("{}")}`,
		...([false, answered(200, "{}")] as const),
	],
	["a body that the end delimits", head("connection: close", "{}"), true, answered(200, "{}")],
	[
		"an identity encoding",
		httpText("{}", "200 OK", ["content-encoding: identity"]),
		false,
		answered(200, "{}"),
	],
	["a redirect, not followed", httpText("", "302 Found", ["location: /elsewhere"]), false, answered(302, "")],
	...(
		[
			["7", 7],
			["Thu, 01 Jan 2026 00:00:30 GMT", 30],
			["Thu, 01 Jan 2015 00:00:30 GMT", 0],
			["-5.5", undefined],
		] as const
	).map(
		([value, seconds]) =>
			[
				`retry-after: ${value}`,
				httpText("busy", "503 Busy", [`retry-after: ${value}`]),
				...([false, answered(503, "busy", seconds)] as const),
			] as const,
	),
];

for (const [what, text, closes, expected] of ENDS) {
	test(`an exchange ends by ${what}`, async (t) => {
		const upstream = await upstreamOf(t, ({ socket }) => {
			if (closes) socket.end(text);
			else socket.write(text);
		});
		const transport = transportOf(t, { url: upstream.url, maxAnswerBytes: 1_024 }, new ManualClock());
		assert.deepEqual(await transport.post(post()), expected);
	});
}

test("refused connections: no byte was sent, for waiting requests as well", async (t) => {
	const closed = await upstreamOf(t);
	const { url } = closed;
	await closed.close();
	const transport = transportOf(t, { url, connections: 1 });
	const results = await Promise.all(Array.from({ length: 5 }, () => transport.post(post())));
	for (const result of results) assert.deepEqual(result, failed("refused", false));
});

test("a request that is abandoned while it waits for a connection is never sent", async (t) => {
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

test("an abort ends a request in progress, but not one that was answered", async (t) => {
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

test("after a renewal only new connections are used, while requests in progress go on", async (t) => {
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

function answered(status: number, text: string, retryAfterS?: number) {
	return { kind: "answered", status, retryAfterS, body: Buffer.from(text) };
}

function head(header: string, rest: string): string {
	return `HTTP/1.1 200 OK\r\n${header}\r\n\r\n${rest}`;
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
