// The standby that listens until the server takes over its port, connections and held requests.
// Real connections and a real server, with a manual clock.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Standby, type StandbyOptions } from "../../../../shared/http/standby.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { postText, RawConnection, requestText } from "../../../support/clients.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { startTransport, type Transport } from "../../../support/transportServer.ts";
import { until } from "../../../support/until.ts";

const HOLD_MS = 1_000;
const ECHO = JSON.stringify({ jsonrpc: "2.0", id: 7, method: "test_echo", params: ["held"] });
const WAITS = "another process has the store: this one waits for it to end";

const standbys: { standby: Standby; clock: ManualClock }[] = [];
const transports: Transport[] = [];
const connections: RawConnection[] = [];
after(async () => {
	for (const connection of connections) connection.destroy();
	for (const { standby, clock } of standbys) await stopped(standby, clock);
	for (const transport of transports) await transport.stop();
});

async function fixture(options: Partial<StandbyOptions> = {}) {
	const clock = new ManualClock();
	const standby = new Standby(
		{ host: "127.0.0.1", port: 0, holdMs: HOLD_MS, ...options },
		{ clock, log: silentLogger },
	);
	standbys.push({ standby, clock });
	await standby.start(WAITS);
	const { port } = standby;
	const open = async (): Promise<RawConnection> => {
		const connection = await RawConnection.open(port);
		connections.push(connection);
		return connection;
	};
	/** Sends a request and waits until it is held. */
	const held = async (text = postText("/fast", ECHO)): Promise<RawConnection> => {
		const connection = await open();
		const before = clock.timers;
		connection.write(text);
		await until("it is held", () => clock.timers === before + 1);
		return connection;
	};
	const takeOver = async (): Promise<Transport> => {
		const transport = await startTransport({ standby });
		transports.push(transport);
		return transport;
	};
	return { clock, standby, port, open, held, takeOver };
}

test("held requests are answered by the server that takes over, on the same port and connections", async () => {
	const { held, takeOver, port, open } = await fixture();
	const waiting = [await held(), await held(postText("/", ECHO)), await held(postText("//", ECHO))];
	const silent = await open();
	// A body that is sent only after 100 Continue.
	const [head] = String(postText("/fast", ECHO)).split("\r\n\r\n");
	const expects = await held(Buffer.from(`${head}\r\nexpect: 100-continue\r\n\r\n`));
	const transport = await takeOver();
	assert.equal(transport.port, port);
	assert.equal((await expects.answer(true)).status, 100);
	expects.write(ECHO);
	assert.equal((await expects.answer()).status, 200);
	for (const connection of waiting) {
		const answer = await connection.answer();
		assert.deepEqual(pick(answer), [200, { jsonrpc: "2.0", id: 7, result: "held" }]);
	}
	for (const connection of [...waiting, silent]) {
		connection.write(postText("/fast", ECHO));
		connection.write(requestText("GET", "/readyz"));
		assert.equal((await connection.answer()).status, 200);
		assert.deepEqual(pick(await connection.answer()), [200, { ready: true, draining: false, checks: {} }]);
	}
});

test("a request held too long is refused and its connection stays usable; a websocket is refused at once", async () => {
	const { clock, held, open } = await fixture();
	const websocket = await open();
	for (const path of ["/", "/ws"]) {
		websocket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n`);
		assert.equal((await websocket.answer()).status, 503, path);
	}
	const post = await held();
	await clock.advance(HOLD_MS - 1);
	const page = await held(requestText("GET", "/tx/0x12"));
	await clock.advance(1);
	const refused = await post.answer();
	assert.equal(refused.headers["retry-after"], "1");
	assert.equal(refused.headers["access-control-allow-origin"], "*");
	assert.equal(refused.status, 200);
	assert.match(
		refused.body,
		/^{"jsonrpc":"2\.0","id":7,"error":{"code":-32603,"message":"internal error: another/,
	);
	await clock.advance(HOLD_MS);
	assert.deepEqual(pick(await page.answer()), [503, { error: WAITS }]);
	page.write(requestText("GET", "/livez"));
	assert.equal((await page.answer()).status, 200);
});

test("reports to a balancer that the process is up, and that it is not ready; a page may go on to ask", async () => {
	const { open } = await fixture();
	const connection = await open();
	for (const [verb, path, status] of [
		["GET", "/", 200],
		["HEAD", "/?check", 200],
		["GET", "/livez", 200],
		["GET", "/readyz", 503],
		["OPTIONS", "/", 204],
	] as const) {
		connection.write(requestText(verb, path, { Accept: "*/*" }));
		const answer = await connection.answer(verb === "HEAD");
		assert.equal(answer.status, status, path);
		if (verb === "OPTIONS") assert.match(answer.headers["access-control-allow-methods"] ?? "", /POST/);
	}
});

test("what was refused is not handed on while its client still sends", async () => {
	const { clock, held, standby } = await fixture();
	const [head] = String(postText("/fast", ECHO)).split("\r\n\r\n");
	const slow = await held(Buffer.from(`${head}\r\n\r\n`));
	const other = await held();
	await clock.advance(HOLD_MS);
	assert.match((await other.answer()).body, /^{"jsonrpc":"2\.0","id":7,"error"/);
	await clock.advance(1_000);
	assert.match((await slow.answer()).body, /^{"jsonrpc":"2\.0","id":null,"error"/);
	const handed = standby.leave();
	assert.deepEqual(handed?.requests, []);
	handed?.server.closeAllConnections();
	handed?.server.close();
});

/** A stop waits a moment for requests that are still arriving. */
async function stopped(standby: Standby, clock: ManualClock): Promise<void> {
	const stopping = standby.stop();
	await clock.advance(1_000);
	await stopping;
}

function pick({ status, body }: { status: number; body: string }): [number, unknown] {
	return [status, JSON.parse(body)];
}

test("with a page for errors a browser gets that, and what it is made of is served", async () => {
	const { open, held, clock } = await fixture({
		errorPage: (answer) => ({ ...answer, body: "<p>a page</p>", contentType: "text/html" }),
		assets: [{ path: "/pages/a.css", handle: () => ({ status: 200, body: "p{}", contentType: "text/css" }) }],
	});
	const browser = await held(requestText("GET", "/tx/0x12", { accept: "text/html" }));
	await clock.advance(HOLD_MS);
	const { status, body } = await browser.answer();
	assert.deepEqual([status, body], [503, "<p>a page</p>"]);
	const asset = await open();
	asset.write(requestText("GET", "/pages/a.css"));
	assert.equal((await asset.answer()).body, "p{}");
});
