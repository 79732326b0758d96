// Bodies and connections as they should not come: in pieces, too long, too slow, cut off, many at a
// time; and requests pipelined on one connection, which wait unread for the answer to the one
// before, and of which nothing is left when their client disconnects.

import assert from "node:assert/strict";
import { test } from "node:test";
import { EventStreams } from "../../../shared/http/eventStreams.ts";
import type { Route } from "../../../shared/http/routes.ts";
import { postText, RawConnection, requestText } from "../../support/clients.ts";
import { ManualClock } from "../../support/manualClock.ts";
import { startTransport, type Transport, withTransport } from "../../support/transportServer.ts";
import { until } from "../../support/until.ts";

const CHUNKED = { "Content-Type": "application/json", "Transfer-Encoding": "chunked" };
const TOO_LONG = "limit exceeded: the body is longer than 4096 bytes";
const BUSY = "internal error: too many requests under way";

function call(method: string, param?: unknown, id: unknown = 1): string {
	return JSON.stringify({ jsonrpc: "2.0", id, method, params: param === undefined ? [] : [param] });
}

function chunk(bytes: string): string {
	return `${Buffer.byteLength(bytes).toString(16)}\r\n${bytes}\r\n`;
}

async function errorOf(connection: RawConnection): Promise<[number, string]> {
	const answer = await connection.answer();
	return [answer.status, JSON.parse(answer.body).error.message];
}

async function assertWell(transport: Transport): Promise<void> {
	const connection = await RawConnection.open(transport.port);
	connection.write(postText("/", call("test_echo", "well")));
	assert.equal(JSON.parse((await connection.answer()).body).result, "well");
	connection.destroy();
}

test("a body that arrives byte by byte is assembled", () =>
	withTransport({}, async ({ port }) => {
		const text = "äöü".repeat(300);
		const bytes = Buffer.from(call("test_echo", text));
		const connection = await RawConnection.open(port);
		connection.write(requestText("POST", "/fast", CHUNKED));
		for (const byte of bytes)
			connection.write(Buffer.concat([Buffer.from("1\r\n"), Buffer.of(byte), Buffer.from("\r\n")]));
		connection.write("0\r\n\r\n");
		assert.equal(JSON.parse((await connection.answer()).body).result, text);
		connection.destroy();
	}));

test("a chunked body of the greatest length passes; one byte more is 413 before its end, and the connection closes", () =>
	withTransport({}, async (transport) => {
		const connection = await RawConnection.open(transport.port);
		connection.write(requestText("POST", "/fast", CHUNKED));
		connection.write(chunk(call("test_echo", "x").padEnd(4000)) + chunk(" ".repeat(96)) + chunk(""));
		assert.equal((await connection.answer()).status, 200);
		connection.write(requestText("POST", "/fast", CHUNKED));
		connection.write(chunk(" ".repeat(4000)) + chunk(" ".repeat(97)));
		assert.deepEqual(await errorOf(connection), [413, TOO_LONG]);
		await connection.closed();
		await assertWell(transport);
	}));

test("a client that sends all of a too long body before it reads gets the answer, not a reset", () => {
	// A slow machine needs more than the second for which the server reads on.
	const clock = new ManualClock();
	return withTransport({ clock }, async (transport) => {
		const body = "x".repeat(16_000_000);
		for (const request of [
			requestText("POST", "/fast", CHUNKED, chunk(body)),
			postText("/fast", body),
			postText("/unknown", body),
			requestText("POST", "/fast", { "Content-Type": "text/plain" }, body),
		]) {
			const connection = await RawConnection.open(transport.port);
			let isSent = false;
			const sending = connection.writeBlindly(request).finally(() => {
				isSent = true;
			});
			for (let ms = 0; ms < 900 && !isSent; ms += 1) await clock.advance(1);
			await sending;
			const { status, headers } = await connection.answer();
			assert.ok([413, 404, 415].includes(status), String(status));
			assert.equal(headers.connection, "close");
			await clock.advance(1_000);
			await connection.closed();
		}
		await assertWell(transport);
	});
});

test("a client that waits for 100 Continue gets it, or the refusal at once", () =>
	withTransport({}, async ({ port }) => {
		const expect = { "Content-Type": "application/json", Expect: "100-continue" };
		const body = call("test_echo", "x");
		const good = await RawConnection.open(port);
		good.write(requestText("POST", "/fast", { ...expect, "Content-Length": String(body.length) }));
		assert.equal((await good.answer()).status, 100);
		good.write(body);
		assert.equal((await good.answer()).status, 200);
		good.destroy();
		const bad = await RawConnection.open(port);
		bad.write(requestText("POST", "/fast", { ...expect, "Content-Length": "5000" }));
		assert.deepEqual(await errorOf(bad), [413, TOO_LONG]);
		bad.destroy();
	}));

