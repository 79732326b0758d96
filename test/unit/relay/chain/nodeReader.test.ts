// Reads of the node: batches split into sizes it accepts, what is retried, what is not.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { NodeReader } from "../../../../relay/chain/nodeReader.ts";
import { systemClock } from "../../../../shared/clock.ts";
import { UpstreamError } from "../../../../shared/jsonrpc/client.ts";
import { type Logger, silentLogger } from "../../../../shared/log.ts";
import type { NodeFault } from "../../../support/nodes.ts";
import { startProxiedChain } from "./nodeFixture.ts";

const { chain, proxy, client } = await startProxiedChain();
let warned: string[] = [];
afterEach(() => {
	warned = [];
});
const log: Logger = { ...silentLogger, warn: (message) => warned.push(message) };
const reader = () => new NodeReader({ timeoutMs: 5_000 }, { client, clock: systemClock, log });
/** Calls whose answers differ, so that their order is seen. */
const calls = (count: number) =>
	Array.from({ length: count }, (_, i) => ({ method: "web3_sha3", params: [`0x${hex(i)}`] }));
const hex = (i: number) => i.toString(16).padStart(8, "0");
const expectOrder = async (answers: readonly { ok: boolean; result?: unknown }[], count: number) => {
	const own = await chain.batch(calls(count));
	assert.deepEqual(
		answers.map((answer) => answer.result),
		own.map((answer) => (answer.ok ? answer.result : null)),
	);
	assert.equal(new Set(answers.map((answer) => answer.result)).size, count);
};

test("a batch goes out in one request as long as it fits, in pieces beyond, and not at all where it is empty", async () => {
	assert.deepEqual(await reader().batch([]), []);
	assert.equal(proxy.requests, 0);
	await expectOrder(await reader().batch(calls(300)), 300);
	assert.equal(proxy.requests, 1);
	proxy.reset();
	await expectOrder(await reader().batch(calls(301)), 301);
	assert.equal(proxy.requests, 2);
});

for (const how of ["status", "oneError", "firstOnly"] as const) {
	for (const limit of [1, 10]) {
		test(`a node that takes ${limit} calls at most (${how}) is noticed, logged once, and remembered`, async () => {
			proxy.setFault({ kind: "batchLimit", calls: limit, how });
			const node = reader();
			await expectOrder(await node.batch(calls(60)), 60);
			assert.deepEqual(warned, ["node accepts only small batches"]);
			proxy.reset();
			warned = [];
			await expectOrder(await node.batch(calls(40)), 40);
			assert.deepEqual(warned, []);
			// Remembered: nothing is refused any more, so every call is seen once.
			assert.equal(proxy.calls().length, 40);
			assert.ok(proxy.calls().every(({ batch }) => batch <= limit));
		});
	}
}

test("an outage is not taken for a small limit, and costs few requests", async () => {
	const node = reader();
	for (const fault of [
		{ kind: "html", status: 200 },
		{ kind: "html", status: 400 },
		{ kind: "error", code: -32005, message: "quota", status: 429 },
		{ kind: "truncated" },
	] satisfies NodeFault[]) {
		proxy.reset();
		proxy.setFault(fault);
		const outcome = await node.batch(calls(300)).catch((thrown: unknown) => thrown);
		// An error to each call is a verdict on each; the rest are faults.
		if (fault.kind !== "error") assert.ok(outcome instanceof UpstreamError);
		assert.ok(proxy.requests <= 10, `${proxy.requests} requests`);
	}
	assert.deepEqual(warned, []);
	proxy.setFault(null);
	proxy.reset();
	await node.batch(calls(300));
	assert.equal(proxy.requests, 1);
});

test("what a closed connection swallowed once is sent a second time", async () => {
	proxy.setFault({ kind: "destroy" }, { times: 1 });
	const answer = await reader().call({ method: "eth_chainId", params: [] });
	assert.deepEqual(answer, { ok: true, result: "0x7a69" });
	proxy.setFault({ kind: "destroy" }, { times: 1 });
	await expectOrder(await reader().batch(calls(30)), 30);
});
