// Websockets: the order in which calls start, what one client may hold, and how connections end.
// The answers to each message and frame are in the tables of badInput/websocket.ts.

import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { test } from "node:test";
import { WsClient } from "../../support/clients.ts";
import { ManualClock } from "../../support/manualClock.ts";
import { type Transport, type TransportOptions, withTransport } from "../../support/transportServer.ts";
import { until } from "../../support/until.ts";

function within(
	options: TransportOptions,
	run: (transport: Transport, base: string) => Promise<void>,
): Promise<void> {
	return withTransport(options, (transport) => run(transport, `ws://127.0.0.1:${transport.port}`));
}

function entry(method: string, params: readonly unknown[] = [], id: unknown = 1) {
	return { jsonrpc: "2.0", id, method, params };
}

/** The connection under a client, for frames that ws would not make. */
function wireOf({ socket }: WsClient): Socket {
	return (socket as unknown as { readonly _socket: Socket })._socket;
}

/** For megabytes: a key of zeros, with which nothing need be masked. ws masks in JavaScript. */
const UNMASKED = { generateMask() {} };

const OK = { jsonrpc: "2.0", id: 1, result: "ok" };
const MIB = 1024 * 1024;
const CALL = JSON.stringify(entry("test_echo", ["ok"]));

test("an absent result is null, and notifications are not answered", () =>
	within({}, async (_transport, base) => {
		const client = await WsClient.open(`${base}/fast`);
		client.send(entry("test_nothing"));
		assert.deepEqual(await client.next(), { jsonrpc: "2.0", id: 1, result: null });
		client.send('{"method":"test_echo","params":[1]}');
		client.send('[{"method":"test_echo","params":[1]}]');
		client.send(CALL);
		assert.deepEqual(await client.next(), OK);
		assert.equal(client.unread, 0);
		client.terminate();
	}));

test("a message arrives as it was sent, whatever its length and its characters", () =>
	within({ maxBodyBytes: 2 ** 20 }, async (_transport, base) => {
		const client = await WsClient.open(base);
		// A frame's length has one byte up to 125, then three: RFC 6455, section 5.2. The answer is 36
		// bytes longer than its text.
		for (const length of [0, 88, 89, 90, 300, 15_000]) {
			for (const character of ["a", "ÿ", "€", "\u{1f600}"]) {
				const text = character.repeat(length);
				client.send(entry("test_echo", [text]));
				assert.equal((await client.next()).result, text, `${length} of ${character}`);
			}
		}
		client.terminate();
	}));

test("the upgrade's path, query, origin and address are those of its calls", () =>
	within({ trustProxy: 1 }, async (_transport, base) => {
		for (const path of ["/", "/ws", "/fast", "/noreverts/"]) {
			const headers = { "x-forwarded-for": "2001:DB8::1" };
			const client = await WsClient.open(`${base}${path}?a=1`, { origin: "https://app.test", headers });
			client.send(entry("test_who"));
			assert.deepEqual((await client.next()).result, {
				transport: "ws",
				path: path === "/" ? "/" : path.replace(/\/$/, ""),
				query: { a: "1" },
				client: { address: "web 2001:db8::1", signer: null, vouched: false },
				origin: "https://app.test",
			});
			client.terminate();
		}
	}));

test("upgrades above a client's limit, and above the limit of all, are refused with the reason", () =>
	within(
		{ websocket: { maxConnections: 3 }, maxConnectionsPerClient: 2, trustProxy: 1 },
		async ({ websocket }, base) => {
			const from = (address: string) => ({ headers: { "x-forwarded-for": address } });
			const message = async (address: string): Promise<[number, string]> => {
				const { status, body } = await WsClient.refused(base, from(address));
				return [status, JSON.parse(body).error.message];
			};
			const first = await WsClient.open(base, from("2001:db8::1"));
			const second = await WsClient.open(base, from("2001:db8::2"));
			assert.deepEqual(await message("2001:db8::3"), [
				429,
				"limit exceeded: 2 requests under way for each client",
			]);
			const third = await WsClient.open(base, from("192.0.2.1"));
			assert.deepEqual(await message("192.0.2.2"), [503, "limit exceeded: too many connections"]);
			for (const client of [first, second, third]) client.terminate();
			await until("their places are free", () => websocket.size === 0);
			const again = await WsClient.open(base, from("2001:db8::3"));
			again.terminate();
		},
	));

test("calls of a connection start in the order of its messages, and are answered as they end", () =>
	within({}, async ({ script }, base) => {
		const client = await WsClient.open(base);
		const names = Array.from({ length: 20 }, (_, i) => `w${i}`);
		for (const [i, name] of names.entries()) client.send(entry("test_ordered", [name], i));
		await until("all have started", () => script.waiting.length === 20);
		assert.deepEqual(script.waiting, names);
		script.release("w7");
		assert.equal((await client.next()).id, 7);
		script.release("w0");
		assert.equal((await client.next()).id, 0);
		client.terminate();
	}));

