// Which way eth_callMany takes on which node, and how their answers are read: nodes of other kinds than the dev chain's,
// scripted. That the answers are right where a real node gives them is callMany.test.ts of the integration tests.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	call,
	callsRequest,
	GWEI,
	type SimulateParams,
	signedRequest,
	simulatedCall,
	simulateV1,
	startCallMany,
} from "../../../../support/callManyUnit.ts";
import { type Answer, NodeError } from "../../../../support/scriptedNode.ts";
import { signedTransaction, testAccount } from "../../../../support/txFactory.ts";

/** Erigon's or reth's: answers the identity precompile, and `results` to all else. */
function ownCallMany(prefix: "" | "0x", results: unknown): Answer {
	return ([bundles]) => {
		const [first] = bundles as { transactions: { to?: string; input: string }[] }[];
		const [only] = first?.transactions ?? [];
		if (only?.to !== `0x${"4".padStart(40, "0")}`) return results;
		return [[{ value: `${prefix}${only.input.slice(2)}` }]];
	};
}

for (const prefix of ["", "0x"] as const) {
	test(`the node's own eth_callMany is asked where it has it (its values begin "${prefix}")`, async () => {
		const answer = ownCallMany(prefix, [[{ value: `${prefix}00FF` }, { value: prefix }]]);
		const { node, callMany } = startCallMany({ eth_callMany: answer });
		const bundles = [{ transactions: [call(), call({ to: null, gas: null })], blockOverride: {} }];
		for (const _ of [1, 2]) {
			const results = await callMany.runCalls(callsRequest({ bundles, block: 60n }));
			assert.deepEqual(results, [[{ value: "00ff" }, { value: "" }]]);
		}
		const asked = node.calls.filter(({ method }) => method === "eth_callMany");
		// Once to see whether it is served.
		assert.equal(asked.length, 3);
		assert.deepEqual(asked[1]?.params[1], { blockNumber: "0x3c", transactionIndex: -1 });
		assert.ok(!node.asked.includes("debug_traceCall") && !node.asked.includes("eth_simulateV1"));
	});
}

/** What can't be translated exactly, or not be asked like that. */
const OTHERWISE: Readonly<Record<string, readonly [unknown, object]>> = {
	"a failure": [[[{ value: "0x", error: "execution reverted" }]], {}],
	"an error alone": [[[{ error: { message: "execution reverted", data: "0x" } }]], {}],
	"too few": [[[]], {}],
	"no hex": [[[{ value: "0xzz" }]], {}],
	"an override": [null, { bundles: [{ transactions: [call()], blockOverride: { timestamp: 7 } }] }],
	"two bundles": [null, { bundles: Array(2).fill({ transactions: [call()], blockOverride: {} }) }],
};

for (const [what, [results, fields]] of Object.entries(OTHERWISE)) {
	test(`past the node's own eth_callMany: ${what}`, async () => {
		const { node, callMany } = startCallMany({
			eth_callMany: ownCallMany("0x", results),
			debug_traceCall: () => ({ gasUsed: "0x5208", output: "0x2a" }),
			debug_traceBlockByNumber: () => [],
		});
		const traced = await callMany.runCalls(callsRequest(fields));
		assert.ok(traced.flat().every(({ value }) => value === "2a"));
		assert.ok(node.asked.includes("debug_traceCall"));
	});
}

test("signed transactions never go to the node's own eth_callMany", async () => {
	const { node, callMany } = startCallMany({
		eth_callMany: ownCallMany("", [[{ value: "" }]]),
		eth_simulateV1: simulateV1(() => [simulatedCall("0x01")]),
	});
	assert.deepEqual(await callMany.runTransactions(signedRequest()), [[{ value: "01" }]]);
	assert.ok(!node.asked.includes("eth_callMany"));
});