test("requests that arrive too slowly get 408, wherever they stall", () =>
	withTransport({ requestMs: 150 }, async (transport) => {
		const beginnings = [
			"",
			"POST /fa",
			"POST /fast HTTP/1.1\r\nHost: x\r\nX-Slow: ",
			requestText("POST", "/fast", CHUNKED),
			requestText("POST", "/fast", CHUNKED, "5\r\n{"),
		];
		await Promise.all(
			beginnings.map(async (beginning) => {
				const connection = await RawConnection.open(transport.port);
				connection.write(beginning);
				assert.deepEqual(await errorOf(connection), [408, "invalid request: it took too long to arrive"]);
				await connection.closed();
			}),
		);
		await assertWell(transport);
	}));

test("pipelined requests are handled one after another and answered in order", () =>
	withTransport({}, async ({ port, script }) => {
		const connection = await RawConnection.open(port);
		connection.write(
			Buffer.concat([
				postText("/fast", call("test_wait", "a", 1)),
				postText("/fast", call("test_wait", "b", 2)),
				requestText("GET", "/livez"),
				postText("/fast", call("test_echo", "c", 3)),
			]),
		);
		for (const name of ["a", "b"]) {
			await until("it is worked on", () => script.waiting.length === 1);
			assert.deepEqual(script.waiting, [name]);
			script.release(name);
		}
		const answers = [];
		for (let i = 0; i < 4; i++) answers.push(JSON.parse((await connection.answer()).body));
		assert.deepEqual(
			answers.map((answer) => answer.result ?? answer.live),
			["a", "b", true, "c"],
		);
		assert.deepEqual(script.log, ["start a", "end a", "start b", "end b"]);
		connection.destroy();
	}));

test("bodies of all lengths are read whole wherever their pieces end, and so is what is pipelined behind them", () =>
	withTransport({ maxBodyBytes: 100_000 }, async ({ port }) => {
		const lengths = [3_800, 4_000, 4_050, 4_096, 4_097, 8_192, 20_000, 60_000, 90_000, 10];
		const requests = lengths.flatMap((length) => [
			postText("/fast", call("test_echo", "x".repeat(length))),
			requestText("POST", "/fast", CHUNKED, chunk(call("test_echo", "y".repeat(length))) + chunk("")),
			GET,
		]);
		const connection = await RawConnection.open(port);
		connection.write(Buffer.concat(requests));
		for (const length of lengths) {
			for (const letter of ["x", "y"]) {
				assert.equal(JSON.parse((await connection.answer()).body).result, letter.repeat(length));
			}
			assert.equal(JSON.parse((await connection.answer()).body).path, "/echo/a");
		}
		connection.destroy();
	}));

test("what a client sends behind an unanswered request is not read, however much it is", async () => {
	const { port, script, server, status } = await fixture();
	const connection = await RawConnection.open(port);
	connection.write(postText("/", call("test_wait", "slow")));
	connection.write(
		Buffer.concat(Array<Buffer>(10_000).fill(postText("/", call("test_echo", "x".repeat(1_000))))),
	);
	await until("it is worked on", () => script.waiting.includes("slow"));
	for (let i = 0; i < 20; i++) assert.equal(await status(), 200);
	const handed = server.leave();
	const read = Math.max(...(handed?.sockets.map(({ bytesRead }) => bytesRead) ?? []));
	assert.ok(read < 200_000, `${read} bytes were read`);
	handed?.server.closeAllConnections();
	handed?.server.close();
});

test("a request that has begun behind one that takes long is not late", () =>
	withTransport({ requestMs: 150 }, async ({ port, script }) => {
		const connection = await RawConnection.open(port);
		const last = postText("/fast", call("test_echo", "b"));
		connection.write(Buffer.concat([postText("/fast", call("test_wait", "a")), last.subarray(0, 30)]));
		await until("it is worked on", () => script.waiting.length === 1);
		const late = await RawConnection.open(port);
		late.write(last.subarray(0, 30));
		assert.equal((await late.answer()).status, 408);
		script.release("a");
		connection.write(last.subarray(30));
		for (const expected of ["a", "b"]) {
			assert.equal(JSON.parse((await connection.answer()).body).result, expected);
		}
		connection.destroy();
	}));

