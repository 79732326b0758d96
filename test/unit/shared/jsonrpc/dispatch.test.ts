// The dispatcher: from bodies to answers, in order, within limits, with nothing of a fault but its code.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type CallContext, callContext } from "../../../../shared/http/callContext.ts";
import type { CallOutcome } from "../../../../shared/jsonrpc/answer.ts";
import { type CallLimiter, createDispatcher, methodNotFound } from "../../../../shared/jsonrpc/dispatch.ts";
import { RpcError } from "../../../../shared/jsonrpc/errors.ts";
import { type LogFields, type Logger, silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { CANARY, Script, testFallback, testMethods } from "../../../support/rpcMethods.ts";

const CLIENT = { address: "192.0.2.1", signer: null, vouched: false };
const CONTEXT = callContext({ path: "/fast", search: "" }, CLIENT, null, null);

function start(limiter?: CallLimiter<CallContext>) {
	const script = new Script();
	const clock = new ManualClock();
	const calls: [string, CallOutcome, number][] = [];
	const faults: LogFields[] = [];
	const log: Logger = { ...silentLogger, error: (_message, fields) => void faults.push(fields ?? {}) };
	const dispatcher = createDispatcher<CallContext>(
		{ maxBatch: 40, callLimitMs: 1_000 },
		{
			methods: testMethods(script),
			fallback: testFallback,
			log,
			clock,
			onCall: (method, outcome, seconds) => void calls.push([method, outcome, seconds]),
			...(limiter === undefined ? {} : { limiter }),
		},
	);
	const send = async (body: unknown, refusal: RpcError | null = null) => {
		const text = typeof body === "string" ? body : JSON.stringify(body);
		const answer = await dispatcher.dispatch(Buffer.from(text), CONTEXT, refusal);
		return { ...answer, body: answer.text === null ? null : JSON.parse(answer.text) };
	};
	const call = (method: string, params: unknown = [], id: unknown = 1) =>
		send({ jsonrpc: "2.0", id, method, params });
	return { script, clock, calls, faults, dispatcher, send, call };
}

function entry(id: number, method: string, ...params: unknown[]) {
	return { jsonrpc: "2.0", id, method, params };
}

test("results and errors come out as decided", async () => {
	const { call } = start();
	const error = (code: number, message: string, data?: unknown) =>
		data === undefined ? { code, message } : { code, message, data };
	const rows: [string, unknown, number, object][] = [
		["test_echo", ["0x1"], 200, { result: "0x1" }],
		["test_echo", [{ a: [null] }], 200, { result: { a: [null] } }],
		["test_nothing", [], 200, { result: null }],
		["test_hash", [`0x${"AB".repeat(32)}`], 200, { result: `0x${"ab".repeat(32)}` }],
		["node_echo", [1, "2"], 200, { result: [1, "2"] }],
		["node_null", [], 200, { result: null }],
		[
			"test_hash",
			[],
			200,
			{ error: error(-32602, "invalid params: hash: expected a hash of 32 bytes as 0x hex") },
		],
		["test_hash", {}, 200, { error: error(-32602, "invalid params: params: expected an array") }],
		["node_echo", {}, 200, { error: error(-32602, "invalid params: params: expected an array") }],
		["test_nope", [], 200, { error: error(-32601, "the method test_nope does not exist/is not available") }],
		["test_nope", {}, 200, { error: error(-32601, "the method test_nope does not exist/is not available") }],
		["__proto__", [], 200, { error: error(-32601, "the method __proto__ does not exist/is not available") }],
		["toString", [], 200, { error: error(-32601, "the method toString does not exist/is not available") }],
		[
			"test_reject",
			[],
			200,
			{ error: error(-32000, "nonce too low: next nonce 5, tx nonce 3", { reason: "NONCE_TOO_LOW" }) },
		],
		["test_foreign", [], 200, { error: error(3, "execution reverted: no", "0x08c379a0") }],
		["test_fault", [], 200, { error: error(-32603, "internal error") }],
		["test_lateFault", [], 200, { error: error(-32603, "internal error") }],
		["test_bigint", [], 200, { error: error(-32603, "internal error") }],
		["test_badData", [], 200, { error: error(-32603, "internal error") }],
		["node_down", [], 200, { error: error(-32603, "internal error") }],
	];
	for (const [method, params, status, wire] of rows) {
		const answer = await call(method, params, "7");
		assert.deepEqual(answer.body, { jsonrpc: "2.0", id: "7", ...wire }, method);
		assert.equal(answer.status, status, method);
		assert.equal(answer.retryMs, 0);
	}
});

test("a body that cannot be read is answered with id null", async () => {
	const { send } = start();
	const parse = await send("{");
	assert.equal(parse.status, 400);
	assert.deepEqual(parse.body, {
		jsonrpc: "2.0",
		id: null,
		error: { code: -32700, message: "parse error: not JSON" },
	});
	const empty = await send("[]");
	assert.equal(empty.status, 200);
	assert.equal(empty.body.error.message, "invalid request: empty batch");
});

test("faults are logged by class, and nothing of them leaves", async () => {
	const { call, faults } = start();
	for (const method of ["test_fault", "test_lateFault", "node_down", "test_bigint", "test_badData"]) {
		const { text } = await call(method);
		assert.ok(!text?.includes(CANARY), method);
	}
	assert.deepEqual(
		faults.map(({ method, fault }) => [method, fault?.name]),
		[
			["test_fault", "TypeError"],
			["test_lateFault", "Error"],
			["node_down", "Error"],
			["test_bigint", "TypeError"],
			["test_badData", "RpcError"],
		],
	);
	assert.ok(!JSON.stringify(faults).includes(CANARY));
	await call("test_reject");
	await call("test_nope");
	assert.equal(faults.length, 5, "what a client does wrong is no fault of ours");
});

test("calls are counted under names that are served, and how they ended", async () => {
	const { call, send, calls } = start();
	await call("test_echo", [1]);
	await call("node_echo");
	await call("test_nope\n");
	await call("test_hash");
	await call("test_foreign");
	await call("test_fault");
	await send("{");
	await send("[]");
	await send({ id: 1 });
	assert.deepEqual(
		calls.map(([method, outcome]) => `${method} ${outcome}`),
		[
			"test_echo ok",
			"node_echo ok",
			"unknown methodNotFound",
			"test_hash invalidParams",
			"test_foreign foreign",
			"test_fault internal",
			"unknown parse",
			"unknown invalidRequest",
			"unknown invalidRequest",
		],
	);
});

test("how long a call took is told in seconds", async () => {
	const { call, script, clock, calls } = start();
	const answer = call("test_wait", ["a"]);
	await clock.advance(250);
	script.release("a");
	await answer;
	assert.deepEqual(calls, [["test_wait", "ok", 0.25]]);
});

test("notifications are made but not answered, whatever becomes of them", async () => {
	const { send, script } = start();
	for (const body of [
		{ jsonrpc: "2.0", method: "test_note", params: ["n"] },
		{ jsonrpc: "2.0", method: "test_nope" },
		{ jsonrpc: "2.0", method: "test_note", params: {} },
		{ jsonrpc: "2.0", method: "test_fault" },
	]) {
		assert.equal((await send(body)).text, null, body.method);
	}
	assert.deepEqual(script.log, ["note n"]);
	const batch = await send([
		{ method: "test_note", params: ["a"] },
		{ method: "test_note", params: ["b"] },
	]);
	assert.equal(batch.text, null);
	const mixed = await send([{ method: "test_note", params: ["c"] }, entry(2, "test_echo", 2)]);
	assert.deepEqual(mixed.body, [{ jsonrpc: "2.0", id: 2, result: 2 }]);
	assert.deepEqual(script.log, ["note n", "note a", "note b", "note c"]);
});

test("the handler has started before dispatch returns", () => {
	const { dispatcher, script } = start();
	for (const name of ["a", "b", "c"]) {
		void dispatcher.dispatch(JSON.stringify(entry(1, "test_wait", name)), CONTEXT).then(() => {});
		assert.equal(script.log.at(-1), `start ${name}`);
	}
});

test("a batch is answered in its order, each entry for itself", async () => {
	const { send, script, clock } = start();
	const answer = send([
		entry(1, "test_wait", "slow"),
		entry(2, "test_echo", "quick"),
		5,
		entry(4, "test_reject"),
		entry(5, "test_wait", "quicker"),
	]);
	await clock.advance(1);
	assert.deepEqual(script.waiting, ["slow", "quicker"], "they run side by side");
	script.release("quicker");
	script.release("slow");
	const { status, body } = await answer;
	assert.equal(status, 200);
	assert.deepEqual(
		body.map((one: { id: unknown; result?: unknown; error?: { code: number } }) => [
			one.id,
			one.result ?? one.error?.code,
		]),
		[
			[1, "slow"],
			[2, "quick"],
			[null, -32600],
			[4, -32000],
			[5, "quicker"],
		],
	);
});

test("ordered calls of a batch run one after another, and what stands behind one sees what it did", async () => {
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
	assert.deepEqual(
		(await answer).body.map((one: { result: string }) => one.result),
		["read before", "first", "second", "read after"],
	);
});

test("of a batch at most sixteen calls run at a time", async () => {
	const { send, script, clock } = start();
	const answer = send(Array.from({ length: 40 }, (_, i) => entry(i, "test_wait", `w${i}`)));
	await clock.advance(1);
	assert.equal(script.waiting.length, 16);
	script.release("w9");
	await clock.advance(1);
	assert.equal(script.waiting.length, 16);
	assert.ok(script.waiting.includes("w16"));
	while (script.waiting.length > 0) {
		for (const name of script.waiting) script.release(name);
		await clock.advance(1);
	}
	assert.deepEqual(
		(await answer).body.map((one: { result: string }) => one.result),
		Array.from({ length: 40 }, (_, i) => `w${i}`),
	);
});

test("a call that never ends is answered when its time is up, and its late end changes nothing", async () => {
	const { call, script, clock, faults, calls } = start();
	const answer = call("test_wait", ["stuck"], 3);
	await clock.advance(999);
	assert.deepEqual(calls, []);
	await clock.advance(1);
	assert.deepEqual((await answer).body, {
		jsonrpc: "2.0",
		id: 3,
		error: { code: -32603, message: "internal error" },
	});
	assert.deepEqual(faults, [
		{ method: "test_wait", fault: { name: "DeadlineError", code: "DEADLINE", at: faults[0]?.fault?.at } },
	]);
	script.release("stuck");
	await clock.advance(1);
	assert.deepEqual(calls, [["test_wait", "internal", 1]]);
});

test("a refusal is the answer to each entry, and no call is made", async () => {
	const { send, script } = start();
	const refusal = new RpcError("unavailable", "internal error: shutting down");
	const single = await send(entry(1, "test_note", "a"), refusal);
	assert.equal(single.status, 503);
	assert.deepEqual(single.body.error, { code: -32603, message: "internal error: shutting down" });
	const batch = await send([entry(1, "test_note", "a"), entry(2, "test_nope"), 3], refusal);
	assert.equal(batch.status, 503);
	assert.deepEqual(
		batch.body.map((one: { id: unknown }) => one.id),
		[1, 2, null],
	);
	assert.equal((await send("{", refusal)).status, 503);
	assert.deepEqual(script.log, []);
});

/** Lets `tokens` worth of calls pass; remembers what it was asked. */
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

test("every entry is weighed, known or not, readable or not", async () => {
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

test("over the limit: 429 with -32005 and the wait, of a batch only what does not fit", async () => {
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
	assert.deepEqual(
		batch.body.map((one: { id: number; error?: object }) => [one.id, one.error]),
		[
			[1, undefined],
			[2, undefined],
			[3, { code: -32005, message: "limit exceeded: try again in 2 s" }],
			[4, undefined],
			[5, { code: -32005, message: "limit exceeded: try again in 2 s" }],
		],
	);
	assert.deepEqual(script.log, ["note fits", "note fits too"]);
	const single = await send(entry(6, "test_echo", 1));
	assert.equal(single.status, 429);
	assert.equal(single.body.id, 6);
	assert.equal(single.retryMs, 1_507);
	const all = await send([entry(7, "test_echo", 1), entry(8, "test_echo", 1)]);
	assert.equal(all.status, 429);
	assert.equal(all.retryMs, 1_509);
	assert.equal(all.body.length, 2);
	const unreadable = await send("{");
	assert.equal(unreadable.status, 429);
	assert.equal(unreadable.body.id, null);
	assert.equal((await send({ method: "test_note", params: ["silent"] })).text, null);
});

test("the words for a method that is not served", () => {
	assert.equal(methodNotFound("eth_x").message, "the method eth_x does not exist/is not available");
	assert.equal(
		methodNotFound("eth_x", "why").message,
		"the method eth_x does not exist/is not available: why",
	);
	assert.equal(
		methodNotFound(`${"a".repeat(100)}\n`).message,
		`the method ${"a".repeat(64)}... does not exist/is not available`,
	);
});
