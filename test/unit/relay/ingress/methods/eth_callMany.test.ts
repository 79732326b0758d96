// Tests eth_callMany's parameters on a fake port: both shapes are read, defaults filled in, what is
// wrong refused by name.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallMany, CallsRequest, TransactionsRequest } from "../../../../../relay/domain/callMany.ts";
import { RpcError } from "../../../../../shared/jsonrpc/errors.ts";
import { askMethod } from "../../../../support/callManyFixture.ts";
import { rawTransaction } from "../../../../support/txFactory.ts";

const RAW = `0x${rawTransaction().toString("hex")}`;
const HASH = `0x${"Ab".repeat(32)}`;
const TO = `0x${"Cd".repeat(20)}`;

function start() {
	const asked: (TransactionsRequest | CallsRequest)[] = [];
	const remember = async (request: TransactionsRequest | CallsRequest) => {
		asked.push(request);
		return [[{ value: "01" }]];
	};
	const runBundle: CallMany["runBundle"] = () => Promise.reject(new Error("not asked for here"));
	const callMany: CallMany = { runTransactions: remember, runCalls: remember, runBundle };
	return { asked, ask: (...params: unknown[]) => askMethod(callMany, params) };
}

const SIGNED = { txs: [RAW, HASH], blockNumber: "0x10", stateBlockNumber: "latest" };

const CALLS = [{ transactions: [{ to: TO }] }];

/** Parameters, and how the refusal begins. */
const REFUSED: readonly (readonly [readonly unknown[], string])[] = [
	[[], "bundle: "],
	[[RAW], "bundle: expected an object of signed transactions, or an array of 1 to 16 bundles of calls"],
	[[{ ...SIGNED, txs: Array(101).fill(HASH) }], "bundle.txs: expected 1 to 100 transactions"],
	[[{ ...SIGNED, txs: [RAW, 7] }], "bundle.txs[1]: expected a signed transaction, or the hash"],
	[[{ ...SIGNED, txs: [RAW, "0x"] }], "bundle.txs[1]: rlp: empty input"],
	[[{ ...SIGNED, txs: [`${RAW}00`] }], "bundle.txs[0]: rlp: "],
	[[{ ...SIGNED, blockNumber: "latest" }], "bundle.blockNumber: expected a 0x hex number"],
	[[{ ...SIGNED, timestamp: "0x1" }], "bundle.timestamp: expected whole seconds"],
	[[SIGNED, { blockNumber: "0x1" }], "context: expected none with signed transactions"],
	[
		[Array(17).fill({ transactions: [] })],
		"bundle: expected an object of signed transactions, or an array of 1 to 16 bundles of calls",
	],
	[[Array(2).fill({ transactions: Array(51).fill({}) })], "bundle: expected 100 calls at most"],
	[
		[[{ transactions: [], blockOverrides: {} }]],
		"bundle[0].blockOverrides: unknown key: did you mean blockOverride?",
	],
	[[[{ transactions: [], blockOverride: { number: "0x1" } }]], "bundle[0].blockOverride.number: unknown key"],
	[
		[[{ transactions: [], blockOverride: { blockNumber: "0x20000000000000" } }]],
		"bundle[0].blockOverride.blockNumber: expected a number below 2^53",
	],
	[[[{ transactions: [{ to: "0x1" }] }]], "bundle[0].transactions[0].to: expected an address"],
	[
		[[{ transactions: [{ gas: `0x1${"0".repeat(16)}` }] }]],
		"bundle[0].transactions[0].gas: expected a number of 64",
	],
	[
		[[{ transactions: [{ data: "0x01", input: "0x02" }] }]],
		"bundle[0].transactions[0]: expected data and input",
	],
	[
		[[{ transactions: [{ gasPrice: "0x1", maxFeePerGas: "0x1" }] }]],
		"bundle[0].transactions[0]: expected gasPrice",
	],
	[[CALLS, { transactionIndex: -2 }], "context.transactionIndex: expected a number of transactions"],
	[
		[{ ...SIGNED, stateBlocknumber: "0x1" }],
		"bundle.stateBlocknumber: unknown key: did you mean stateBlockNumber?",
	],
	[
		[{ txs: [RAW], blocknumber: "0x10", stateBlockNumber: "latest" }],
		"bundle.blocknumber: unknown key: did you mean blockNumber?",
	],
	[
		[{ txs: [RAW], blockNumber: "0x10", stateBlocknumber: "latest" }],
		"bundle.stateBlocknumber: unknown key: did you mean stateBlockNumber?",
	],
	[[[{ transaction: [] }]], "bundle[0].transaction: unknown key: did you mean transactions?"],
	[[[{}]], "bundle[0].transactions: expected 100 calls at most"],
	[[{ ...SIGNED, minTimestamp: 7 }], "bundle.minTimestamp: expected none, or 0"],
	[[CALLS, { index: 5 }], "context.index: unknown key"],
];

for (const [params, message] of REFUSED) {
	test(`refused: ${message} (${JSON.stringify(params).length} characters)`, async () => {
		const { asked, ask } = start();
		await assert.rejects(
			() => ask(...params),
			(thrown) => {
				assert.ok(thrown instanceof RpcError);
				assert.equal(thrown.kind, "invalidParams");
				assert.ok(thrown.message.startsWith(`invalid params: ${message}`), thrown.message);
				return true;
			},
		);
		assert.deepEqual(asked, []);
	});
}
