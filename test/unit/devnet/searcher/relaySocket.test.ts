// The searcher's websocket against a server that is good, rude, silent or gone.

import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { type WebSocket, WebSocketServer } from "ws";
import { systemClock } from "../../../../shared/clock.ts";
import { RelayRefusal, RelaySocket } from "../../../devnet/searcher/relaySocket.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { until } from "../../../support/until.ts";

interface Request {
	readonly id: number;
	readonly method: string;
	readonly params: readonly unknown[];
}

/** A server that does with each request what it is told; its address. */
async function serve(t: TestContext, answer: (socket: WebSocket, request: Request) => void): Promise<string> {
	const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
	server.on("connection", (socket) => {
		socket.on("message", (data) => answer(socket, JSON.parse(data.toString()) as Request));
	});
	await once(server, "listening");
	t.after(() => {
		for (const socket of server.clients) socket.terminate();
		server.close();
	});
	return `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function reply(socket: WebSocket, message: object): void {
	socket.send(JSON.stringify({ jsonrpc: "2.0", ...message }));
}

test("answers find their calls, in any order", async (t) => {
	const held: { socket: WebSocket; request: Request }[] = [];
	const url = await serve(t, (socket, request) => {
		held.push({ socket, request });
		if (held.length < 2) return;
		for (const { socket: to, request: of } of held.reverse()) reply(to, { id: of.id, result: of.params[0] });
	});
	const relay = await RelaySocket.open(url, systemClock);
	assert.deepEqual(await Promise.all([relay.call("a", ["one"]), relay.call("b", ["two"])]), ["one", "two"]);
	await relay.close();
});

test("a refusal has its code and names the method", async (t) => {
	const url = await serve(t, (socket, { id }) => {
		reply(socket, { id, error: { code: -32000, message: "target transaction not found" } });
	});
	const relay = await RelaySocket.open(url, systemClock);
	await assert.rejects(relay.call("eth_sendBundle", []), (thrown) => {
		assert.ok(thrown instanceof RelayRefusal);
		assert.equal(thrown.code, -32000);
		assert.equal(thrown.message, "eth_sendBundle: target transaction not found (-32000)");
		return true;
	});
	await relay.close();
});

test("a notification that comes right behind the id is heard; after the end none is", async (t) => {
	const asked: Request[] = [];
	const notify = (socket: WebSocket, result: unknown): void =>
		reply(socket, { method: "eth_subscription", params: { subscription: "0x7", result } });
	const url = await serve(t, (socket, request) => {
		asked.push(request);
		reply(socket, { id: request.id, result: request.method === "eth_subscribe" ? "0x7" : true });
		notify(socket, asked.length);
	});
	const relay = await RelaySocket.open(url, systemClock);
	const heard: unknown[] = [];
	const subscription = await relay.subscribe(["newHeads"], (result) => heard.push(result));
	await relay.call("net_version", []);
	assert.equal(subscription.id, "0x7");
	await until("both were heard", () => heard.length === 2);
	await subscription.end();
	await relay.call("net_version", []);
	assert.deepEqual(heard, [1, 2]);
	assert.deepEqual(
		asked.map(({ method, params }) => [method, params]),
		[
			["eth_subscribe", ["newHeads"]],
			["net_version", []],
			["eth_unsubscribe", ["0x7"]],
			["net_version", []],
		],
	);
	await relay.close();
});

test("what is no message, and answers to nothing, do no harm", async (t) => {
	const url = await serve(t, (socket, { id }) => {
		socket.send("{");
		reply(socket, { id: 99, result: "nobody's" });
		reply(socket, { method: "eth_subscription", params: { subscription: "0x8", result: 1 } });
		reply(socket, { id, result: "mine" });
	});
	const relay = await RelaySocket.open(url, systemClock);
	assert.equal(await relay.call("a", []), "mine");
	await relay.close();
});

test("a closed connection rejects what is under way, says why, and takes no more calls", async (t) => {
	const url = await serve(t, (socket) => socket.close(1013, "too slow"));
	const relay = await RelaySocket.open(url, systemClock);
	await assert.rejects(relay.call("a", []), /closed: 1013 too slow/);
	assert.match(await relay.closed, /1013 too slow/);
	await assert.rejects(relay.call("a", []), /not connected/);
	await assert.rejects(
		relay.subscribe(["newHeads"], () => {}),
		/not connected/,
	);
});

test("an answer that does not come ends the call at its deadline", async (t) => {
	let asked = 0;
	const url = await serve(t, () => {
		asked += 1;
	});
	const clock = new ManualClock();
	const relay = await RelaySocket.open(url, clock);
	const failing = assert.rejects(relay.call("a", []), { code: "DEADLINE" });
	await until("it was asked", () => asked === 1);
	await clock.advance(5_000);
	await failing;
	await relay.close();
});

test("a connection that has been silent for long is given up", async (t) => {
	const url = await serve(t, () => {});
	const clock = new ManualClock();
	const relay = await RelaySocket.open(url, clock);
	await clock.advance(200_000);
	assert.match(await relay.closed, /closed: 1006/);
});

test("nobody there: it rejects", async () => {
	await assert.rejects(RelaySocket.open("ws://127.0.0.1:9", systemClock), { code: "ECONNREFUSED" });
});
