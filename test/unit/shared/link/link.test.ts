// A websocket that this process opens, with a real server and a manual clock: its deadlines, its
// silence, and its calls.

import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { after, before, test } from "node:test";
import { type WebSocket, WebSocketServer } from "ws";
import { Link, LinkError, type LinkOptions, type OpenCall } from "../../../../shared/link/link.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { until } from "../../../support/until.ts";

const SILENCE_MS = 10_000;
const OPEN_MS = 1_000;
const ANSWER_MS = 3_000;

let server: Server;
let url: string;
/** The server's ends of the websockets, in the order of their connections. */
const accepted: WebSocket[] = [];
/** Called with each handshake; returns whether it is answered. */
let answers = (_socket: Socket): boolean => true;
before(async () => {
	const websockets = new WebSocketServer({ noServer: true, autoPong: false });
	server = createServer().on("upgrade", (request, socket: Socket, head) => {
		if (answers(socket)) websockets.handleUpgrade(request, socket, head, (one) => accepted.push(one));
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => {
	server.closeAllConnections();
	server.close();
});

/** An open link, the server's end of it, and what its listeners were called with. */
async function open(options: Partial<LinkOptions> = {}, stopped?: AbortSignal) {
	const clock = new ManualClock();
	const happened: unknown[] = [];
	const link = await Link.open(
		{ url, maxMessageBytes: 1_000, openMs: OPEN_MS, silenceMs: SILENCE_MS, pings: "client", ...options },
		{ clock, ...(stopped === undefined ? {} : { stopped }) },
		(one) => {
			one.listen({
				onMessage: (message) => void happened.push(message.toString()),
				onEnd: (code) => void happened.push(code),
			});
			return one;
		},
	);
	const socket = accepted.at(-1) as WebSocket;
	const call: OpenCall = {
		resolve: (result) => void happened.push({ result }),
		reject: (thrown) => void happened.push(thrown),
	};
	return { clock, link, socket, happened, call };
}

/** Moves on in steps, between which the link and the server read. */
async function pass(clock: ManualClock, ms: number, answer: () => void = () => {}): Promise<void> {
	for (let left = ms; left > 0; left -= SILENCE_MS / 10) {
		await clock.advance(SILENCE_MS / 10);
		answer();
	}
}

/** Resolves when all that the server has sent before is read. */
async function read({ link, socket }: { link: Link; socket: WebSocket }): Promise<void> {
	const id = await new Promise((resolve) => {
		socket.once("message", resolve);
		link.send("mark");
	});
	assert.equal(String(id), "mark");
}

const UNREACHABLE: Readonly<Record<string, (socket: Socket) => boolean>> = {
	"does not answer": () => false,
	"closes the connection": (socket) => {
		socket.destroy();
		return false;
	},
	refuses: (socket) => {
		socket.end("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
		return false;
	},
};
for (const [what, behaviour] of Object.entries(UNREACHABLE)) {
	test(`a server that ${what} is unreachable`, async (t) => {
		let asked = 0;
		answers = (socket) => {
			asked += 1;
			return behaviour(socket);
		};
		t.after(() => {
			answers = () => true;
		});
		const clock = new ManualClock();
		const options = { url, maxMessageBytes: 1, openMs: OPEN_MS, silenceMs: 1, pings: "client" } as const;
		const opening = Link.open(options, { clock }, () => assert.fail("it is open"));
		const failed = assert.rejects(opening, LinkError);
		await until("it was asked", () => asked === 1);
		await clock.advance(OPEN_MS);
		await failed;
		assert.equal(clock.timers, 0);
	});
}

test("a server counts as up at the time of the last ping that it answered", async () => {
	const { clock, link, socket, happened } = await open();
	const pings: Buffer[] = [];
	socket.on("ping", (data: Buffer) => pings.push(data));
	await until("it pings", () => pings.length === 1);
	await clock.advance(SILENCE_MS / 10);
	socket.pong(pings[0]);
	await read({ link, socket });
	assert.equal(link.silentMs, SILENCE_MS / 10);
	// Messages are no answers: they may have been under way for long.
	await pass(clock, 0.9 * SILENCE_MS, () => socket.send("news"));
	assert.equal(link.isOpen, true);
	await pass(clock, 0.3 * SILENCE_MS, () => socket.send("news"));
	await until("it has ended", () => happened.at(-1) === 1006);
	assert.ok(pings.length > 1);
});

test("a server that pings counts as up with all that arrives, and while nobody reads", async () => {
	const { clock, link, socket, happened } = await open({ pings: "server" });
	for (const sign of [() => socket.ping(), () => socket.send("news")]) {
		await pass(clock, 0.9 * SILENCE_MS);
		assert.ok(link.silentMs > SILENCE_MS / 2);
		sign();
		await until("the sign has come", () => link.silentMs === 0);
	}
	link.pause();
	await pass(clock, 10 * SILENCE_MS);
	assert.equal(link.isOpen, true);
	link.resume();
	assert.equal(link.silentMs, 0);
	await pass(clock, 1.3 * SILENCE_MS);
	await until("it has ended", () => happened.at(-1) === 1006);
});

test("a call gets its answer once, and ends the connection if it gets none in time", async () => {
	const { clock, link, socket, happened, call } = await open({ pings: "server" });
	const calls: unknown[] = [];
	socket.on("message", (data) => calls.push(JSON.parse(String(data))));
	link.call("a", [1], call, ANSWER_MS);
	link.call("b", [], call, ANSWER_MS);
	await until("both have come", () => calls.length === 2);
	assert.deepEqual(calls, [
		{ jsonrpc: "2.0", id: 1, method: "a", params: [1] },
		{ jsonrpc: "2.0", id: 2, method: "b", params: [] },
	]);
	link.take(1)?.resolve("first");
	assert.equal(link.take(1), undefined);
	assert.deepEqual(happened, [{ result: "first" }]);
	await clock.advance(ANSWER_MS);
	await until("it has ended", () => happened.length === 3);
	assert.equal(happened[1], 1006);
	assert.ok(happened[2] instanceof LinkError);
	assert.equal(clock.timers, 0);
});

test("what is called after the end is refused at once", async () => {
	const { link, socket, happened, call } = await open();
	socket.close(1001);
	await until("it has ended", () => happened.length === 1);
	link.expect(call);
	link.send("nobody reads it");
	assert.equal(happened[0], 1001);
	assert.ok(happened[1] instanceof LinkError);
});

test("an error ends the connection, and is named", async () => {
	const { socket, happened, link, call } = await open({ maxMessageBytes: 10 });
	link.expect(call);
	socket.send("longer than that");
	await until("it has ended", () => happened.length === 2);
	const [code, error] = happened as [number, LinkError];
	assert.equal(code, 1006);
	assert.equal(error.fault?.message, "Max payload size exceeded");
});

test("a stop ends the connection, and an attempt to connect", async (t) => {
	const stop = new AbortController();
	const { happened } = await open({}, stop.signal);
	answers = () => false;
	t.after(() => {
		answers = () => true;
	});
	const failed = assert.rejects(open({}, stop.signal), LinkError);
	stop.abort();
	await failed;
	await until("it has ended", () => happened.at(-1) === 1006);
	await assert.rejects(open({}, stop.signal), LinkError);
});
