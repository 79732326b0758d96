// How a server ends: still serving while it drains, then refusing, then gone, with every call that
// was made answered.

import assert from "node:assert/strict";
import { test } from "node:test";
import { addressReader } from "../../../shared/client.ts";
import { createHttpServer } from "../../../shared/http/server.ts";
import { silentLogger } from "../../../shared/log.ts";
import { postText, type RawAnswer, RawConnection, requestText, WsClient } from "../../support/clients.ts";
import { ManualClock } from "../../support/manualClock.ts";
import { startTransport } from "../../support/transportServer.ts";
import { until } from "../../support/until.ts";

/** The close code and reason that a client receives. */
const RESTARTS = { code: 1012, reason: "the server restarts: connect again" };

function call(method: string, param: unknown, id: unknown = 1): unknown {
	return { jsonrpc: "2.0", id, method, params: [param] };
}

async function connects(port: number): Promise<boolean> {
	try {
		(await RawConnection.open(port)).destroy();
		return true;
	} catch {
		return false;
	}
}

test("while it drains it is not ready, but serves, and closes connections after their answers", async () => {
	const transport = await startTransport();
	const { port, server } = transport;
	const old = await RawConnection.open(port);
	old.write(requestText("GET", "/readyz"));
	assert.equal((await old.answer()).status, 200);
	server.drain();
	assert.equal(server.draining, true);
	old.write(requestText("GET", "/readyz"));
	const answer = await old.answer();
	assert.equal(answer.status, 503);
	assert.equal(answer.headers.connection, "close");
	assert.deepEqual(JSON.parse(answer.body), { ready: false, draining: true, checks: {} });
	await old.closed();
	const fresh = await RawConnection.open(port);
	fresh.write(postText("/fast", call("test_echo", "x")));
	const served = await fresh.answer();
	assert.equal(served.status, 200);
	assert.equal(served.headers.connection, "close");
	await fresh.closed();
	assert.equal((await WsClient.refused(`ws://127.0.0.1:${port}/`)).status, 503);
	await transport.stop();
});

test("a stop answers requests in flight, refuses new ones, and closes idle connections", async () => {
	const clock = new ManualClock();
	const { port, script, server } = await startTransport({ clock });
	const busy = await RawConnection.open(port);
	busy.write(postText("/fast", call("test_wait", "a", 1)));
	const half = await RawConnection.open(port);
	const late = postText("/fast", call("test_note", "late", "late"));
	half.write(late.subarray(0, 150));
	const idle = await RawConnection.open(port);
	idle.write(requestText("GET", "/livez"));
	await idle.answer();
	await until("it was called", () => script.waiting.length === 1);
	let stopped = false;
	const stopping = server.stop().then(() => {
		stopped = true;
	});
	await idle.closed();
	assert.equal(await connects(port), false);
	half.write(late.subarray(150));
	const refused = await half.answer();
	assert.deepEqual([refused.status, refused.headers["retry-after"]], [200, "1"]);
	assert.deepEqual(JSON.parse(refused.body), {
		jsonrpc: "2.0",
		id: "late",
		error: { code: -32603, message: "internal error: shutting down" },
	});
	await half.closed();
	await clock.advance(1_000);
	assert.equal(stopped, false);
	script.release("a");
	const answer = await busy.answer();
	assert.deepEqual(JSON.parse(answer.body).result, "a");
	assert.equal(answer.headers.connection, "close");
	await stopping;
	await busy.closed();
	assert.deepEqual(script.log, ["start a", "end a"]);
});

test("requests that don't end in time are cut off, and the stop ends", async () => {
	const clock = new ManualClock();
	const { port, script, server } = await startTransport({ clock, stopMs: 5_000 });
	const stuck = await RawConnection.open(port);
	stuck.write(postText("/fast", call("test_wait", "stuck")));
	const silent = await RawConnection.open(port);
	silent.write("POST /fast HTTP/1.1\r\n");
	const client = await WsClient.open(`ws://127.0.0.1:${port}/`);
	client.send(call("test_wait", "stuck too"));
	await until("both were called", () => script.waiting.length === 2);
	const stopping = server.stop();
	await clock.advance(4_999);
	assert.equal(stuck.isClosed, false);
	await clock.advance(1);
	await stopping;
	assert.equal(await stuck.closed(), "");
	assert.equal(await silent.closed(), "");
	assert.equal((await client.closed()).code, 1006);
});

test("a connection without any request does not delay a stop", async () => {
	const { port, server } = await startTransport();
	const connection = await RawConnection.open(port);
	await server.stop();
	await connection.closed();
});

test("a stop lets websockets finish their calls, then closes them with 1012", async () => {
	const { port, script, server } = await startTransport();
	const busy = await WsClient.open(`ws://127.0.0.1:${port}/`);
	const idle = await WsClient.open(`ws://127.0.0.1:${port}/`);
	busy.send(call("test_wait", "a"));
	await until("it was called", () => script.waiting.length === 1);
	const stopping = server.stop();
	assert.deepEqual(await idle.closed(), RESTARTS);
	busy.send(call("test_note", "too late"));
	script.release("a");
	assert.equal((await busy.next()).result, "a");
	assert.deepEqual(await busy.closed(), RESTARTS);
	await stopping;
	assert.deepEqual(script.log, ["start a", "end a"]);
});

test("under load every call that was made is answered, and no other", async () => {
	const transport = await startTransport();
	const { port, script, server } = transport;
	const answered: string[] = [];
	let sent = 0;
	const client = async (): Promise<void> => {
		const connection = await RawConnection.open(port);
		for (;;) {
			const name = `n${sent++}`;
			connection.write(postText("/fast", call("test_note", name)));
			let answer: RawAnswer;
			try {
				answer = await connection.answer();
			} catch {
				// Closed before it was read: it must not have been made.
				return;
			}
			// A call that is refused gets an error, with 200 as well.
			if ("result" in JSON.parse(answer.body)) answered.push(name);
			if (answer.headers.connection === "close") return;
		}
	};
	const clients = Array.from({ length: 20 }, client);
	await until("some hundreds are answered", () => answered.length > 500);
	await server.stop();
	await Promise.all(clients);
	assert.deepEqual(script.log.map((line) => line.replace("note ", "")).sort(), answered.sort());
});

test("a taken port is an error of the start", async () => {
	const { port, stop } = await startTransport();
	const second = createHttpServer(
		{ name: "second", host: "127.0.0.1", port, rpcPaths: [], routes: [], maxBodyBytes: 1 },
		{ readAddress: addressReader({ trustProxy: 0 }), log: silentLogger, clock: new ManualClock() },
	);
	await assert.rejects(second.start(), { code: "EADDRINUSE" });
	await stop();
});
