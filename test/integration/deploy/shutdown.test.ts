// Tests SIGTERM and SIGINT: not ready first, then calls in flight are answered, everything is
// written, and the process exits with 0 long before a host's SIGKILL. All that was acknowledged
// survives the restart.

import assert from "node:assert/strict";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Pool } from "undici";
import { WebSocket } from "ws";
import { IN_FOLDER } from "../../support/engine.ts";
import { type NodeProxy, startNodeProxy } from "../../support/nodes.ts";
import { type PlainBuilder, startPlainBuilder } from "../../support/plainBuilder.ts";
import { type Exit, type RelayProcess, readyStatus } from "../../support/processes.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { rawTransaction, testAccount } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

/** A host's SIGKILL comes after 30 s. */
const STOP_MS = 30_000;
const LOOPS = 8;
/** Enough that no loop ends before the relay does. */
const ACCOUNTS_A_LOOP = 40;
const NONCES = 50;

let system: ProcessSystem;
let builder: PlainBuilder;
let proxy: NodeProxy;
before(async () => {
	builder = await startPlainBuilder();
	system = await startProcessSystem({ builders: [{ name: "plain", url: builder.url }] });
	proxy = await startNodeProxy(system.chain.url);
});
after(async () => {
	await system.stop();
	await proxy.stop();
	await builder.stop();
});

test("SIGTERM under load: first not ready, then all running requests are answered, and all acknowledged ones kept", async () => {
	const accounts = Array.from({ length: LOOPS * ACCOUNTS_A_LOOP }, (_, i) => testAccount(20_000 + i));
	await system.chain.fund(accounts);
	// On a database the next core serves, see rolling.nightly.ts.
	const env = { ...folder("load"), ...IN_FOLDER };
	const relay = await system.start(env);
	const pool = new Pool(relay.url, { connections: LOOPS });
	const acknowledged: { hash: string; begun: number }[] = [];
	const refused: { begun: number; why: string }[] = [];
	const loop = async (first: number): Promise<void> => {
		for (let i = 0; i < ACCOUNTS_A_LOOP * NONCES && refused.length < LOOPS; i++) {
			const by = accounts[first + Math.floor(i / NONCES)];
			const raw = rawTransaction({
				...(by === undefined ? {} : { by }),
				nonce: i % NONCES,
				gasLimit: 21_000,
			});
			const begun = performance.now();
			const answer = await post(pool, { method: "eth_sendRawTransaction", params: [hex(raw)] });
			if (typeof answer === "string" || answer.result === undefined) {
				refused.push({ begun, why: typeof answer === "string" ? answer : JSON.stringify(answer) });
				return;
			}
			acknowledged.push({ hash: String(answer.result), begun });
			if (acknowledged.length === 300) relay.signal("SIGTERM");
		}
	};
	const loops = Promise.all(Array.from({ length: LOOPS }, (_, i) => loop(i * ACCOUNTS_A_LOOP)));
	await until("300 are acknowledged", () => acknowledged.length >= 300);
	await until("it is not ready", async () => (await readyStatus(relay.url)) === 503);
	const notReadyAt = performance.now();
	await loops;
	assertStopped(await relay.ended(STOP_MS));
	await pool.destroy();

	// While balancers look elsewhere, what still comes is served.
	assert.ok(acknowledged.some(({ begun }) => begun > notReadyAt));
	assert.deepEqual(
		refused.filter(({ begun }) => begun <= notReadyAt),
		[],
	);
	for (const { why } of refused)
		assert.match(why, /^(ECONNREFUSED|ECONNRESET|UND_ERR_SOCKET)$|shutting down/);

	const again = await system.start(env);
	const statuses = await Promise.all(acknowledged.map(({ hash }) => again.client.status(hash)));
	const held = new Set(["PENDING", "QUEUED", "SIMULATION_FAILED", "BROADCAST"]);
	assert.deepEqual(
		statuses.filter(({ stage }) => !held.has(stage ?? "")),
		[],
	);
	await again.kill();
});

test("SIGTERM while it still waits for its node ends it at once", async () => {
	const waiting = system.launch({ ...folder("waiting"), ETH_RPC_URL: "http://127.0.0.1:1" });
	await waiting.logged("waiting for the node of ETH_RPC_URL");
	assertStopped(await waiting.kill("SIGTERM", STOP_MS));
});

