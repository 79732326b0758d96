// The RLP reader and encoder by themselves: the specification's examples, and faults that stay.

import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeRlp, encodeRlp } from "ethers";
import { bytesToHex } from "../../../../shared/ethereum/hex.ts";
import {
	type RlpItem,
	RlpReader,
	rlpEncode,
	rlpListHeader,
	uintToBytes,
} from "../../../../shared/ethereum/rlp.ts";
import { type SeededRandom, seededRandom } from "./seededRandom.ts";

const text = (value: string) => Buffer.from(value, "latin1");
const reader = (hex: string) => new RlpReader(Buffer.from(hex, "hex"));

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

test("list headers change form after 55 bytes", () => {
	assert.equal(rlpListHeader(55).toString("hex"), "f7");
	assert.equal(rlpListHeader(56).toString("hex"), "f838");
	assert.equal(rlpListHeader(256).toString("hex"), "f90100");
	assert.equal(rlpListHeader(0x10000).toString("hex"), "fa010000");
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

test("the first fault stays, and reads go on with nothing", () => {
	const source = reader("c300820005");
	const end = source.openList("outer");
	assert.equal(source.uint("first", 8), 0n);
	assert.equal(source.fault, "first: leading zero");
	assert.equal(source.uint("second", 8), 0n);
	assert.equal(source.string("third").length, 0);
	assert.equal(source.fixed("fourth", 4).length, 0);
	assert.equal(source.hasMore(), false);
	assert.equal(source.nextIsList(), false);
	source.openList("fifth");
	source.closeList("outer", end);
	source.close();
	source.fail("another");
	assert.equal(source.fault, "first: leading zero");
});

test("an item cannot reach over the end of its list", () => {
	const source = reader("c483646f6783646f67");
	const end = source.openList("outer");
	source.string("inner");
	source.closeList("outer", end);
	assert.equal(source.fault, null);
	const greedy = reader("c2836f676700");
	greedy.openList("outer");
	greedy.string("inner");
	assert.equal(greedy.fault, "inner: longer than what holds it");
	const last = reader("c181");
	last.openList("outer");
	last.string("inner");
	assert.equal(last.fault, "inner: longer than what holds it");
});

test("a list must be read to its end, and nothing may follow", () => {
	const source = reader("c20102");
	const end = source.openList("outer");
	source.uint("first", 1);
	source.closeList("outer", end);
	assert.equal(source.fault, "outer: more items than expected");
	const trailing = reader("0102");
	trailing.uint("first", 1);
	trailing.close();
	assert.equal(trailing.fault, "trailing bytes");
});

test("strings are views of the input", () => {
	const bytes = Buffer.from("83646f67", "hex");
	const view = new RlpReader(bytes).string("word");
	bytes[1] = 0x66;
	assert.equal(view.toString(), "fog");
});
