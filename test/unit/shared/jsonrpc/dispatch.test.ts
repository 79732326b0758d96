// The dispatcher: reading bodies, results and errors, batches and their order, limits, and results
// that must be waited for. Details of our own faults never leave the process.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallContext } from "../../../../shared/http/callContext.ts";
import type { CallLimiter } from "../../../../shared/jsonrpc/dispatch.ts";
import { type RpcBody, readBody } from "../../../../shared/jsonrpc/envelope.ts";
import { RpcError } from "../../../../shared/jsonrpc/errors.ts";
import { ExactNumber } from "../../../../shared/jsonrpc/ids.ts";
import { CANARY, entry, startDispatcher as start } from "../../../support/rpcMethods.ts";

interface Answered {
	readonly id: unknown;
	readonly result?: unknown;
	readonly error?: { readonly code: number; readonly message: string };
}
/** The result or error message of each entry of an answered batch. */
const results = (body: readonly Answered[]) => body.map(({ result, error }) => result ?? error?.message);

const LATE = "internal error: it took too long, try again";
const NO_OBJECT = "invalid request: expected an object with jsonrpc, id, method and params";
const NO_NAME = "invalid request: method: expected a name";
const NO_ID = "invalid request: id: expected a string, a number or null";
const TOO_DEEP = "invalid params: params: expected at most 64 levels of nesting";
const deep = (levels: number) => `{"id":1,"method":"m","params":${"[".repeat(levels)}${"]".repeat(levels)}}`;

/** Entries with the parsed id, and params or the reason why it is not a request. */
const ENTRIES: readonly (readonly [body: string, id: unknown, read: unknown])[] = [
	['{"jsonrpc":"2.0","id":7,"method":"m","params":["0x1",{"a":null}]}', 7, ["0x1", { a: null }]],
	['{"id":1,"method":"a","id":2,"method":"m"}', 2, []],
	['{"method":"m"}', undefined, []],
	['{"id":1,"method":"m","params":null}', 1, []],
	...["{}", '"0x"', "1"].map((params) => [`{"id":1,"method":"m","params":${params}}`, 1, null] as const),
	...['"1"', '""', "null", "-3", "1.5", "9007199254740991", '"\\u0000é\\ud800"'].map(
		(id) => [`{"id":${id},"method":"m"}`, JSON.parse(id), []] as const,
	),
	...["1.0", "-0", "1e3", "1.50", "9007199254740993", "12345678901234567890", "1e400"].map(
		(id) => [`{"id":${id},"method":"m"}`, new ExactNumber(id), []] as const,
	),
	...["{}", "[1]", "true"].map((id) => [`{"id":${id},"method":"m"}`, null, NO_ID] as const),
	...["1", "null", '"eth_x"'].map((body) => [body, null, NO_OBJECT] as const),
	["{}", null, NO_NAME],
	['{"id":4,"method":5}', 4, NO_NAME],
	['{"id":4,"method":""}', 4, NO_NAME],
	['{"__proto__":{"id":1,"method":"m"}}', null, NO_NAME],
	['{"id":"4","jsonrpc":"1.0","method":"m"}', "4", 'invalid request: jsonrpc: expected "2.0"'],
	['{"id":4,"jsonrpc":null,"method":"m"}', 4, 'invalid request: jsonrpc: expected "2.0"'],
	[deep(4_000), 1, TOO_DEEP],
	[deep(200_000), 1, "invalid request: a call has at most 5000 values"],
];
const NO_BODIES: readonly (readonly [body: string | Buffer, message: string])[] = [
	...["", "{", '{"id":1', "[1,]", "nope", "{'id':1}", "\ufeff{}", "NaN", "\u0000"].map(
		(body) => [body, "parse error: not JSON"] as const,
	),
	...["22ff22", "22eda08022"].map((hex) => [Buffer.from(hex, "hex"), "parse error: not UTF-8"] as const),
	["[]", "invalid request: empty batch"],
	["[1,1,1,1]", "invalid request: a batch has at most 3 entries"],
];

test("each entry of a body is parsed, or refused with the reason", () => {
	for (const [body, id, read] of ENTRIES) {
		const { batch, calls } = readBody(body, 3) as RpcBody;
		const parsed = calls.map((call) => [call.id, call.fault?.message ?? call.params]);
		assert.deepEqual([batch, parsed], [false, [[id, read]]], body.slice(0, 80));
	}
	for (const [body, message] of NO_BODIES) {
		const read = readBody(body, 3);
		assert.ok(read instanceof RpcError);
		assert.equal(read.message, message);
	}
	const { batch, calls } = readBody('[{"id":1,"method":"a"},[],{"method":"b"}]', 3) as RpcBody;
	assert.deepEqual([batch, ...calls.map(({ id }) => id)], [true, 1, null, undefined]);
});

