// Bad JSON-RPC against a running relay: envelopes, parameters, refused methods and the REST paths. Each row gets its
// exact answer, and the relay is well behind them all.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { WsClient } from "../../support/wsClient.ts";
import { BROKEN_HTTP_ROWS } from "./badInput/brokenHttp.ts";
import { ENVELOPE_ROWS } from "./badInput/envelopes.ts";
import { type BadInputFixture, startFixture } from "./badInput/fixture.ts";
import { HTTP_ROWS } from "./badInput/httpRows.ts";
import { METHOD_PARAM_ROWS } from "./badInput/methodParams.ts";
import { QUERY_ROWS } from "./badInput/queryParameters.ts";
import { REFUSED_METHOD_ROWS, VICTIM, WEBSOCKET_ONLY_ROWS } from "./badInput/refusedMethods.ts";
import { REST_ROWS } from "./badInput/restRows.ts";
import { type CallRow, expectedAnswer, testCallRows, testHttpRows } from "./badInput/rows.ts";
import { FRAME_ROWS, MESSAGE_ROWS, UPGRADE_ROWS } from "./badInput/websocketRows.ts";

/** Of the tables that cost nothing to load; the transactions' come on top of them. */
const TABLES: readonly (readonly {
	readonly name: string;
	readonly status?: number;
	readonly result?: unknown;
}[])[] = [
	...[
		HTTP_ROWS,
		BROKEN_HTTP_ROWS,
		ENVELOPE_ROWS,
		METHOD_PARAM_ROWS,
		REFUSED_METHOD_ROWS,
		WEBSOCKET_ONLY_ROWS,
		QUERY_ROWS,
		REST_ROWS,
	],
	...[MESSAGE_ROWS, FRAME_ROWS, UPGRADE_ROWS],
];

test("the tables hold hundreds of inputs that are bad", () => {
	// What is taken is named so; all else must be refused.
	const bad = TABLES.flat().filter(({ name }) => !/ is (taken|echoed|served|answered)/.test(name));
	assert.ok(bad.length >= 400, `${bad.length}`);
	for (const { name, result } of bad) assert.ok(result === undefined || result === null, name);
});

let fixture: BadInputFixture;
before(async () => {
	fixture = await startFixture();
});
after(() => fixture.stop());

testHttpRows(ENVELOPE_ROWS, () => fixture);
testCallRows(METHOD_PARAM_ROWS, () => fixture);
testCallRows(REFUSED_METHOD_ROWS, () => fixture);
testCallRows(WEBSOCKET_ONLY_ROWS, () => fixture);

const CALL_ROWS: readonly CallRow[] = [...METHOD_PARAM_ROWS, ...REFUSED_METHOD_ROWS];

function request({ name, method, params }: CallRow): object {
	return { jsonrpc: "2.0", id: name, method, params };
}

test("in batches each of the calls is answered as alone, in their order", async () => {
	for (let from = 0; from < CALL_ROWS.length; from += 100) {
		const rows = CALL_ROWS.slice(from, from + 100);
		const { status, body } = await fixture.wire.send({ body: JSON.stringify(rows.map(request)) });
		assert.equal(status, 200);
		assert.deepEqual(JSON.parse(body), rows.map(expectedAnswer));
	}
	fixture.log.check();
});

test("over a websocket each of the calls is answered as over HTTP", async () => {
	const client = await WsClient.open(`ws://127.0.0.1:${fixture.system.relay.port}/`);
	for (const row of CALL_ROWS) {
		if (row.error?.message.endsWith("over a websocket only")) continue;
		client.send(request(row));
		assert.deepEqual(await client.next(), expectedAnswer(row));
	}
	client.terminate();
	fixture.log.check();
});

test("as notifications none of the calls is answered", async () => {
	for (let from = 0; from < CALL_ROWS.length; from += 100) {
		const calls = CALL_ROWS.slice(from, from + 100).map(({ method, params }) => ({ method, params }));
		const { status, body } = await fixture.wire.send({ body: JSON.stringify(calls) });
		assert.deepEqual([status, body], [204, ""]);
	}
	fixture.log.check();
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

test("the node has heard of none of the refused calls", async () => {
	const { chain } = fixture.system;
	for (const method of ["eth_getBalance", "eth_getTransactionCount"]) {
		assert.equal(await chain.rpc(method, [VICTIM, "latest"]), "0x0", method);
	}
	assert.equal(await chain.rpc("eth_getCode", [VICTIM, "latest"]), "0x");
	assert.equal(await chain.rpc("eth_blockNumber"), "0x0");
});

test("the relay is well after all of it", () => fixture.stillWell());
