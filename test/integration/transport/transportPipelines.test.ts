// Tests requests pipelined on one connection: nothing of them is left when their client disconnects, and none waits
// behind an answer that goes on. Counted is what a stop would wait for, and the limit.

import assert from "node:assert/strict";
import { test } from "node:test";
import { EventStreams } from "../../../shared/http/eventStreams.ts";
import type { Route } from "../../../shared/http/routes.ts";
import { postText, RawConnection, requestText } from "../../support/clients.ts";
import { ManualClock } from "../../support/manualClock.ts";
import { startTransport } from "../../support/transportServer.ts";
import { until } from "../../support/until.ts";

const GET = requestText("GET", "/echo/a");
const STREAM = requestText("GET", "/feed", { Accept: "text/event-stream" });
const behind = (first: Buffer, count: number) => Buffer.concat([first, ...Array<Buffer>(count).fill(GET)]);

/** A server that takes 20 requests at a time, and tells who asks for `/feed` nothing more. */
async function fixture() {
	const streams = new EventStreams({ clock: new ManualClock() });
	const feed: Route = {
		path: "/feed",
		handle: ({ address }) => streams.answer(address, { begin: () => () => {}, isOver: () => false }),
	};
	const transport = await startTransport({ routes: [feed], maxOpenRequests: 20 });
	const status = async () => (await fetch(`${transport.url}/echo/a`)).status;
	return { ...transport, streams, status };
}

test("those of a client that has gone are gone, also while the one before them is worked on", async () => {
	const { port, script, status, stop } = await fixture();
	for (let i = 0; i < 3; i += 1) {
		const name = `slow ${i}`;
		const connection = await RawConnection.open(port);
		connection.write(
			behind(postText("/", { jsonrpc: "2.0", id: 1, method: "test_wait", params: [name] }), 19),
		);
		await until("all are taken", async () => (await status()) === 503);
		connection.destroy();
		await until("there is room again", async () => (await status()) === 200);
		script.release(name);
	}
	const begun = performance.now();
	await stop();
	assert.ok(performance.now() - begun < 5_000, "a stop waited for what had gone");
});

test("what comes behind an event stream ends the connection, whatever of it came first", async () => {
	const { port, streams, status, stop } = await fixture();
	const open = await RawConnection.open(port);
	open.write(STREAM);
	await until("the stream", () => streams.size === 1);
	open.write(GET);
	assert.doesNotMatch(await open.closed(), /"path":"\/echo\/a"/);
	const together = await RawConnection.open(port);
	together.write(behind(STREAM, 30));
	await together.closed();
	const many = await RawConnection.open(port);
	many.write(Buffer.concat(Array<Buffer>(6).fill(STREAM)));
	await many.closed();
	await until("no stream is left", () => streams.size === 0);
	assert.equal(await status(), 200);
	await stop();
});

test("an event stream asked for behind a request that is worked on is refused, and that one is answered", async () => {
	const { port, script, streams, stop } = await fixture();
	const connection = await RawConnection.open(port);
	const slow = postText("/", { jsonrpc: "2.0", id: 1, method: "test_wait", params: ["slow"] });
	connection.write(Buffer.concat([slow, STREAM]));
	await until("it is worked on", () => script.waiting.includes("slow"));
	script.release("slow");
	assert.match((await connection.answer()).body, /"result":"slow"/);
	const refused = await connection.answer();
	assert.deepEqual([refused.status, refused.headers["retry-after"], streams.size], [503, "1", 0]);
	await stop();
});

test("CONNECT behind a request that is worked on is not taken for its answer", async () => {
	const { port, script, stop } = await fixture();
	const connection = await RawConnection.open(port);
	const slow = postText("/", { jsonrpc: "2.0", id: 1, method: "test_wait", params: ["slow"] });
	connection.write(slow);
	await until("it is worked on", () => script.waiting.includes("slow"));
	connection.write("CONNECT relay.test:443 HTTP/1.1\r\nHost: relay.test\r\n\r\n");
	assert.equal(await connection.closed(), "");
	script.release("slow");
	await stop();
});