test("signed transactions on eth_simulateV1: one question, by a block's rules, and geth's words of failures", async () => {
	const data = `0x08c379a0${"20".padStart(64, "0")}${"2".padStart(64, "0")}${"6e6f".padEnd(64, "0")}`;
	const { node, callMany } = startCallMany({
		eth_simulateV1: simulateV1(() => [
			simulatedCall("0xAA"),
			simulatedCall("0x", { status: "0x0", error: { code: 3, message: "execution reverted: no", data } }),
			simulatedCall("0x", { status: "0x0", error: { code: -32015, message: "out of gas" } }),
		]),
	});
	const txs = [
		signedTransaction(),
		signedTransaction({ nonce: 1 }),
		signedTransaction({ nonce: 5 }),
		signedTransaction({ nonce: 2 }),
	];
	assert.deepEqual(await callMany.runTransactions(signedRequest({ txs })), [
		[
			{ value: "aa" },
			{ value: data.slice(2), error: "execution reverted: no" },
			{ value: "", error: "nonce too high: next nonce 2, tx nonce 5" },
			{ value: "", error: "out of gas" },
		],
	]);
	const asked = node.calls.filter(({ method }) => method === "eth_simulateV1");
	assert.equal(asked.length, 2);
	const [given, block] = (asked[1]?.params ?? []) as [SimulateParams, string];
	assert.deepEqual([given.validation, given.blockStateCalls[0]?.calls.length, block], [true, 3, "0x64"]);
});

test("the empty blocks with which geth fills a gap are none of ours", async () => {
	const own = simulateV1(() => [simulatedCall("0x07")]);
	const { callMany } = startCallMany({
		eth_simulateV1(params) {
			const blocks = own(params) as unknown[];
			return params[1] === "latest" ? blocks : [{ number: "0x65", calls: [] }, ...blocks];
		},
	});
	const results = await callMany.runTransactions(signedRequest({ blockNumber: 102n }));
	assert.deepEqual(results, [[{ value: "07" }]]);
});

test("only where a sender's funds are in doubt is what is before it run for that", async () => {
	const rich = testAccount(1);
	const poor = testAccount(2);
	const tx = (by: typeof rich, nonce: number, value: bigint) =>
		signedTransaction({ by, nonce, value, maxFeePerGas: GWEI, gasLimit: 100_000 });
	for (const [left, last] of [
		[2n * 10n ** 18n, { value: "" }],
		[
			5n,
			{
				value: "",
				error:
					"insufficient funds for gas * price + value: balance 5, tx cost 1000100000000000000, overshot 1000099999999999995",
			},
		],
	] as const) {
		const { node, callMany } = startCallMany({
			eth_simulateV1: simulateV1((calls) =>
				calls.map(({ input }) =>
					simulatedCall(input === "0x" ? "0x" : `0x${left.toString(16).padStart(64, "0")}`),
				),
			),
		});
		const txs = [tx(rich, 0, 1n), tx(poor, 0, 1n), tx(poor, 1, 10n ** 18n)];
		const [results] = await callMany.runTransactions(signedRequest({ txs }));
		assert.deepEqual(results, [{ value: "" }, { value: "" }, last]);
		// Whether it is served, the balance, and all of them.
		assert.equal(node.asked.filter((method) => method === "eth_simulateV1").length, 3);
	}
});

test("calls that can't be executed are found, and those between and behind them run", async () => {
	const bad = `0x${"bad".padStart(40, "0")}`;
	const { node, callMany } = startCallMany({
		eth_simulateV1: simulateV1((calls, { blockStateCalls }) => {
			if (blockStateCalls.some((block) => block.calls.some(({ from }) => from === bad))) {
				throw new NodeError(-38014, "secret of the upstream's");
			}
			return calls.map(({ input }) => simulatedCall(input ?? "0x"));
		}),
	});
	const bundles = [
		{ transactions: [call({ data: "0x01" }), call({ from: bad })], blockOverride: { blockNumber: 101 } },
		{ transactions: [], blockOverride: {} },
		{ transactions: [call({ from: bad }), call({ data: "0x02" })], blockOverride: {} },
	];
	const poor = { value: "", error: "insufficient funds for gas * price + value" };
	assert.deepEqual(await callMany.runCalls(callsRequest({ bundles })), [
		[{ value: "01" }, poor],
		[],
		[poor, { value: "02" }],
	]);
	assert.ok(node.asked.filter((method) => method === "eth_simulateV1").length < 12);
});

