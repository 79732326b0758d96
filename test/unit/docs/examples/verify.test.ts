// The verdicts on receipts, as a table of what a receipt says and what a node says of the chain.
// test/integration/auction/receipts.test.ts has those of a real relay on a real chain.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { Wallet } from "ethers";
import { type Accepted, type Ended, type Receipt, verify } from "../../../../docs/examples/verify.ts";
import { signTyped } from "../../../../shared/ethereum/typedData.ts";

const KEY = `0x${"5a".repeat(32)}`;
const SIGNER = new Wallet(KEY).address.toLowerCase();
const CHAIN = 31_337;
const [HASH, BLOCK, OTHER_BLOCK] = ["a1", "b1", "b2"].map((byte) => `0x${byte.repeat(32)}`) as [
	string,
	string,
	string,
];
const NO_BLOCK = `0x${"00".repeat(32)}`;
const [BUILDER, USER, OTHER] = ["c1", "d1", "d2"].map((byte) => `0x${byte.repeat(20)}`) as [
	string,
	string,
	string,
];

const COMMON = [
	{ name: "chainId", type: "uint256" },
	{ name: "signer", type: "address" },
	{ name: "transaction", type: "bytes32" },
];
const strings = (...names: readonly string[]) => names.map((name) => ({ name, type: "string" }));
const numbers = (...names: readonly string[]) => names.map((name) => ({ name, type: "uint256" }));
const ACCEPTED = {
	Accepted: [
		...[...COMMON, ...strings("acceptedAt", "path"), { name: "mayBeDisclosed", type: "bool" }],
		...[...numbers("refundPercent"), { name: "refundRecipient", type: "address" }],
		{ name: "builders", type: "string[]" },
	],
};
const ENDED = {
	Ended: [
		...[...COMMON, ...strings("stage"), ...numbers("block"), { name: "blockHash", type: "bytes32" }],
		...[{ name: "refundRecipient", type: "address" }, ...numbers("owed", "paid")],
		{ name: "cancels", type: "AcknowledgedCancel[]" },
	],
	AcknowledgedCancel: [
		...[...strings("at"), ...numbers("block"), ...strings("by")],
		{ name: "builders", type: "string[]" },
	],
};

const accepted: Accepted = {
	...{ chainId: CHAIN, signer: SIGNER, transaction: HASH, acceptedAt: "2026-11-23T09:00:00.000Z" },
	...{ path: "fast", mayBeDisclosed: true, refundPercent: 90, refundRecipient: USER, builders: ["dev"] },
};
const included: Ended = {
	...{ chainId: CHAIN, signer: SIGNER, transaction: HASH, stage: "INCLUDED", block: 7, blockHash: BLOCK },
	...{ refundRecipient: USER, owed: "90", paid: "90", cancels: [] },
};
const cancelled = (block: number, by = "sender"): Partial<Ended> => ({
	cancels: [{ at: "2026-11-23T09:00:01.000Z", block, by, builders: ["dev"] }],
});
const unmined = (stage: string): Partial<Ended> => ({
	...{ stage, block: 6, blockHash: NO_BLOCK, owed: "0", paid: "0" },
});
const NO_REFUND: Partial<Ended> = { owed: "0", paid: "0" };

function receiptOf(end: Partial<Ended> | null, start: Partial<Accepted> = {}): Receipt {
	const sign = (types: typeof ACCEPTED | typeof ENDED, statement: object) =>
		signTyped(BigInt(CHAIN), { ...types }, { ...statement }, KEY);
	const [first, last] = [{ ...accepted, ...start }, end && { ...included, ...end }];
	return {
		accepted: { statement: first, signature: sign(ACCEPTED, first) },
		ended: last && { statement: last, signature: sign(ENDED, last) },
	};
}

interface Chain {
	readonly chainId?: number;
	/** The block that contains the transaction; null: none. */
	readonly blockHash?: string | null;
	readonly status?: string;
	/** Wei that the block's coinbase sends to the user behind the transaction. */
	readonly transfers?: readonly number[];
}

