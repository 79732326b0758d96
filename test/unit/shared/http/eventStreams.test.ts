// Event streams over a real server with a manual clock: what is sent, their duration and number,
// slow readers, and that nothing of them is left over or delays a stop.

import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { Ending } from "../../../../shared/http/callContext.ts";
import { type EventMessage, EventStreams, eventsText } from "../../../../shared/http/eventStreams.ts";
import { jsonAnswer } from "../../../../shared/http/messages.ts";
import type { Route } from "../../../../shared/http/routes.ts";
import { EventStreamReader, requestText } from "../../../support/clients.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { startTransport } from "../../../support/transportServer.ts";
import { PATIENCE_MS, until } from "../../../support/until.ts";

const MIB = 1024 * 1024;

/** A server whose `/feed` streams what `send` is given. */
async function fixture() {
	const clock = new ManualClock();
	const streams = new EventStreams({ clock });
	const senders = new Set<(messages: readonly EventMessage[]) => void>();
	const state = { isOver: false, stopped: 0 };
	const routes: Route[] = [
		{
			path: "/feed",
			handle: ({ address }) =>
				streams.answer(address, {
					begin(write) {
						const send = (messages: readonly EventMessage[]) => write(eventsText(messages));
						send([{ id: "1", data: { n: 1 } }]);
						senders.add(send);
						return () => {
							state.stopped += 1;
							senders.delete(send);
						};
					},
					isOver: () => state.isOver,
				}),
		},
	];
	const transport = await startTransport({ clock, routes, trustProxy: 1, unread: { maxBytesEach: 2 * MIB } });
	const url = `${transport.url}/feed`;
	return {
		...{ clock, streams, state, transport, url },
		send(...messages: readonly EventMessage[]) {
			for (const send of senders) send(messages);
		},
		open: (address = "192.0.2.1") => EventStreamReader.open(url, { "x-forwarded-for": address }),
		async stop() {
			const stopping = transport.stop();
			await clock.advance(10_000);
			await stopping;
		},
	};
}

test("a stream has its headers, the retry time, and each message as it comes", async () => {
	const { open, send, streams, stop } = await fixture();
	const reader = await open();
	assert.equal(reader.status, 200);
	const { date, connection, "x-request-id": _, ...headers } = reader.headers;
	assert.deepEqual(headers, {
		"content-type": "text/event-stream; charset=utf-8",
		"cache-control": "no-store, no-transform",
		"x-accel-buffering": "no",
		"access-control-allow-origin": "*",
		"access-control-expose-headers": "Retry-After, X-Request-Id",
		"transfer-encoding": "chunked",
		vary: "accept",
	});
	await reader.come(1);
	assert.equal(reader.text, 'retry: 3000\n\nid: 1\ndata: {"n":1}\n\n');
	send({ id: "2", data: { text: "a\nb\r\u2028é" } }, { id: "3", data: [] });
	await reader.come(3);
	assert.deepEqual(reader.messages.slice(1), [
		{ id: "2", data: { text: "a\nb\r\u2028é" } },
		{ id: "3", data: [] },
	]);
	assert.equal(streams.size, 1);
	await stop();
	assert.equal(await reader.over(), "end");
});

test("a comment every 15 s keeps a stream open; it ends when its feed is over", async () => {
	const { clock, open, state, stop } = await fixture();
	const reader = await open();
	await reader.come(1);
	await clock.advance(14_999);
	assert.equal(reader.comments, 0);
	await clock.advance(1);
	await until("a comment", () => reader.comments === 1);
	assert.ok(reader.text.endsWith("\n\n:\n\n"), "a comment alone");
	const over = await open();
	state.isOver = true;
	await clock.advance(15_000);
	for (const one of [reader, over]) assert.equal(await one.over(), "end", "the feed is over");
	await stop();
});

test("a stream ends after half an hour", async () => {
	const { clock, open, streams, state, stop } = await fixture();
	const reader = await open();
	for (let minutes = 1; minutes < 30; minutes++) await clock.advance(60_000);
	assert.equal(reader.ended, null);
	assert.equal(streams.size, 1);
	await clock.advance(60_000);
	assert.equal(await reader.over(), "end");
	assert.deepEqual([streams.size, state.stopped], [0, 1]);
	assert.equal(clock.timers, 0, "no timer is left");
	await stop();
});

/**
 * Streams without a server. `ended`: the number of each that has ended, in the order in which they
 * were opened.
 */
function withoutServer() {
	const streams = new EventStreams({ clock: new ManualClock() });
	const ends: (() => void)[] = [];
	const ended: number[] = [];
	/** Opens one, as a server would; returns status, Retry-After and body. */
	const open = (address: string) => {
		const answer = streams.answer(address, { begin: () => () => {}, isOver: () => false });
		const ending = new Ending();
		const number = ends.push(() => ending.end()) - 1;
		ending.onEnd(() => void ended.push(number));
		answer.open?.({ write() {}, end: () => ending.end(), onClose: (listener) => ending.onEnd(listener) });
		return `${answer.status} ${answer.headers?.["retry-after"] ?? ""} ${answer.body ?? ""}`;
	};
	return { streams, ends, ended, open };
}

