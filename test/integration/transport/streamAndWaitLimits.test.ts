// Clients that abuse event streams and waits: too many of them, hang-ups, and garbage in headers.
// The limits hold, nothing is left behind, and other clients are served. A shutdown answers every
// wait and ends every stream.

import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, describe, it } from "node:test";
import { createLogger } from "../../../shared/log.ts";
import { EventStreamReader, postText, RawConnection, requestText, WsClient } from "../../support/clients.ts";
import { figureOf, metricsOf, type WireAnswer } from "../../support/relayClient.ts";
import type { Signed } from "../../support/relayFixture.ts";
import {
	type ProcessSystem,
	startProcessSystem,
	startSystem,
	type TestSystem,
} from "../../support/systems.ts";
import { resetSocket } from "../../support/tcpProxy.ts";
import { rawTransaction, signedTransaction, testAccount } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";
import { CancelFixture } from "../../support/userFixtures.ts";

const SYNC = "eth_sendRawTransactionSync";
/** Limits of one client at a time. */
const MAX_STREAMS = 16;
const MAX_WAITS = 256;
const LONGEST_MS = 25_000;
/** At a shutdown. */
const STREAMS = 100;
const WAITS = 50;

const faults: string[] = [];
const log = createLogger("error", "relay", { write: (line) => void faults.push(line) });

let system: TestSystem;
let fixture: CancelFixture;
before(async () => {
	system = await startSystem({ env: { TRUST_PROXY: "1", MAX_CONNECTIONS_PER_CLIENT: "1000" }, log });
	fixture = new CancelFixture(system);
	await fixture.passBlock();
});
after(async () => {
	await system.stop();
	assert.deepEqual(faults, [], "nothing of ours failed");
});

const from = (last: number) => ({ "x-forwarded-for": `203.0.113.${last}` });
const pathOf = (tx: Signed) => `/tx/${tx.hash}/events`;
const syncCall = (tx: Signed, ms = LONGEST_MS, id: unknown = 1) => ({
	...{ jsonrpc: "2.0", id, method: SYNC, params: [tx.raw, ms] },
});

const gauge = (name: string) => figureOf(system.client.url, name);

async function held(): Promise<Signed> {
	const tx = (await fixture.actor()).sign();
	await fixture.submit("/fast", tx);
	return tx;
}

/** One wait on a connection of its own, which is still open then. */
async function waitOver(tx: Signed, client: number, ms = LONGEST_MS): Promise<RawConnection> {
	const connection = await RawConnection.open(system.relay.port);
	connection.write(postText("/fast", syncCall(tx, ms), from(client)));
	return connection;
}

const errorOf = (body: string) => (JSON.parse(body) as WireAnswer).error;

describe("streams", () => {
	it("one network gets 16, on any route; those of clients that vanish are freed", async () => {
		const tx = await held();
		const clients = [1, 1, 2].map((net, i) => ({ "x-forwarded-for": `2001:db8:0:${net}00::${i + 1}` }));
		const url = `${system.client.url}${pathOf(tx)}`;
		const opened = await Promise.all(
			Array.from({ length: 3 * MAX_STREAMS }, (_, i) => EventStreamReader.open(url, clients[i % 3])),
		);
		const taken = opened.filter(({ status }) => status === 200);
		const refused = opened.filter(({ status }) => status === 429);
		// Two thirds of them came from two addresses of one /56. Requests at the same time may have
		// received 200 and then nothing.
		assert.equal(taken.length + refused.length, opened.length);
		await until("as many as may be", async () => (await gauge("relay_event_streams")) === 2 * MAX_STREAMS);
		const late = await EventStreamReader.open(url, clients[0]);
		assert.deepEqual([late.status, late.headers["retry-after"]], [429, "3"]);
		assert.deepEqual(await late.json(), { error: "limit exceeded: 16 event streams for each client" });
		for (const reader of opened) reader.leave();
		await until("all are forgotten", async () => (await gauge("relay_event_streams")) === 0);
		// Behind a request that is cut before its answer is there, too.
		for (let i = 0; i < 3 * MAX_STREAMS; i++) {
			const socket = connect(system.relay.port, "127.0.0.1");
			const request = requestText("GET", pathOf(tx), { accept: "text/event-stream", ...clients[0] });
			socket.on("error", () => {});
			socket.write(request, () => resetSocket(socket));
			await new Promise((resolve) => socket.once("close", resolve));
		}
		await until("these too", async () => (await gauge("relay_event_streams")) === 0);
		for (let i = 0; i <= MAX_STREAMS; i++) {
			const headers = { accept: "text/event-stream", ...clients[0] };
			assert.equal((await fetch(url, { method: "HEAD", headers })).status, 200, "only the head is asked for");
		}
		// An edge may notice it before its core does.
		await until("there is room again", async () => {
			const again = await EventStreamReader.open(url, clients[0]);
			again.leave();
			return again.status === 200;
		});
	});
});