test("results and errors have the documented form", async () => {
	const { call } = start();
	const fails = (code: number, message: string, data?: unknown) => ({
		error: data === undefined ? { code, message } : { code, message, data },
	});
	const noHash = fails(-32602, "invalid params: hash: expected a hash of 32 bytes as 0x hex");
	const noArray = fails(-32602, "invalid params: params: expected an array");
	const none = (method: string, hint = "") =>
		fails(-32601, `the method ${method} does not exist/is not available${hint}`);
	const tooLow = fails(-32000, "nonce too low: next nonce 5, tx nonce 3", { reason: "NONCE_TOO_LOW" });
	const internal = fails(-32603, "internal error");
	const rows: [string, unknown, object][] = [
		["test_echo", ["0x1"], { result: "0x1" }],
		["test_echo", [{ a: [null] }], { result: { a: [null] } }],
		["test_nothing", [], { result: null }],
		["test_hash", [`0x${"AB".repeat(32)}`], { result: `0x${"ab".repeat(32)}` }],
		["node_echo", [1, "2"], { result: [1, "2"] }],
		["node_null", [], { result: null }],
		["test_hash", [], noHash],
		["test_hash", {}, noArray],
		["node_echo", {}, noArray],
		["nope", [], none("nope")],
		["nope", {}, none("nope")],
		["test_ehco", [], none("test_ehco", ": did you mean test_echo?")],
		["TEST_ECHO", [], none("TEST_ECHO", ": did you mean test_echo?")],
		[
			"eth_cancelPrivateTransaction",
			[{ txHash: "0x" }],
			none("eth_cancelPrivateTransaction", ": use eth_cancelTransaction [hash]"),
		],
		["__proto__", [], none("__proto__")],
		["toString", [], none("toString")],
		[`a\n\u001b[31mé${"a".repeat(100)}`, [], none(`a??[31m?${"a".repeat(56)}...`)],
		["test_reject", [], tooLow],
		["test_foreign", [], fails(3, "execution reverted: no", "0x08c379a0")],
		["test_fault", [], internal],
		["test_lateFault", [], internal],
		["test_bigint", [], internal],
		["test_badData", [], internal],
		["node_down", [], internal],
	];
	for (const [method, params, wire] of rows) {
		const answer = await call(method, params, "7");
		assert.deepEqual(answer.body, { jsonrpc: "2.0", id: "7", ...wire }, method);
		assert.equal(answer.status, 200, method);
		assert.equal(answer.retryMs, 0);
	}
});

test("calls are counted by served method and outcome; of a fault only its class is logged", async () => {
	const { call, send, calls, faults } = start();
	for (const method of ["test_echo", "node_echo", "test_nope\n", "test_hash", "test_foreign", "test_fault"]) {
		assert.ok(!(await call(method)).text?.includes(CANARY), method);
	}
	assert.deepEqual(
		faults.map(({ method, fault }) => [method, fault?.name]),
		[["test_fault", "TypeError"]],
	);
	assert.ok(!JSON.stringify(faults).includes(CANARY));
	for (const body of ["{", "[]", { id: 1 }]) await send(body);
	const counted = calls.map(([method, outcome]) => `${method} ${outcome}`);
	assert.deepEqual(counted, [
		...["test_echo ok", "node_echo ok", "unknown methodNotFound", "test_hash invalidParams"],
		...["test_foreign foreign", "test_fault internal"],
		...["unknown parse", "unknown invalidRequest", "unknown invalidRequest"],
	]);
});

test("answers that exceed the size limit of a batch become errors; short ones always fit", async () => {
	const { send } = start();
	// Two of these leave less room than a short answer takes.
	const large = 12_499_000;
	const lengths = [large, large, large, 4_000];
	const { body } = await send(lengths.map((length, id) => entry(id, "test_big", length)));
	const sizes = body.map((one: { result?: string } & Answered) => one.result?.length ?? one.error?.code);
	assert.deepEqual(sizes, [large, large, -32005, 4_000]);
});

test("ordered calls of a batch run one after another, and later calls see their effects", async () => {
	const { send, script, clock } = start();
	const answer = send([
		entry(1, "test_wait", "read before"),
		entry(2, "test_ordered", "first"),
		entry(3, "test_ordered", "second"),
		entry(4, "test_wait", "read after"),
	]);
	await clock.advance(1);
	assert.deepEqual(script.waiting, ["read before", "first"], "a slow read holds up no submission");
	script.release("first");
	await clock.advance(1);
	assert.deepEqual(script.waiting, ["read before", "second"]);
	script.release("second");
	await clock.advance(1);
	assert.deepEqual(script.waiting, ["read before", "read after"]);
	script.release("read before");
	script.release("read after");
	assert.deepEqual(results((await answer).body), ["read before", "first", "second", "read after"]);
});