test("the calls of a connection in flight are limited; the rest wait unread, and none is lost", () =>
	within({ websocket: { maxInFlight: 4 } }, async ({ script }, base) => {
		const client = await WsClient.open(base);
		const other = await WsClient.open(base);
		const names = Array.from({ length: 300 }, (_, i) => `w${i}`);
		for (const [i, name] of names.entries()) client.send(entry("test_wait", [name], i));
		await until("four have started", () => script.waiting.length === 4);
		other.send(entry("test_echo", ["free"]));
		assert.equal((await other.next()).result, "free");
		assert.equal(script.waiting.length, 4);
		const answered: unknown[] = [];
		while (answered.length < names.length) {
			for (const name of script.waiting) script.release(name);
			answered.push((await client.next()).result);
		}
		assert.deepEqual(answered, names);
		client.terminate();
		other.terminate();
	}));

test("a connection with the maximum of calls in flight is not read, so that nothing piles up here", () =>
	within(
		{ maxBodyBytes: 100_000, websocket: { maxInFlight: 1 }, unread: { maxBytesEach: 2 ** 26 } },
		async ({ script }, base) => {
			const client = await WsClient.open(base, UNMASKED);
			const other = await WsClient.open(base);
			client.send(entry("test_wait", ["a"]));
			await until("it was called", () => script.waiting.length === 1);
			// More than the system's buffers on both sides take.
			for (let i = 0; i < 300; i++) client.send(entry("test_echo", ["x".repeat(64_000)]));
			for (let i = 0; i < 50; i++) {
				other.send(CALL);
				await other.next();
			}
			assert.ok(client.socket.bufferedAmount > 0);
			script.release("a");
			for (let i = 0; i < 301; i++) await client.next();
			client.terminate();
			other.terminate();
		},
	));

test("a client that reads too slowly is closed with 1013, and others are not delayed", () => {
	const clock = new ManualClock();
	return within({ unread: { maxBytesEach: 16 * MIB }, clock }, async ({ script, websocket }, base) => {
		const slow = await WsClient.open(base);
		slow.send(entry("test_who"));
		await slow.next();
		const connection = script.who?.connection;
		assert.ok(connection);
		let ended = 0;
		connection.onClose(() => ended++);
		slow.socket.pause();
		const quick = await WsClient.open(base);
		// The system's own buffers take some megabytes before anything is left unread here.
		const text = JSON.stringify("x".repeat(32 * 1024));
		for (let sent = 0; sent < 1_000; sent++) connection.send(text);
		quick.send(entry("test_echo", ["quick"]));
		assert.equal((await quick.next()).result, "quick");
		await clock.advance(10_000);
		connection.send(text);
		slow.socket.resume();
		assert.deepEqual(await slow.closed(), { code: 1013, reason: "too slow" });
		await until("it is gone", () => websocket.size === 1);
		assert.equal(ended, 1);
		connection.send("nobody reads this");
		connection.onClose(() => ended++);
		assert.equal(ended, 2, "a late listener is notified at once");
		quick.terminate();
	});
});

test("a client that reads on gets a burst of more than may wait", () =>
	within({ unread: { maxBytesEach: 16 * MIB } }, async ({ script }, base) => {
		const client = await WsClient.open(base);
		client.send(entry("test_who"));
		await client.next();
		const connection = script.who?.connection;
		assert.ok(connection);
		const texts = Array.from({ length: 1_000 }, (_, i) => JSON.stringify(`${i}`.padEnd(32 * 1024)));
		for (const text of texts) connection.send(text);
		const got: unknown[] = [];
		while (got.length < texts.length) got.push(JSON.stringify(await client.next()));
		assert.deepEqual(got, texts);
		client.terminate();
	}));

test("a client that begins messages and completes none is disconnected before it takes all memory; others go on", () =>
	within({ maxBodyBytes: 2 * 1024 * 1024 }, async ({ websocket }, base) => {
		const half = Buffer.alloc(1024 * 1024);
		const patient = await WsClient.open(base, UNMASKED);
		// Complete messages and pings do not count towards the 32 MiB of a client.
		const whole = JSON.stringify(entry("test_nothing", ["x".repeat(1_000_000)]));
		for (let sent = 0; sent < 36; sent++) {
			patient.send(whole);
			patient.socket.ping();
			await patient.next();
		}
		const hoarders: WsClient[] = [];
		for (let begun = 0; begun < 40; begun++) {
			const hoarder = await WsClient.open(base, { ...UNMASKED, localAddress: "127.0.0.2" });
			hoarder.socket.send(half, { fin: false });
			hoarders.push(hoarder);
		}
		await until("some are cut", () => websocket.size <= 33);
		assert.ok(websocket.size >= 30, `${websocket.size} are left`);
		patient.send(CALL);
		assert.deepEqual(await patient.next(), OK);
		for (const client of [patient, ...hoarders]) client.terminate();
		await until("all are gone", () => websocket.size === 0);
	}));

