// Bad input over websockets, bad queries and bad hashes against a running relay: each row gets its exact answer or
// close code, and the relay is well behind them all.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { WsClient } from "../../support/wsClient.ts";
import { type BadInputFixture, startFixture } from "./badInput/fixture.ts";
import { closedWith } from "./badInput/frames.ts";
import { QUERY_ROWS } from "./badInput/queryParameters.ts";
import { REST_ROWS } from "./badInput/restRows.ts";
import { failure, success, testBytesRows, testCallRows, testHttpRows } from "./badInput/rows.ts";
import { BROKEN_UPGRADES, FRAME_ROWS, MESSAGE_ROWS, UPGRADE_ROWS } from "./badInput/websocketRows.ts";
import { sendBytes } from "./badInput/wire.ts";

const SENTINEL = '{"jsonrpc":"2.0","id":"sentinel","method":"net_version"}';

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

for (const { name, message, answer } of MESSAGE_ROWS) {
	test(`message: ${name}`, async () => {
		client.send(message);
		if (answer !== undefined) assert.deepEqual(await client.next(), answer);
		client.send(SENTINEL);
		assert.deepEqual(await client.next(), success("sentinel", "31337"), "the connection goes on");
		fixture.log.check();
	});
}

for (const { name, frames, code } of FRAME_ROWS) {
	test(`frames: ${name}`, async () => {
		assert.equal(await closedWith(fixture.system.relay.port, frames), code);
		fixture.log.check();
	});
}

testBytesRows(UPGRADE_ROWS, () => fixture);

test("a bad query on the upgrade is told to each submission, and to nothing else", async () => {
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
	fixture.log.check();
});

for (const { name, bytes, status } of BROKEN_UPGRADES) {
	test(`upgrade: ${name}`, async () => {
		assert.equal((await sendBytes(fixture.system.relay.port, bytes))?.status, status);
		fixture.log.check();
	});
}

testCallRows(QUERY_ROWS, () => fixture);
testHttpRows(REST_ROWS, () => fixture);

test("the connection of the bad messages still serves, and the relay is well", async () => {
	client.send(SENTINEL);
	assert.deepEqual(await client.next(), success("sentinel", "31337"));
	await fixture.stillWell();
});
