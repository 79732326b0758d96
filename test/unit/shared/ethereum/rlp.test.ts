// RLP: the specification's examples, and integers of every length.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type RlpItem, RlpReader, rlpEncode, uintToBytes } from "../../../../shared/ethereum/rlp.ts";

const text = (value: string) => Buffer.from(value, "latin1");
const LOREM = text("Lorem ipsum dolor sit amet, consectetur adipisicing elit");
/** https://ethereum.org/en/developers/docs/data-structures-and-encoding/rlp/#examples */
const EXAMPLES: readonly [RlpItem, string][] = [
	[text("dog"), "83646f67"],
	[[text("cat"), text("dog")], "c88363617483646f67"],
	[text(""), "80"],
	[[], "c0"],
	[uintToBytes(0n), "80"],
	[Buffer.from([0]), "00"],
	[uintToBytes(1024n), "820400"],
	[[[], [[]], [[], [[]]]], "c7c0c1c0c3c0c1c0"],
	[LOREM, `b838${LOREM.toString("hex")}`],
];

test("RLP: the specification's examples, and integers of every length", () => {
	for (const [item, hex] of EXAMPLES) assert.equal(rlpEncode(item).toString("hex"), hex);
	for (let bits = 0n; bits < 256n; bits += 1n) {
		for (const value of [1n << bits, (1n << bits) - 1n]) {
			const source = new RlpReader(rlpEncode(uintToBytes(value)));
			assert.deepEqual([source.uint("n", 32), source.fault], [value, null]);
		}
	}
	assert.throws(() => uintToBytes(-1n), RangeError);
});