describe("headers of garbage", () => {
	const LONG = "x".repeat(10_000);
	const GARBAGE: readonly (readonly [string, Record<string, string>])[] = [
		...["", "-1", "1e9", "NaN", "9".repeat(40), "0x10", "1, 2", "\u00ff\u00fe", LONG, "1'; drop"].map(
			(id) => [`Last-Event-ID ${id.slice(0, 12)}`, { "last-event-id": id }] as const,
		),
		["ids without end", { "last-event-id": `${"1,".repeat(4_000)}1` }],
		["an address without end", { "x-forwarded-for": "1.2.3.4,".repeat(1_000) }],
		["another header without end", { "x-anything": LONG }],
	];

	it("an event stream sends all events to a client with an unknown Last-Event-ID", async () => {
		const tx = await held();
		await fixture.waitUntilSent(tx);
		await system.nextBlock();
		await fixture.reaches(tx, "INCLUDED");
		const { length } = await system.client.events(tx.hash);
		for (const [what, headers] of GARBAGE) {
			const reader = await EventStreamReader.open(`${system.client.url}${pathOf(tx)}`, headers);
			assert.equal(reader.status, 200, what);
			await until(what, () => reader.messages.length === length);
			reader.leave();
		}
	});

	it("any Accept header is answered with JSON or the stream; one that is too long gets 431", async () => {
		const tx = await held();
		const accepts = ["", ",,,;q=;", "text/event-stream;q=0", "text/event-stream;q=nonsense", "*", "/", LONG];
		const lists = ["text/event-stream,".repeat(500), `${"a/b;c=d,".repeat(1_000)}text/event-stream`];
		for (const accept of [...accepts, ...lists]) {
			const reader = await EventStreamReader.open(`${system.client.url}${pathOf(tx)}`, { accept });
			const type = reader.headers["content-type"] ?? "";
			assert.equal(reader.status, 200, accept.slice(0, 40));
			assert.match(type, /^(?:application\/json|text\/event-stream; charset=utf-8)$/, accept.slice(0, 40));
			reader.leave();
		}
		for (const name of ["last-event-id", "accept", "x-anything"]) {
			const connection = await RawConnection.open(system.relay.port);
			connection.write(requestText("GET", pathOf(tx), { [name]: "y".repeat(20_000) }));
			assert.equal((await connection.answer()).status, 431, name);
			connection.destroy();
		}
		await until("all are forgotten", async () => (await gauge("relay_event_streams")) === 0);
	});
});

