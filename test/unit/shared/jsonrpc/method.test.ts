// Methods: checked parameters and error messages, what each schema accepts and refuses, and the
// timeout and errors of eth_sendRawTransactionSync.

import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { RpcError } from "../../../../shared/jsonrpc/errors.ts";
import {
	address,
	blockNumberOrTag,
	blockReference,
	checkParam,
	defineMethod,
	exactObject,
	hash,
	hexData,
	quantity,
	rawBytes,
} from "../../../../shared/jsonrpc/method.ts";
import { neverMined, notSoon, syncTimeoutMs, timedOut } from "../../../../shared/syncWaits.ts";

const HASH = `0x${"aB".repeat(32)}`;
const ADDRESS = `0x${"Cd".repeat(20)}`;
const define = defineMethod<{ suffix: string }, { path: string }>();

const method = define({
	name: "test_method",
	summary: "Answers what it got.",
	params: [
		{ name: "hash", schema: hash },
		{
			name: "call",
			schema: z.object({ to: address, value: quantity.optional(), tags: z.array(hash).optional() }),
		},
		{ name: "block", schema: blockReference.optional() },
		{ name: "mode", schema: z.enum(["a", "b"]).default("a") },
	],
	result: z.unknown(),
	handle: ([wanted, call, block, mode], context, needs) => [
		wanted,
		call,
		block,
		mode,
		context.path,
		needs.suffix,
	],
});

function invoke(...params: unknown[]): unknown {
	return method.invoke(params, { path: "/fast" }, { suffix: "!" });
}

function refusal(...params: unknown[]): string {
	try {
		invoke(...params);
	} catch (thrown) {
		assert.ok(thrown instanceof RpcError);
		assert.equal(thrown.code, -32602);
		return thrown.message;
	}
	return "accepted";
}

test("the handler gets parameters checked, typed and in lower case", () => {
	const value = invoke(HASH, { to: ADDRESS, value: "0XfF" }, "0X1F", "b");
	assert.deepEqual(value, [
		HASH.toLowerCase(),
		{ to: ADDRESS.toLowerCase(), value: 255n },
		"0x1f",
		"b",
		"/fast",
		"!",
	]);
});

test("optional parameters may be left out or null", () => {
	for (const tail of [[], [null], [undefined], [null, null]]) {
		const value = invoke(HASH, { to: ADDRESS }, ...tail) as unknown[];
		assert.deepEqual(value.slice(2, 4), [undefined, "a"], JSON.stringify(tail));
	}
});

test("an error names the parameter and what was expected, and never quotes the value", () => {
	const call = { to: ADDRESS };
	const hashExpected = "expected a hash of 32 bytes as 0x hex";
	const blockExpected =
		"expected a block number as 0x hex, or one of latest, pending, safe, finalized, earliest, or an object with blockHash or blockNumber";
	const rows: [unknown[], string][] = [
		[[], `hash: ${hashExpected}`],
		[[null, call], `hash: ${hashExpected}`],
		[[HASH], "call: expected object"],
		[[HASH, "0x"], "call: expected object"],
		[[HASH, {}], "call.to: expected an address of 20 bytes as 0x hex"],
		[[HASH, { to: HASH }], "call.to: expected an address of 20 bytes as 0x hex"],
		[[HASH, { to: ADDRESS, value: "0x01" }], "call.value: expected a 0x hex number without leading zeros"],
		[[HASH, { to: ADDRESS, tags: [HASH, 1] }], `call.tags[1]: ${hashExpected}`],
		[[HASH, call, "newest"], `block: ${blockExpected}`],
		[[HASH, call, { blockHash: 1 }], `block: ${blockExpected}`],
		[[HASH, call, "latest", "c"], 'mode: expected one of "a"|"b"'],
		[[HASH, call, "latest", "a", 1], "expected at most 4 (hash, call, block, mode)"],
	];
	for (const [params, message] of rows) assert.equal(refusal(...params), `invalid params: ${message}`);
});

const HEX = "ab".repeat(32);

const SCHEMAS: readonly (readonly [
	schema: z.ZodType,
	takes: readonly (readonly [given: unknown, made: unknown])[],
	refuses: readonly unknown[],
])[] = [
	[hash, [[`0X${HEX.toUpperCase()}`, `0x${HEX}`]], [`0x${HEX}a`, HEX, `0x${HEX}\n`, 1, null, {}, []]],
	[address, [[`0x${"Ef".repeat(20)}`, `0x${"ef".repeat(20)}`]], [`0x${"ef".repeat(19)}`, "vitalik.eth", ""]],
	[
		hexData,
		[
			["0x", "0x"],
			["0X0F", "0x0f"],
		],
		["", "0x0", "0f", "0x0g", 0],
	],
	[quantity, [["0xFf", 255n]], ["0x", "0x01", "1", 1, 1.5]],
	[
		rawBytes("a transaction"),
		[["0x02F8", Buffer.from([2, 0xf8])]],
		["02f8", "0x2", "0xzz", "", 5, "0x0\u0130"],
	],
	[
		blockNumberOrTag,
		[
			["latest", "latest"],
			["0x10", 16n],
		],
		["Latest", "newest", "", "16", 16, `0x${HEX}00`],
	],
	[
		blockReference,
		[
			["finalized", "finalized"],
			["0XAB", "0xab"],
			[
				{ blockHash: `0x${HEX.toUpperCase()}`, requireCanonical: true },
				{ blockHash: `0x${HEX}`, requireCanonical: true },
			],
			[{ blockNumber: "0xA" }, { blockNumber: "0xa" }],
		],
		[{}, { blockHash: "0x" }, { blockNumber: "latest" }, { blockNumber: "0x1", x: 1 }, [], "0x01"],
	],
];

