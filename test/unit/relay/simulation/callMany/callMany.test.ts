// What eth_callMany refuses, and what it says where the node is slow, out, or does not have it: before a scripted node,
// on a clock that is moved by hand.

import assert from "node:assert/strict";
import { test } from "node:test";
import { UpstreamError } from "../../../../../shared/jsonrpc/client.ts";
import { RpcError } from "../../../../../shared/jsonrpc/errors.ts";
import {
	callsRequest,
	HASHES,
	signedRequest,
	simulatedCall,
	simulateV1,
	startCallMany,
} from "../../../../support/callManyUnit.ts";
import { ManualClock } from "../../../../support/manualClock.ts";
import { NodeError } from "../../../../support/scriptedNode.ts";
import { signedTransaction, testAccount } from "../../../../support/txFactory.ts";

/** The kind and words of the RpcError that `promise` rejects with. */
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
	"internal error: the node can't be asked now, try again",
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

test("a block that is not 1 to 30 above the state's", async () => {
	const { callMany } = startCallMany();
	const expected = "invalid params: bundle.blockNumber: expected 1 to 30 above the state block, which is 100";
	for (const blockNumber of [0n, 99n, 100n, 131n, 2n ** 200n]) {
		const refused = await refusal(callMany.runTransactions(signedRequest({ blockNumber })));
		assert.deepEqual(refused, ["invalidParams", expected, undefined]);
	}
	const below = signedRequest({ stateBlock: 90n, blockNumber: 121n });
	assert.match((await refusal(callMany.runTransactions(below)))[1], /which is 90$/);
});

test("blocks that the node does not have", async () => {
	const { callMany } = startCallMany();
	const [, state] = await refusal(callMany.runTransactions(signedRequest({ stateBlock: 101n })));
	assert.equal(state, "invalid params: bundle.stateBlockNumber: expected a block that the node has");
	const [, block] = await refusal(callMany.runCalls(callsRequest({ block: 101n })));
	assert.equal(block, "invalid params: context.blockNumber: expected a block that the node has");
});

test("an index beyond the block", async () => {
	const { callMany } = startCallMany();
	const [kind, message] = await refusal(callMany.runCalls(callsRequest({ transactionIndex: 3 })));
	assert.equal(kind, "invalidParams");
	assert.match(message, /^invalid params: context.transactionIndex: expected a number of 2 at most/);
});

test("a node that serves no way to run them", async () => {
	const { node, callMany } = startCallMany();
	const signed = await refusal(callMany.runTransactions(signedRequest()));
	assert.deepEqual(signed, ["rejected", "node cannot run transactions on the state of block 100", undefined]);
	const calls = await refusal(callMany.runCalls(callsRequest()));
	assert.deepEqual(calls, ["rejected", "node cannot replay block 100", undefined]);
	const tried = ["eth_simulateV1", "debug_traceCall", "eth_callMany"];
	assert.deepEqual(
		tried.filter((method) => !node.asked.includes(method)),
		[],
	);
});

test("a node that does not have the state", async () => {
	const missing = () => {
		throw new NodeError(-32000, "missing trie node 1234 (path )");
	};
	const { callMany } = startCallMany({ eth_getBalance: missing, debug_traceCall: missing });
	const [, signed] = await refusal(callMany.runTransactions(signedRequest()));
	assert.equal(signed, "node cannot run transactions on the state of block 100");
	const [, calls] = await refusal(callMany.runCalls(callsRequest({ block: 7n })));
	assert.equal(calls, "node cannot replay block 7");
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
		const { callMany } = startCallMany({ debug_traceCall: answer });
		assert.deepEqual(await refusal(callMany.runTransactions(signedRequest())), UNAVAILABLE);
		assert.deepEqual(await refusal(callMany.runCalls(callsRequest())), UNAVAILABLE);
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

test("one more than may be under way is refused, and there is room again behind them", async () => {
	let release = () => {};
	const held = new Promise<void>((resolve) => {
		release = resolve;
	});
	const { callMany } = startCallMany(
		{
			async eth_simulateV1(params) {
				await held;
				return simulateV1(() => [simulatedCall("0x")])(params);
			},
		},
		{ maxAtOnce: 2 },
	);
	const first = [callMany.runTransactions(signedRequest()), callMany.runTransactions(signedRequest())];
	const refused = await refusal(callMany.runTransactions(signedRequest()));
	assert.deepEqual(refused, ["limit", "limit exceeded: too many simulations at once", undefined]);
	release();
	assert.deepEqual(await Promise.all(first), [[[{ value: "" }]], [[{ value: "" }]]]);
	assert.deepEqual(await callMany.runTransactions(signedRequest()), [[{ value: "" }]]);
});

/** Traces of the block's two transactions, as they should not be. */
const TORN: Readonly<Record<string, unknown>> = {
	"one of them is missing": [{ result: { pre: {}, post: {} }, txHash: HASHES[0] }],
	"one is another's": [
		{ result: { pre: {}, post: {} }, txHash: HASHES[0] },
		{ result: { pre: {}, post: {} }, txHash: HASHES[0] },
	],
	"one failed": [
		{ result: { pre: {}, post: {} }, txHash: HASHES[0] },
		{ error: "secret", txHash: HASHES[1] },
	],
	"one is no diff": [
		{ result: {}, txHash: HASHES[0] },
		{ result: { pre: {}, post: {} }, txHash: HASHES[1] },
	],
	"they are none": null,
};

for (const [what, traces] of Object.entries(TORN)) {
	test(`a block is never replayed in part: ${what}`, async () => {
		const { node, callMany } = startCallMany({ debug_traceBlockByNumber: () => traces });
		const refused = await refusal(callMany.runCalls(callsRequest({ block: 50n, transactionIndex: 1 })));
		assert.deepEqual(refused, ["rejected", "node cannot replay block 50", undefined]);
		assert.ok(!node.asked.includes("debug_traceCall"));
	});
}

test("a chain's first block has no parent, and needs none", async () => {
	const { node, callMany } = startCallMany({
		debug_traceCall: () => ({ gasUsed: "0x5208", output: "0x2A" }),
	});
	assert.deepEqual(await callMany.runCalls(callsRequest({ block: 0n })), [[{ value: "2a" }]]);
	const traced = node.calls.find(({ method }) => method === "debug_traceCall");
	assert.equal(traced?.params[1], "0x0");
});