describe("waits", () => {
	it("of 300 from one client 256 wait and are answered, the others get an error at once; another client can wait too", async () => {
		const tx = await held();
		await fixture.waitUntilSent(tx);
		const connections = await Promise.all(Array.from({ length: 300 }, () => waitOver(tx, 5)));
		const answers: string[] = [];
		for (const one of connections) void one.answer().then(({ body }) => answers.push(body));
		await until("those too many are answered", () => answers.length === 300 - MAX_WAITS);
		for (const body of answers) {
			const error = errorOf(body);
			assert.deepEqual([error?.code, error?.data], [4, tx.hash]);
			assert.match(error?.message ?? "", /wasn't processed in .*too many calls are waiting/);
		}
		const batch = await RawConnection.open(system.relay.port);
		const calls = Array.from({ length: 40 }, (_, id) => syncCall(tx, LONGEST_MS, id));
		batch.write(postText("/fast", calls, from(5)));
		const refused = JSON.parse((await batch.answer()).body) as WireAnswer[];
		assert.deepEqual(
			[...new Set(refused.map(({ error }) => error?.code))],
			[4],
			"a batch is no way round it",
		);
		const neighbour = await waitOver(tx, 6);
		await system.nextBlock();
		const { result } = JSON.parse((await neighbour.answer()).body) as WireAnswer;
		assert.equal((result as { transactionHash: string }).transactionHash, tx.hash);
		await until("all are answered", () => answers.length === 300);
		const receipts = answers.filter((body) => body.includes('"result":{'));
		assert.equal(receipts.length, MAX_WAITS);
		for (const one of [...connections, batch, neighbour]) one.destroy();
	});

	it("clients that hang up wait for nothing: their places are free again, over HTTP and a websocket", async () => {
		const tx = await held();
		const connections = await Promise.all(Array.from({ length: 128 }, () => waitOver(tx, 7)));
		const sockets = await Promise.all(
			Array.from({ length: 5 }, () =>
				WsClient.open(`ws://127.0.0.1:${system.relay.port}/fast`, { headers: from(7) }),
			),
		);
		for (const ws of sockets) for (let i = 0; i < 32; i++) ws.send(syncCall(tx, LONGEST_MS, i));
		await until("there is no place left", async () => {
			if (await isRefused(tx, 7)) return true;
			// That look may have had the place while the last of them came.
			connections.push(await waitOver(tx, 7));
			return false;
		});
		for (const one of connections) one.destroy();
		for (const ws of sockets) ws.terminate();
		await until("there are places again", async () => !(await isRefused(tx, 7)));
	});

	it("one client gets a few waits with large requests, and errors at once for the others; other clients can still wait", async () => {
		const tx = await held();
		await fixture.waitUntilSent(tx);
		const padded = { ...{ jsonrpc: "2.0", id: 2, method: "eth_chainId" }, pad: "x".repeat(2_000_000) };
		const large = JSON.stringify([syncCall(tx), padded]);
		const connections = await Promise.all(
			Array.from({ length: 6 }, async () => {
				const connection = await RawConnection.open(system.relay.port);
				connection.write(postText("/fast", large, from(8)));
				return connection;
			}),
		);
		const refused: string[] = [];
		for (const one of connections)
			void one.answer().then(
				({ body }) => refused.push(body),
				() => {},
			);
		await until("those too many are answered", () => refused.length === 2);
		for (const body of refused) assert.match(body, /"code":4,.*too many calls are waiting/);
		const ws = await WsClient.open(`ws://127.0.0.1:${system.relay.port}/fast`, { headers: from(9) });
		ws.send(large);
		ws.send({ id: 3, method: "eth_chainId", params: [] });
		assert.equal((await ws.next()).id, 3, "its large one waits");
		for (const one of connections) one.destroy();
		ws.terminate();
		await until("there is room again", async () => !(await isRefused(tx, 8)));
	});

	/** Whether one more wait of the client, for a millisecond, finds no place. */
	async function isRefused(tx: Signed, client: number): Promise<boolean> {
		const one = await waitOver(tx, client, 1);
		const { body } = await one.answer();
		one.destroy();
		return errorOf(body)?.message.includes("too many calls") === true;
	}
});

describe("a shutdown while many follow and wait", () => {
	let processes: ProcessSystem;
	before(async () => {
		processes = await startProcessSystem({ env: { TRUST_PROXY: "1" } });
	});
	after(() => processes.stop());

	it("ends streams in order, and each wait by code 4 with its hash", async () => {
		const relay = await processes.start();
		const txs = Array.from({ length: WAITS }, (_, i) => {
			const by = testAccount(7_000 + i);
			return { by, raw: `0x${rawTransaction({ by }).toString("hex")}`, hash: signedTransaction({ by }).hash };
		});
		await processes.chain.batch(
			txs.map(({ by }) => ({ method: "anvil_setBalance", params: [by.address, "0x8ac7230489e80000"] })),
		);
		await Promise.all(txs.map(({ raw }) => relay.client.send(raw)));
		const streams = await Promise.all(
			Array.from({ length: STREAMS }, (_, i) =>
				EventStreamReader.open(`${relay.url}/tx/${txs[i % WAITS]?.hash}/events`, {
					"x-forwarded-for": `203.0.113.${i}`,
				}),
			),
		);
		const calls = txs.map(({ raw }, id) => ({
			...{ jsonrpc: "2.0", id, method: "eth_sendRawTransactionSync", params: [raw, 25_000] },
		}));
		// By HTTP one by one and in a batch, and by a websocket.
		const [single, batch, overWs] = [calls.slice(0, 20), calls.slice(20, 30), calls.slice(30)];
		const answers: WireAnswer[] = [];
		const take = (body: string) => void answers.push(...[JSON.parse(body) as WireAnswer].flat());
		for (const body of [...single, batch]) {
			const connection = await RawConnection.open(relay.port);
			connection.write(postText("/fast", body));
			void connection.answer().then((answer) => take(answer.body));
		}
		const ws = await WsClient.open(`ws://127.0.0.1:${relay.port}/fast`);
		ws.socket.on("message", (data) => take(String(data)));
		for (const call of overWs) ws.send(call);
		ws.send({ jsonrpc: "2.0", id: "last", method: "eth_chainId", params: [] });
		await until("all calls are under way", () => answers.some(({ id }) => id === "last"));
		const text = await metricsOf(relay.url);
		assert.match(text, new RegExp(`^relay_event_streams ${STREAMS}$`, "m"));
		assert.equal(answers.length, 1, "all wait");

		const exit = await relay.kill("SIGTERM");
		assert.deepEqual([exit.code, exit.stderr], [0, ""]);
		for (const stream of streams) assert.equal(await stream.over(), "end");
		await until("all are answered", () => answers.length === WAITS + 1);
		for (const { id, error } of answers) {
			if (id === "last") continue;
			assert.deepEqual([error?.code, error?.data], [4, txs[Number(id)]?.hash]);
			assert.match(error?.message ?? "", /wasn't processed in .*shutting down/);
		}
		assert.equal((await ws.closed()).code, 1012);
	});
});
