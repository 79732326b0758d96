// What a server does with requests that it hands over, with routes of POST, and with headers of every answer: over real
// connections, with somebody played who takes what is handed over.

import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { test } from "node:test";
import { addressReader } from "../../../../shared/http/callContext.ts";
import type { Passing, PassThrough, Route } from "../../../../shared/http/routes.ts";
import { createHttpServer, type HttpServer, type HttpServerOptions } from "../../../../shared/http/server.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { postText, RawConnection, requestText } from "../../../support/rawHttp.ts";
import { until } from "../../../support/until.ts";

interface Handed {
	readonly request: IncomingMessage;
	readonly response: ServerResponse;
	readonly passing: Passing;
	gone: number;
}

/** Keeps what is handed over. */
class Keeper implements PassThrough {
	readonly handed: Handed[] = [];

	web(request: IncomingMessage, response: ServerResponse, passing: Passing): void {
		const one: Handed = { request, response, passing, gone: 0 };
		this.handed.push(one);
		passing.onGone(() => {
			one.gone++;
		});
	}

	/** The one at `index`, once it is there. */
	one(index = 0): Promise<Handed> {
		return until(`number ${index} is handed over`, () => this.handed[index]);
	}
}

const ACTING: Route = {
	path: "/act",
	verb: "POST",
	handle: ({ query }) => ({ status: 200, body: JSON.stringify({ q: query.get("q") }) }),
};

async function start(
	keeper: Keeper | null,
	options: Partial<HttpServerOptions> = {},
	clock = new ManualClock(),
): Promise<HttpServer> {
	const routes: readonly Route[] = [
		ACTING,
		{ path: "/page", handle: () => ({ status: 200, body: "{}", headers: { "x-who": "the page" } }) },
		{
			path: "/fault",
			verb: "POST",
			handle: () => {
				throw new Error("no");
			},
		},
	];
	const server = createHttpServer(
		{
			...{ name: "test", host: "127.0.0.1", port: 0, rpcPaths: ["/fast"], routes, maxBodyBytes: 1000 },
			...options,
		},
		{
			post: async () => ({ status: 200, body: "{}" }),
			...(keeper === null ? {} : { pass: keeper }),
			readAddress: addressReader({ trustProxy: 0 }),
			...{ clock, log: silentLogger },
		},
	);
	await server.start();
	return server;
}

test("what is on no route is handed over with its body unread, and answered as the taker says", async () => {
	const keeper = new Keeper();
	const server = await start(keeper, { exposedHeaders: ["X-Who"] });
	const connection = await RawConnection.open(server.port);
	connection.write(requestText("POST", "/other?a=1", { "Content-Type": "text/plain" }, "hello"));
	const { request, response, passing, gone } = await keeper.one();
	assert.deepEqual([request.url, request.readableFlowing, gone], ["/other?a=1", null, 0]);
	request.pipe(response);
	assert.equal(passing.begin(202, { "x-theirs": "1", "content-length": "5" }, null), true);
	assert.equal(passing.begin(200, {}, null), false, "it has begun");
	const answer = await connection.answer();
	assert.deepEqual([answer.status, answer.body, answer.headers["x-theirs"]], [202, "hello", "1"]);
	assert.equal(answer.headers["access-control-expose-headers"], "X-Who");
	assert.equal(answer.headers.connection, "keep-alive");
	await until("it is over", () => keeper.handed[0]?.gone === 1);
	// The connection goes on, and the server's own paths are its own.
	connection.write(requestText("GET", "/page"));
	assert.equal((await connection.answer()).headers["x-who"], "the page");
	connection.write(postText("/fast", {}));
	assert.equal((await connection.answer()).status, 200);
	connection.write(requestText("OPTIONS", "/other"));
	assert.equal((await connection.answer()).status, 204);
	assert.equal(keeper.handed.length, 1);
	connection.destroy();
	await server.stop();
});

