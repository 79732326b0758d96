// Bad JSON-RPC: bodies that are JSON but no request or batch, with their exact answers, and what is forgiven.

import { failure, type HttpRow, success } from "./fixture.ts";

const CHAIN = "0x7a69";
const NO_OBJECT = "invalid request: expected an object with jsonrpc, id, method and params";
const BAD_ID = "invalid request: id: expected a string, a number without loss of digits, or null";
const BAD_VERSION = 'invalid request: jsonrpc: expected "2.0"';
const BAD_METHOD = "invalid request: method: expected a name";
const BAD_PARAMS = "invalid params: params: expected an array";
const TOO_MANY = "invalid request: a body has at most 5000 values";
const LONG_BATCH = "invalid request: a batch has at most 100 entries";

function answered(name: string, body: unknown, answer: unknown): HttpRow {
	return {
		name,
		send: { body: typeof body === "string" ? body : JSON.stringify(body) },
		status: 200,
		answer,
	};
}

function refused(name: string, body: unknown, id: unknown, message: string, code = -32600): HttpRow {
	return answered(name, body, failure(id, code, message));
}

const call = (fields: object): object => ({ jsonrpc: "2.0", id: 7, method: "eth_chainId", ...fields });
const without = (name: string): object =>
	Object.fromEntries(Object.entries(call({})).filter(([field]) => field !== name));

const NO_REQUESTS: readonly HttpRow[] = [
	refused("null", "null", null, NO_OBJECT),
	refused("true", "true", null, NO_OBJECT),
	refused("a number", "1", null, NO_OBJECT),
	refused("a string", '"eth_chainId"', null, NO_OBJECT),
	refused("a lone surrogate", '"\\ud800"', null, NO_OBJECT),
	refused("an empty object", {}, null, BAD_METHOD),
	refused("an object of other things", { result: 1, id: 7 }, 7, BAD_METHOD),
	refused("__proto__ as the whole call", '{"__proto__":{"id":7,"method":"eth_chainId"}}', null, BAD_METHOD),
];

const IDS: readonly HttpRow[] = [
	refused("an id of true", call({ id: true }), null, BAD_ID),
	refused("an id of false", call({ id: false }), null, BAD_ID),
	refused("an id that is an object", call({ id: {} }), null, BAD_ID),
	refused("an id that is an array", call({ id: [7] }), null, BAD_ID),
	refused("an id of 2^53+1", '{"id":9007199254740993,"method":"eth_chainId"}', null, BAD_ID),
	refused("an id of 1e21", '{"id":1e21,"method":"eth_chainId"}', null, BAD_ID),
	refused("an id of 1e400", '{"id":1e400,"method":"eth_chainId"}', null, BAD_ID),
	answered("an id of 2^53-1 is echoed", call({ id: 2 ** 53 - 1 }), success(2 ** 53 - 1, CHAIN)),
	answered("an id below zero is echoed", call({ id: -1 }), success(-1, CHAIN)),
	answered("an id with a fraction is echoed", call({ id: 1.5 }), success(1.5, CHAIN)),
	answered("an empty string as id is echoed", call({ id: "" }), success("", CHAIN)),
	answered("digits as a string are echoed as a string", call({ id: "7" }), success("7", CHAIN)),
	answered("an id of quotes and controls is echoed", call({ id: '"\\\n\0😀' }), success('"\\\n\0😀', CHAIN)),
	answered(
		"a lone surrogate as id is echoed",
		'{"id":"\\ud800","method":"eth_chainId"}',
		success("\ud800", CHAIN),
	),
	answered("an id of null is echoed", call({ id: null }), success(null, CHAIN)),
	answered("a long id is echoed", call({ id: "x".repeat(10_000) }), success("x".repeat(10_000), CHAIN)),
	{
		name: "a call without an id is not answered",
		send: { body: JSON.stringify(without("id")) },
		status: 204,
	},
	{
		name: "an unknown method without an id is not answered",
		send: { body: '{"jsonrpc":"2.0","method":"nope"}' },
		status: 204,
	},
];

