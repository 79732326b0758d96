// The dispatcher: from bodies to answers, with nothing of a fault but its code.

import assert from "node:assert/strict";
import { test } from "node:test";
import { methodNotFound } from "../../../../shared/jsonrpc/dispatch.ts";
import { RpcError } from "../../../../shared/jsonrpc/errors.ts";
import { CONTEXT, entry, startDispatcher as start } from "../../../support/dispatching.ts";
import { CANARY } from "../../../support/rpcMethods.ts";

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