let chain: Chain = {};
const node = createServer(async (request, response) => {
	const { method } = (await json(request)) as { method: string };
	const { chainId = CHAIN, blockHash = BLOCK, status = "0x1", transfers = [90] } = chain;
	const mined = { blockHash, blockNumber: "0x7", transactionIndex: "0x1", status };
	const transfer = (from: string, value: number) => ({ from, to: USER, value: `0x${value.toString(16)}` });
	const results: Readonly<Record<string, unknown>> = {
		eth_chainId: `0x${chainId.toString(16)}`,
		eth_getTransactionReceipt: blockHash === null ? null : mined,
		eth_getBlockByHash: {
			miner: BUILDER,
			// A transfer before the transaction, and one by somebody else, are no refund.
			transactions: [
				...[transfer(BUILDER, 1_000), { from: USER, to: null, value: "0x0" }, transfer(OTHER, 1_000)],
				...transfers.map((value) => transfer(BUILDER, value)),
			],
		},
	};
	response.end(JSON.stringify({ jsonrpc: "2.0", id: 1, result: results[method] }));
});
let rpc: string;
before(async () => {
	await new Promise<void>((listening) => void node.listen(0, "127.0.0.1", listening));
	rpc = `http://127.0.0.1:${(node.address() as AddressInfo).port}`;
});
after(() => node.close());

const BY_BUILDER = `the builder of block 7 (${BUILDER})`;
const [KEPT, UNKNOWN] = ["kept", "can't tell"] as const;

const TABLE: readonly (readonly [
	name: string,
	receipt: Receipt,
	chain: Chain,
	verdict: string,
	why: RegExp,
	by?: string,
])[] = [
	["mined, with its refund", receiptOf({}), {}, KEPT, /^90 wei of refund were paid/],
	["mined, with more than its refund", receiptOf({ paid: "95" }), { transfers: [95] }, KEPT, /^95 wei/],
	["its refund in a transfer with others", receiptOf({}), { transfers: [200] }, KEPT, /^90 wei/],
	["its refund in two transfers", receiptOf({}), { transfers: [40, 50] }, KEPT, /^90 wei/],
	["mined without a bid", receiptOf(NO_REFUND), { transfers: [] }, KEPT, /no refund was owed/],
	[
		"reverted, as it says",
		receiptOf({ ...NO_REFUND, stage: "REVERTED" }),
		{ status: "0x0" },
		KEPT,
		/no refund/,
	],
	[
		"half of the refund",
		receiptOf({ paid: "45" }),
		{ transfers: [45] },
		"broken",
		/^90 .* owed, 45 /,
		BY_BUILDER,
	],
	["no refund", receiptOf({ paid: "0" }), { transfers: [] }, "broken", /^90 .* owed, 0 /, BY_BUILDER],
	["a payment that is not there", receiptOf({}), { transfers: [89] }, "broken", /block has 89$/, "the relay"],
	["a revert that it hides", receiptOf({}), { status: "0x0" }, "broken", /says INCLUDED/, "the relay"],
	[
		"mined after a cancel",
		receiptOf(cancelled(6)),
		{},
		"broken",
		/cancel was acknowledged at block 6/,
		BY_BUILDER,
	],
	["a cancel of what was in a block", receiptOf(cancelled(7)), {}, "broken", /at block 7/],
	[
		"mined after a cancel by address",
		receiptOf(cancelled(6, "address")),
		{},
		"broken",
		/its cancel/,
		BY_BUILDER,
	],
	[
		"an old receipt of one that was cancelled by address, and may have been submitted again",
		receiptOf({ ...unmined("CANCELLED"), ...cancelled(6, "address") }),
		...([{}, UNKNOWN, /get its receipt again/] as const),
	],
	[
		"mined though replaced",
		receiptOf(cancelled(6, "replacement")),
		{},
		"broken",
		/replacement was/,
		BY_BUILDER,
	],
	[
		"an old receipt of a cancelled one that is mined",
		receiptOf({ ...unmined("CANCELLED"), ...cancelled(6) }),
		...([{}, "broken", /though its cancel/, BY_BUILDER] as const),
	],
	[
		"cancelled, not mined",
		receiptOf({ ...unmined("CANCELLED"), ...cancelled(6) }),
		{ blockHash: null },
		KEPT,
		/CANCELLED/,
	],
	["expired", receiptOf(unmined("EXPIRED")), { blockHash: null }, KEPT, /ended as EXPIRED/],
	["expired, then mined", receiptOf(unmined("EXPIRED")), {}, UNKNOWN, /get its receipt again/],
	["pending", receiptOf(null), { blockHash: null }, UNKNOWN, /has not ended/],
	["mined since", receiptOf(null), {}, UNKNOWN, /get its receipt again, with how it ended/],
	["in a block that is gone", receiptOf({}), { blockHash: null }, UNKNOWN, /does not have its block/],
	["in another block now", receiptOf({}), { blockHash: OTHER_BLOCK }, UNKNOWN, /get its receipt again/],
	[
		"another recipient than promised",
		receiptOf({}, { refundRecipient: OTHER }),
		{},
		UNKNOWN,
		/the refund went to/,
	],
	["another chain", receiptOf({}), { chainId: 1 }, UNKNOWN, /chain 1, the receipt of chain 31337/],
];

