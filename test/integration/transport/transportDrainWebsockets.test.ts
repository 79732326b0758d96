// How a drain closes websockets: a few at a time, with a code and a reason by which clients come
// back, while all else goes on. A real server, whose time is moved by hand.

import assert from "node:assert/strict";
import { test } from "node:test";
import { WebSocketProvider } from "web3";
import { systemClock } from "../../../shared/clock.ts";
import { drainServers } from "../../../shared/http/server.ts";
import { silentLogger } from "../../../shared/log.ts";
import { postText, RawConnection, requestText, WsClient } from "../../support/clients.ts";
import { sized } from "../../support/length.ts";
import { ManualClock } from "../../support/manualClock.ts";
import { startTcpProxy } from "../../support/tcpProxy.ts";
import { startTransport, type TransportOptions } from "../../support/transportServer.ts";
import { until } from "../../support/until.ts";

const RESTARTS = { code: 1012, reason: "the server restarts: connect again" };
const NOTICE_MS = 1_500;

function call(method: string, param: unknown, id: unknown = 1): unknown {
	return { jsonrpc: "2.0", id, method, params: [param] };
}

/** A server with `count` websockets open, in the order in which they were opened. */
async function start(count: number, options: TransportOptions = {}) {
	const clock = new ManualClock();
	const transport = await startTransport({ maxConnectionsPerClient: 2_000, ...options, clock });
	const { server, websocket, port } = transport;
	/** The numbers of those that were closed, as their clients saw it. */
	const closed: number[] = [];
	const clients: WsClient[] = [];
	for (let i = 0; i < count; i++) {
		const client = await WsClient.open(`ws://127.0.0.1:${port}/`);
		client.socket.on("close", () => closed.push(i));
		clients.push(client);
	}
	let isDrained = false;
	return {
		...{ ...transport, clock, clients, closed },
		drain: (ms: number) =>
			drainServers([server], websocket, ms, { clock, log: silentLogger }).then(() => {
				isDrained = true;
			}),
		isDrained: () => isDrained,
	};
}

/** Websockets of a drain of 18.5 s behind the notice. */
const MANY = sized(200, 1_000);

test(`${MANY} websockets are closed evenly over the drain, in no order, with 1012 and what to do`, async () => {
	const count = MANY;
	const everyMs = 18_500 / count;
	const { clock, clients, closed, drain, isDrained, stop } = await start(count);
	const draining = drain(20_000);
	await clock.advance(NOTICE_MS - 1);
	assert.deepEqual(closed, [], "balancers don't know yet");
	const seconds: number[] = [];
	await clock.advance(1);
	for (let second = 1; !isDrained(); second++) {
		const before = closed.length;
		const least = Math.min(count, Math.floor((second * 1_000 - 20) / everyMs));
		await clock.advance(1_000);
		await until(`${least} are closed`, () => closed.length >= least);
		seconds.push(closed.length - before);
	}
	await draining;
	await until("all are closed", () => closed.length === count);
	assert.equal(seconds.length, 19, "it ends with the drain");
	assert.ok(Math.max(...seconds) <= 0.06 * count, `closed in each second: ${seconds}`);
	assert.notDeepEqual(
		closed.slice(0, 50).sort((a, b) => a - b),
		Array.from({ length: 50 }, (_, i) => i),
	);
	for (const client of clients) assert.deepEqual(await client.closed(), RESTARTS);
	await stop();
});

