// The envelope alone: bodies in, calls or errors out.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type RpcBody, type RpcCall, readBody, resultText } from "../../../../shared/jsonrpc/envelope.ts";
import { RpcError } from "../../../../shared/jsonrpc/errors.ts";

function read(body: string | Buffer, maxBatch = 3): RpcBody {
	const result = readBody(body, maxBatch);
	assert.ok(!(result instanceof RpcError), "expected calls");
	return result;
}

function only(body: string): RpcCall {
	const { batch, calls } = read(body);
	assert.equal(batch, false);
	assert.equal(calls.length, 1);
	return calls[0] as RpcCall;
}

test("a whole request is read as it is", () => {
	assert.deepEqual(only('{"jsonrpc":"2.0","id":7,"method":"eth_x","params":["0x1",{"a":null}]}'), {
		id: 7,
		method: "eth_x",
		params: ["0x1", { a: null }],
		paramsSize: 18,
		fault: null,
	});
});

test("ids keep their value and type", () => {
	const ids = ["1", '"1"', '""', "null", "0", "-3", "1.5", "9007199254740991", '"\\u0000é\\ud800"'];
	for (const id of ids) {
		const call = only(`{"jsonrpc":"2.0","id":${id},"method":"m"}`);
		assert.equal(call.fault, null, id);
		assert.deepEqual(call.id, JSON.parse(id), id);
		assert.deepEqual(JSON.parse(resultText(call.id ?? null, 1)).id, JSON.parse(id), id);
	}
	assert.equal(only('{"method":"m"}').id, undefined);
});

test("ids that could not be echoed are refused with the id null", () => {
	const bad = ["{}", "[]", "[1]", "true", "9007199254740993", "12345678901234567890", "1e400", "-1e400"];
	for (const id of bad) {
		const call = only(`{"jsonrpc":"2.0","id":${id},"method":"m"}`);
		assert.equal(call.id, null, id);
		assert.equal(call.fault?.code, -32600, id);
	}
});

test("what is no request object is a fault of its entry", () => {
	const noObject = "expected an object with jsonrpc, id, method and params";
	const noName = "method: expected a name";
	const noVersion = 'jsonrpc: expected "2.0"';
	const rows: [string, unknown, string][] = [
		["1", null, noObject],
		["null", null, noObject],
		['"eth_x"', null, noObject],
		["{}", null, noName],
		['{"id":4}', 4, noName],
		['{"id":4,"method":5}', 4, noName],
		['{"id":4,"method":""}', 4, noName],
		['{"id":"4","jsonrpc":"1.0","method":"m"}', "4", noVersion],
		['{"id":4,"jsonrpc":2.0,"method":"m"}', 4, noVersion],
		['{"id":4,"jsonrpc":null,"method":"m"}', 4, noVersion],
		['{"__proto__":{"id":1,"method":"m"}}', null, noName],
		['{"jsonrpc":"1.0","method":"m"}', null, noVersion],
	];
	for (const [body, id, message] of rows) {
		const call = only(body);
		assert.equal(call.fault?.message, `invalid request: ${message}`, body);
		assert.equal(call.fault?.kind, "invalidRequest", body);
		assert.equal(call.id, id, body);
	}
});

test("a missing jsonrpc is forgiven, and of two equal members the last counts", () => {
	assert.equal(only('{"id":1,"method":"m"}').fault, null);
	assert.equal(only('{"id":1,"method":"a","method":"b","id":2}').method, "b");
	assert.equal(only('{"id":1,"method":"a","method":"b","id":2}').id, 2);
});

test("params are [] where absent and null where they are no array", () => {
	assert.deepEqual(only('{"id":1,"method":"m"}').params, []);
	for (const params of ["null", "{}", '"0x"', "1", "false"]) {
		const call = only(`{"id":1,"method":"m","params":${params}}`);
		assert.equal(call.params, null, params);
		assert.equal(call.fault, null, params);
	}
});

test("bodies that are no JSON are parse errors", () => {
	const open = ["", " ", "{", '{"id":1', "[1,]", '{"a":1}}'];
	for (const body of [...open, "nope", "{'id':1}", "\ufeff{}", "NaN", "\u0000"]) {
		const result = readBody(body, 3);
		assert.ok(result instanceof RpcError, body);
		assert.equal(result.code, -32700, body);
		assert.equal(result.message, "parse error: not JSON");
	}
});

test("a body that is no UTF-8 is a parse error, never read with replacement characters", () => {
	for (const hex of ["22ff22", "22c322", "22eda08022", "fffe"]) {
		const result = readBody(Buffer.from(hex, "hex"), 3);
		assert.ok(result instanceof RpcError);
		assert.equal(result.message, "parse error: not UTF-8");
	}
	const bytes = new TextEncoder().encode('{"id":"é","method":"m"}');
	assert.equal(read(Buffer.from(bytes)).calls[0]?.id, "é");
	assert.equal((readBody(bytes, 1) as RpcBody).calls[0]?.id, "é");
});

test("nesting without end neither throws nor hangs", () => {
	const deep = (levels: number) =>
		`{"id":1,"method":"m","params":${"[".repeat(levels)}${"]".repeat(levels)}}`;
	const tooDeep = "invalid params: params: expected at most 64 levels of nesting";
	assert.equal(only(deep(4_000)).fault?.message, tooDeep);
	const refused = readBody(deep(200_000), 3);
	assert.ok(refused instanceof RpcError);
	assert.equal(refused.message, "invalid request: a body has at most 5000 values");
});

test("batches: the empty one and one too long are refused whole, others entry by entry", () => {
	const empty = readBody("[]", 3);
	assert.ok(empty instanceof RpcError);
	assert.equal(empty.message, "invalid request: empty batch");
	const long = readBody("[1,1,1,1]", 3);
	assert.ok(long instanceof RpcError);
	assert.equal(long.message, "invalid request: a batch has at most 3 entries");
	const { batch, calls } = read('[{"id":1,"method":"a"},[],{"method":"b"}]');
	assert.equal(batch, true);
	assert.deepEqual(
		calls.map(({ id, method, fault }) => [id, method, fault?.code]),
		[
			[1, "a", undefined],
			[null, "", -32600],
			[undefined, "b", undefined],
		],
	);
});
