// How websockets that are passed through end: by either side, by silence, by the server's stop. Neither connection outlives
// the other by more than a moment.

import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { WebSocketServer } from "ws";
import { ManualClock } from "../../../support/manualClock.ts";
import { RawConnection, requestText } from "../../../support/rawHttp.ts";
import { resetSocket } from "../../../support/resetSocket.ts";
import { until } from "../../../support/until.ts";
import { WsClient } from "../../../support/wsClient.ts";
import { type PassFixtureOptions, startPassFixture } from "./passFixture.ts";
import { echo, SWITCH, UPGRADE } from "./tunnelFixture.ts";

/** Reads, or the end of the connection would not be seen, and ends in turn. */
function readToEnd(socket: Socket): void {
	socket.on("error", () => {});
	socket.on("end", () => socket.end());
	socket.resume();
}

/** A relay that takes every upgrade and says no more, not even goodbye. */
function silentRelay(sockets: Socket[]): PassFixtureOptions {
	return {
		upgrade: (_, socket) => {
			sockets.push(socket);
			socket.on("error", () => {}).resume();
			socket.write(SWITCH);
		},
	};
}

test("clients that go away leave nothing, before the answer and after it", async () => {
	let answers = false;
	const clock = new ManualClock();
	const fixture = await startPassFixture({
		clock,
		upgrade: (_, socket) => {
			readToEnd(socket);
			if (answers) socket.write(SWITCH);
		},
	});
	for (answers of [false, true]) {
		const clients = await Promise.all(
			Array.from({ length: 20 }, async () => {
				const client = await RawConnection.open(fixture.port);
				client.write(requestText("GET", "/ws", UPGRADE));
				return client;
			}),
		);
		await until("the relay has all", () => fixture.relaySockets.size === 20);
		if (answers) for (const client of clients) assert.equal((await client.answer(true)).status, 101);
		for (const client of clients) client.destroy();
		await until("nothing is left", () => fixture.relaySockets.size === 0 && fixture.pass.websockets === 0);
	}
	assert.deepEqual(fixture.passed.filter(([, outcome]) => outcome === "gone").length, 20);
	await fixture.stop();
});

/** Ends `one` of two that are joined while the other does nothing about it, and sees that both are cut in a moment. */
async function oneEnds(end: (client: Socket, relay: Socket | undefined) => void): Promise<void> {
	const relays: Socket[] = [];
	const clock = new ManualClock();
	const fixture = await startPassFixture({ ...silentRelay(relays), clock });
	const client = connect({ port: fixture.port, host: "127.0.0.1", allowHalfOpen: true });
	client.on("error", () => {});
	client.resume();
	client.write(requestText("GET", "/ws", UPGRADE));
	await until("it is open", () => fixture.passed.length === 1);
	const { timers } = clock;
	end(client, relays[0]);
	await until("boost has seen it", () => clock.timers > timers || fixture.pass.websockets === 0);
	await clock.advance(5_000);
	assert.equal(fixture.pass.websockets, 0);
	client.destroy();
	await fixture.stop();
}

test("a client that ends, and a relay that does not: cut in a moment", async () => {
	await oneEnds((client) => client.end());
	await oneEnds((client) => resetSocket(client));
});

test("a relay that ends, and a client that does not: cut in a moment", async () => {
	await oneEnds((_, relay) => relay?.end());
	await oneEnds((_, relay) => relay && resetSocket(relay));
});

test("an upgrade that is never answered is given up", async () => {
	const clock = new ManualClock();
	const fixture = await startPassFixture({ clock, upgrade: (_, socket) => readToEnd(socket) });
	const asking = await RawConnection.open(fixture.port);
	asking.write(requestText("GET", "/ws", UPGRADE));
	await until("it is asked", () => fixture.relaySockets.size === 1);
	await clock.advance(28_000);
	const answer = await asking.answer();
	assert.deepEqual([answer.status, fixture.breaker.notes], [504, []]);
	await asking.closed();
	await until("nothing is left", () => fixture.relaySockets.size === 0 && fixture.pass.websockets === 0);
	assert.deepEqual(fixture.passed, [["websocket", "failed"]]);
	await fixture.stop();
});

test("a relay that has fallen silent is cut off, one that pings is not", async () => {
	const clock = new ManualClock();
	const server = new WebSocketServer({ noServer: true });
	const fixture = await startPassFixture({
		clock,
		upgrade: (request, socket, head) => server.handleUpgrade(request, socket, head, () => {}),
	});
	const client = await WsClient.open(`ws://127.0.0.1:${fixture.port}/`);
	const [relay] = server.clients;
	for (let i = 1; i <= 6; i++) {
		relay?.ping();
		await client.pinged(i);
		await clock.advance(25_000);
	}
	assert.equal(fixture.pass.websockets, 1);
	await clock.advance(90_000);
	assert.equal((await client.closed()).code, 1006);
	await until("nothing is left", () => fixture.relaySockets.size === 0 && fixture.pass.websockets === 0);
	await fixture.stop();
});

test("a stop closes all of them, one that does not want to be closed too, and refuses new ones", async () => {
	const clock = new ManualClock();
	const fixture = await startPassFixture({ ...echo(), clock });
	const url = `ws://127.0.0.1:${fixture.port}/`;
	const client = await WsClient.open(url);
	fixture.server.drain();
	const refused = await WsClient.refused(url);
	assert.deepEqual([refused.status, /shutting down/.test(refused.body)], [503, true]);
	client.send({ id: 1, result: "still served" });
	assert.equal((await client.next()).result, "still served");
	const stopping = fixture.server.stop();
	assert.equal((await client.closed()).code, 1006);
	await clock.advance(100);
	await stopping;
	assert.equal(fixture.pass.websockets, 0);
	await fixture.killRelay();

	const sockets: Socket[] = [];
	const stubborn = await startPassFixture({ ...silentRelay(sockets), clock });
	const raw = await RawConnection.open(stubborn.port);
	raw.write(requestText("GET", "/ws", UPGRADE));
	await raw.answer(true);
	const cutting = stubborn.server.stop();
	await clock.advance(2_000);
	await clock.advance(100);
	await cutting;
	assert.equal(stubborn.pass.websockets, 0);
	await raw.closed();
	await stubborn.killRelay();
});