test("a client that waits for a word gets it from the taker, or a refusal without it", async () => {
	const keeper = new Keeper();
	const server = await start(keeper);
	for (const goesAhead of [true, false]) {
		const connection = await RawConnection.open(server.port);
		const headers = { Expect: "100-continue", "Content-Length": "2" };
		connection.write(requestText("POST", "/other", headers));
		const { passing, request } = await keeper.one(goesAhead ? 0 : 1);
		if (goesAhead) {
			passing.goAhead();
			assert.equal((await connection.answer(true)).status, 100);
			connection.write("{}");
			await until("the body is there", () => request.complete);
			request.resume();
		}
		passing.refuse({ status: 503, body: "{}" });
		assert.equal((await connection.answer()).status, 503);
		connection.destroy();
	}
	await server.stop();
});

test("whoever took a request hears once that its client has gone, wherever it stands in the row", async () => {
	const keeper = new Keeper();
	const server = await start(keeper);
	const connection = await RawConnection.open(server.port);
	connection.write(Buffer.concat([requestText("GET", "/a"), requestText("GET", "/b")]));
	await keeper.one(1);
	connection.destroy();
	await until("both are told", () => keeper.handed.every(({ gone }) => gone === 1));
	assert.equal(keeper.handed[1]?.passing.begin(200, {}, null), false, "nobody is there");
	await server.stop();
});

test("a stop waits for what was handed over, as long as it waits for anything", async () => {
	const clock = new ManualClock();
	const keeper = new Keeper();
	const server = await start(keeper, { stopMs: 3_000 }, clock);
	const [quick, slow] = [await RawConnection.open(server.port), await RawConnection.open(server.port)];
	quick.write(requestText("GET", "/quick"));
	await keeper.one(0);
	slow.write(requestText("GET", "/slow"));
	await keeper.one(1);
	let stopped = false;
	const stopping = server.stop().then(() => {
		stopped = true;
	});
	const { passing, response } = await keeper.one(0);
	passing.begin(200, { "content-length": "0" }, null);
	response.end();
	assert.equal((await quick.answer()).headers.connection, "close");
	await clock.advance(2_999);
	assert.equal(stopped, false);
	await clock.advance(1);
	await stopping;
	assert.equal(await slow.closed(), "");
	assert.equal(keeper.handed[1]?.gone, 1);
});

test("a route of POST is answered whatever its body is", async () => {
	const server = await start(null);
	const connection = await RawConnection.open(server.port);
	connection.write(requestText("POST", "/act?q=1", { "Content-Type": "text/plain" }, "x".repeat(900)));
	assert.deepEqual(JSON.parse((await connection.answer()).body), { q: "1" });
	connection.write(requestText("POST", "/act"));
	assert.deepEqual(JSON.parse((await connection.answer()).body), { q: null });
	connection.write(requestText("POST", "/fault", {}, "x"));
	assert.equal((await connection.answer()).status, 500);
	// One that could be long is not waited for.
	connection.write(requestText("POST", "/act", { "Content-Length": "1000000" }, "x"));
	const answer = await connection.answer();
	assert.deepEqual([answer.status, answer.headers.connection], [200, "close"]);
	connection.destroy();
	await server.stop();
});

test("headers of every answer, but of preflights, unless the answer has its own", async () => {
	let count = 0;
	const headersFor = () => ({ "x-who": `server ${++count}` });
	const server = await start(null, { headersFor, exposedHeaders: ["X-Who"] });
	const rows: [Buffer | string, number, string | undefined][] = [
		[requestText("GET", "/nowhere"), 404, "server 1"],
		[requestText("POST", "/nowhere", {}, "{}"), 404, "server 2"],
		[requestText("GET", "/fast"), 405, "server 3"],
		[requestText("POST", "/fast", { "Content-Type": "text/html" }, "{}"), 415, "server 4"],
		[requestText("POST", "/fast", {}, "x".repeat(2000)), 413, "server 5"],
		[postText("/fast", {}), 200, "server 6"],
		[requestText("GET", "/page"), 200, "the page"],
		[requestText("OPTIONS", "/fast"), 204, undefined],
		["nonsense\r\n\r\n", 400, "server 8"],
		[requestText("CONNECT", "elsewhere.test:80"), 405, "server 9"],
	];
	for (const [bytes, status, who] of rows) {
		const connection = await RawConnection.open(server.port);
		connection.write(bytes);
		const answer = await connection.answer();
		assert.deepEqual([answer.status, answer.headers["x-who"]], [status, who], String(bytes).slice(0, 40));
		connection.destroy();
	}
	await server.stop();
});
