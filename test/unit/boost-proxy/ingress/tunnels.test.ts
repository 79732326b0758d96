// Websockets that are passed through: they work as if the relay were asked itself, and its refusals come as they
// are.

import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";
import { RawConnection, requestText } from "../../../support/rawHttp.ts";
import { until } from "../../../support/until.ts";
import { WsClient } from "../../../support/wsClient.ts";
import { startPassFixture } from "./passFixture.ts";
import { echo, SWITCH, UPGRADE } from "./tunnelFixture.ts";

test("messages go both ways, on behalf of the client", async () => {
	const seen: IncomingMessage[] = [];
	const fixture = await startPassFixture({ ...echo(seen), boostSecret: "sesame", base: "/base" });
	const headers = { "x-boost-auth": "stolen", "x-forwarded-for": "6.6.6.6", origin: "https://app.test" };
	const client = await WsClient.open(`ws://127.0.0.1:${fixture.port}/noreverts?a=1`, { headers });
	client.send({ id: 1, result: "hello" });
	assert.deepEqual(await client.next(), { id: 1, result: "hello" });
	client.send({ id: 2, result: "x".repeat(1_000_000) });
	assert.equal(String((await client.next()).result).length, 1_000_000);
	const [request] = seen;
	assert.equal(request?.url, "/base/noreverts?a=1");
	assert.deepEqual(
		["host", "x-boost-auth", "x-forwarded-for", "origin", "connection", "upgrade"].map(
			(name) => request?.headers[name],
		),
		[`127.0.0.1:${fixture.relayPort}`, "sesame", "127.0.0.1", "https://app.test", "Upgrade", "websocket"],
	);
	assert.equal(fixture.pass.websockets, 1);
	client.socket.close(1000, "bye");
	assert.deepEqual(await client.closed(), { code: 1000, reason: "bye" });
	await until("nothing is left", () => fixture.relaySockets.size === 0 && fixture.pass.websockets === 0);
	assert.deepEqual(fixture.passed, [["websocket", "answered"]]);
	await fixture.stop();
});

test("the answer to an upgrade says who gave it, and bytes sent along are not lost", async () => {
	const fixture = await startPassFixture({
		upgrade: (_, socket, head) => {
			socket.write(SWITCH);
			socket.write(`early:${head}`);
			socket.on("data", (data) => socket.end(`got:${data}`));
		},
	});
	const client = await RawConnection.open(fixture.port);
	client.write(Buffer.concat([requestText("GET", "/ws", UPGRADE), Buffer.from("first")]));
	const answer = await client.answer(true);
	assert.equal(answer.status, 101);
	assert.deepEqual(
		["upgrade", "connection", "x-boost-upstream", "x-boost-breaker", "x-boost-attempts"].map(
			(name) => answer.headers[name],
		),
		["websocket", "Upgrade", "relay", "closed", "1"],
	);
	await until("the relay is done", () => fixture.relaySockets.size === 0);
	assert.match(await client.closed(), /^early:.*first$/);
	await fixture.stop();
});

test("what the relay says instead of an upgrade comes as it is", async () => {
	for (const status of [400, 401, 429, 503]) {
		const body = JSON.stringify({ error: `no, ${status}` });
		const fixture = await startPassFixture({
			upgrade: (_, socket) => {
				socket.end(
					`HTTP/1.1 ${status} No\r\nContent-Length: ${body.length}\r\nRetry-After: 7\r\n\r\n${body}`,
				);
			},
		});
		const client = await RawConnection.open(fixture.port);
		client.write(requestText("GET", "/ws", UPGRADE));
		const answer = await client.answer();
		assert.deepEqual(
			[answer.status, answer.body, answer.headers["retry-after"], answer.headers["x-boost-upstream"]],
			[status, body, "7", "relay"],
		);
		assert.equal(answer.headers.connection, "close");
		await client.closed();
		await until("nothing is left", () => fixture.relaySockets.size === 0 && fixture.pass.websockets === 0);
		await fixture.stop();
	}
});

test("a refusal that breaks off, and one of unknown length, end too", async () => {
	for (const rest of ["Content-Length: 100\r\n\r\n{", "\r\n{}"]) {
		const fixture = await startPassFixture({
			upgrade: (_, socket) => {
				socket.end(`HTTP/1.1 500 No\r\n${rest}`);
			},
		});
		const client = await RawConnection.open(fixture.port);
		client.write(requestText("GET", "/ws", UPGRADE));
		assert.match(await client.closed(), /^HTTP\/1\.1 500 /);
		await until("nothing is left", () => fixture.relaySockets.size === 0 && fixture.pass.websockets === 0);
		await fixture.stop();
	}
});

test("while the relay is out, and where it can't be reached, upgrades get 503", async () => {
	const fixture = await startPassFixture(echo());
	const url = `ws://127.0.0.1:${fixture.port}/`;
	fixture.breaker.state = "half-open";
	fixture.breaker.retryMs = 1_500;
	const client = await RawConnection.open(fixture.port);
	client.write(requestText("GET", "/", UPGRADE));
	const answer = await client.answer();
	assert.deepEqual(JSON.parse(answer.body), {
		jsonrpc: "2.0",
		id: null,
		error: { code: -32603, message: "no relay available: the relay is out" },
	});
	assert.deepEqual(
		[
			answer.status,
			...["retry-after", "x-boost-upstream", "x-boost-breaker", "x-boost-attempts"].map(
				(name) => answer.headers[name],
			),
		],
		[503, "2", "boost", "half-open", "0"],
	);
	await client.closed();
	assert.deepEqual(fixture.breaker.notes, []);
	fixture.breaker.state = "closed";
	await fixture.killRelay();
	const refused = await WsClient.refused(url);
	assert.equal(refused.status, 503);
	assert.match(refused.body, /no relay available: the relay cannot be reached/);
	assert.deepEqual(fixture.breaker.notes, [{ outcome: "refused" }]);
	await until("nothing is left", () => fixture.pass.websockets === 0);
	assert.deepEqual(fixture.passed, [
		["websocket", "unavailable"],
		["websocket", "unavailable"],
	]);
	await fixture.server.stop();
});

test("no more than so many at a time", async () => {
	const fixture = await startPassFixture({ ...echo(), maxWebsockets: 1 });
	const url = `ws://127.0.0.1:${fixture.port}/`;
	const client = await WsClient.open(url);
	const refused = await WsClient.refused(url);
	assert.deepEqual([refused.status, /too many connections/.test(refused.body)], [503, true]);
	client.terminate();
	await until("there is room", () => fixture.pass.websockets === 0);
	(await WsClient.open(url)).terminate();
	await fixture.stop();
});
