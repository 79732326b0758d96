// Keccak-256 against ethers and known values.

import assert from "node:assert/strict";
import { test } from "node:test";
import { keccak256 as byEthers } from "ethers";
import { bytesToHex } from "../../../../shared/ethereum/hex.ts";
import { keccak256 } from "../../../../shared/ethereum/signatures.ts";
import { seededRandom } from "./seededRandom.ts";

test("hashes known values", () => {
	const empty = "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470";
	assert.equal(keccak256().toString("hex"), empty);
	assert.equal(keccak256(new Uint8Array(0)).toString("hex"), empty);
	const abc = "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45";
	assert.equal(keccak256(Buffer.from("abc")).toString("hex"), abc);
});

// The hash takes in 136 bytes at a time: lengths on both sides of that are where an implementation goes wrong.
test("hashes as ethers does, in one part or many", () => {
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

test("does not change what it hashes, and answers fresh memory", () => {
	const bytes = Buffer.from("leeward");
	const first = keccak256(bytes);
	first.fill(0);
	assert.notDeepEqual(keccak256(bytes), first);
	assert.equal(bytes.toString(), "leeward");
});
