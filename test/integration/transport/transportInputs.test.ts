// Tests bodies sent over HTTP against their exact answers: JSON, envelopes, ids, batches.

import { postText } from "../../support/rawHttp.ts";
import { CALL, error, OK, type Row, testRows } from "../../support/transportTable.ts";

const NOT_OBJECT = "invalid request: expected an object with jsonrpc, id, method and params";

/** A body on `/fast`, its status and its JSON. */
function body(name: string, sent: string | Buffer, status: number, expected?: unknown): Row {
	return { name, send: postText("/fast", sent), status, body: expected };
}

const ROWS: readonly Row[] = [
	// Bodies that are no JSON.
	body("an empty body", "", 400, error(-32700, "parse error: not JSON")),
	body("half an object", '{"id":1', 400, error(-32700, "parse error: not JSON")),
	body("a word", "hello", 400, error(-32700, "parse error: not JSON")),
	body("two objects", `${CALL}${CALL}`, 400, error(-32700, "parse error: not JSON")),
	body("single quotes", "{'id':1}", 400, error(-32700, "parse error: not JSON")),
	body("a byte order mark", `\ufeff${CALL}`, 400, error(-32700, "parse error: not JSON")),
	body("a trailing comma", "[1,]", 400, error(-32700, "parse error: not JSON")),
	body("a control character in a string", '{"id":"\n"}', 400, error(-32700, "parse error: not JSON")),
	body("broken UTF-8", Buffer.from([0x22, 0xff, 0x22]), 400, error(-32700, "parse error: not UTF-8")),
	body("UTF-16", Buffer.from(CALL, "utf16le"), 400, error(-32700, "parse error: not JSON")),
	body("zero bytes", Buffer.alloc(64), 400, error(-32700, "parse error: not JSON")),
	// Envelopes.
	body("a number", "1", 200, error(-32600, NOT_OBJECT)),
	body("null", "null", 200, error(-32600, NOT_OBJECT)),
	body("a string", '"eth_chainId"', 200, error(-32600, NOT_OBJECT)),
	body("an empty object", "{}", 200, error(-32600, "invalid request: method: expected a name")),
	body(
		"a method that is a number",
		'{"id":1,"method":2}',
		200,
		error(-32600, "invalid request: method: expected a name", 1),
	),
	body(
		"an empty method",
		'{"id":1,"method":""}',
		200,
		error(-32600, "invalid request: method: expected a name", 1),
	),
	body(
		"version 1.0",
		'{"jsonrpc":"1.0","id":1,"method":"m"}',
		200,
		error(-32600, 'invalid request: jsonrpc: expected "2.0"', 1),
	),
	body(
		"version as a number",
		'{"jsonrpc":2,"id":"a","method":"m"}',
		200,
		error(-32600, 'invalid request: jsonrpc: expected "2.0"', "a"),
	),
	body(
		"an id that is an object",
		'{"id":{},"method":"m"}',
		200,
		error(-32600, "invalid request: id: expected a string, a number without loss of digits, or null"),
	),
	body(
		"an id with too many digits",
		'{"id":12345678901234567890,"method":"m"}',
		200,
		error(-32600, "invalid request: id: expected a string, a number without loss of digits, or null"),
	),
	body(
		"members of the prototype",
		'{"__proto__":{"method":"test_echo"},"id":1}',
		200,
		error(-32600, "invalid request: method: expected a name", 1),
	),
	body(
		"an unknown method",
		'{"id":1,"method":"admin_peers"}',
		200,
		error(-32601, "the method admin_peers does not exist/is not available", 1),
	),
	body(
		"a method named like a member of objects",
		'{"id":1,"method":"constructor"}',
		200,
		error(-32601, "the method constructor does not exist/is not available", 1),
	),
	body(
		"a method with a line break",
		'{"id":1,"method":"a\\r\\nb"}',
		200,
		error(-32601, "the method a??b does not exist/is not available", 1),
	),
	body(
		"params that are an object",
		'{"id":1,"method":"test_echo","params":{"value":1}}',
		200,
		error(-32602, "invalid params: params: expected an array", 1),
	),
	body(
		"params that are null",
		'{"id":1,"method":"test_echo","params":null}',
		200,
		error(-32602, "invalid params: params: expected an array", 1),
	),
	body(
		"a parameter too many",
		'{"id":1,"method":"test_echo","params":[1,2]}',
		200,
		error(-32602, "invalid params: expected at most 1 (value)", 1),
	),
	body(
		"a parameter too few",
		'{"id":1,"method":"test_hash"}',
		200,
		error(-32602, "invalid params: hash: expected a hash of 32 bytes as 0x hex", 1),
	),
	body("a fault of ours", '{"id":1,"method":"test_fault"}', 200, error(-32603, "internal error", 1)),
	// What must work.
	body("a whole call", CALL, 200, OK),
	body("no version", '{"id":1,"method":"test_echo","params":["ok"]}', 200, OK),
	body("white space around it", ` \r\n\t${CALL}\n`, 200, OK),
	body("unknown members", '{"jsonrpc":"2.0","id":1,"method":"test_echo","params":["ok"],"x":1}', 200, OK),
	body("a string id", '{"id":"0","method":"test_echo","params":["ok"]}', 200, { ...OK, id: "0" }),
	body("a null id", '{"id":null,"method":"test_echo","params":["ok"]}', 200, { ...OK, id: null }),
	body("the id 0", '{"id":0,"method":"test_echo","params":["ok"]}', 200, { ...OK, id: 0 }),
	body("a result that is absent", '{"id":1,"method":"test_nothing"}', 200, { ...OK, result: null }),
	body("text beyond ASCII", '{"id":"ünï💥","method":"test_echo","params":["é"]}', 200, {
		jsonrpc: "2.0",
		id: "ünï💥",
		result: "é",
	}),
	// Notifications and batches.
	body("a notification", '{"method":"test_echo","params":[1]}', 204),
	body("a notification of an unknown method", '{"method":"nope"}', 204),
	body("an empty batch", "[]", 200, error(-32600, "invalid request: empty batch")),
	body(
		"a batch too long",
		"[1,2,3,4,5,6]",
		200,
		error(-32600, "invalid request: a batch has at most 5 entries"),
	),
	body("a batch of one", `[${CALL}]`, 200, [OK]),
	body("a batch of what is no call", "[1,[]]", 200, [error(-32600, NOT_OBJECT), error(-32600, NOT_OBJECT)]),
	body("a batch of notifications", '[{"method":"test_echo","params":[1]},{"method":"x"}]', 204),
	body(
		"a mixed batch",
		`[{"method":"x"},${CALL},{"id":2,"method":"x"},{"id":1,"method":"test_nothing"}]`,
		200,
		[OK, error(-32601, "the method x does not exist/is not available", 2), { ...OK, result: null }],
	),
];

testRows(ROWS);
