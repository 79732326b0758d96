// What a transport sends, byte for byte: method, target, headers and body, behind addresses of all kinds.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createTransport } from "../../../../boost-proxy/upstream/transport.ts";
import { systemClock } from "../../../../shared/clock.ts";
import { httpText, RawUpstream } from "../../../support/upstreams.ts";

const DEADLINE_MS = 20_000;
const NO_HEADERS = {};

async function withUpstream(run: (upstream: RawUpstream) => Promise<void>): Promise<void> {
	const upstream = await RawUpstream.start(({ socket }) => void socket.write(httpText("{}")));
	try {
		await run(upstream);
	} finally {
		await upstream.close();
	}
}

test("a POST is its target, the headers given, content type and body, and nothing that tells of us", () =>
	withUpstream(async (upstream) => {
		const transport = createTransport({ url: upstream.url }, { clock: systemClock });
		const headers = { "x-forwarded-for": "10.1.2.3", "x-boost-auth": "s3cret" };
		const body = Buffer.from('{"params":["0xé"]}');
		const result = await transport.post({ target: "/fast?a=b", body, headers, deadlineMs: DEADLINE_MS });
		assert.deepEqual(result, {
			kind: "answered",
			status: 200,
			retryAfterS: undefined,
			body: Buffer.from("{}"),
		});
		const lines = [
			"POST /fast?a=b HTTP/1.1",
			`host: 127.0.0.1:${upstream.port}`,
			"connection: keep-alive",
			"content-type: application/json",
			"x-forwarded-for: 10.1.2.3",
			"x-boost-auth: s3cret",
			`content-length: ${body.length}`,
		];
		assert.equal(upstream.received, `${lines.join("\r\n")}\r\n\r\n${body.toString("latin1")}`);
		await transport.close();
	}));

test("a GET has no body and no content type", () =>
	withUpstream(async (upstream) => {
		const transport = createTransport({ url: upstream.url }, { clock: systemClock });
		assert.equal((await transport.get("/tx/0xab", DEADLINE_MS)).kind, "answered");
		const [request = ""] = upstream.requests;
		assert.match(request, /^GET \/tx\/0xab HTTP\/1\.1\r\n/);
		assert.doesNotMatch(request, /content-|accept|user-agent/i);
		await transport.close();
	}));

test("credentials of the address go as Basic, its path and keys stand before the target's", () =>
	withUpstream(async (upstream) => {
		const url = `http://us%65r:p%40ss@127.0.0.1:${upstream.port}/base/?key=k`;
		const transport = createTransport({ url }, { clock: systemClock });
		await transport.post({ target: "/fast?a=b", body: "{}", headers: NO_HEADERS, deadlineMs: DEADLINE_MS });
		const [request = ""] = upstream.requests;
		assert.match(request, /^POST \/base\/fast\?key=k&a=b HTTP\/1\.1\r\n/);
		assert.ok(request.includes(`authorization: Basic ${btoa("user:p@ss")}\r\n`), "the pair, decoded");
		await transport.close();
	}));

test("two connections serve all requests that follow one another, and as many as need be those that don't", () =>
	withUpstream(async (upstream) => {
		const transport = createTransport({ url: upstream.url }, { clock: systemClock });
		const post = () =>
			transport.post({ target: "/", body: "{}", headers: NO_HEADERS, deadlineMs: DEADLINE_MS });
		// undici gives one back a turn after its answer: who asks again at once gets another.
		for (let i = 0; i < 10; i++) assert.equal((await post()).kind, "answered");
		assert.ok(upstream.peers.length <= 2, `${upstream.peers.length} connections`);
		await Promise.all([post(), post(), post(), post()]);
		assert.ok(upstream.peers.length >= 4, `${upstream.peers.length} connections for four at once`);
		await transport.close();
	}));

test("whatever stands in a target or a header, it is sent and answered: a client must not make us look down", () =>
	withUpstream(async (upstream) => {
		const transport = createTransport({ url: upstream.url }, { clock: systemClock });
		const text = fc.oneof(fc.string({ unit: "binary" }), fc.string(), fc.constant("\ud800\r\nx: y"));
		await fc.assert(
			fc.asyncProperty(text, text, async (query, value) => {
				const headers = { origin: value };
				const result = await transport.post({
					target: `/fast?${query}`,
					body: "{}",
					headers,
					deadlineMs: DEADLINE_MS,
				});
				assert.equal(result.kind, "answered");
				const request = upstream.requests.at(-1) ?? "";
				assert.match(request, /^POST \/fast(\?[^ \r\n]*)? HTTP\/1\.1\r\nhost:/);
				assert.doesNotMatch(request, /\nx: y/);
			}),
			{ numRuns: 60 },
		);
		await transport.close();
	}));
