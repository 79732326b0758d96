// Tests connection limits: each client has its quota, and when the server is full the client with
// the most connections makes room. The clients are two loopback addresses.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { postText, RawConnection, requestText, WsClient } from "../../support/clients.ts";
import { withTransport } from "../../support/transportServer.ts";
import { until } from "../../support/until.ts";

const ATTACKER = "127.0.0.2";
const HONEST = "127.0.0.1";
const LIVE = requestText("GET", "/livez");
/** Least bytes of its answer. */
const ANSWER_BYTES = 200;
/** Requests in one write. */
const FLOOD = 2_000;

/** A connection that was served once, and rests. */
async function rested(
	port: number,
	from: string,
	headers: Record<string, string> = {},
): Promise<RawConnection> {
	const connection = await RawConnection.open(port, from);
	await answers(connection, headers);
	return connection;
}

async function answers(connection: RawConnection, headers: Record<string, string> = {}): Promise<void> {
	connection.write(requestText("GET", "/livez", headers));
	assert.equal((await connection.answer()).status, 200);
}

function wait(name: string): Buffer {
	return postText("/", { jsonrpc: "2.0", id: name, method: "test_wait", params: [name] });
}

/**
 * Opens connections to the port of its first argument and prints how many of them are open after
 * ten seconds at most.
 */
const CROWD = `
	const { connect } = require("node:net");
	const [port, count] = process.argv.slice(1).map(Number);
	let open = 0;
	const end = () => { console.log(open); process.exit(); };
	for (let i = 0; i < count; i++)
		connect(port, "127.0.0.1").on("error", () => {}).on("connect", () => ++open === count && end());
	setTimeout(end, 10_000);
`;

test(
	"a crowd that comes in one moment waits for a busy server, which else would find some of it seconds later",
	{
		skip: process.platform !== "linux" && "only Linux has addresses 127.0.0.2 and so on",
	},
	() =>
		withTransport({}, async ({ port }) => {
			const count = 1_500;
			// Holds this event loop, which is the server's.
			const crowd = spawnSync(process.execPath, ["-e", CROWD, String(port), String(count)], {
				encoding: "utf8",
			});
			assert.equal(crowd.stdout.trim(), String(count), crowd.stderr);
		}),
);

test("a client over its share has its newest connection closed; others, and its own older ones, stay", () =>
	withTransport({ maxConnectionsPerClient: 3 }, async ({ port }) => {
		const own = [];
		for (let i = 0; i < 3; i++) own.push(await rested(port, ATTACKER));
		const fourth = await RawConnection.open(port, ATTACKER);
		assert.equal(await fourth.closed(), "");
		const other = await rested(port, HONEST);
		for (const connection of own) await answers(connection);
		own[0]?.destroy();
		await until("there is room again", async () => {
			const again = await RawConnection.open(port, ATTACKER);
			again.write(LIVE);
			return (await again.answer().catch(() => null))?.status === 200;
		});
		await answers(other);
	}));

test("a client over its share loses the oldest connection on which it has asked nothing, as a web page's before its request", () =>
	withTransport({ maxConnectionsPerClient: 3 }, async ({ port }) => {
		const own = await rested(port, ATTACKER);
		const [older, newer] = [
			await RawConnection.open(port, ATTACKER),
			await RawConnection.open(port, ATTACKER),
		];
		const third = await rested(port, ATTACKER);
		assert.equal(await older.closed(), "");
		for (const one of [own, newer, third]) await answers(one);
		const further = await RawConnection.open(port, ATTACKER);
		assert.equal(await further.closed(), "", "all have asked");
	}));

test("in a full server the longest idle connection of the client with the most makes room for a newcomer", () =>
	withTransport({ maxConnections: 6 }, async ({ port, script }) => {
		const early = await rested(port, HONEST);
		const first = await rested(port, ATTACKER);
		const second = await rested(port, ATTACKER);
		const busy = await RawConnection.open(port, ATTACKER);
		busy.write(wait("busy"));
		await until("it is worked on", () => script.waiting.length === 1);
		const third = await rested(port, ATTACKER);
		const websocket = await WsClient.open(`ws://127.0.0.1:${port}/`, { localAddress: ATTACKER });
		// The second one is now the last that was heard of.
		await answers(first);
		const newcomer = await rested(port, HONEST);
		await second.closed();
		const another = await rested(port, HONEST);
		await third.closed();
		for (const kept of [early, newcomer, another, first]) await answers(kept);
		script.release("busy");
		assert.equal((await busy.answer()).status, 200, "what is worked on is not closed while others rest");
		websocket.terminate();
	}));

test("ten thousand silent connections keep nobody out", () =>
	withTransport({ maxConnections: 20, maxConnectionsPerClient: 20 }, async ({ port }) => {
		const honest = await rested(port, HONEST);
		for (let i = 0; i < 60; i++) {
			await RawConnection.open(port, ATTACKER);
			if (i % 20 === 19) await answers(honest);
		}
		await rested(port, HONEST);
		await answers(honest);
	}));

