// The OpenRPC document says of parameters what the schemas check.

import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { defineMethod, hash, openRpc, quantity, rawBytes } from "../../../../shared/jsonrpc/method.ts";

test("a document of all methods, with which parameters are required", () => {
	const method = defineMethod<unknown, unknown>()({
		name: "test_method",
		summary: "Does.",
		params: [
			{ name: "raw", schema: rawBytes("bytes") },
			{ name: "options", schema: z.object({ hash, value: quantity.optional() }).optional() },
		],
		result: z.string().describe("the hash"),
		handle: () => "0x",
	});
	const document = openRpc([method], { title: "Test", version: "1.2.3" });
	assert.deepEqual(JSON.parse(JSON.stringify(document)), {
		openrpc: "1.3.2",
		info: { title: "Test", version: "1.2.3" },
		methods: [
			{
				name: "test_method",
				summary: "Does.",
				paramStructure: "by-position",
				params: [
					{
						name: "raw",
						required: true,
						schema: { type: "string", description: "bytes", pattern: "^0[xX](?:[0-9a-fA-F]{2})*$" },
					},
					{
						name: "options",
						required: false,
						schema: {
							type: "object",
							properties: {
								hash: {
									type: "string",
									description: "a hash of 32 bytes as 0x hex",
									pattern: "^0[xX][0-9a-fA-F]{64}$",
								},
								value: {
									type: "string",
									description: "a 0x hex number without leading zeros",
									pattern: "^0[xX](?:0|[1-9a-fA-F][0-9a-fA-F]{0,63})$",
								},
							},
							required: ["hash"],
						},
					},
				],
				result: { name: "result", schema: { type: "string", description: "the hash" } },
			},
		],
	});
});

test("what JSON Schema cannot say is left open", () => {
	const method = defineMethod<unknown, unknown>()({
		name: "test_open",
		summary: "",
		params: [{ name: "any", schema: z.custom<number>((value) => value === 1) }],
		result: z.bigint(),
		handle: () => null,
	});
	const [described] = openRpc([method], { title: "", version: "" }).methods as {
		params: { schema: object }[];
	}[];
	assert.deepEqual(described?.params[0]?.schema, {});
});
