// The schemas of parameters, each with values it takes, what it makes of them, and values it refuses.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { z } from "zod";
import {
	address,
	blockNumberOrTag,
	blockReference,
	hash,
	hexData,
	quantity,
} from "../../../../shared/jsonrpc/method.ts";

const HASH = "ab".repeat(32);

interface Row {
	readonly name: string;
	readonly schema: z.ZodType;
	readonly takes: readonly (readonly [unknown, unknown])[];
	readonly refuses: readonly unknown[];
}

const ROWS: readonly Row[] = [
	{
		name: "hash",
		schema: hash,
		takes: [
			[`0x${HASH}`, `0x${HASH}`],
			[`0X${HASH.toUpperCase()}`, `0x${HASH}`],
		],
		refuses: [
			`0x${HASH}a`,
			`0x${HASH.slice(1)}`,
			HASH,
			`0x${"zz".repeat(32)}`,
			`0x${HASH}\n`,
			1,
			null,
			{},
			[],
		],
	},
	{
		name: "address",
		schema: address,
		takes: [[`0x${"Ef".repeat(20)}`, `0x${"ef".repeat(20)}`]],
		refuses: [`0x${"ef".repeat(19)}`, `0x${"ef".repeat(21)}`, "vitalik.eth", ""],
	},
	{
		name: "hexData",
		schema: hexData,
		takes: [
			["0x", "0x"],
			["0X0F", "0x0f"],
		],
		refuses: ["", "0x0", "0f", "0x0g", "x", 0],
	},
	{
		name: "quantity",
		schema: quantity,
		takes: [
			["0x0", 0n],
			["0xFf", 255n],
			[`0x${"f".repeat(64)}`, 2n ** 256n - 1n],
		],
		refuses: ["0x", "0x00", "0x01", `0x1${"0".repeat(64)}`, "1", "-0x1", "0x-1", "0x1 ", 1, 1.5],
	},
	{
		name: "blockNumberOrTag",
		schema: blockNumberOrTag,
		takes: [
			["latest", "latest"],
			["pending", "pending"],
			["0x10", 16n],
		],
		refuses: ["Latest", "newest", "", "16", 16, `0x${HASH}00`],
	},
	{
		name: "blockReference",
		schema: blockReference,
		takes: [
			["finalized", "finalized"],
			["0XAB", "0xab"],
			[{ blockHash: `0x${HASH.toUpperCase()}` }, { blockHash: `0x${HASH}` }],
			[
				{ blockHash: `0x${HASH}`, requireCanonical: true },
				{ blockHash: `0x${HASH}`, requireCanonical: true },
			],
			[{ blockNumber: "0xA" }, { blockNumber: "0xa" }],
		],
		refuses: [{}, { blockHash: "0x" }, { blockNumber: "latest" }, { blockNumber: "0x1", x: 1 }, [], "0x01"],
	},
];

for (const { name, schema, takes, refuses } of ROWS) {
	test(`${name} takes what it should and nothing else`, () => {
		for (const [given, made] of takes) {
			const read = schema.safeParse(given);
			assert.ok(read.success, JSON.stringify(given));
			assert.deepEqual(read.data, made);
		}
		for (const given of refuses) {
			assert.equal(schema.safeParse(given).success, false, JSON.stringify(given));
		}
	});
}