test("behind a proxy the requests and websockets in flight count, for the client that it names", () =>
	withTransport({ trustProxy: 1, maxConnectionsPerClient: 2 }, async ({ port, script }) => {
		const from = (address: string) => ({ "X-Forwarded-For": address });
		// As many connections as it likes.
		for (let i = 0; i < 4; i++) await rested(port, HONEST, from("192.0.2.1"));
		const websocket = await WsClient.open(`ws://127.0.0.1:${port}/`, { headers: from("192.0.2.1") });
		websocket.send({ jsonrpc: "2.0", id: 1, method: "test_wait", params: ["a"] });
		const second = await WsClient.open(`ws://127.0.0.1:${port}/`, { headers: from("192.0.2.1") });
		const refused = await WsClient.refused(`ws://127.0.0.1:${port}/`, { headers: from("192.0.2.1") });
		const message = "limit exceeded: 2 requests under way for each client";
		assert.deepEqual([refused.status, JSON.parse(refused.body).error], [429, { code: -32005, message }]);
		const connection = await RawConnection.open(port);
		connection.write(requestText("GET", "/livez", from("192.0.2.1")));
		const answer = await connection.answer();
		assert.deepEqual([answer.status, JSON.parse(answer.body)], [429, { error: message }]);
		assert.equal(answer.headers["retry-after"], "1");
		await answers(connection, from("192.0.2.2"));
		second.terminate();
		await until("there is room again", async () => {
			connection.write(requestText("GET", "/livez", from("192.0.2.1")));
			return (await connection.answer()).status === 200;
		});
		script.release("a");
		websocket.terminate();
	}));

test("a connection with boost's secret counts for the clients that it names", () =>
	withTransport({ boostSecret: "s3cret", maxConnectionsPerClient: 2 }, async ({ port }) => {
		const by = (address: string) => ({ "X-Boost-Auth": "s3cret", "X-Forwarded-For": address });
		const boosts = [];
		for (let i = 0; i < 5; i++) boosts.push(await rested(port, HONEST, by(`192.0.2.${i}`)));
		for (let i = 0; i < 2; i++) await rested(port, HONEST);
		assert.equal(
			await (await RawConnection.open(port, HONEST)).closed(),
			"",
			"without it, it is a client's own",
		);
		for (const [i, boost] of boosts.entries()) await answers(boost, by(`192.0.2.${i}`));
	}));

test("thousands of requests in one write are answered one by one, and cost others nothing", () =>
	withTransport({ maxConnectionsPerClient: 16 }, async ({ port }) => {
		const honest = await rested(port, HONEST);
		const flood = Buffer.concat(Array<Buffer>(FLOOD).fill(Buffer.from(LIVE)));
		const connections = await Promise.all(
			Array.from({ length: 16 }, () => RawConnection.open(port, ATTACKER)),
		);
		for (const connection of connections) connection.write(flood);
		for (let i = 0; i < 5; i++) await answers(honest);
		const answeredBytes = connections.reduce((sum, { unreadBytes }) => sum + unreadBytes, 0);
		assert.ok(answeredBytes < (FLOOD * 16 * ANSWER_BYTES) / 4, `${answeredBytes} bytes of others' answers`);
		const [first, ...others] = connections;
		for (const connection of others) connection.destroy();
		for (let i = 0; i < FLOOD; i++) assert.equal((await first?.answer())?.status, 200);
		first?.destroy();
		await until("there is room again", async () => {
			const again = await RawConnection.open(port, ATTACKER);
			again.write(LIVE);
			return (await again.answer().catch(() => null))?.status === 200;
		});
	}));

test("the memory of one client's bodies is bounded, and leaves room for others", () =>
	withTransport(
		{ maxBodyBytes: 4_096, maxBufferedBytes: 100_000, maxBufferedBytesPerClient: 5_000 },
		async ({ port }) => {
			const half = requestText("POST", "/", { "Content-Type": "application/json", "Content-Length": "4000" });
			const first = await RawConnection.open(port, ATTACKER);
			first.write(Buffer.concat([Buffer.from(half), Buffer.alloc(3_900, 0x20)]));
			await rested(port, HONEST);
			const second = await RawConnection.open(port, ATTACKER);
			second.write(Buffer.concat([Buffer.from(half), Buffer.alloc(3_900, 0x20)]));
			const answer = await second.answer();
			assert.deepEqual(
				[answer.status, JSON.parse(answer.body).error.message],
				[429, "limit exceeded: too many bytes under way for this client"],
			);
			const other = await RawConnection.open(port, HONEST);
			other.write(postText("/", { jsonrpc: "2.0", id: 1, method: "test_echo", params: ["x".repeat(3_000)] }));
			assert.equal((await other.answer()).status, 200);
			first.destroy();
		},
	));
