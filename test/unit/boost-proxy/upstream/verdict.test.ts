// How answers are classified, as tables: what an upstream sent, and the verdict or fault.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type {
	Delivery,
	TransportResult,
	UpstreamAnswer,
	UpstreamName,
} from "../../../../boost-proxy/domain/request.ts";
import {
	type Judged,
	judgeDelivery,
	judgeReading,
	readCalls,
} from "../../../../boost-proxy/upstream/verdict.ts";
import type { RpcId } from "../../../../shared/jsonrpc/ids.ts";

const HASH = `0x${"ab".repeat(32)}`;
const OTHER = `0x${"cd".repeat(32)}`;
const RELAY: Judged = { name: "relay", isVerdict: () => false };
const FALLBACK: Judged = { name: "fallback", isVerdict: (message) => message === "invalid nonce" };
const JUDGED: Readonly<Record<UpstreamName, Judged>> = { relay: RELAY, fallback: FALLBACK };

function answered(body: unknown, status = 200, retryAfterS?: number): UpstreamAnswer {
	const text = typeof body === "string" ? body : JSON.stringify(body);
	return { kind: "answered", status, retryAfterS, body: Buffer.from(text) };
}

const ok = (result: unknown, id: RpcId = 1) => ({ jsonrpc: "2.0", id, result });
const no = (code: number, message: string, id: RpcId | undefined = 1, data?: unknown) => ({
	jsonrpc: "2.0",
	...(id === undefined ? {} : { id }),
	error: { code, message, ...(data === undefined ? {} : { data }) },
});

/** `acknowledged`, `known`, `rejected`, or the fault. */
function short(delivery: Delivery): string {
	if (delivery.kind === "failed") return delivery.fault;
	if (delivery.kind === "acknowledged" && delivery.known) return "known";
	return delivery.kind;
}