test("each schema accepts its forms, normalises them, and refuses anything else", () => {
	for (const [schema, takes, refuses] of SCHEMAS) {
		for (const [given, made] of takes) assert.deepEqual(schema.parse(given), made);
		for (const given of refuses) {
			assert.equal(schema.safeParse(given).success, false, JSON.stringify(given));
		}
	}
});

test("an unknown key is refused by its name, and the nearest known one suggested", () => {
	const schema = exactObject(
		{ replacementUuid: z.string().optional(), txs: z.array(z.string()) },
		"expected it",
	);
	const refused = (value: unknown) => () => checkParam("bundle", schema, value);
	for (const [value, message] of [
		[{ txs: [], replacementUUID: "a" }, "bundle.replacementUUID: unknown key: did you mean replacementUuid?"],
		[{ txs: [], replacmentUuid: "a" }, "bundle.replacmentUuid: unknown key: did you mean replacementUuid?"],
		[{ txs: [], other: "a" }, "bundle.other: unknown key"],
		[JSON.parse('{"txs":[],"__proto__":1}'), "bundle.__proto__: unknown key"],
		[7, "bundle: expected it"],
	] as const) {
		assert.throws(refused(value), { kind: "invalidParams", message: `invalid params: ${message}` });
	}
	const long = "replacementUuid".repeat(100_000);
	assert.throws(refused({ txs: [], [long]: 1 }), /: unknown key$/);
	assert.deepEqual(refused({ txs: ["0x"] })(), { txs: ["0x"] });
});

test("names a misspelt key before the key that is missing for it, also in one of several forms", () => {
	const byHash = exactObject({ blockHash: hash, canonical: z.boolean().optional() });
	const byNumber = exactObject({ blockNumber: quantity, inner: byHash.optional() });
	const forms = [quantity, byHash, byNumber] as const;
	const own = z.union(forms, { error: "expected a block" });
	const none = z.union(forms);
	const list = z.union([z.array(byHash), byNumber]);
	const hashExpected = "expected a hash of 32 bytes as 0x hex";
	const rows: [z.ZodType, unknown, string][] = [
		[byHash, { blockhash: HASH }, ".blockhash: unknown key: did you mean blockHash?"],
		[byHash, { other: 1 }, ".other: unknown key"],
		[byHash, { blockhash: HASH, canonical: 1 }, ".blockhash: unknown key: did you mean blockHash?"],
		[byHash, { blockHash: 1, other: 1 }, ".other: unknown key"],
		[byHash, {}, `.blockHash: ${hashExpected}`],
		[
			byNumber,
			{ inner: { Blockhash: HASH } },
			`.blockNumber: expected a 0x hex number without leading zeros`,
		],
		[
			byNumber,
			{ blockNumber: "0x1", inner: { Blockhash: HASH } },
			".inner.Blockhash: unknown key: did you mean blockHash?",
		],
		[own, { blockhash: HASH }, ".blockhash: unknown key: did you mean blockHash?"],
		[own, { blocknumber: "0x1" }, ".blocknumber: unknown key: did you mean blockNumber?"],
		[own, { blockHash: HASH, cannonical: true }, ".cannonical: unknown key: did you mean canonical?"],
		[z.array(own), [{ blockhash: HASH }], "[0].blockhash: unknown key: did you mean blockHash?"],
		[own, { other: 1 }, ": expected a block"],
		[own, { blockHash: 1 }, ": expected a block"],
		[own, { blockHash: HASH, blockNumber: "0x1" }, ": expected a block"],
		[own, {}, ": expected a block"],
		[own, [], ": expected a block"],
		[own, "latest", ": expected a block"],
		[none, { blockhash: HASH }, ".blockhash: unknown key: did you mean blockHash?"],
		[none, { blocknumber: "0x1" }, ".blocknumber: unknown key: did you mean blockNumber?"],
		[list, { blocknumber: "0x1" }, ".blocknumber: unknown key: did you mean blockNumber?"],
		[list, [{ blockhash: HASH }], "[0].blockhash: unknown key: did you mean blockHash?"],
		[list, [{ blockHash: 1 }], `[0].blockHash: ${hashExpected}`],
	];
	for (const [schema, value, message] of rows) {
		const row = { kind: "invalidParams", message: `invalid params: block${message}` };
		assert.throws(() => checkParam("block", schema, value), row, JSON.stringify(value));
	}
});

const BEGINS = "The transaction was added to the mempool but wasn't processed";

test("timeouts are milliseconds as number or hex, limited to the maximum; an invalid one is the default", () => {
	for (const [given, ms] of [
		[1, 1],
		[25_000, 25_000],
		[86_400_000, 25_000],
		[1e21, 25_000],
		["0x1", 1],
		["0X61A8", 25_000],
		["0x61a9", 25_000],
	]) {
		assert.equal(syncTimeoutMs.parse(given), ms, `${given}`);
	}
	const invalid = [undefined, null, 0, -1, 1.5, Number.NaN, "", "1", "0x0", "0x01", true, [1], {}];
	for (const given of invalid) assert.equal(syncTimeoutMs.parse(given), 20_000, `${given}`);
});

test("each error has its code, the message that clients look for, and the hash as data", () => {
	const rows = [
		[timedOut(HASH, 1_500), 4, " in 1.5s."],
		[timedOut(HASH, 20_000.4, "the relay is shutting down"), 4, " in 20s: the relay is shutting down."],
		[notSoon(HASH, "a missing nonce"), 5, " due to a missing nonce"],
		[neverMined(HASH), 5, " due to being a soft cancel, which is never mined itself"],
	] as const;
	for (const [error, code, tail] of rows) {
		assert.deepEqual([error.code, error.message, error.data], [code, BEGINS + tail, HASH]);
	}
});