test("pieces of messages that never end weigh as much as they take in memory", () =>
	within({ maxBodyBytes: 2 * 1024 * 1024 }, async ({ websocket }, base) => {
		const patient = await WsClient.open(base);
		const text = JSON.stringify(entry("test_echo", ["x".repeat(2_000)]));
		// Pieces that come to an end count for nothing: more than one message may have.
		for (let sent = 0; sent < 3; sent++) {
			for (const letter of text) patient.socket.send(letter, { fin: false });
			patient.socket.send("", { fin: true });
			await patient.next();
		}
		const piece = Buffer.from([0x00, 0x81, 0, 0, 0, 0, 0x20]);
		const [whole, first] = [Buffer.from([0x81, 0x80, 0, 0, 0, 0]), Buffer.from([0x01, 0x80, 0, 0, 0, 0])];
		for (const begin of [[first], [whole, first]]) {
			const pieces = Buffer.concat([...begin, ...new Array(4_000).fill(piece)]);
			const hoarders: WsClient[] = [];
			for (let begun = 0; begun < 30; begun++) {
				const hoarder = await WsClient.open(base, { localAddress: "127.0.0.2" });
				wireOf(hoarder).write(pieces);
				hoarders.push(hoarder);
			}
			// 4,000 pieces weigh 2 MiB, and a client has 32 MiB.
			await until("some are cut", () => websocket.size <= 17);
			assert.ok(websocket.size >= 15, `${websocket.size} are left`);
			patient.send(CALL);
			assert.deepEqual(await patient.next(), OK);
			for (const client of hoarders) client.terminate();
			await until("they are gone", () => websocket.size === 1);
		}
		const crumbs = await WsClient.open(base);
		wireOf(crumbs).write(Buffer.concat([first, ...new Array(5_000).fill(piece)]));
		assert.equal((await crumbs.closed()).code, 1008, "nor may one message have any number of them");
		patient.terminate();
	}));

test("if many clients together have too many unfinished bytes, the one with the most is disconnected", () =>
	within({ maxBodyBytes: 2 * 1024 * 1024, maxConnections: 200 }, async ({ websocket }, base) => {
		const half = Buffer.alloc(1_900_000);
		const honest = await WsClient.open(base);
		const hoarders: WsClient[] = [];
		for (let i = 0; i < 80; i++) {
			const localAddress = `127.0.0.${2 + (i % 5)}`;
			const hoarder = await WsClient.open(base, { ...UNMASKED, localAddress });
			hoarder.socket.send(half, { fin: false });
			hoarders.push(hoarder);
		}
		await until("some are cut", () => websocket.size <= 72);
		honest.send(CALL);
		assert.deepEqual(await honest.next(), OK);
		for (const client of [honest, ...hoarders]) client.terminate();
		await until("all are gone", () => websocket.size === 0);
	}));

test("one large answer to a client that reads does not close the connection", () =>
	within({ unread: { maxBytesEach: 64 * 1024, maxWaitMs: 0 } }, async (_transport, base) => {
		const client = await WsClient.open(base);
		client.send(entry("test_big", [5_000_000]));
		assert.equal(String((await client.next()).result).length, 5_000_000);
		client.send(CALL);
		assert.deepEqual(await client.next(), OK);
		client.terminate();
	}));

test("connections are pinged every 25 seconds, and closed without a pong", async () => {
	const clock = new ManualClock();
	await within({ clock }, async ({ websocket }, base) => {
		const alive = await WsClient.open(base);
		const dead = await WsClient.open(base, { autoPong: false });
		const busy = await WsClient.open(base, { autoPong: false });
		const all = [alive, dead, busy];
		await clock.advance(24_999);
		assert.deepEqual(
			all.map((client) => client.pings),
			[0, 0, 0],
		);
		await clock.advance(1);
		await Promise.all(all.map((client) => client.pinged(1)));
		busy.send(CALL);
		await busy.next();
		alive.send(CALL);
		await alive.next();
		await clock.advance(25_000);
		assert.equal((await dead.closed()).code, 1006);
		await Promise.all([alive.pinged(2), busy.pinged(2)]);
		assert.equal(websocket.size, 2);
		alive.terminate();
		busy.terminate();
		await until("all are gone", () => websocket.size === 0);
		await clock.advance(25_000);
		assert.equal(clock.timers, 0, "nobody is pinged, so there is no timer");
	});
});