const BOTH = ["relay", "fallback"] as const;
const DELIVERIES: readonly (readonly [string, unknown, number, readonly UpstreamName[], string])[] = [
	["the hash", ok(HASH), 200, BOTH, "acknowledged"],
	["the hash in capitals", ok(HASH.toUpperCase().replace("X", "x")), 200, BOTH, "acknowledged"],
	["the hash beside a null error", { ...ok(HASH), error: null }, 200, BOTH, "acknowledged"],
	["the hash without a version", { id: 1, result: HASH }, 200, BOTH, "acknowledged"],
	["the hash under 4xx", ok(HASH), 400, BOTH, "acknowledged"],
	["the hash under 5xx", ok(HASH), 500, BOTH, "httpStatus"],
	["the hash under 3xx", ok(HASH), 307, BOTH, "httpStatus"],
	["another hash", ok(OTHER), 200, BOTH, "wrongHash"],
	["no hash", ok(null), 200, BOTH, "wrongHash"],
	["a result of 200", ok(200), 200, BOTH, "wrongHash"],
	["another id", ok(HASH, 2), 200, BOTH, "notJsonRpc"],
	["the id as a string", ok(HASH, "1"), 200, BOTH, "notJsonRpc"],
	["a result without an id", { result: HASH }, 200, BOTH, "notJsonRpc"],
	["a result with id null", ok(HASH, null), 200, BOTH, "notJsonRpc"],
	["an array", [ok(HASH)], 200, BOTH, "notJsonRpc"],
	["neither result nor error", { jsonrpc: "2.0", id: 1 }, 200, BOTH, "notJsonRpc"],
	["an error that is text", { id: 1, error: "no" }, 200, BOTH, "notJsonRpc"],
	["an error without a code", { id: 1, error: { message: "no" } }, 200, BOTH, "notJsonRpc"],
	["a page", "<html>Down for maintenance</html>", 200, BOTH, "notJsonRpc"],
	["nothing", "", 200, BOTH, "notJsonRpc"],
	["no content", "", 204, BOTH, "notJsonRpc"],
	["broken JSON", '{"jsonrpc":"2.0","id":1,"result":"0x', 200, BOTH, "notJsonRpc"],
	["null", "null", 200, BOTH, "notJsonRpc"],
	["a page under 403", "<html>", 403, BOTH, "httpStatus"],
	["JSON that is no answer under 400", { message: "bad" }, 400, BOTH, "httpStatus"],
	["a page under 404", "<html>", 404, BOTH, "httpStatus"],
	["a refusal", no(-32000, "insufficient funds for gas * price + value"), 200, BOTH, "rejected"],
	["a refusal under 400", no(-32602, "invalid params: raw: expected hex"), 400, BOTH, "rejected"],
	["a refusal under 413", no(-32005, "limit exceeded: body"), 413, ["relay"], "rejected"],
	["a refusal with id null", no(-32700, "parse error", null), 400, BOTH, "rejected"],
	["a refusal without an id", no(-32600, "invalid request", undefined), 200, BOTH, "rejected"],
	["a refusal with a null result", { ...no(-32000, "nonce too high"), result: null }, 200, BOTH, "rejected"],
	["a refusal of another id", no(-32000, "nonce too high", 2), 200, BOTH, "notJsonRpc"],
	["a refusal under 5xx", no(-32000, "nonce too high"), 503, BOTH, "httpStatus"],
	["nonce too low", no(-32000, "nonce too low: next nonce 5, tx nonce 4"), 200, BOTH, "rejected"],
	["an unknown method", no(-32601, "the method X does not exist"), 200, BOTH, "rejected"],
	["a refusal in no words", { id: 1, error: { code: 3 } }, 200, BOTH, "rejected"],
	["an internal error", no(-32603, "internal error"), 200, BOTH, "internal"],
	["an internal error under 400", no(-32603, "internal error"), 400, BOTH, "internal"],
	["an internal error that is a verdict there", no(-32603, "invalid nonce"), 200, ["fallback"], "rejected"],
	["the same words of the relay's", no(-32603, "invalid nonce"), 200, ["relay"], "internal"],
	["an internal error that it is known", no(-32603, "already known"), 200, BOTH, "known"],
	["over the client's limit", no(-32005, "limit exceeded"), 429, ["relay"], "rejected"],
	[
		"over the client's share of the pool",
		no(-32005, "too many pending transactions from this client", 1, {
			reason: "CLIENT_FULL",
			scope: "client",
		}),
		...([200, ["relay"], "rejected"] as const),
	],
	["over boost's limit", no(-32005, "limit exceeded"), 200, ["fallback"], "limited"],
	["over boost's limit under 429", no(-32000, "slow down"), 429, ["fallback"], "limited"],
	["429 without an answer", "Too many requests", 429, ["relay"], "httpStatus"],
	["429 without an answer", "Too many requests", 429, ["fallback"], "limited"],
	["boost's key is not taken", no(-32000, "invalid project id"), 401, ["fallback"], "httpStatus"],
	["401 of the relay's", no(-32000, "no"), 401, ["relay"], "rejected"],
	["the pool is full", no(-32000, "txpool is full", 1, { scope: "pool" }), 200, BOTH, "limited"],
	[
		"the sender's part is full",
		no(-32000, "txpool is full: 64", 1, { scope: "sender" }),
		200,
		BOTH,
		"rejected",
	],
	["full, and not said for whom", no(-32000, "txpool is full"), 200, BOTH, "rejected"],
	["another error with that scope", no(-32000, "replaced", 1, { scope: "pool" }), 200, BOTH, "rejected"],
];

test("a delivery is acknowledged, rejected or no verdict", () => {
	for (const [what, body, status, upstreams, expected] of DELIVERIES) {
		for (const name of upstreams) {
			const delivery = judgeDelivery(answered(body, status), { id: 1, hash: HASH }, JUDGED[name]);
			assert.equal(short(delivery), expected, `${what}, from the ${name}`);
			if (delivery.kind === "failed") assert.ok(delivery.sent, "it had the request");
		}
	}
});

