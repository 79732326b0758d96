// Hex, RLP and Keccak-256: the examples of the specifications, hashes against ethers, and what is refused.

import assert from "node:assert/strict";
import { test } from "node:test";
import { keccak256 as byEthers } from "ethers";
import {
	bytesToHex,
	hexToBytes,
	parseAddress,
	parseHash,
	parseQuantity,
	toQuantity,
} from "../../../../shared/ethereum/hex.ts";
import { type RlpItem, RlpReader, rlpEncode, uintToBytes } from "../../../../shared/ethereum/rlp.ts";
import { keccak256 } from "../../../../shared/ethereum/signatures.ts";
import { seededRandom } from "../../../support/seededRandom.ts";

const ADDRESS = "0xAbCdEf0123456789aBcDeF0123456789abcdef01";
const SHORT = ADDRESS.slice(0, -1);
const MAX = 2n ** 256n - 1n;

// Node takes the lower eight bits of a character for the digit: U+0130 for "0", U+0161 for "a".
const OTHER_ALPHABETS = ["0x\u0130\u0130", "0xab\u0161b", "0x\u0661\u0661", "0xé0", "0x\ud83d\ude00"];
const NO_BYTES = ["", "0", "00", "x00", "0x0", "0xg0", "0x0g", "0x00 ", " 0x00", "0x00\n", "0x-1", "0x0x00"];

/** What a parser of text makes of it; what it refuses is null. */
const PARSED: readonly [parse: (text: string) => unknown, text: string, value: unknown][] = [
	[hexToBytes, "0x", Buffer.alloc(0)],
	[hexToBytes, "0x00ff", Buffer.from([0, 255])],
	[hexToBytes, "0xAbCdEf", Buffer.from([0xab, 0xcd, 0xef])],
	[hexToBytes, "0XAB", Buffer.from([0xab])],
	...[...NO_BYTES, ...OTHER_ALPHABETS].map((text): (typeof PARSED)[number] => [hexToBytes, text, null]),
	[parseAddress, ADDRESS, ADDRESS.toLowerCase()],
	...[SHORT, `${ADDRESS}0`, ADDRESS.slice(2), `${SHORT}g`, `${SHORT}\n`, ""].map(
		(text): (typeof PARSED)[number] => [parseAddress, text, null],
	),
	[parseHash, `0X${"AB".repeat(32)}`, `0x${"ab".repeat(32)}`],
	[parseHash, ADDRESS, null],
	[parseHash, `0x${"\u0130".repeat(64)}`, null],
	[parseQuantity, "0x0", 0n],
	[parseQuantity, "0x1F", 31n],
	[parseQuantity, "0X1f", 31n],
	[parseQuantity, `0x${MAX.toString(16)}`, MAX],
	...[
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
	].map((text): (typeof PARSED)[number] => [parseQuantity, text, null]),
];

test("hex is read strictly: bytes, addresses, hashes and quantities without leading zeros", () => {
	for (const [parse, text, value] of PARSED) {
		assert.deepEqual(parse(text), value, `${parse.name} ${JSON.stringify(text)}`);
	}
});

test("hex is written in lower case, quantities without leading zeros", () => {
	assert.equal(bytesToHex(new Uint8Array([1, 0xab, 0xff, 4]).subarray(1, 3)), "0xabff");
	for (const [value, hex] of [
		[0n, "0x0"],
		[255, "0xff"],
		[2n ** 64n, "0x10000000000000000"],
	] as const) {
		assert.equal(toQuantity(value), hex);
	}
	for (const bad of [-1n, 1.5]) assert.throws(() => toQuantity(bad), RangeError);
});

const text = (value: string) => Buffer.from(value, "latin1");

/** https://ethereum.org/en/developers/docs/data-structures-and-encoding/rlp/#examples */
const EXAMPLES: readonly [RlpItem, string][] = [
	[text("dog"), "83646f67"],
	[[text("cat"), text("dog")], "c88363617483646f67"],
	[text(""), "80"],
	[[], "c0"],
	[uintToBytes(0n), "80"],
	[Buffer.from([0]), "00"],
	[uintToBytes(15n), "0f"],
	[uintToBytes(1024n), "820400"],
	[[[], [[]], [[], [[]]]], "c7c0c1c0c3c0c1c0"],
	[
		text("Lorem ipsum dolor sit amet, consectetur adipisicing elit"),
		`b838${text("Lorem ipsum dolor sit amet, consectetur adipisicing elit").toString("hex")}`,
	],
];

test("encodes the specification's examples", () => {
	for (const [item, hex] of EXAMPLES) assert.equal(rlpEncode(item).toString("hex"), hex);
});

test("integers of every length up to the limit", () => {
	for (let bits = 0n; bits < 256n; bits += 1n) {
		for (const value of [1n << bits, (1n << bits) - 1n]) {
			const source = new RlpReader(rlpEncode(uintToBytes(value)));
			assert.equal(source.uint("n", 32), value);
			assert.equal(source.fault, null);
		}
	}
	assert.throws(() => uintToBytes(-1n), RangeError);
});

// The hash takes in 136 bytes at a time: lengths on both sides of that are where an implementation goes wrong.
test("Keccak-256: as ethers hashes, in one part or many", () => {
	const random = seededRandom(0xabc);
	for (const length of [0, 1, 31, 32, 135, 136, 137, 271, 272, 273, 1_000, 10_000]) {
		const bytes = random.bytes(length);
		const expected = byEthers(bytes);
		assert.equal(bytesToHex(keccak256(bytes)), expected);
		const cut = random.below(length + 1);
		assert.equal(
			bytesToHex(keccak256(bytes.subarray(0, cut), new Uint8Array(bytes.subarray(cut)))),
			expected,
		);
	}
});