test("calls that may have all of a block's gas are traced; without traces room is made", async () => {
	const bundles = [{ transactions: [call({ gas: null }), call({ gas: null })], blockOverride: {} }];
	const limits: (string | undefined)[] = [];
	const eth_simulateV1 = simulateV1((calls, { blockStateCalls }) => {
		limits.push(blockStateCalls[0]?.blockOverrides.gasLimit);
		return calls.map(() => simulatedCall("0x51"));
	});
	const changes = { pre: {}, post: {} };
	const debug_traceCall: Answer = ([, , config]) =>
		(config as { tracer: string }).tracer === "callTracer" ? { gasUsed: "0x5208", output: "0x7c" } : changes;
	const traced = startCallMany({ eth_simulateV1, debug_traceCall });
	assert.deepEqual(await traced.callMany.runCalls(callsRequest({ bundles })), [
		[{ value: "7c" }, { value: "7c" }],
	]);
	assert.deepEqual(limits, []);
	const simulated = startCallMany({ eth_simulateV1 });
	const results = await simulated.callMany.runCalls(callsRequest({ bundles }));
	assert.deepEqual(results, [[{ value: "51" }, { value: "51" }]]);
	assert.deepEqual(limits, [`0x${(60_000_000).toString(16)}`]);
});

test("blocks of further bundles, and what stays overridden", async () => {
	const seen: unknown[] = [];
	const { callMany } = startCallMany({
		debug_traceCall([, , config]) {
			const { blockOverrides } = config as { blockOverrides: Record<string, string> };
			const { number, time, gasLimit, feeRecipient, baseFeePerGas, prevRandao } = blockOverrides;
			seen.push([
				Number(number),
				Number(time) - 1_700_001_200,
				gasLimit,
				feeRecipient,
				baseFeePerGas,
				prevRandao,
			]);
			return { gasUsed: "0x5208", output: "0x", pre: {}, post: {} };
		},
	});
	const coinbase = `0x${"c0".repeat(20)}`;
	const bundles = [
		{},
		{},
		{ blockNumber: 200, coinbase },
		{},
		{ timestamp: 5, gasLimit: 7n, baseFee: 0n },
	].map((blockOverride) => ({ transactions: [call({ gas: 1n })], blockOverride }));
	await callMany.runCalls(callsRequest({ bundles }));
	const randao = `0x${"bb".repeat(32)}`;
	const miner = `0x${"aa".repeat(20)}`;
	const rest = ["0x1c9c380", miner, "0x3b9aca00", randao];
	const moved = ["0x1c9c380", coinbase, "0x3b9aca00", randao];
	assert.deepEqual(
		// Two questions for each but the last.
		seen.filter((_, i) => i % 2 === 0),
		[
			[100, 0, ...rest],
			[101, 12, ...rest],
			[200, 24, ...moved],
			[201, 36, ...moved],
			[202, 5 - 1_700_001_200, "0x7", coinbase, "0x0", randao],
		],
	);
});

test("a coinbase that nobody has heard of holds some ether, another amount each time", async () => {
	const given = new Set<bigint | null>();
	for (const fixedFeeRecipient of [true, false, false]) {
		const { node, callMany } = startCallMany(
			{ eth_simulateV1: simulateV1(() => [simulatedCall("0x")]) },
			{ fixedFeeRecipient },
		);
		await callMany.runTransactions(signedRequest());
		const [, balance] = new RegExp(`"0x${"fe".repeat(20)}":{"balance":"(0x[0-9a-f]+)"}`).exec(
			JSON.stringify(node.calls.at(-1)),
		) ?? [null, null];
		assert.equal(balance === null, fixedFeeRecipient);
		if (balance !== null) assert.ok(BigInt(balance) >= 10n ** 16n && BigInt(balance) < 101n * 10n ** 18n);
		given.add(balance === null ? null : BigInt(balance));
	}
	assert.equal(given.size, 3);
});