test("each is pinged by when it came, so that many are not pinged in one moment", async () => {
	const clock = new ManualClock();
	await within({ clock, maxConnectionsPerClient: 100 }, async (_transport, base) => {
		const clients: WsClient[] = [];
		for (let i = 0; i < 100; i++) {
			clients.push(await WsClient.open(base));
			await clock.advance(100);
		}
		const pinged = () => clients.map(({ pings }) => pings).join("");
		const now = (count: number) => "1".repeat(count).padEnd(100, "0");
		await clock.advance(15_000);
		await until("the first is", () => pinged() === now(1));
		await clock.advance(4_900);
		await until("half of them are", () => pinged() === now(50));
		await clock.advance(5_000);
		await until("all are", () => pinged() === now(100));
		for (const client of clients) client.terminate();
	});
});

test("a client that disconnects during its calls leaves nothing behind", () =>
	within({}, async ({ script, websocket }, base) => {
		const client = await WsClient.open(base);
		client.send(entry("test_wait", ["a"]));
		await until("it was called", () => script.waiting.length === 1);
		client.terminate();
		await until("it is gone", () => websocket.size === 0);
		script.release("a");
		const next = await WsClient.open(base);
		next.send(CALL);
		assert.deepEqual(await next.next(), OK);
		next.terminate();
	}));

test("pings weigh as much as calls; over the limit the newest is answered when there is room, and the connection is kept", () => {
	const clock = new ManualClock();
	return within({ rps: 2, clock }, async (_transport, base) => {
		const [client, other] = [
			await WsClient.open(base),
			await WsClient.open(base, { localAddress: "127.0.0.2" }),
		];
		const pongs: string[] = [];
		client.socket.on("pong", (data) => pongs.push(data.toString()));
		const texts = Array.from({ length: 30 }, (_, i) => `${i}`);
		// The server answers the newest ping that it has read, and then reads no more for a while.
		wireOf(client).cork();
		for (const text of texts) client.socket.ping(text);
		wireOf(client).uncork();
		await until("ten seconds' worth is answered", () => pongs.length === 20);
		client.send(CALL);
		other.socket.ping("free");
		await new Promise((resolve) => other.socket.once("pong", resolve));
		other.send(CALL);
		assert.deepEqual(await other.next(), OK);
		assert.deepEqual([pongs, client.unread], [texts.slice(0, 20), 0]);
		await clock.advance(1_000);
		// On a busy machine the server may read them in two pieces.
		await until("the newest is answered", async () => {
			if (pongs.length > 20 && pongs.at(-1) !== "29") await clock.advance(1_000);
			return pongs.at(-1) === "29";
		});
		const late = pongs.slice(20).map(Number);
		assert.ok(late.length < 5 && late.every((one, i) => one > (late[i - 1] ?? 20)), pongs.join());
		assert.deepEqual(await client.next(), OK);
		client.terminate();
		other.terminate();
	});
});

test("pongs that are not read count as unread bytes", () =>
	within({ unread: { maxBytesEach: 64 * 1024, maxWaitMs: 0 } }, async (_transport, base) => {
		const client = await WsClient.open(base);
		client.socket.pause();
		// More than the system's buffers on both sides take.
		const ping = Buffer.concat([Buffer.from([0x89, 0xfd, 0, 0, 0, 0]), Buffer.alloc(125)]);
		wireOf(client).write(Buffer.concat(new Array(80_000).fill(ping)));
		await until("all have come", () => client.socket.bufferedAmount === 0);
		client.socket.resume();
		assert.deepEqual(await client.closed(), { code: 1013, reason: "too slow" });
	}));

test("messages that are made later come in order, and none is made for who has too much unread", () =>
	within({ unread: { maxBytesEach: 1024 * 1024, maxWaitMs: 0 } }, async ({ script }, base) => {
		const client = await WsClient.open(base);
		client.send(entry("test_who"));
		await client.next();
		const connection = script.who?.connection;
		assert.ok(connection);
		let made = 0;
		const later = (count: number) => ({
			get count() {
				return count;
			},
			bytes: count * 10,
			next() {
				count -= 1;
				made += 1;
				return JSON.stringify(String(made).padStart(8, "0"));
			},
		});
		connection.sendLater(later(3_000));
		connection.send('"behind"');
		const got: unknown[] = [];
		while (got.at(-1) !== "behind") got.push(await client.next());
		assert.deepEqual(
			got.slice(0, -1),
			Array.from({ length: 3_000 }, (_, i) => String(i + 1).padStart(8, "0")),
		);
		connection.sendLater(later(10_000));
		assert.deepEqual(await client.closed(), { code: 1013, reason: "too slow" });
		assert.equal(made, 3_000);
	}));
