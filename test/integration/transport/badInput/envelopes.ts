// Bad JSON-RPC: bodies that are JSON but no request or batch, with their exact answers, and what is
// forgiven.

import { failure, type HttpRow, success } from "./fixture.ts";

const CHAIN = "0x7a69";
const NO_OBJECT = "invalid request: expected an object with jsonrpc, id, method and params";
const BAD_ID = "invalid request: id: expected a string, a number or null";
const BAD_VERSION = 'invalid request: jsonrpc: expected "2.0"';
const BAD_METHOD = "invalid request: method: expected a name";
const BAD_PARAMS = "invalid params: params: expected an array";
const TOO_MANY = "invalid request: a call has at most 5000 values";
const LONG_BATCH = "invalid request: a batch has at most 1000 entries";

const textOf = (body: unknown): string => (typeof body === "string" ? body : JSON.stringify(body));

function answered(name: string, body: unknown, answer: unknown): HttpRow {
	return { name, send: { body: textOf(body) }, status: 200, answer };
}

const silent = (name: string, body: unknown): HttpRow => ({
	name,
	send: { body: textOf(body) },
	status: 204,
});

/** Bodies that are all refused by one answer. */
function refused(
	id: unknown,
	message: string,
	bodies: Readonly<Record<string, unknown>>,
	code = -32600,
): HttpRow[] {
	return Object.entries(bodies).map(([name, body]) => answered(name, body, failure(id, code, message)));
}

const call = (fields: object): object => ({ jsonrpc: "2.0", id: 7, method: "eth_chainId", ...fields });
const without = (name: string): object =>
	Object.fromEntries(Object.entries(call({})).filter(([field]) => field !== name));
/** A call as text, where JavaScript would write another one. */
const text = (method: string, params: string): string => `{"id":7,"method":"${method}","params":${params}}`;

const NO_REQUESTS: readonly HttpRow[] = [
	...refused(null, NO_OBJECT, {
		null: "null",
		true: "true",
		"a number": "1",
		"a string": '"eth_chainId"',
		"a lone surrogate": '"\\ud800"',
	}),
	...refused(null, BAD_METHOD, {
		"an empty object": {},
		"__proto__ as the whole call": '{"__proto__":{"id":7,"method":"eth_chainId"}}',
	}),
	...refused(7, BAD_METHOD, { "an object of other things": { result: 1, id: 7 } }),
];

const LONG = "x".repeat(10_000);

const IDS: readonly HttpRow[] = [
	...refused(null, BAD_ID, {
		"an id of true": call({ id: true }),
		"an id of false": call({ id: false }),
		"an id that is an object": call({ id: {} }),
		"an id that is an array": call({ id: [7] }),
	}),
	...[2 ** 53 - 1, -1, 1.5, "", "7", '"\\\n\0😀', "\ud800", null, LONG].map((id) =>
		answered(`the id ${JSON.stringify(id).slice(0, 40)} is echoed`, call({ id }), success(id, CHAIN)),
	),
	silent("a call without an id is not answered", without("id")),
	silent("an unknown method without an id is not answered", '{"jsonrpc":"2.0","method":"nope"}'),
];

const NO_PARAMS: readonly unknown[] = [{}, "[]", 0, true];