test("SIGINT, then other signals, are one stop: slow reads are answered before the end, over HTTP and websockets, which are then closed with 1012, and nobody waits for hanging builders, idle connections and incomplete requests", async () => {
	builder.answerWith(() => "hang");
	const relay = await system.start({ ...folder("slow reads"), ETH_RPC_URL: proxy.url, DRAIN_SECONDS: "4" });
	builder.reset();
	const by = testAccount(29_000);
	await system.chain.fund([by]);
	await relay.client.send(hex(rawTransaction({ by, nonce: 0 })));
	await until("the builder has it", () => builder.bodies.length > 0);
	const unused = connect(relay.port, "127.0.0.1");
	const half = connect(relay.port, "127.0.0.1");
	half.write("POST /fast HTTP/1.1\r\nHost: relay\r\nContent-");
	unused.on("error", () => {});
	half.on("error", () => {});
	const [idle, busy] = await Promise.all([socketTo(relay), socketTo(relay)]);
	const release = proxy.hold();
	const slow = relay.client.ask("eth_gasPrice", []);
	busy.socket.send(JSON.stringify({ jsonrpc: "2.0", id: "slow", method: "eth_blobBaseFee", params: [] }));
	for (const method of ["eth_gasPrice", "eth_blobBaseFee"])
		await until(`the node was asked ${method}`, () => proxy.calls(method).length > 0);
	relay.signal("SIGINT");
	await relay.logged("stopping");
	for (const signal of ["SIGTERM", "SIGINT", "SIGTERM"] as const) relay.signal(signal);
	assert.equal(await idle.closed, 1012);
	const { count, ms } = await relay.logged("closing websockets");
	assert.deepEqual([count, ms], [2, 2_500]);
	await until("nothing new is taken", async () => (await readyStatus(relay.url)) === 0);
	release();
	assert.equal((await slow).result, await system.chain.rpc("eth_gasPrice"));
	assert.equal(await busy.closed, 1012);
	const result = await system.chain.rpc("eth_blobBaseFee");
	assert.deepEqual(
		busy.messages.map((text) => JSON.parse(text)),
		[{ jsonrpc: "2.0", id: "slow", result }],
	);
	assertStopped(await relay.ended(STOP_MS));
	const stops = relay.logs().filter(({ msg }) => msg === "stopping");
	assert.deepEqual(
		stops.map(({ signal }) => signal),
		["SIGINT"],
	);
	unused.destroy();
	half.destroy();
});

function assertStopped(exit: Exit): void {
	assert.deepEqual([exit.code, exit.signal, exit.stderr], [0, null, ""]);
	assert.match(exit.stdout, /"msg":"stopped"\}\n$/);
}

interface Answer {
	readonly result?: unknown;
	readonly error?: unknown;
}

/** The JSON of the answer, or the code of the connection's failure. */
async function post(pool: Pool, call: object): Promise<Answer | string> {
	const body = JSON.stringify({ jsonrpc: "2.0", id: 1, ...call });
	const headers = { "content-type": "application/json" };
	try {
		const response = await pool.request({ method: "POST", path: "/fast", headers, body });
		return (await response.body.json()) as Answer;
	} catch (thrown) {
		return (thrown as { code?: string }).code ?? String(thrown);
	}
}

interface OpenSocket {
	readonly socket: WebSocket;
	readonly messages: string[];
	/** The code it is closed with. */
	readonly closed: Promise<number>;
}

async function socketTo(relay: RelayProcess): Promise<OpenSocket> {
	const socket = new WebSocket(relay.url.replace("http", "ws"));
	const messages: string[] = [];
	socket.on("message", (data) => messages.push(String(data)));
	const closed = new Promise<number>((resolve) => socket.once("close", resolve));
	await new Promise<void>((resolve, reject) => {
		socket.once("open", () => resolve());
		socket.once("error", reject);
	});
	return { socket, messages, closed };
}

function folder(name: string): { DATA_DIR: string } {
	return { DATA_DIR: join(system.folder, name) };
}

function hex(raw: Buffer): string {
	return `0x${raw.toString("hex")}`;
}