test("results without an answer are returned unchanged", () => {
	const results: TransportResult[] = [
		{ kind: "aborted", sent: true },
		{ kind: "failed", fault: "refused", sent: false },
	];
	for (const result of results) {
		assert.equal(judgeDelivery(result, { id: 1, hash: HASH }, RELAY), result);
		assert.equal(judgeReading(result, { ids: [1], batch: false }, RELAY), result);
		assert.equal(readCalls(result as Extract<TransportResult, { kind: "aborted" }>, [1]), null);
	}
});

test("a refusal keeps code, message and data, a fault the error and Retry-After", () => {
	const expected = { id: "a", hash: HASH };
	const refusal = answered(no(-32000, "txpool is full: 64", "a", { scope: "sender" }));
	assert.deepEqual(judgeDelivery(refusal, expected, RELAY), {
		kind: "rejected",
		error: { code: -32000, message: "txpool is full: 64", data: { scope: "sender" } },
	});
	assert.deepEqual(judgeDelivery(answered(no(-32603, "internal error", "a")), expected, RELAY), {
		kind: "failed",
		fault: "internal",
		sent: true,
		error: { code: -32603, message: "internal error" },
	});
	const busy = { kind: "failed", fault: "httpStatus", sent: true, retryAfterS: 9 };
	assert.deepEqual(judgeDelivery(answered("busy", 503, 9), expected, RELAY), busy);
});

const BATCH = [ok("0x1", 1), no(-32603, "internal error", "b"), ok(null, null)];
const READINGS: readonly (readonly [string, unknown, number, boolean, UpstreamName, string])[] = [
	["an answer", ok("0x1"), 200, false, "relay", "answered"],
	["a result of null", ok(null), 200, false, "relay", "answered"],
	["another id", ok("0x1", 2), 200, false, "relay", "notJsonRpc"],
	["an error", no(3, "execution reverted", 1, "0x08c379a0"), 200, false, "relay", "answered"],
	["an error under 400", no(-32602, "invalid params: x"), 400, false, "relay", "answered"],
	["an internal error", no(-32603, "internal error"), 200, false, "relay", "internal"],
	["an internal error of the relay's node", no(-32603, "Internal error"), 200, false, "relay", "answered"],
	["an internal error of a fallback", no(-32603, "database is closed"), 200, false, "fallback", "internal"],
	["over the client's limit", no(-32005, "limit exceeded"), 429, false, "relay", "answered"],
	["over boost's limit", no(-32005, "limit exceeded"), 200, false, "fallback", "limited"],
	["over boost's limit, by code", no(429, "exceeded its compute units"), 200, false, "fallback", "limited"],
	[
		"too much for one read",
		no(-32005, "query returned more than 10000 results"),
		200,
		false,
		"fallback",
		"answered",
	],
	[
		"the same under 429",
		no(-32005, "query returned more than 10000 results"),
		429,
		false,
		"fallback",
		"limited",
	],
	["429", "slow down", 429, false, "fallback", "limited"],
	["5xx", ok("0x1"), 502, false, "relay", "httpStatus"],
	["a redirect", "", 301, false, "relay", "httpStatus"],
	["an array for one call", [ok("0x1")], 200, false, "relay", "notJsonRpc"],
	["a batch with a failing entry", BATCH, 200, true, "relay", "answered"],
	["a batch in another order", [...BATCH].reverse(), 200, true, "relay", "answered"],
	["a batch with one missing", BATCH.slice(1), 200, true, "relay", "notJsonRpc"],
	[
		"a batch with an id of another type",
		[ok("0x1", "1"), ...BATCH.slice(1)],
		200,
		true,
		"relay",
		"notJsonRpc",
	],
	[
		"a batch with an entry that is no answer",
		[{ id: 1 }, ...BATCH.slice(1)],
		200,
		true,
		"relay",
		"notJsonRpc",
	],
	[
		"a batch refused as a whole",
		no(-32600, "invalid request: empty batch", null),
		200,
		true,
		"relay",
		"answered",
	],
	["a batch that failed as a whole", no(-32603, "internal error", null), 200, true, "relay", "internal"],
	["one answer for a batch", ok("0x1"), 200, true, "relay", "notJsonRpc"],
	["a batch under 429", BATCH, 429, true, "fallback", "limited"],
];

