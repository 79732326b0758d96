// Hex: what is read, what is refused, and how it is written.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	bytesToHex,
	hexToBytes,
	parseAddress,
	parseHash,
	parseQuantity,
	toQuantity,
} from "../../../../shared/ethereum/hex.ts";

const ADDRESS = "0xAbCdEf0123456789aBcDeF0123456789abcdef01";
const SHORT = ADDRESS.slice(0, -1);
const MAX = 2n ** 256n - 1n;

type Parse = (text: string) => unknown;
const TAKEN: readonly [parse: Parse, text: string, value: unknown][] = [
	[hexToBytes, "0x", Buffer.alloc(0)],
	[hexToBytes, "0XAbff", Buffer.from([0xab, 0xff])],
	[parseAddress, ADDRESS, ADDRESS.toLowerCase()],
	[parseHash, `0X${"AB".repeat(32)}`, `0x${"ab".repeat(32)}`],
	[parseQuantity, "0x0", 0n],
	[parseQuantity, "0X1F", 31n],
	[parseQuantity, `0x${MAX.toString(16)}`, MAX],
];
const REFUSED: readonly [parse: Parse, ...texts: string[]][] = [
	// Node's decoder uses the lower eight bits of a character: U+0130 as "0", U+0161 as "a".
	[hexToBytes, "0x\u0130\u0130", "0xab\u0161b", "0xé0", "0x\ud83d\ude00"],
	[hexToBytes, "", "0", "00", "x00", "0x0", "0xg0", "0x0g", "0x00 ", " 0x00", "0x00\n", "0x-1", "0x0x00"],
	[parseAddress, SHORT, `${ADDRESS}0`, ADDRESS.slice(2), `${SHORT}g`, `${SHORT}\n`, ""],
	[parseHash, ADDRESS, `0x${"\u0130".repeat(64)}`],
	[parseQuantity, "", "0x", "0x00", "0x01", "1", "0xg", "-0x1", " 0x1", "0x1n", `0x1${"0".repeat(64)}`],
];

test("hex is read strictly, and written in lower case", () => {
	for (const [parse, text, value] of TAKEN) assert.deepEqual(parse(text), value, `${parse.name} ${text}`);
	for (const [parse, ...texts] of REFUSED) {
		for (const text of texts) assert.equal(parse(text), null, `${parse.name} ${JSON.stringify(text)}`);
	}
	assert.equal(bytesToHex(new Uint8Array([1, 0xab, 0xff, 4]).subarray(1, 3)), "0xabff");
	assert.deepEqual([0n, 255, 2n ** 64n].map(toQuantity), ["0x0", "0xff", "0x10000000000000000"]);
	for (const bad of [-1n, 1.5]) assert.throws(() => toQuantity(bad), RangeError);
});