test("at most 16 streams per client and 2,000 in all; a closed one makes room", () => {
	const { ends, open } = withoutServer();
	for (let i = 1; i <= 16; i++) assert.equal(open(`2001:db8::${i}`), "200  ");
	const refused = '{"error":"limit exceeded: 16 event streams for each client"}';
	assert.equal(open("2001:db8::ffff"), `429 3 ${refused}`);
	ends[0]?.();
	assert.equal(open("2001:db8::1"), "200  ");
	for (const end of ends) end();
	for (let i = 0; i < 2_000; i++) assert.equal(open(`192.${i >> 8}.${i & 255}.1`), "200  ");
	assert.equal(open("198.51.100.1"), '503 3 {"error":"limit exceeded: too many event streams"}');
});

test("few networks do not keep others out: the one with the most streams loses its oldest to a newcomer", () => {
	const { streams, ended, open } = withoutServer();
	for (let i = 0; i < 2_000; i++) assert.equal(open(`192.0.${i % 125}.1`), "200  ");
	for (let i = 0; i < 124; i++) assert.equal(open(`198.51.${i}.1`), "200  ");
	// Each has lost one, and none a second before the others have lost their first.
	assert.deepEqual(
		ended,
		Array.from({ length: 124 }, (_, i) => i),
	);
	assert.equal(streams.size, 2_000);
	// Those that come again take nothing from who has fewer.
	assert.equal(open("192.0.0.1"), '503 3 {"error":"limit exceeded: too many event streams"}');
	assert.equal(open("198.51.0.1"), "200  ");
	assert.equal(ended.length, 125);
});

test("a reader that stops reading is disconnected, and others are not", async () => {
	const { open, send, streams, state, transport, stop } = await fixture();
	const good = await open();
	const socket = connect(transport.port, "127.0.0.1");
	socket.pause();
	socket.write(requestText("GET", "/feed"));
	await until("both are open", () => streams.size === 2);
	const data = "x".repeat(256 * 1024);
	let sent = 0;
	const isCut = async () => {
		sent += 1;
		send({ id: String(sent), data });
		await good.come(sent + 1);
		return streams.size === 1;
	};
	await until("the slow reader is disconnected", isCut, PATIENCE_MS, 1);
	// The system buffers some megabytes first.
	assert.ok(sent > 4 && sent < 200, `cut after ${sent} messages`);
	assert.equal(good.ended, null);
	assert.equal(state.stopped, 1);
	socket.destroy();
	await stop();
});

test("a failure that will pass is a stream with its reason, which ends, where a stream is asked for", async () => {
	const answer = jsonAnswer(503, { error: "no core\nreachable" }, { "retry-after": "7", "x-more": "1" });
	const hash = `0x${"ab".repeat(32)}`;
	const routes: Route[] = ["/mev-share", "/tx/{hash}/events", "/tx/{hash}", "/gone/{hash}"].map((path) => ({
		path,
		handle: () => (path.startsWith("/gone") ? Promise.reject(new Error("a fault")) : answer),
	}));
	const transport = await startTransport({ routes, clock: new ManualClock() });
	for (const path of ["/mev-share", "/mev-share?x=1", `/tx/${hash}/events`]) {
		const reader = await EventStreamReader.open(transport.url + path, { connection: "close" });
		assert.equal(await reader.over(), "end");
		const { "content-type": type, "x-more": more, "retry-after": retryAfter, vary } = reader.headers;
		const head = [reader.status, type, more, retryAfter, vary];
		assert.deepEqual(head, [200, "text/event-stream; charset=utf-8", "1", undefined, "accept"], path);
		assert.equal(reader.text, "retry: 7000\n\n: no core reachable\n\n", path);
	}
	for (const [path, accept] of [
		[`/tx/${hash}`, "text/event-stream"],
		["/mev-share", "*/*"],
		["/mev-share", "application/json, text/event-stream"],
	] as const) {
		const response = await fetch(transport.url + path, { headers: { accept } });
		assert.deepEqual([response.status, await response.json()], [503, { error: "no core\nreachable" }], path);
	}
	const headers = { accept: "text/event-stream" };
	assert.equal((await fetch(`${transport.url}/mev-share`, { method: "HEAD", headers })).status, 503);
	assert.equal((await fetch(`${transport.url}/gone/x`, { headers })).status, 500);
	await transport.stop();
});

test("a drain ends all streams; one that is opened meanwhile gets the known messages and ends", async () => {
	const { open, streams, transport, stop } = await fixture();
	const readers = await Promise.all([open(), open(), open()]);
	transport.server.drain();
	for (const reader of readers) assert.equal(await reader.over(), "end");
	const late = await open();
	assert.deepEqual([late.status, late.headers.connection], [200, "close"]);
	assert.equal(await late.over(), "end");
	assert.deepEqual(late.messages, [{ id: "1", data: { n: 1 } }]);
	assert.equal(streams.size, 0);
	await stop();
});
