// Bad requests against one running relay: HTTP, JSON-RPC, parameters, queries, REST paths and
// websockets. Each row gets its exact answer or close code, alone, in a batch and over a websocket,
// and the relay is healthy behind them all.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { postText, RawConnection, WsClient } from "../../support/clients.ts";
import { ENVELOPE_ROWS } from "./badInput/envelopes.ts";
import {
	type BadInputFixture,
	type CallRow,
	expectedAnswer,
	failure,
	requestOf,
	startFixture,
	success,
	testBatches,
	testBytesRows,
	testCallRows,
	testHttpRows,
} from "./badInput/fixture.ts";
import { BROKEN_HTTP_ROWS, GOOD, GOOD_ANSWER, HTTP_ROWS } from "./badInput/http.ts";
import { METHOD_PARAM_ROWS, REFUSED_METHOD_ROWS, VICTIM, WEBSOCKET_ONLY_ROWS } from "./badInput/methods.ts";
import { QUERY_ROWS, REST_ROWS } from "./badInput/pages.ts";
import { BROKEN_UPGRADES, closedWith, FRAME_ROWS, MESSAGE_ROWS, UPGRADE_ROWS } from "./badInput/websocket.ts";
import { sendBytes } from "./badInput/wire.ts";

const SENTINEL = '{"jsonrpc":"2.0","id":"sentinel","method":"net_version"}';
const CALL_ROWS: readonly CallRow[] = [...METHOD_PARAM_ROWS, ...REFUSED_METHOD_ROWS];

let fixture: BadInputFixture;
let client: WsClient;
before(async () => {
	fixture = await startFixture();
	client = await WsClient.open(`ws://127.0.0.1:${fixture.system.relay.port}/fast`);
});
after(async () => {
	client.terminate();
	await fixture.stop();
});

testHttpRows([...HTTP_ROWS, ...ENVELOPE_ROWS, ...REST_ROWS], () => fixture);
testBytesRows([...BROKEN_HTTP_ROWS, ...UPGRADE_ROWS], () => fixture);
testCallRows([...CALL_ROWS, ...WEBSOCKET_ONLY_ROWS, ...QUERY_ROWS], () => fixture);
testBatches(CALL_ROWS, 100, () => fixture);

test("hundreds of pipelined requests, valid and invalid, are answered in order", async () => {
	const connection = await RawConnection.open(fixture.system.relay.port);
	const bodies = [GOOD, "{", "[]", '{"id":1}', "", `[${GOOD}]`, "null", '{"method":"nope"}'];
	const statuses = [200, 400, 200, 200, 400, 200, 200, 204];
	const rounds = 50;
	connection.write(
		Buffer.concat(
			Array(rounds)
				.fill(bodies.map((body) => postText("/fast", body)))
				.flat(),
		),
	);
	for (let i = 0; i < rounds * bodies.length; i++) {
		assert.equal((await connection.answer()).status, statuses[i % bodies.length], `answer ${i}`);
	}
	connection.destroy();
	fixture.checkLog();
});

test("incomplete bodies release their bytes", async () => {
	const { port } = fixture.system.relay;
	const megabytes = 2 * 1024 * 1024 - 1;
	const head = `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${megabytes + 1}\r\n\r\n`;
	const brokenOff = Buffer.concat([Buffer.from(head), Buffer.alloc(megabytes, 0x20)]);
	// More in all than the relay holds of one client at a time, which is 32 MiB.
	for (let sent = 0; sent < 20; sent += 4) {
		const answers = await Promise.all(Array.from({ length: 4 }, () => sendBytes(port, brokenOff, true)));
		assert.deepEqual(
			answers.map((answer) => answer?.status),
			[400, 400, 400, 400],
		);
	}
	const { status, body } = await fixture.wire.send({ body: GOOD.padEnd(megabytes, " ") });
	assert.deepEqual([status, JSON.parse(body)], [200, GOOD_ANSWER]);
	fixture.checkLog();
});