const FIELDS: readonly HttpRow[] = [
	refused("jsonrpc 1.0", call({ jsonrpc: "1.0" }), 7, BAD_VERSION),
	refused("jsonrpc 2", call({ jsonrpc: "2" }), 7, BAD_VERSION),
	refused("jsonrpc as a number", call({ jsonrpc: 2 }), 7, BAD_VERSION),
	refused("jsonrpc null", call({ jsonrpc: null }), 7, BAD_VERSION),
	refused("jsonrpc empty", call({ jsonrpc: "" }), 7, BAD_VERSION),
	refused("jsonrpc with a space", call({ jsonrpc: "2.0 " }), 7, BAD_VERSION),
	refused("no method", without("method"), 7, BAD_METHOD),
	refused("an empty method", call({ method: "" }), 7, BAD_METHOD),
	refused("a number as method", call({ method: 1 }), 7, BAD_METHOD),
	refused("null as method", call({ method: null }), 7, BAD_METHOD),
	refused("an array as method", call({ method: ["eth_chainId"] }), 7, BAD_METHOD),
	refused("an object as method", call({ method: {} }), 7, BAD_METHOD),
	refused("params as an object", call({ params: {} }), 7, BAD_PARAMS, -32602),
	refused("params null", call({ params: null }), 7, BAD_PARAMS, -32602),
	refused("params as a string", call({ params: "[]" }), 7, BAD_PARAMS, -32602),
	refused("params as a number", call({ params: 0 }), 7, BAD_PARAMS, -32602),
	refused("params as true", call({ params: true }), 7, BAD_PARAMS, -32602),
	refused(
		"params as an object, of a method of our own",
		call({ method: "eth_sendRawTransaction", params: { raw: "0x" } }),
		...([7, BAD_PARAMS, -32602] as const),
	),
	answered("no jsonrpc is forgiven", without("jsonrpc"), success(7, CHAIN)),
	answered("no params are none", without("params"), success(7, CHAIN)),
	answered(
		"more members are ignored",
		'{"id":7,"method":"eth_chainId","more":1,"__proto__":{"method":"nope"},"constructor":null}',
		success(7, CHAIN),
	),
	answered(
		"of two methods the last counts",
		'{"id":7,"method":"nope","method":"eth_chainId"}',
		success(7, CHAIN),
	),
];

const TOO_DEEP = "invalid params: params: expected at most 64 levels of nesting";

/** Params of this many levels, the array of the params itself being the first. */
const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);

function tooDeep(name: string, method: string, params: string): HttpRow {
	return refused(name, `{"id":7,"method":"${method}","params":${params}}`, 7, TOO_DEEP, -32602);
}

const NESTING: readonly HttpRow[] = [
	...[200, 1_000, 4_000].map((levels) =>
		tooDeep(`params that are ${levels} levels deep`, "eth_call", nested(levels)),
	),
	tooDeep(
		"objects that are 4,000 levels deep",
		"eth_getBlockByNumber",
		`[${'{"a":'.repeat(4_000)}1${"}".repeat(4_000)},false]`,
	),
	answered("arrays in a batch, 4,000 levels deep", nested(4_000), [failure(null, -32600, NO_OBJECT)]),
	refused("params that are a million levels deep", `{"id":7,"params":${nested(1_000_000)}}`, null, TOO_MANY),
];

const asked = (id: unknown, method = "eth_chainId"): object => ({ jsonrpc: "2.0", id, method });
const NOT_SERVED = "the method nope does not exist/is not available";
const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

const BATCHES: readonly HttpRow[] = [
	refused("an empty batch", [], null, "invalid request: empty batch"),
	refused(
		"a batch of 101",
		numbers(101).map((id) => asked(id)),
		null,
		LONG_BATCH,
	),
	refused("a batch of 101 nulls", numbers(101).fill(0), null, LONG_BATCH),
	refused("a batch of 5,000", `[${"1,".repeat(4_998)}1]`, null, LONG_BATCH),
	answered(
		"a batch of 100 is answered in order",
		numbers(100).map((id) => asked(id)),
		numbers(100).map((id) => success(id, CHAIN)),
	),
	answered(
		"entries that are no requests are answered one by one",
		[1, null, "x", [], [asked(1)], {}, true],
		[NO_OBJECT, NO_OBJECT, NO_OBJECT, NO_OBJECT, NO_OBJECT, BAD_METHOD, NO_OBJECT].map((message) =>
			failure(null, -32600, message),
		),
	),
	answered(
		"a batch of all kinds is answered in its order, notifications left out",
		[
			asked("a", "nope"),
			{ jsonrpc: "2.0", method: "eth_chainId" },
			{ ...asked(1), params: {} },
			asked(null),
			{ jsonrpc: "1.0", id: 2, method: "eth_chainId" },
			asked({}),
			{ jsonrpc: "2.0", method: "nope", params: 1 },
			{ ...asked(3, "eth_sendRawTransaction"), params: ["0x"] },
			asked("a"),
		],
		[
			failure("a", -32601, NOT_SERVED),
			failure(1, -32602, BAD_PARAMS),
			success(null, CHAIN),
			failure(2, -32600, BAD_VERSION),
			failure(null, -32600, BAD_ID),
			failure(3, -32000, "rlp: empty input", { reason: "UNDECODABLE", detail: "rlp" }),
			success("a", CHAIN),
		],
	),
	answered("equal ids are each answered", [asked(1), asked(1)], [success(1, CHAIN), success(1, CHAIN)]),
	{
		name: "a batch of notifications is not answered",
		send: { body: '[{"method":"eth_chainId"},{"method":"nope"},{"method":"eth_call","params":1}]' },
		status: 204,
	},
];