test("invalid bytes after an unanswered request get no answer that could be mistaken for that request's", () =>
	withTransport({}, async (transport) => {
		const { port, script } = transport;
		const connection = await RawConnection.open(port);
		connection.write(
			Buffer.concat([postText("/fast", call("test_wait", "a")), Buffer.from("rubbish\r\n\r\n")]),
		);
		assert.equal(await connection.closed(), "");
		await until("it was called", () => script.waiting.length === 1);
		script.release("a");
		await assertWell(transport);
	}));

test("nor does an upgrade after an unanswered request", () =>
	withTransport({}, async (transport) => {
		const { port, script } = transport;
		for (const upgrade of [{ Upgrade: "websocket", "Sec-WebSocket-Version": "13" }, { Upgrade: "h2c" }]) {
			const connection = await RawConnection.open(port);
			const headers = { Connection: "Upgrade", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", ...upgrade };
			connection.write(
				Buffer.concat([postText("/fast", call("test_wait", "a")), requestText("GET", "/fast", headers)]),
			);
			assert.equal(await connection.closed(), "");
			await until("it was called", () => script.waiting.length === 1);
			script.release("a");
		}
		await assertWell(transport);
	}));

test("every request of a connection may offer another protocol", () =>
	withTransport({}, async ({ port }) => {
		const connection = await RawConnection.open(port);
		const offer = { Connection: "Upgrade, HTTP2-Settings", Upgrade: "h2c", "HTTP2-Settings": "AA" };
		for (let i = 0; i < 30; i++) {
			const bytes = postText("/fast", call("test_echo", i), offer);
			connection.write(bytes.subarray(0, bytes.length - 5));
			connection.write(bytes.subarray(bytes.length - 5));
			assert.equal(JSON.parse((await connection.answer()).body).result, i);
		}
		connection.destroy();
	}));

test("clients that disconnect at any point leave nothing behind", () =>
	withTransport({}, async (transport) => {
		const { port, script, server } = transport;
		const beginnings = [
			"POST /fast HTTP/1.1\r\nHost",
			requestText("POST", "/fast", { ...CHUNKED }),
			requestText("POST", "/fast", CHUNKED, "5\r\n{"),
			postText("/fast", call("test_echo", "x")),
			requestText("POST", "/fast", { "Content-Length": "5000" }, "x"),
		];
		for (const beginning of beginnings) {
			const connection = await RawConnection.open(port);
			connection.write(beginning);
			connection.destroy();
		}
		const waiting = await RawConnection.open(port);
		waiting.write(postText("/fast", call("test_wait", "gone")));
		await until("it was called", () => script.waiting.length === 1);
		waiting.destroy();
		await assertWell(transport);
		script.release("gone");
		await assertWell(transport);
		await server.stop();
	}));

test("the bytes of all bodies together are bounded, and are released", () =>
	withTransport({ maxBufferedBytes: 5_000 }, async (transport) => {
		const { port, script } = transport;
		const holding = await RawConnection.open(port);
		holding.write(postText("/fast", call("test_wait", "a").padEnd(3_000)));
		await until("it was called", () => script.waiting.length === 1);
		const refused = await RawConnection.open(port);
		refused.write(postText("/fast", call("test_echo", "x").padEnd(3_000)));
		assert.deepEqual(await errorOf(refused), [200, BUSY]);
		await refused.closed();
		const small = await RawConnection.open(port);
		small.write(postText("/fast", call("test_echo", "x").padEnd(1_900)));
		assert.equal((await small.answer()).status, 200);
		script.release("a");
		assert.equal((await holding.answer()).status, 200);
		holding.write(postText("/fast", call("test_echo", "x").padEnd(4_000)));
		assert.equal((await holding.answer()).status, 200);
		const unfinished = await RawConnection.open(port);
		unfinished.write(requestText("POST", "/fast", CHUNKED, chunk(" ".repeat(3_000))));
		unfinished.destroy();
		await until("its room is free again", async () => {
			const connection = await RawConnection.open(port);
			connection.write(postText("/fast", call("test_echo", "x").padEnd(4_000)));
			const { status } = await connection.answer();
			connection.destroy();
			return status === 200;
		});
		holding.destroy();
		small.destroy();
	}));

test("the number of requests in flight is bounded", () =>
	withTransport({ maxOpenRequests: 2 }, async ({ port, script }) => {
		const connections = [];
		for (const name of ["a", "b"]) {
			const connection = await RawConnection.open(port);
			connection.write(postText("/fast", call("test_wait", name)));
			connections.push(connection);
		}
		await until("two wait", () => script.waiting.length === 2);
		const other = await RawConnection.open(port);
		other.write(postText("/fast", call("test_echo", 1)));
		const refused = await other.answer();
		assert.deepEqual([refused.status, refused.headers["retry-after"]], [200, "1"]);
		assert.equal(JSON.parse(refused.body).error.message, BUSY);
		for (const name of script.waiting) script.release(name);
		for (const connection of connections) assert.equal((await connection.answer()).status, 200);
		other.write(postText("/fast", call("test_echo", 1)));
		assert.equal(JSON.parse((await other.answer()).body).result, 1);
		for (const connection of [...connections, other]) connection.destroy();
	}));

const GET = requestText("GET", "/echo/a");
const STREAM = requestText("GET", "/feed", { Accept: "text/event-stream" });
const behind = (first: Buffer, count: number) => Buffer.concat([first, ...Array<Buffer>(count).fill(GET)]);

/** A server whose `/feed` never ends and sends nothing more. */
async function fixture(maxOpenRequests = 20) {
	const streams = new EventStreams({ clock: new ManualClock() });
	const feed: Route = {
		path: "/feed",
		handle: ({ address }) => streams.answer(address, { begin: () => () => {}, isOver: () => false }),
	};
	const transport = await startTransport({ routes: [feed], maxOpenRequests });
	const status = async () => (await fetch(`${transport.url}/echo/a`)).status;
	return { ...transport, streams, status };
}

test("pipelined requests of a client that has disconnected are dropped, even while an earlier one is handled", async () => {
	const { port, script, status, stop } = await fixture(1);
	for (let i = 0; i < 3; i += 1) {
		const name = `slow ${i}`;
		const connection = await RawConnection.open(port);
		const pipelined = [name, "behind it"].map((one) => postText("/", call("test_wait", one)));
		connection.write(behind(Buffer.concat(pipelined), 19));
		await until("it is worked on", async () => (await status()) === 503);
		connection.destroy();
		await until("there is room again", async () => (await status()) === 200);
		script.release(name);
	}
	assert.ok(!script.log.includes("start behind it"), script.log.join());
	const begun = performance.now();
	await stop();
	assert.ok(performance.now() - begun < 5_000, "a stop waited for what had gone");
});

test("a request after an event stream ends the connection", async () => {
	const { port, streams, status, stop } = await fixture();
	const open = await RawConnection.open(port);
	open.write(STREAM);
	await until("the stream", () => streams.size === 1);
	open.write(GET);
	assert.doesNotMatch(await open.closed(), /"path":"\/echo\/a"/);
	const together = await RawConnection.open(port);
	together.write(behind(STREAM, 30));
	await together.closed();
	const many = await RawConnection.open(port);
	many.write(Buffer.concat(Array<Buffer>(6).fill(STREAM)));
	await many.closed();
	await until("no stream is left", () => streams.size === 0);
	assert.equal(await status(), 200);
	await stop();
});

test("an event stream behind an unanswered request opens when that is answered", async () => {
	const { port, script, streams, stop } = await fixture();
	const connection = await RawConnection.open(port);
	const slow = postText("/", call("test_wait", "slow"));
	connection.write(Buffer.concat([slow, STREAM]));
	await until("it is worked on", () => script.waiting.includes("slow"));
	assert.equal(streams.size, 0);
	script.release("slow");
	assert.match((await connection.answer()).body, /"result":"slow"/);
	await until("it is open", () => streams.size === 1);
	await stop();
	assert.match(await connection.closed(), /text\/event-stream/);
});

test("the answer to CONNECT after an unanswered request is not mistaken for that request's", async () => {
	const { port, script, stop } = await fixture();
	const connect = "CONNECT relay.test:443 HTTP/1.1\r\nHost: relay.test\r\n\r\n";
	const slow = postText("/", call("test_wait", "slow"));
	const connection = await RawConnection.open(port);
	connection.write(slow);
	await until("it is worked on", () => script.waiting.includes("slow"));
	connection.write(connect);
	script.release("slow");
	assert.match((await connection.answer()).body, /"result":"slow"/);
	assert.equal((await connection.answer()).status, 405);
	await connection.closed();
	const together = await RawConnection.open(port);
	together.write(Buffer.concat([slow, Buffer.from(connect)]));
	assert.equal(await together.closed(), "");
	script.release("slow");
	await stop();
});