test("each call is answered over a websocket as over HTTP", async () => {
	for (const row of CALL_ROWS) {
		if (row.error?.message.endsWith("over a websocket only")) continue;
		client.send(requestOf(row));
		assert.deepEqual(await client.next(), expectedAnswer(row));
	}
	fixture.checkLog();
});

test("no call is answered as a notification", async () => {
	for (let from = 0; from < CALL_ROWS.length; from += 100) {
		const calls = CALL_ROWS.slice(from, from + 100).map(({ method, params }) => ({ method, params }));
		const { status, body } = await fixture.wire.send({ body: JSON.stringify(calls) });
		assert.deepEqual([status, body], [204, ""]);
	}
	fixture.checkLog();
});

test("a large body costs no more than a few times its parsing", async () => {
	const zeros = `"${"0".repeat(2_000_000)}"`;
	const whole = `{"id":7,"method":"nope","params":[${zeros}]}`;
	// Parsed to the very end, where it turns out to be no JSON.
	const broken = `${whole.slice(0, -1)} `;
	const leastMs = { whole: Number.POSITIVE_INFINITY, broken: Number.POSITIVE_INFINITY };
	for (let round = 0; round < 5; round++) {
		for (const [name, body, status] of [["whole", whole, 200] as const, ["broken", broken, 400] as const]) {
			const begun = performance.now();
			assert.equal((await fixture.wire.send({ body })).status, status);
			leastMs[name] = Math.min(leastMs[name], performance.now() - begun);
		}
	}
	// Otherwise a few of them a second would keep everybody else waiting.
	assert.ok(leastMs.whole < 4 * leastMs.broken + 50, JSON.stringify(leastMs));
});

for (const { name, message, answer } of MESSAGE_ROWS) {
	test(`message: ${name}`, async () => {
		client.send(message);
		if (answer !== undefined) assert.deepEqual(await client.next(), answer);
		client.send(SENTINEL);
		assert.deepEqual(await client.next(), success("sentinel", "31337"), "the connection goes on");
		fixture.checkLog();
	});
}

for (const [code, rows] of FRAME_ROWS) {
	for (const [name, frames] of Object.entries(rows)) {
		test(`frames: ${name}`, async () => {
			assert.equal(await closedWith(fixture.system.relay.port, frames), code);
			fixture.checkLog();
		});
	}
}

test("a bad query of the upgrade is an error of each submission, and of nothing else", async () => {
	const other = await WsClient.open(
		`ws://127.0.0.1:${fixture.system.relay.port}/noreverts?softCancellations=maybe`,
	);
	const submission = { jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params: ["0x"] };
	const message = "invalid params: softCancellations: expected true or false";
	for (let i = 0; i < 2; i++) {
		other.send(submission);
		assert.deepEqual(await other.next(), failure(1, -32602, message));
		other.send(SENTINEL);
		assert.deepEqual(await other.next(), success("sentinel", "31337"));
	}
	other.terminate();
	fixture.checkLog();
});

for (const { name, bytes, status } of BROKEN_UPGRADES) {
	test(`upgrade: ${name}`, async () => {
		assert.equal((await sendBytes(fixture.system.relay.port, bytes))?.status, status);
		fixture.checkLog();
	});
}

test("no refused call reached the node", async () => {
	const { chain } = fixture.system;
	for (const method of ["eth_getBalance", "eth_getTransactionCount"]) {
		assert.equal(await chain.rpc(method, [VICTIM, "latest"]), "0x0", method);
	}
	assert.equal(await chain.rpc("eth_getCode", [VICTIM, "latest"]), "0x");
	assert.equal(await chain.rpc("eth_blockNumber"), "0x0");
});

test("the connection of the invalid messages still works, and so does the relay", async () => {
	client.send(SENTINEL);
	assert.deepEqual(await client.next(), success("sentinel", "31337"));
	await fixture.stillWell();
});
