// Tests filters that clients poll through boost. They survive an outage of the relay. After a
// restart of it clients make them again, as their libraries do on the error that they receive.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { createPublicClient, custom } from "viem";
import { type BoostClient, type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { WsClient } from "../../support/clients.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import { startTcpProxy, type TcpProxy } from "../../support/tcpProxy.ts";
import { until } from "../../support/until.ts";

/** The relay's error for a filter from before its start, in go-ethereum's words. */
const UNKNOWN = { code: -32000, message: "filter not found" };
const POLLS = ["eth_getFilterChanges", "eth_getFilterLogs"] as const;

let fixture: BoostFixture;
let boost: BoostClient;
/** Between boost and the relay. */
let line: TcpProxy;
before(async () => {
	fixture = await startBoostFixture();
	line = await startTcpProxy(Number(new URL(fixture.system.client.url).port));
	boost = await fixture.startBoost({ env: { RELAY_URL: `http://127.0.0.1:${line.port}` } });
});
after(async () => {
	await line?.stop();
	await fixture?.stop();
});
afterEach(() => recovers());

async function fails(): Promise<void> {
	line.cut();
	await boost.reaches("the relay is down", ({ relay }) => relay.state !== "closed");
}

async function recovers(): Promise<void> {
	line.mend();
	await boost.isWell();
}

/**
 * The same call over HTTP alone, over HTTP in a batch with one that boost serves itself, and over a
 * websocket.
 */
async function everyWay(method: string, filter: unknown): Promise<readonly unknown[]> {
	const call = { jsonrpc: "2.0", id: 1, method, params: [filter] };
	const one = (await boost.post(call)).json as WireAnswer;
	const pending = { ...call, id: 2, method: "eth_getTransactionByHash", params: [`0x${"cd".repeat(32)}`] };
	const batch = (await boost.post([call, pending])).json as WireAnswer[];
	const socket = await WsClient.open(`${boost.url.replace("http", "ws")}/ws`);
	socket.socket.send(JSON.stringify(call));
	const over = (await socket.next()) as WireAnswer;
	socket.terminate();
	return [one, batch[0], over].map((answer) => answer?.error ?? answer?.result);
}

test("after a restart of the relay its filters are not found, in go-ethereum's words", async () => {
	const filter = await boost.result("eth_newFilter", [{}]);
	for (const answer of await everyWay("eth_getFilterChanges", filter)) assert.deepEqual(answer, []);
	await fixture.system.restart();
	await boost.isWell();
	for (const method of POLLS) {
		assert.deepEqual(await everyWay(method, filter), [UNKNOWN, UNKNOWN, UNKNOWN], method);
	}
	assert.deepEqual(await everyWay("eth_uninstallFilter", filter), [false, false, false]);
});

test("through an outage no filter is said to be lost, and afterwards it tells what came in between", async () => {
	const filter = await boost.result("eth_newBlockFilter");
	await fixture.users.passBlock();
	await fails();
	for (const method of [...POLLS, "eth_uninstallFilter"]) {
		for (const answer of await everyWay(method, filter)) {
			const { code, message } = answer as { code: number; message: string };
			assert.equal(code, -32603, method);
			assert.match(message, /^no relay available: /, method);
		}
	}
	await fixture.users.passBlock();
	await recovers();
	const changes = (await boost.result("eth_getFilterChanges", [filter])) as unknown[];
	assert.equal(changes.length, 2);
});

test("viem keeps its filter through an outage, and makes it again when the relay has forgotten it", async () => {
	const made: string[] = [];
	const errors: Error[] = [];
	let ended = false;
	const request = async ({ method, params = [] }: { method: string; params?: readonly unknown[] }) => {
		const { result, error } = (await boost.call(method, params)).json as WireAnswer;
		if (method === "eth_newFilter" && typeof result === "string") made.push(result);
		if (method === "eth_uninstallFilter") ended = true;
		if (error !== undefined) throw error;
		return result;
	};
	const client = createPublicClient({ transport: custom({ request }, { retryCount: 0 }) });
	const onError = (error: Error) => errors.push(error);
	const unwatch = client.watchEvent({ onLogs() {}, onError, pollingInterval: 20 });
	const [first] = await until("it has a filter", () => made.length > 0 && made);
	await fails();
	const seen = errors.length;
	await until("it has failed often", () => errors.length > seen + 5);
	await recovers();
	assert.deepEqual(made, [first]);
	await boost.result("eth_uninstallFilter", [first]);
	await until("it has made another", () => made.length === 2);
	unwatch();
	await until("it has uninstalled it", () => ended);
});
