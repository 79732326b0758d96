// Subscriptions of one client with a relay that answers as a test says. boostWebsockets.test.ts
// tests them with a real one.

import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { WebSocketServer } from "ws";
import type { Breaker } from "../../../../boost-proxy/domain/ports.ts";
import { Subscriptions } from "../../../../boost-proxy/subscriptions/subscriptions.ts";
import { Background } from "../../../../shared/background.ts";
import { systemClock } from "../../../../shared/clock.ts";
import { type Connection, callContext, type WebsocketMessage } from "../../../../shared/http/callContext.ts";
import { UnreadBytes } from "../../../../shared/http/unreadBytes.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { until } from "../../../support/until.ts";

const ID = "0x1";
/** More than a client may leave unread before its relay is read no further. */
const NOTIFICATIONS = 40;
const NOTIFICATION = JSON.stringify({
	jsonrpc: "2.0",
	method: "eth_subscription",
	params: { subscription: ID, result: "x".repeat(4_000) },
});

test("a call behind a subscription in one batch is answered, however much is held until both are", async (t) => {
	const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
	const closes: (() => void)[] = [];
	t.after(() => {
		for (const close of closes) close();
		server.close();
	});
	await until("the port", () => server.address() !== null);
	server.on("connection", (socket) => {
		socket.on("message", (data) => {
			const { id, method } = JSON.parse(String(data)) as { id: number; method: string };
			const answer = (result: string) => socket.send(JSON.stringify({ jsonrpc: "2.0", id, result }));
			if (method === "eth_subscribe") return answer(ID);
			for (let i = 0; i < NOTIFICATIONS; i += 1) socket.send(NOTIFICATION);
			answer("done");
		});
	});
	const reader = new UnreadBytes({ clock: systemClock }).reader("192.0.2.1", { close() {}, cut() {} });
	let sent = 0;
	const connection: Connection = {
		client: "192.0.2.1",
		send() {},
		sendLater({ count }) {
			sent += count;
		},
		hold: (bytes) => reader.write(bytes),
		onDrained: (listener) => reader.onDrained(listener),
		onClose: (listener) => void closes.push(listener),
		close: () => assert.fail("closed"),
		finish: () => assert.fail("finished"),
	};
	const answered: (() => void)[] = [];
	const message: WebsocketMessage = { onAnswered: (listener) => void answered.push(listener) };
	const client = { address: "192.0.2.1", signer: null, vouched: false };
	const call = callContext({ path: "/", search: "" }, client, null, connection, message);
	const subscriptions = new Subscriptions(
		{ relayUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, via: "boost" },
		{
			breaker: { isUnavailable: false, onChange() {} } as unknown as Breaker,
			chain: { batch: async () => null },
			background: new Background({}, { log: silentLogger }),
			reported: { height: null, sawHead() {} },
			clock: systemClock,
		},
	);
	t.after(() => subscriptions.close());
	const both = [
		subscriptions.subscribe(["service_partialPendingTransactions"], call, connection),
		subscriptions.call("eth_callBundle", [], call, connection),
	];
	assert.deepEqual(await Promise.all(both), [ID, "done"]);
	assert.equal(sent, 0, "the id comes first");
	for (const listener of answered) listener();
	assert.equal(sent, NOTIFICATIONS);
});
