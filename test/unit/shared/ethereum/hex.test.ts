// Tests hex: what is read, what is refused.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	asBuffer,
	bytesToHex,
	hexToBytes,
	parseAddress,
	parseHash,
	parseQuantity,
	toQuantity,
} from "../../../../shared/ethereum/hex.ts";

test("takes bytes in any case", () => {
	assert.deepEqual(hexToBytes("0x"), Buffer.alloc(0));
	assert.deepEqual(hexToBytes("0x00ff"), Buffer.from([0, 255]));
	assert.deepEqual(hexToBytes("0xAbCdEf"), Buffer.from([0xab, 0xcd, 0xef]));
	assert.deepEqual(hexToBytes("0XAB"), Buffer.from([0xab]));
});

test("refuses what is not bytes", () => {
	const bad = [
		"",
		"0",
		"00",
		"x00",
		"0x0",
		"0x000",
		"0xg0",
		"0x0g",
		"0x00 ",
		" 0x00",
		"0x00\n",
		"0x-1",
		"0x0x00",
	];
	for (const text of bad) assert.equal(hexToBytes(text), null, JSON.stringify(text));
});

// Node takes the lower eight bits of a character for the digit: U+0130 for "0", U+0161 for "a".
test("refuses digits of other alphabets, which Node's decoder takes", () => {
	assert.deepEqual(Buffer.from("\u0130\u0161", "hex"), Buffer.from([0x0a]));
	for (const text of ["0x\u0130\u0130", "0xab\u0161b", "0x\u0661\u0661", "0xé0", "0x\ud83d\ude00"]) {
		assert.equal(hexToBytes(text), null);
	}
});

test("writes lower case", () => {
	assert.equal(bytesToHex(new Uint8Array([0, 0xab, 0xff])), "0x00abff");
	assert.equal(bytesToHex(new Uint8Array(0)), "0x");
	assert.equal(bytesToHex(new Uint8Array([1, 2, 3, 4]).subarray(1, 3)), "0x0203");
});

test("views the same memory", () => {
	const bytes = new Uint8Array([1, 2, 3]);
	asBuffer(bytes.subarray(1))[0] = 9;
	assert.deepEqual(bytes, new Uint8Array([1, 9, 3]));
	const buffer = Buffer.from([1]);
	assert.equal(asBuffer(buffer), buffer);
});

test("parses addresses and hashes", () => {
	const address = "0xAbCdEf0123456789aBcDeF0123456789abcdef01";
	assert.equal(parseAddress(address), address.toLowerCase());
	assert.equal(parseHash(`0X${"AB".repeat(32)}`), `0x${"ab".repeat(32)}`);
	for (const bad of [
		address.slice(0, -1),
		`${address}0`,
		address.slice(2),
		`${address.slice(0, -1)}g`,
		`${address.slice(0, -1)}\n`,
		"",
	]) {
		assert.equal(parseAddress(bad), null, JSON.stringify(bad));
	}
	assert.equal(parseHash(address), null);
	assert.equal(parseHash(`0x${"\u0130".repeat(64)}`), null);
});

test("reads quantities without leading zeros", () => {
	const max = 2n ** 256n - 1n;
	assert.equal(parseQuantity("0x0"), 0n);
	assert.equal(parseQuantity("0x1F"), 31n);
	assert.equal(parseQuantity("0X1f"), 31n);
	assert.equal(parseQuantity(`0x${max.toString(16)}`), max);
	const bad = [
		"",
		"0x",
		"0x00",
		"0x01",
		"1",
		"0xg",
		"-0x1",
		"0x-1",
		" 0x1",
		"0x1 ",
		"0x1n",
		`0x1${"0".repeat(64)}`,
	];
	for (const text of bad) assert.equal(parseQuantity(text), null, JSON.stringify(text));
});

test("writes quantities", () => {
	assert.equal(toQuantity(0n), "0x0");
	assert.equal(toQuantity(255), "0xff");
	assert.equal(toQuantity(2n ** 64n), "0x10000000000000000");
	assert.throws(() => toQuantity(-1n), RangeError);
	assert.throws(() => toQuantity(1.5), RangeError);
});