const FIELDS: readonly HttpRow[] = [
	...["1.0", "2", 2, null, "", "2.0 "].flatMap((jsonrpc) =>
		refused(7, BAD_VERSION, { [`jsonrpc ${JSON.stringify(jsonrpc)}`]: call({ jsonrpc }) }),
	),
	...refused(7, BAD_METHOD, { "no method": without("method") }),
	...["", 1, null, ["eth_chainId"], {}].flatMap((method) =>
		refused(7, BAD_METHOD, { [`the method ${JSON.stringify(method)}`]: call({ method }) }),
	),
	...NO_PARAMS.flatMap((params) =>
		refused(7, BAD_PARAMS, { [`the params ${JSON.stringify(params)}`]: call({ params }) }, -32602),
	),
	...refused(
		7,
		BAD_PARAMS,
		{
			"params as an object, of a method of our own": call({
				method: "eth_sendRawTransaction",
				params: { raw: "0x" },
			}),
		},
		-32602,
	),
	answered("no jsonrpc is forgiven", without("jsonrpc"), success(7, CHAIN)),
	answered("no params are none", without("params"), success(7, CHAIN)),
	answered("params that are null are none", call({ params: null }), success(7, CHAIN)),
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
const objects = `[${'{"a":'.repeat(4_000)}1${"}".repeat(4_000)},false]`;

const NESTING: readonly HttpRow[] = [
	...refused(
		7,
		TOO_DEEP,
		{
			"params that are 200 levels deep": text("eth_call", nested(200)),
			"params that are 1,000 levels deep": text("eth_call", nested(1_000)),
			"params that are 4,000 levels deep": text("eth_call", nested(4_000)),
			"objects that are 4,000 levels deep": text("eth_getBlockByNumber", objects),
		},
		-32602,
	),
	answered("arrays in a batch, 4,000 levels deep", nested(4_000), [failure(null, -32600, NO_OBJECT)]),
	...refused(7, TOO_MANY, {
		"params that are a million levels deep": `{"id":7,"params":${nested(1_000_000)}}`,
	}),
];

const asked = (id: unknown, method = "eth_chainId"): object => ({ jsonrpc: "2.0", id, method });
const NOT_SERVED = "the method nope does not exist/is not available";
const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

const BATCHES: readonly HttpRow[] = [
	...refused(null, "invalid request: empty batch", { "an empty batch": [] }),
	...refused(null, LONG_BATCH, {
		"a batch of 1,001": numbers(1_001).map((id) => asked(id)),
		"a batch of 1,001 nulls": numbers(1_001).fill(0),
		"a batch of 5,000": `[${"1,".repeat(4_998)}1]`,
		"four thousand entries": `[${"0,".repeat(4_000)}0]`,
		"half a million entries": `[${"0,".repeat(500_000)}0]`,
	}),
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
	answered(
		"an entry with too many values is refused alone",
		`[{"id":1,"method":"eth_chainId"},{"method":"nope","params":[${"0,".repeat(6_000)}0],"id":"2"},{"id":3,"method":"eth_chainId"}]`,
		[success(1, CHAIN), failure("2", -32600, TOO_MANY), success(3, CHAIN)],
	),
	answered(
		"so are the entries behind fifty thousand values",
		`[${numbers(25)
			.map((id) => `{"id":${id},"method":"nope","params":[${"0,".repeat(4_900)}0]}`)
			.join(",")}]`,
		numbers(25).map((id) =>
			id < 10
				? failure(id, -32601, NOT_SERVED)
				: failure(id, -32600, "invalid request: a batch has at most 50000 values"),
		),
	),
	...["1,]", "1 2]", "{]}", "1]]", "1", '"]'].map(
		(rest): HttpRow => ({
			name: `a batch that goes on with ${rest} is not JSON`,
			send: { body: `[${text("eth_chainId", "[]")},${rest}` },
			status: 400,
			answer: failure(null, -32700, "parse error: not JSON"),
		}),
	),
	answered("equal ids are each answered", [asked(1), asked(1)], [success(1, CHAIN), success(1, CHAIN)]),
	silent(
		"a batch of notifications is not answered",
		'[{"method":"eth_chainId"},{"method":"nope"},{"method":"eth_call","params":1}]',
	),
];

const MANY = 500_000;
const zeros = `[${"0,".repeat(MANY)}0]`;
const members = (count: number) => Array.from({ length: count }, (_, i) => `"member${i}":${i}`).join(",");
const row = JSON.stringify(Array(50).fill([]));
const cube = `[${Array(50)
	.fill(`[${Array(50).fill(row).join(",")}]`)
	.join(",")}]`;

/**
 * Two megabytes are read whole: none of them may cost more than their reading, and what would is
 * not parsed.
 */
const LARGE: readonly HttpRow[] = [
	...refused(7, TOO_MANY, {
		"half a million params": text("eth_getTransactionByHash", zeros),
		"half a million params of a method that is not served": text("nope", zeros),
		"half a million empty arrays in an array": text(
			"eth_getTransactionByHash",
			`[[${"[],".repeat(MANY)}[]]]`,
		),
		"a hundred thousand members more": `{"id":7,"method":"eth_chainId",${members(100_000)}}`,
		"lists of lists, fifty by fifty by fifty": text("eth_chainId", cube),
	}),
	...refused(
		7,
		NOT_SERVED,
		{ "four thousand params of a method that is not served": text("nope", `[${"0,".repeat(4_000)}0]`) },
		-32601,
	),
	answered(
		"four thousand members more",
		`{"id":7,"method":"eth_chainId",${members(4_000)}}`,
		success(7, CHAIN),
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
	...refused(null, "invalid request: id: expected at most 65536 characters", {
		"an id of a megabyte": call({ id: "x".repeat(1 << 20) }),
	}),
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