test("a reading is an answer to what was asked, or no answer; its bytes are passed on", () => {
	for (const [what, body, status, batch, name, expected] of READINGS) {
		const one = answered(body, status);
		const ids = batch ? [1, undefined, "b", null] : [1];
		const reading = judgeReading(one, { ids, batch }, JUDGED[name]);
		assert.equal(reading.kind === "failed" ? reading.fault : reading.kind, expected, what);
		if (reading.kind === "answered")
			assert.deepEqual([reading.body, reading.status], [one.body, status], what);
		if (expected === "internal") assert.equal((reading as { body?: Buffer }).body, one.body, what);
	}
});

test("-32603 to all of it with Retry-After says as much as 503: nothing can be served now", () => {
	const failure = (id: number | null) => no(-32603, "internal error: shutting down", id);
	const one = { ids: [1], batch: false };
	const batch = { ids: [1, 2], batch: true };
	const silent = { ids: [undefined], batch: false };
	const long = [1, 2].map((id) => no(-32603, "x".repeat(70_000), id));
	const ROWS = [
		["one call", failure(1), one, "httpStatus"],
		["an unread one", failure(null), one, "httpStatus"],
		["a batch", [failure(1), failure(2)], batch, "httpStatus"],
		["a long batch", long, batch, "httpStatus"],
		["a notification", "", silent, "httpStatus"],
		["a result", ok("0x1"), one, "answered"],
		["another error", no(-32000, "nonce too low"), one, "answered"],
		["a batch with one answer", [failure(1), ok("0x1", 2)], batch, "answered"],
	] as const;
	for (const [what, body, expected, wanted] of ROWS) {
		const found = judgeReading(answered(body, 200, 1), expected, RELAY);
		assert.equal(found.kind === "failed" ? found.fault : found.kind, wanted, what);
		const without = judgeReading(answered(body, 200), expected, RELAY);
		assert.notEqual(without.kind === "failed" ? without.fault : without.kind, "httpStatus", what);
	}
	const sent = judgeDelivery(answered(failure(1), 200, 2), { id: 1, hash: HASH }, RELAY);
	assert.deepEqual(sent, { kind: "failed", fault: "httpStatus", sent: true, retryAfterS: 2 });
});

const PAD = "x".repeat(70_000);

test("answers to boost's own calls are in the order of the calls", () => {
	const expected = { ids: [0, 1, 2], batch: true };
	const body = [ok("c", 2), no(-32000, "header not found", 1), ok("a", 0)];
	const results = readCalls(judgeReading(answered(body), expected, RELAY), [0, 1, 2]);
	assert.deepEqual(results, [
		{ ok: true, result: "a" },
		{ ok: false, error: { code: -32000, message: "header not found" } },
		{ ok: true, result: "c" },
	]);
	assert.equal(readCalls({ kind: "answered", status: 200, body: Buffer.from(`[{${PAD}}]`) }, [0]), null);
	const refused = {
		kind: "answered",
		status: 200,
		body: Buffer.from(JSON.stringify(no(1, "no", null))),
	} as const;
	assert.deepEqual(readCalls(refused, [7]), [{ ok: false, error: { code: 1, message: "no" } }]);
	assert.equal(readCalls(refused, [7, 8]), null);
});

