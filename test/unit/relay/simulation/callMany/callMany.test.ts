// The refusals of eth_callMany, and its errors for a node that is slow, fails or lacks a method, on
// a scripted node.

import assert from "node:assert/strict";
import { test } from "node:test";
import { UpstreamError } from "../../../../../shared/jsonrpc/client.ts";
import { RpcError } from "../../../../../shared/jsonrpc/errors.ts";
import { ManualClock } from "../../../../support/manualClock.ts";
import { NodeError } from "../../../../support/nodes.ts";
import {
	call,
	callsRequest,
	HASHES,
	receipt,
	signedRequest,
	simulatedCall,
	simulateV1,
	startCallMany,
} from "../../../../support/simulationFakes.ts";
import { signedTransaction, testAccount } from "../../../../support/txFactory.ts";

/** Kind, message and data of the RpcError that `promise` rejects with. */
async function refusal(promise: Promise<unknown>): Promise<[string, string, unknown]> {
	try {
		await promise;
	} catch (thrown) {
		assert.ok(thrown instanceof RpcError, String(thrown));
		return [thrown.kind, thrown.message, thrown.data];
	}
	throw new Error("it was answered");
}

const UNAVAILABLE = [
	"internal",
	"internal error: the node is unavailable, try again",
	{ reason: "node unavailable" },
];

test("a hash that is not shared is one and the same answer, and the node is not asked", async () => {
	const { node, shared, callMany } = startCallMany();
	const tx = signedTransaction();
	shared.set(tx.hash, tx);
	const txs = [tx.hash, `0x${"77".repeat(32)}`];
	const refused = await refusal(callMany.runTransactions(signedRequest({ txs })));
	assert.deepEqual(refused, ["rejected", "target transaction not found", undefined]);
	assert.deepEqual(node.asked, []);
});

test("a time before its block is refused by the client's name for it; without a number it is the next block", async () => {
	const { callMany } = startCallMany();
	const names = { stateBlock: "a", blockNumber: "b", timestamp: "options.timestamp" };
	for (const blockNumber of [101n, null]) {
		const refused = await refusal(callMany.runBundle(signedRequest({ blockNumber, timestamp: 1, names })));
		assert.equal(refused[0], "invalidParams");
		assert.match(refused[1], /^invalid params: options\.timestamp: expected \d+ at least$/);
	}
});

test("a node that serves no way to run them", async () => {
	const { node, callMany } = startCallMany();
	const signed = await refusal(callMany.runTransactions(signedRequest()));
	assert.deepEqual(signed, ["rejected", "node cannot run transactions on the state of block 100", undefined]);
	const calls = await refusal(callMany.runCalls(callsRequest()));
	assert.deepEqual(calls, ["rejected", "node cannot replay block 100", undefined]);
	const tried = ["eth_simulateV1", "debug_traceCall"];
	assert.deepEqual(
		tried.filter((method) => !node.asked.includes(method)),
		[],
	);
});

for (const [what, answer] of Object.entries({
	"can't be reached": () => {
		throw new UpstreamError("unreachable");
	},
	"fails within": () => {
		throw new NodeError(-32603, "secret of the upstream's");
	},
	"is over its limit": () => {
		throw new NodeError(-32005, "secret of the upstream's");
	},
})) {
	test(`a node that ${what}`, async () => {
		for (const method of ["debug_traceCall", "eth_simulateV1", "eth_getBlockByNumber"]) {
			const { callMany } = startCallMany({ [method]: answer });
			assert.deepEqual(await refusal(callMany.runTransactions(signedRequest())), UNAVAILABLE);
			assert.deepEqual(await refusal(callMany.runCalls(callsRequest())), UNAVAILABLE);
		}
	});
}

test("all questions of a request have five seconds together", async () => {
	const clock = new ManualClock();
	const { node, callMany } = startCallMany(
		{
			async debug_traceCall() {
				await clock.advance(2_600);
				return { gasUsed: "0x5208", output: "0x", pre: {}, post: {} };
			},
		},
		{},
		clock,
	);
	const txs = [0, 1, 2].map((i) => signedTransaction({ by: testAccount(i) }));
	assert.deepEqual(await refusal(callMany.runTransactions(signedRequest({ txs }))), UNAVAILABLE);
	// Two questions at a time: the third transaction's turn never comes.
	assert.equal(node.asked.filter((method) => method === "debug_traceCall").length, 4);
});

test("one client has its share, and leaves room for others", async () => {
	const { callMany } = startCallMany({
		eth_simulateV1: simulateV1((calls) => calls.map(() => simulatedCall("0x"))),
	});
	const ask = (client: string) => callMany.runTransactions(signedRequest({ client }));
	const first = [ask("a"), ask("a"), ask("a"), ask("a")];
	const refused = await refusal(ask("a"));
	assert.deepEqual(refused, ["limit", "limit exceeded: 4 simulations of one client at once", undefined]);
	assert.deepEqual(await ask("b"), [[{ value: "" }]]);
	await Promise.all(first);
	assert.deepEqual(await ask("a"), [[{ value: "" }]]);
});

/** The node's receipts of the block's two transactions, and the first one's simulated run. */
const TORN: Readonly<Record<string, readonly [receipts: unknown, first: object]>> = {
	"a receipt is missing": [[], {}],
	"a receipt is another's": [[receipt(HASHES[1]), receipt(HASHES[0])], {}],
	"it fails": [[receipt(HASHES[0])], { status: "0x0", error: { code: 3, message: "execution reverted" } }],
	"it uses other gas": [[receipt(HASHES[0])], { gasUsed: "0x5209" }],
};

for (const [what, [receipts, first]] of Object.entries(TORN)) {
	test(`a block is never replayed in part: ${what}`, async () => {
		const { callMany } = startCallMany({
			eth_getBlockReceipts: () => receipts,
			eth_simulateV1: simulateV1((calls) => calls.map((_, i) => simulatedCall("0x2a", i === 0 ? first : {}))),
		});
		const refused = await refusal(callMany.runCalls(callsRequest({ block: 50n, transactionIndex: 1 })));
		assert.deepEqual(refused, ["rejected", "node cannot replay block 50", undefined]);
	});
}

test("a chain's first block has no parent: one call goes by eth_call, several nowhere", async () => {
	const { node, callMany } = startCallMany({
		eth_simulateV1: simulateV1((calls) => calls.map(() => simulatedCall("0x2a"))),
		eth_call: () => "0x2A",
	});
	assert.deepEqual(await callMany.runCalls(callsRequest({ block: 0n })), [[{ value: "2a" }]]);
	assert.equal(node.calls.find(({ method }) => method === "eth_call")?.params[1], "0x0");
	const bundles = [{ transactions: [call(), call()], blockOverride: {} }];
	const refused = await refusal(callMany.runCalls(callsRequest({ block: 0n, bundles })));
	assert.equal(refused[1], "node cannot replay block 0");
});
