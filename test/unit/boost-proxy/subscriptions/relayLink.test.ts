// A client's websocket from boost to the relay, with a real server: it is read only as fast as the
// client reads.

import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { type WebSocket, WebSocketServer } from "ws";
import { RelayLink } from "../../../../boost-proxy/subscriptions/relayLink.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { until } from "../../../support/until.ts";

/** More than the system's buffers take on both sides. */
const MESSAGES = 2_000;
const MESSAGE = JSON.stringify({
	jsonrpc: "2.0",
	method: "eth_subscription",
	params: { subscription: "0x1", result: "x".repeat(16 * 1024) },
});
/** Longer than a websocket without a message lives. */
const SILENCE_MS = 10 * 60_000;

let server: WebSocketServer;
let relay: Promise<WebSocket>;
before(async () => {
	server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
	relay = new Promise((resolve) => server.once("connection", resolve));
	await until("the port", () => server.address() !== null);
});
after(() => {
	server.close();
});

test("what a client does not read waits at the relay, and comes complete when it reads on", async () => {
	const waiting: (() => void)[] = [];
	let isReading = false;
	let received = 0;
	let closed = false;
	const clock = new ManualClock();
	const link = await RelayLink.open(
		{ relayUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, headers: {} },
		{
			clock,
			inTurn: (work) => setImmediate(work),
			onDrained: (listener) => void (isReading ? listener() : waiting.push(listener)),
			onNotifications: (notifications) => {
				received += notifications.length;
			},
			onClose: () => {
				closed = true;
			},
		},
	);
	const socket = await relay;
	for (let i = 0; i < MESSAGES; i++) socket.send(MESSAGE);
	await until("the system's buffers are full", () => waiting.length > 0);
	await clock.advance(SILENCE_MS);
	assert.equal(received, 0);
	assert.equal(closed, false, "a link that is not read is not taken for dead");
	assert.ok(socket.bufferedAmount > (MESSAGES * MESSAGE.length) / 2, `${socket.bufferedAmount} bytes wait`);

	isReading = true;
	for (const listener of waiting.splice(0)) listener();
	await until("all have come", () => received === MESSAGES);
	assert.equal(closed, false);
	link.close();
	await until("it has ended", () => closed);
});
