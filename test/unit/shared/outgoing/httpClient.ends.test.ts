// How a request to an upstream ends: there is exactly one result, and `sent` is false only if no
// byte was sent.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { type Clock, systemClock } from "../../../../shared/clock.ts";
import { AbortSwitch } from "../../../../shared/outgoing/abort.ts";
import {
	HttpClient,
	type HttpClientOptions,
	type HttpRequest,
	type HttpResult,
} from "../../../../shared/outgoing/httpClient.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { until } from "../../../support/until.ts";
import { httpText, type RawScript, RawUpstream } from "../../../support/upstreams.ts";

const BODY = '{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0x02"]}';
const LONG_MS = 60_000;
const post = (deadlineMs = LONG_MS, body = BODY) =>
	({ method: "POST", target: "/fast", body, headers: {}, deadlineMs }) satisfies HttpRequest;
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

/**
 * The upstream's bytes, whether it then closes, and the result. Faults of the wire are in
 * test/faults.
 */
const ENDS: readonly (readonly [string, string | Buffer, boolean, object])[] = [
	["an end without a byte", "", true, failed("reset", true)],
	[
		"an end within a chunked body",
		head("transfer-encoding: chunked", '5\r\n{"jso\r\n'),
		true,
		failed("reset", true),
	],
	["bytes that are no HTTP", "SSH-2.0-OpenSSH_9.6\r\n", false, failed("unreadable", true)],
	["headers that are too long", head(`x: ${"x".repeat(40_000)}`, ""), false, failed("unreadable", true)],
	[
		"a body that is said to be compressed",
		httpText("zipped", "200 OK", ["content-encoding: gzip"]),
		false,
		failed("unreadable", true),
	],
	[
		"an encoding that is not known",
		httpText("zipped", "200 OK", ["content-encoding: zstd"]),
		false,
		failed("unreadable", true),
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
];

for (const [what, text, closes, expected] of ENDS) {
	test(`a request ends by ${what}`, async (t) => {
		const upstream = await upstreamOf(t, ({ socket }) => {
			if (closes) socket.end(text);
			else socket.write(text);
		});
		const client = clientOf(t, { url: upstream.url, maxAnswerBytes: 1_024 }, new ManualClock());
		assert.deepEqual(endOf(await client.request(post())), expected);
	});
}

test("refused connections: no byte was sent, for waiting requests as well", async (t) => {
	const closed = await upstreamOf(t);
	const { url } = closed;
	await closed.close();
	const client = clientOf(t, { url, connections: 1 });
	const results = await Promise.all(Array.from({ length: 5 }, () => client.request(post())));
	for (const result of results) {
		assert.deepEqual(endOf(result), failed("noConnection", false));
		assert.equal(result.kind === "failed" && result.reason, "ECONNREFUSED");
	}
});

test("a request that is abandoned while it waits for a connection is never sent", async (t) => {
	const clock = new ManualClock();
	const upstream = await upstreamOf(t);
	const client = clientOf(t, { url: upstream.url, connections: 1 }, clock);
	const first = client.request(post(LONG_MS, '"first"'));
	await upstream.sawRequests(1);
	const abort = new AbortSwitch();
	const late = client.request(post(500, '"late"'));
	const unwanted = client.request({ ...post(LONG_MS, '"unwanted"'), abort });
	const last = client.request(post(LONG_MS, '"last"'));
	await clock.advance(500);
	abort.abort();
	assert.deepEqual(endOf(await late), failed("timeout", false));
	assert.deepEqual(await unwanted, { kind: "aborted", sent: false });
	upstream.peers[0]?.socket.write(httpText("1"));
	await upstream.sawRequests(2);
	upstream.peers[0]?.socket.write(httpText("2"));
	assert.equal((await first).kind, "answered");
	assert.equal((await last).kind, "answered");
	assert.doesNotMatch(upstream.received, /late|unwanted/);
	assert.equal(upstream.peers.length, 1, "the connection was kept");
});

test("what may not be sent any more when a connection is free is withheld, and the next one is sent on it", async (t) => {
	const upstream = await upstreamOf(t);
	const client = clientOf(t, { url: upstream.url, connections: 1 });
	let may = true;
	const check = { shouldSend: () => may };
	const first = client.request({ ...post(LONG_MS, '"first"'), check });
	await upstream.sawRequests(1);
	const withheld = client.request({ ...post(LONG_MS, '"unsent"'), check });
	const last = client.request(post(LONG_MS, '"last"'));
	may = false;
	upstream.peers[0]?.socket.write(httpText("1"));
	await upstream.sawRequests(2);
	upstream.peers[0]?.socket.write(httpText("2"));
	assert.equal((await first).kind, "answered");
	assert.deepEqual(endOf(await withheld), failed("unsent", false));
	assert.equal((await last).kind, "answered");
	assert.doesNotMatch(upstream.received, /withheld/);
	assert.equal(upstream.peers.length, 1, "the connection was kept");
});

test("a request whose time was over while this process was suspended is not written when a connection is free", async (t) => {
	const upstream = await upstreamOf(t);
	let asleepMs = 0;
	const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + asleepMs };
	const client = clientOf(t, { url: upstream.url, connections: 1 }, clock);
	const first = client.request(post(4 * LONG_MS, '"first"'));
	await upstream.sawRequests(1);
	const late = client.request(post(LONG_MS, '"late"'));
	const last = client.request(post(4 * LONG_MS, '"last"'));
	// The connection is seen before any timer.
	asleepMs = 2 * LONG_MS;
	upstream.peers[0]?.socket.write(httpText("1"));
	await upstream.sawRequests(2);
	upstream.peers[0]?.socket.write(httpText("2"));
	assert.deepEqual(endOf(await late), failed("timeout", false));
	for (const one of [first, last]) assert.equal((await one).kind, "answered");
	assert.doesNotMatch(upstream.received, /late/);
});