test("while they are closed HTTP is served, open websockets are, and new ones are refused", async () => {
	const { clock, port, clients, closed, drain, isDrained, stop } = await start(100);
	const draining = drain(20_000);
	await clock.advance(NOTICE_MS + 10_000);
	await until("half are closed", () => closed.length >= 50);
	assert.ok(closed.length < 60, `${closed.length}`);
	const http = await RawConnection.open(port);
	http.write(postText("/fast", call("test_echo", "by http")));
	const served = await http.answer();
	assert.deepEqual([JSON.parse(served.body).result, served.headers.connection], ["by http", "close"]);
	const left = clients.filter((_, i) => !closed.includes(i));
	for (const client of left.slice(0, 20)) {
		client.send(call("test_echo", "by websocket"));
		assert.equal((await client.next()).result, "by websocket");
	}
	const upgrade = await RawConnection.open(port);
	upgrade.write(
		requestText("GET", "/", {
			...{ Connection: "Upgrade", Upgrade: "websocket" },
			...{ "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==" },
		}),
	);
	const { status, headers, body } = await upgrade.answer();
	assert.deepEqual([status, headers["retry-after"]], [503, "1"]);
	assert.deepEqual(JSON.parse(body).error, { code: -32603, message: "internal error: shutting down" });
	await clock.advance(10_000);
	await draining;
	assert.ok(isDrained());
	await until("all are closed", () => closed.length === 100);
	await stop();
});

test("one whose turn has come takes no more calls and is closed when those it has made are answered", async () => {
	const { clock, clients, script, drain, server } = await start(1);
	const [client] = clients as [WsClient];
	client.send(call("test_wait", "a"));
	await until("it was called", () => script.waiting.length === 1);
	const draining = drain(20_000);
	await clock.advance(NOTICE_MS);
	await draining;
	client.send(call("test_note", "too late"));
	const stopping = server.stop();
	script.release("a");
	assert.equal((await client.next()).result, "a");
	assert.deepEqual(await client.closed(), RESTARTS);
	await stopping;
	assert.deepEqual(script.log, ["start a", "end a"]);
});

for (const [count, drainMs, takesMs] of [
	[0, 20_000, NOTICE_MS],
	[0, 1_000, 1_000],
	[0, 0, 0],
	[1, 20_000, NOTICE_MS],
	[4, 20_000, NOTICE_MS + 3 * 200],
	[4, 1_700, NOTICE_MS + 3 * 50],
	[40, NOTICE_MS, NOTICE_MS],
	[40, 1_000, 1_000],
	[40, 0, 0],
] as const) {
	test(`a drain of ${drainMs} ms with ${count} websockets takes ${takesMs} ms`, async () => {
		const { clock, closed, drain, isDrained, stop } = await start(count);
		const draining = drain(drainMs);
		if (takesMs > 0) {
			await clock.advance(takesMs - 1);
			assert.equal(isDrained(), false);
			await clock.advance(1);
		}
		await clock.advance(0);
		await draining;
		await until("all are closed", () => closed.length === count);
		await stop();
	});
}

test("a drain ends when its clients have left", async () => {
	const { clock, clients, closed, websocket, drain, isDrained, stop } = await start(50);
	const draining = drain(20_000);
	await clock.advance(NOTICE_MS + 1_000);
	await until("some are closed", () => closed.length >= 5);
	assert.equal(isDrained(), false);
	for (const client of clients) client.terminate();
	await until("all have left", () => websocket.size === 0);
	await clock.advance(200);
	await draining;
	await stop();
});

test("web3.js connects again by itself, and to the next server", async () => {
	const [old, next] = await Promise.all([startTransport(), startTransport()]);
	const balancer = await startTcpProxy(old.port);
	const provider = new WebSocketProvider(
		`ws://127.0.0.1:${balancer.port}/`,
		{},
		{ autoReconnect: true, delay: 20, maxAttempts: 50 },
	);
	provider.on("error", () => {});
	await until("it is connected", () => old.websocket.size === 1 && provider.getStatus() === "connected");
	balancer.redirect(next.port);
	await drainServers([old.server], old.websocket, 0, { clock: systemClock, log: silentLogger });
	await until("it is there", () => next.websocket.size === 1 && provider.getStatus() === "connected");
	const answer = await provider.request({ jsonrpc: "2.0", id: 1, method: "test_echo", params: ["hello"] });
	assert.equal(answer.result, "hello");
	provider.disconnect();
	await old.stop();
	await next.stop();
	await balancer.stop();
});