/** Allows calls up to `tokens`; records the requested weights. */
function meter(tokens: number) {
	const asked: [string | null, number][] = [];
	let left = tokens;
	const limiter: CallLimiter<CallContext> = {
		take(_context, call, weight) {
			asked.push([call === null ? null : call.method, weight]);
			if (weight > left) return 1_500 + asked.length;
			left -= weight;
			return 0;
		},
	};
	return { asked, limiter };
}

test("every entry has a weight, also unknown and unreadable ones", async () => {
	const { asked, limiter } = meter(1_000);
	const { send } = start(limiter);
	await send([
		entry(1, "test_echo", 1),
		entry(2, "test_heavy"),
		entry(3, "node_dear"),
		entry(4, "test_nope"),
		5,
	]);
	await send("{");
	assert.deepEqual(asked, [
		["test_echo", 1],
		["test_heavy", 10],
		["node_dear", 10],
		["test_nope", 1],
		["", 1],
		[null, 1],
	]);
});

test("over the rate limit: -32005 and the wait, for those entries of a batch that exceed it; 429 if all do", async () => {
	const { limiter } = meter(12);
	const { send, script } = start(limiter);
	const batch = await send([
		entry(1, "test_heavy"),
		entry(2, "test_note", "fits"),
		entry(3, "test_heavy"),
		entry(4, "test_note", "fits too"),
		entry(5, "test_note", "does not"),
		{ method: "test_note", params: ["neither"] },
	]);
	assert.equal(batch.status, 200);
	const over = { code: -32005, message: "limit exceeded: try again in 2 s" };
	const errors = batch.body.map(({ error }: Answered) => error);
	assert.deepEqual(errors, [undefined, undefined, over, undefined, over]);
	assert.deepEqual(script.log, ["note fits", "note fits too"]);
	const all = await send([entry(7, "test_echo", 1), entry(8, "test_echo", 1)]);
	assert.deepEqual([all.status, all.body.length, all.retryMs], [429, 2, 1_508]);
	const unreadable = await send("{");
	assert.deepEqual([unreadable.status, unreadable.body.id], [429, null]);
	assert.equal((await send({ method: "test_note", params: ["silent"] })).text, null);
});

test("at most 16 calls of a batch run at a time; those that only wait for a result use no slot", async () => {
	const { send, script, clock } = start();
	const answer = send([
		...Array.from({ length: 20 }, (_, i) => entry(i, "test_later", `l${i}`)),
		...Array.from({ length: 20 }, (_, i) => entry(20 + i, "test_wait", `w${i}`)),
	]);
	for (let i = 0; i < 20; i++) {
		await clock.advance(1);
		script.release(`l${i}`);
	}
	await clock.advance(1);
	const waiting = script.waiting;
	assert.equal(waiting.filter((name) => name.endsWith("result")).length, 20);
	assert.equal(waiting.filter((name) => name.startsWith("w")).length, 16);
	while (script.waiting.length > 0) {
		for (const name of script.waiting) script.release(name);
		await clock.advance(1);
	}
	assert.equal((await answer).body.length, 40);
});

test("a handler that ends when its time is over, but before the timer fires, gets to finish its answer", async () => {
	const { call, script, clock } = start();
	const answer = call("test_later", ["a"]);
	// As after a standstill of the process.
	clock.monotonic = () => 5_000;
	script.release("a");
	await clock.advance(0);
	assert.deepEqual(script.waiting, ["a's result"]);
	script.release("a's result");
	assert.equal((await answer).body.error, undefined);
});

test("a call that takes too long gets an error and is counted once; its batch is still answered", async () => {
	const { call, send, script, clock, calls } = start();
	const late = call("test_later", ["a"]);
	const batch = send([entry(1, "test_later", "b"), entry(2, "test_echo", "too late")]);
	await clock.advance(1_000);
	assert.deepEqual((await late).body.error, { code: -32603, message: LATE });
	assert.deepEqual(results((await batch).body), [
		LATE,
		"internal error: the batch took too long, this call was not made",
	]);
	script.release("a");
	await clock.advance(1);
	assert.deepEqual(script.waiting, ["b"], "the result is not waited for any more");
	script.release("b");
	await clock.advance(1);
	assert.equal(calls.length, 3, "a late end is not counted again");
	assert.equal(clock.timers, 0);
});