for (const [name, receipt, of, verdict, why, by] of TABLE) {
	test(`${name}: ${verdict}${by === undefined ? "" : ` by ${by}`}`, async () => {
		chain = of;
		const found = await verify(receipt, { rpc, signer: SIGNER });
		assert.deepEqual([found.verdict, found.by, why.test(found.why)], [verdict, by, true], found.why);
	});
}

const { accepted: first, ended: last } = receiptOf({});
const changed = <S extends object>(signed: { statement: S; signature: string } | null, more: Partial<S>) =>
	signed && { ...signed, statement: { ...signed.statement, ...more } };
const CHANGED = /changed after it was signed/;
const NONE = /the file has no receipt/;

const UNPROVEN: readonly (readonly [name: string, given: unknown, why: RegExp])[] = [
	["another refund", { accepted: first, ended: changed(last, { owed: "1" }) }, CHANGED],
	[
		"no cancels",
		{ accepted: first, ended: changed(receiptOf(cancelled(6)).ended, { cancels: [] }) },
		CHANGED,
	],
	["another recipient", { accepted: changed(first, { refundRecipient: OTHER }), ended: last }, CHANGED],
	["another chain", { accepted: changed(first, { chainId: 1 }), ended: null }, CHANGED],
	["a field of another type", { accepted: changed(first, { builders: [1 as never] }), ended: null }, CHANGED],
	["another signer", { accepted: changed(first, { signer: OTHER }), ended: null }, CHANGED],
	["half a signature", { accepted: { ...first, signature: "0x12" }, ended: null }, CHANGED],
	["two transactions", { accepted: first, ended: receiptOf({ transaction: BLOCK }).ended }, /different/],
	["an error", { jsonrpc: "2.0", id: 1, error: { code: -32_000, message: "transaction not found" } }, NONE],
	...[null, "", 1, [], {}, { accepted: first }].map((given) => [JSON.stringify(given), given, NONE] as const),
];

for (const [name, given, expected] of UNPROVEN) {
	test(`${name}: nothing is proven`, async () => {
		chain = {};
		const { verdict, why } = await verify(given, { rpc, signer: SIGNER });
		assert.deepEqual([verdict, expected.test(why)], [UNKNOWN, true], why);
	});
}

test("what is missing is named", async () => {
	const receipt = receiptOf({});
	for (const [options, why] of [
		[{ signer: SIGNER }, /add --rpc/],
		[{ rpc, signer: OTHER }, new RegExp(`^it is signed by ${SIGNER}, not by ${OTHER}$`)],
		[{ rpc: "http://127.0.0.1:1", signer: SIGNER }, /^the node at --rpc did not answer/],
	] as const) {
		const found = await verify(receipt, options);
		assert.deepEqual([found.verdict, why.test(found.why)], [UNKNOWN, true], found.why);
	}
	chain = {};
	assert.equal((await verify({ jsonrpc: "2.0", id: 1, result: receipt }, { rpc })).verdict, KEPT);
});