const MANY = 500_000;
const zeros = `[${"0,".repeat(MANY)}0]`;
const members = (count: number) => Array.from({ length: count }, (_, i) => `"member${i}":${i}`).join(",");
const row = JSON.stringify(Array(50).fill([]));
const cube = `[${Array(50)
	.fill(`[${Array(50).fill(row).join(",")}]`)
	.join(",")}]`;

/** Two megabytes are read whole: none of them may cost more than their reading, and what would is not parsed. */
const LARGE: readonly HttpRow[] = [
	refused(
		"half a million params",
		`{"id":7,"method":"eth_getTransactionByHash","params":${zeros}}`,
		...([null, TOO_MANY] as const),
	),
	refused(
		"four thousand params of a method that is not served",
		`{"id":7,"method":"nope","params":[${"0,".repeat(4_000)}0]}`,
		...([7, NOT_SERVED, -32601] as const),
	),
	refused(
		"half a million params of a method that is not served",
		`{"id":7,"method":"nope","params":${zeros}}`,
		...([null, TOO_MANY] as const),
	),
	refused("half a million entries", zeros, null, TOO_MANY),
	refused("four thousand entries", `[${"0,".repeat(4_000)}0]`, null, LONG_BATCH),
	refused(
		"half a million empty arrays in an array",
		`{"id":7,"method":"eth_getTransactionByHash","params":[[${"[],".repeat(MANY)}[]]]}`,
		...([null, TOO_MANY] as const),
	),
	refused(
		"a hundred thousand members more",
		`{"id":7,"method":"eth_chainId",${members(100_000)}}`,
		null,
		TOO_MANY,
	),
	answered(
		"four thousand members more",
		`{"id":7,"method":"eth_chainId",${members(4_000)}}`,
		success(7, CHAIN),
	),
	refused(
		"lists of lists, fifty by fifty by fifty",
		`{"id":7,"method":"eth_chainId","params":${cube}}`,
		null,
		TOO_MANY,
	),
	answered(
		"a text of a million brackets and quotes is answered",
		call({ method: "nope", params: ['[{,"'.repeat(250_000)] }),
		failure(7, -32601, NOT_SERVED),
	),
	answered(
		"an id of 65,536 characters is echoed",
		call({ id: "x".repeat(65_536) }),
		success("x".repeat(65_536), CHAIN),
	),
	refused(
		"an id of a megabyte",
		call({ id: "x".repeat(1 << 20) }),
		null,
		"invalid request: id: expected at most 65536 characters",
	),
	answered(
		"a million zero bytes as a transaction",
		call({ method: "eth_sendRawTransaction", params: [`0x${"00".repeat(1_000_000)}`] }),
		failure(7, -32000, "transaction type not supported", {
			reason: "UNDECODABLE",
			detail: "unsupportedType",
		}),
	),
	answered(
		"a batch of 100 large entries",
		numbers(100).map((id) => ({ ...asked(id, "nope"), params: ["x".repeat(20_000)] })),
		numbers(100).map((id) => failure(id, -32601, NOT_SERVED)),
	),
];

export const ENVELOPE_ROWS: readonly HttpRow[] = [
	...NO_REQUESTS,
	...IDS,
	...FIELDS,
	...NESTING,
	...BATCHES,
	...LARGE,
];