test("a stream is read as it comes, until it ends, falls silent or is not what was expected", async (t) => {
	const upstream = await upstreamOf(t, ({ socket }) => socket.write(head("transfer-encoding: chunked", "")));
	const clock = new ManualClock();
	const client = clientOf(t, { url: upstream.url, connections: 1, maxAnswerBytes: 4 }, clock);
	const read: string[] = [];
	const stream = (accepts: boolean) => ({
		...post(1_000),
		stream: {
			accepts: ({ status }: { readonly status: number }) => accepts && status === 200,
			onBytes: (bytes: Buffer) => void read.push(bytes.toString()),
			silenceMs: 5_000,
		},
	});
	const write = async (nth: number, text: string, whole: string) => {
		upstream.peers[nth]?.socket.write(`${text.length.toString(16)}\r\n${text}\r\n`);
		await until(whole, () => read.join("") === whole);
	};
	const ending = client.request(stream(true));
	await upstream.sawRequests(1);
	await write(0, "one, ", "one, ");
	await clock.advance(4_999);
	await write(0, "two, ", "one, two, ");
	await clock.advance(4_999);
	upstream.peers[0]?.socket.write("0\r\n\r\n");
	assert.deepEqual(endOf(await ending), answered(200, ""));
	const silent = client.request(stream(true));
	await upstream.sawRequests(2);
	await write(0, "three", "one, two, three");
	await clock.advance(5_000);
	assert.deepEqual(endOf(await silent), failed("timeout", true));
	await until("it is closed", () => upstream.peers[0]?.closed);
	assert.deepEqual(endOf(await client.request(stream(false))), answered(200, ""));
	await until("it is closed too", () => upstream.peers[1]?.closed);
	const mute = client.request(stream(true));
	await upstream.sawRequests(4);
	await clock.advance(1_000);
	assert.deepEqual(endOf(await mute), failed("timeout", true), "the first bytes have the deadline");
	assert.equal(clock.timers, 0, "no timer is left");
});

test("an abort ends a request in progress, but not one that was answered", async (t) => {
	const upstream = await upstreamOf(t, ({ socket }, _, nth) => {
		if (nth === 2) socket.write(httpText("{}"));
	});
	const clock = new ManualClock();
	const client = clientOf(t, { url: upstream.url }, clock);
	const abort = new AbortSwitch();
	const pending = client.request({ ...post(), abort });
	await upstream.sawRequests(1);
	const later = countingAbort();
	const done = await client.request({ ...post(), abort: later });
	assert.equal(later.listeners, 0, "nobody listens for one that is over");
	abort.abort();
	assert.deepEqual(await pending, { kind: "aborted", sent: true });
	assert.equal(done.kind, "answered");
	await until("the aborted one's connection is ended", () => upstream.peers[0]?.closed);
	assert.equal(upstream.peers[1]?.closed, false, "the other one stays");
	assert.deepEqual(await client.request({ ...post(), abort }), { kind: "aborted", sent: false });
	assert.deepEqual(endOf(await client.request(post(0))), failed("timeout", false));
	assert.equal(clock.timers, 0, "no timer is left");
	assert.equal(upstream.requests.length, 2);
});

test("after a renewal only new connections are used, while requests in progress go on", async (t) => {
	const answers: (() => void)[] = [];
	const upstream = await upstreamOf(t, ({ socket }, _, nth) => {
		if (nth === 2) answers.push(() => socket.write(httpText('"late"')));
		else socket.write(httpText("{}"));
	});
	const client = clientOf(t, { url: upstream.url });
	await client.request(post());
	const slow = client.request(post());
	await upstream.sawRequests(2);
	const old = [...upstream.peers];
	client.renew();
	assert.equal((await client.request(post())).kind, "answered");
	assert.equal(upstream.peers.length, old.length + 1, "one more connection");
	for (const answer of answers) answer();
	assert.equal((await slow).kind, "answered");
	await until("the old ones are ended", () => old.every(({ closed }) => closed));
	assert.equal(upstream.peers.at(-1)?.closed, false);
});

function answered(status: number, text: string) {
	return { kind: "answered", status, text };
}

/** The part of a result that describes the end. */
function endOf(result: HttpResult): object {
	if (result.kind === "answered") return answered(result.status, result.body.toString());
	return result.kind === "failed" ? failed(result.fault, result.sent) : result;
}

function head(header: string, rest: string): string {
	return `HTTP/1.1 200 OK\r\n${header}\r\n\r\n${rest}`;
}

/** Closed after the test, even a failed one: an open server would keep the process alive. */
async function upstreamOf(t: TestContext, script?: RawScript): Promise<RawUpstream> {
	const upstream = await RawUpstream.start(script);
	t.after(() => upstream.close());
	return upstream;
}

function clientOf(
	t: TestContext,
	options: Partial<HttpClientOptions> & Pick<HttpClientOptions, "url">,
	clock: Clock = systemClock,
): HttpClient {
	const client = new HttpClient({ connections: 256, ...options }, { clock });
	t.after(() => client.close());
	return client;
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
