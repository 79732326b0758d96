// Hex, RLP and Keccak-256: the examples of the specifications, random input against ethers, and what is refused.

import assert from "node:assert/strict";
import { test } from "node:test";
import { keccak256 as byEthers, decodeRlp, encodeRlp } from "ethers";
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
import { type SeededRandom, seededRandom } from "./seededRandom.ts";

test("takes bytes in any case", () => {
	assert.deepEqual(hexToBytes("0x"), Buffer.alloc(0));
	assert.deepEqual(hexToBytes("0x00ff"), Buffer.from([0, 255]));
	assert.deepEqual(hexToBytes("0xAbCdEf"), Buffer.from([0xab, 0xcd, 0xef]));
	assert.deepEqual(hexToBytes("0XAB"), Buffer.from([0xab]));
});

test("refuses what is not bytes", () => {
	const bad = ["", "0", "00", "x00", "0x0", "0xg0", "0x0g", "0x00 ", " 0x00", "0x00\n", "0x-1", "0x0x00"];
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

test("parses addresses and hashes", () => {
	const address = "0xAbCdEf0123456789aBcDeF0123456789abcdef01";
	assert.equal(parseAddress(address), address.toLowerCase());
	assert.equal(parseHash(`0X${"AB".repeat(32)}`), `0x${"ab".repeat(32)}`);
	const short = address.slice(0, -1);
	for (const bad of [short, `${address}0`, address.slice(2), `${short}g`, `${short}\n`, ""]) {
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
	const tooLarge = `0x1${"0".repeat(64)}`;
	const bad = ["", "0x", "0x00", "0x01", "1", "0xg", "-0x1", "0x-1", " 0x1", "0x1 ", "0x1n", tooLarge];
	for (const text of bad) assert.equal(parseQuantity(text), null, JSON.stringify(text));
});

test("writes quantities", () => {
	assert.equal(toQuantity(0n), "0x0");
	assert.equal(toQuantity(255), "0xff");
	assert.equal(toQuantity(2n ** 64n), "0x10000000000000000");
	assert.throws(() => toQuantity(-1n), RangeError);
	assert.throws(() => toQuantity(1.5), RangeError);
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

function randomItem(random: SeededRandom, depth: number): RlpItem {
	if (depth === 0 || random.below(2) === 0)
		return random.bytes(random.pick([0, 1, 2, 20, 55, 56, 57, 255, 256, 300]));
	return Array.from({ length: random.below(6) }, () => randomItem(random, depth - 1));
}

type Structured = string | Structured[];
const structured = (item: RlpItem): Structured =>
	item instanceof Uint8Array ? bytesToHex(item) : item.map(structured);

/** Reads any item as the reader sees it. */
function readItem(source: RlpReader): Structured {
	if (!source.nextIsList()) return bytesToHex(source.string("item"));
	const items: Structured[] = [];
	const end = source.openList("item");
	while (source.hasMore()) items.push(readItem(source));
	source.closeList("item", end);
	return items;
}

test("encodes and reads random structures as ethers does", () => {
	const random = seededRandom(0x51ab);
	for (let round = 0; round < 500; round++) {
		const item = randomItem(random, 4);
		const encoded = rlpEncode(item);
		assert.equal(bytesToHex(encoded), encodeRlp(structured(item)));
		const source = new RlpReader(encoded);
		const read = readItem(source);
		source.close();
		assert.equal(source.fault, null);
		assert.deepEqual(read, decodeRlp(encoded));
	}
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

test("Keccak-256: known values", () => {
	const rows = [
		["", "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"],
		["abc", "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"],
	] as const;
	for (const [of, hash] of rows) assert.equal(keccak256(Buffer.from(of)).toString("hex"), hash);
});

// The hash takes in 136 bytes at a time: lengths on both sides of that are where an implementation goes wrong.
test("Keccak-256: as ethers hashes, in one part or many", () => {
	const random = seededRandom(0xabc);
	for (const length of [1, 31, 32, 135, 136, 137, 271, 272, 273, 1_000, 10_000]) {
		const bytes = random.bytes(length);
		const expected = byEthers(bytes);
		assert.equal(bytesToHex(keccak256(bytes)), expected);
		const cut = random.below(length);
		assert.equal(
			bytesToHex(keccak256(bytes.subarray(0, cut), new Uint8Array(bytes.subarray(cut)))),
			expected,
		);
	}
});