test("any bytes with any status are classified", () => {
	const bytes = fc.oneof(
		fc.uint8Array().map((array) => Buffer.from(array)),
		fc.json().map((text) => Buffer.from(text)),
		fc
			.record({ jsonrpc: fc.anything(), id: fc.anything(), result: fc.anything(), error: fc.anything() })
			.map((value) => Buffer.from(textOf(value))),
		fc.jsonValue().map((error) => Buffer.from(JSON.stringify({ id: 1, error }))),
		fc.jsonValue().map((data) => Buffer.from(`{"id":1,"result":${JSON.stringify(data)},"x":"${PAD}"}`)),
	);
	const status = fc.integer({ min: 100, max: 599 });
	const id = fc.oneof(fc.constant(1), fc.string(), fc.constant(null));
	fc.assert(
		fc.property(bytes, status, id, fc.boolean(), fc.boolean(), (body, code, expected, batch, isRelay) => {
			const one: UpstreamAnswer = { kind: "answered", status: code, retryAfterS: undefined, body };
			const judged = isRelay ? RELAY : FALLBACK;
			const delivery = judgeDelivery(one, { id: expected, hash: HASH }, judged);
			assert.match(short(delivery), /^[a-zA-Z]+$/);
			const reading = judgeReading(one, { ids: [expected], batch }, judged);
			if (code >= 500) assert.equal(reading.kind, "failed");
			readCalls(reading, [expected]);
		}),
		{ numRuns: 300 },
	);
});

function textOf(value: unknown): string {
	try {
		return JSON.stringify(value) ?? "";
	} catch {
		return "{";
	}
}

const LONG: readonly (readonly [string, string, boolean, string])[] = [
	["as go-ethereum writes it", `{"jsonrpc":"2.0","id":1,"result":{"a":"${PAD}"}}`, false, "answered"],
	["with the id first", `{"id":1,"jsonrpc":"2.0","result":"${PAD}"}`, false, "answered"],
	["with spaces and a line's end", `{ "jsonrpc": "2.0", "id": 1, "result": "${PAD}" }\n`, false, "answered"],
	["as Nethermind writes it", `{"jsonrpc":"2.0","result":"${PAD}","id":1}`, false, "answered"],
	["with the version last", `{"result":"${PAD}","id":1,"jsonrpc":"2.0"}`, false, "answered"],
	["in an order that takes a parser", `{"x":{},"result":"${PAD}","id":1,"y":[]}`, false, "answered"],
	["with another id", `{"jsonrpc":"2.0","id":2,"result":"${PAD}"}`, false, "notJsonRpc"],
	["with another id at the end", `{"jsonrpc":"2.0","result":"${PAD}","id":2}`, false, "notJsonRpc"],
	["with an id within the result alone", `{"result":{"a":"${PAD}","id":1}}`, false, "notJsonRpc"],
	[
		"with an error of that length",
		`{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"${PAD}"}}`,
		false,
		"answered",
	],
	[
		"with an internal error",
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error: ${PAD}"}}`,
		false,
		"internal",
	],
	[
		"with an internal error of the relay's node",
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"${PAD}"}}`,
		false,
		"answered",
	],
	["that breaks off", `{"jsonrpc":"2.0","id":1,"result":{"a":"${PAD}`, false, "notJsonRpc"],
	["a page", `<html>${PAD}</html>`, false, "notJsonRpc"],
	["a page for a batch", `<html>${PAD}</html>`, true, "notJsonRpc"],
	["a batch", `[{"jsonrpc":"2.0","id":1,"result":"${PAD}"}]`, true, "answered"],
	["a batch that breaks off", `[{"jsonrpc":"2.0","id":1,"result":"${PAD}"},`, true, "notJsonRpc"],
];

test("long answers are classified by their ends", () => {
	for (const [what, text, batch, expected] of LONG) {
		const body = Buffer.from(text);
		const answer = { kind: "answered", status: 200, retryAfterS: undefined, body } as const;
		const reading = judgeReading(answer, { ids: [1], batch }, { name: "relay", isVerdict: () => false });
		assert.equal(reading.kind === "failed" ? reading.fault : reading.kind, expected, what);
	}
});
