// The scan of a body against JSON.parse, on random texts: where the entries of a batch begin and
// end, and the digits of ids.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type RpcBody, readBody } from "../../../../shared/jsonrpc/envelope.ts";
import { RpcError } from "../../../../shared/jsonrpc/errors.ts";
import { ExactNumber, idText } from "../../../../shared/jsonrpc/ids.ts";
import { idIn, scanList, scanValue } from "../../../../shared/jsonrpc/scan.ts";
import { sized } from "../../../support/length.ts";

const space = fc.constantFrom("", "", " ", "\n\t", "\r  ");
const number = fc.constantFrom("0", "7", "-0", "1.0", "1e3", "1E-2", "12345678901234567890", "0.10", "1e400");
const text = fc.constantFrom(
	'"id"',
	'"\\"id\\":1"',
	'""',
	'"\\\\"',
	'"é😀"',
	'"],[{}"',
	`"${"x".repeat(70)}\\""`,
);
const key = fc.constantFrom(
	'"id"',
	'"\\u0069d"',
	'"i\\u0064"',
	'"ID"',
	'"id2"',
	'"i"',
	'"\\u0069\\u0065"',
	'"é"',
);
const literal = fc.constantFrom("null", "true", "false");
const { value } = fc.letrec<{ value: string; list: string; object: string }>((tie) => ({
	value: fc.oneof({ maxDepth: 3 }, number, text, literal, tie("list"), tie("object")),
	list: fc
		.array(fc.tuple(space, tie("value"), space), { maxLength: 4 })
		.map((items) => `[${items.map((item) => item.join("")).join(",")}]`),
	object: fc
		.array(fc.tuple(space, key, space, space, tie("value"), space), { maxLength: 4 })
		.map((items) => `{${items.map(([a, name, b, c, of, d]) => `${a}${name}${b}:${c}${of}${d}`).join(",")}}`),
}));

/** The lists, objects and their elements of a parsed value, if no key is there twice. */
function valuesOf(parsed: unknown): number {
	const inner = typeof parsed === "object" && parsed !== null ? Object.values(parsed) : [];
	return inner.reduce((sum: number, one) => sum + valuesOf(one), 1);
}

test("the id is found exactly where JSON.parse finds it", () => {
	fc.assert(
		fc.property(value, space, (json, behind) => {
			const bytes = Buffer.from(json + behind);
			const span = scanValue(bytes, 0);
			const parsed: unknown = JSON.parse(json);
			const isObject = typeof parsed === "object" && parsed !== null && !Array.isArray(parsed);
			const found = idIn(bytes, span);
			assert.equal(found !== null, isObject && Object.hasOwn(parsed, "id"), json);
			if (found !== null) assert.deepEqual(JSON.parse(found), (parsed as { id: unknown }).id, json);
			assert.equal(span.to, bytes.length);
			assert.ok(span.values >= valuesOf(parsed), "never fewer values than there are");
		}),
		{ numRuns: sized(600, 3_000) },
	);
});

test("the entries of a list are those of JSON.parse", () => {
	fc.assert(
		fc.property(fc.array(fc.tuple(space, value, space), { maxLength: 6 }), space, (items, around) => {
			const entries = items.map((item) => item.join(""));
			const bytes = Buffer.from(`${around}[${entries.join(",")}]${around}`);
			const found = scanList(bytes, 10) ?? [];
			const parsed = found.map(({ from, to }) => JSON.parse(bytes.toString("utf8", from, to)));
			assert.deepEqual(parsed, JSON.parse(bytes.toString()));
			assert.equal(scanList(bytes, 2)?.length, Math.min(items.length, 3));
		}),
		{ numRuns: sized(300, 1_000) },
	);
});

test("a body is read exactly if JSON.parse reads it, however it is cut or changed", () => {
	const change = fc.tuple(
		fc.nat(),
		fc.constantFrom("", ",", "]", "}", "[", "{", '"', ":", "\\", "1", "\u0001"),
	);
	fc.assert(
		fc.property(fc.array(value, { minLength: 1, maxLength: 4 }), change, (items, [place, byte]) => {
			const whole = `[${items.join(",")}]`;
			const at = place % (whole.length + 1);
			const json = whole.slice(0, at) + byte + whole.slice(at + 1);
			let parsed: unknown;
			try {
				parsed = JSON.parse(json);
			} catch {}
			const read = readBody(json, 100) as RpcBody | RpcError;
			const isRead = !(read instanceof RpcError && read.kind === "parse");
			assert.equal(isRead, parsed !== undefined, json);
			if (!Array.isArray(parsed) || read instanceof RpcError) return;
			const ids = read.calls.map(({ id }) => (id === undefined ? undefined : JSON.parse(idText(id))));
			for (const [i, entry] of (parsed as { id?: unknown; method?: unknown }[]).entries()) {
				if (typeof entry?.id === "number") assert.equal(ids[i], entry.id, json);
			}
		}),
		{ numRuns: sized(600, 3_000) },
	);
});

test("a number is kept as its text unless JavaScript writes it the same", () => {
	for (const id of ["7", "-7", "0", "999999999999999", "9007199254740991", "1.5", "0.1"]) {
		assert.equal((readBody(`{"id":${id},"method":"m"}`, 1) as RpcBody).calls[0]?.id, Number(id), id);
	}
	const misleading = ['{"id":7,"id":7.0,"method":"m"}', '{"params":[{"id":7}],"\\u0069d":7.0,"method":"m"}'];
	for (const body of [...misleading, ...misleading.map((one) => `[${one}]`)]) {
		assert.deepEqual((readBody(body, 1) as RpcBody).calls[0]?.id, new ExactNumber("7.0"), body);
	}
	for (const id of ["9007199254740992", "-0", "7.0", "70e-1", "1e21", "100000000000000000000"]) {
		for (const body of [`{"id":${id},"method":"m"}`, `{"id" : ${id}\n,"method":"m","params":["\\\\"]}`]) {
			assert.deepEqual((readBody(body, 1) as RpcBody).calls[0]?.id, new ExactNumber(id), body);
			assert.deepEqual((readBody(`[${body}]`, 1) as RpcBody).calls[0]?.id, new ExactNumber(id), body);
		}
	}
});

test("a short batch, which is parsed at once, is read as a long one", async () => {
	const id = fc.oneof({ arbitrary: fc.nat().map(String), weight: 9 }, number, text, literal);
	const params = fc.oneof({ arbitrary: fc.constantFrom("[]", '["0x1"]'), weight: 9 }, value);
	const entry = fc
		.tuple(fc.oneof({ arbitrary: fc.constant('"id"'), weight: 9 }, key), id, params, fc.boolean())
		.map(([name, of, with_, isLast]) => {
			const members = [`"method":"m","params":${with_}`, `${name}:${of}`];
			return `{${(isLast ? members : members.reverse()).join(",")}}`;
		});
	const many = `{"id":1,"method":"m","params":[${Array.from({ length: 6_000 }, () => "0")}]}`;
	const entries = fc.array(fc.oneof({ arbitrary: entry, weight: 20 }, value, fc.constant(many)), {
		minLength: 1,
		maxLength: 5,
	});
	const calls = async (json: string): Promise<unknown> => {
		const read = await readBody(json, 4);
		return read instanceof RpcError ? read.message : read.calls;
	};
	await fc.assert(
		fc.asyncProperty(entries, async (all) => {
			const json = `[${all.join(",")}]`;
			assert.deepEqual(await calls(json), await calls(json + " ".repeat(70_000)), json);
		}),
		{ numRuns: sized(300, 1_000) },
	);
});
