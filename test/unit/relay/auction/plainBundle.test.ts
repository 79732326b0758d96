// What makes a plain bundle what it is: its name, when two are the same, and what a block means for it.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	bytesOf,
	hashesOf,
	holdsAll,
	holdsAny,
	isSameAs,
	nameOf,
	type PlainBundle,
} from "../../../../relay/auction/plainBundle.ts";
import type { Block } from "../../../../relay/domain/chain.ts";
import { backrunOf } from "./bids.ts";

const TX = backrunOf(1, 0);

function bundleOf(fields: Partial<PlainBundle> = {}): PlainBundle {
	const range = { firstBlock: 101, lastBlock: 103 };
	return {
		record: { owner: "me", hash: "0xb", bidder: null, target: null, receivedAt: 1, ...range, blocks: [] },
		...{
			uuid: "u",
			owner: "me",
			hash: "0xb",
			hashes: ["0x1", "0x2"],
			bytes: 10,
			...range,
		},
		outgoing: {
			...{ name: "it", client: "192.0.2.1", isPlain: true, refund: null },
			transactions: [{ tx: TX, mayRevert: false, mayDrop: false }],
		},
		...{ builders: ["a"], outFor: null, landed: null, sentTo: [], trial: null, failedFor: null },
		release() {},
		...fields,
	};
}

test("an owner's uuid is a name; without one the bundle itself is; no two of them meet", () => {
	const names = [
		nameOf("me", "u", ["0xb", 101, 101]),
		nameOf("you", "u", ["0xb", 101, 101]),
		nameOf("me", "0xb", []),
		nameOf("me", null, ["0xb", 101, 101]),
		nameOf("me", null, ["0xb", 102, 102]),
		nameOf("me", '["0xb",101,101]', []),
		nameOf('me","u', "u", []),
	];
	assert.equal(new Set(names).size, names.length);
	assert.equal(nameOf("me", "u", ["0xb"]), nameOf("me", "u", ["0xc"]));
});

test("the very same content is the same bundle, also for more or other blocks, if those hold what it is out for", () => {
	const old = bundleOf({ outFor: 102 });
	assert.ok(isSameAs(old, bundleOf()));
	assert.ok(isSameAs(old, bundleOf({ firstBlock: 102, lastBlock: 102 })));
	assert.ok(isSameAs(bundleOf(), bundleOf({ firstBlock: 110, lastBlock: 120 })));
	assert.ok(!isSameAs(old, bundleOf({ firstBlock: 103 })));
	assert.ok(!isSameAs(old, bundleOf({ lastBlock: 101 })));
});

test("other builders, refunds or rights to revert make another bundle; so does one that is in a block already", () => {
	const { outgoing } = bundleOf();
	const refund = { percent: 9, recipient: "0xr", bodyIdx: 0, of: null };
	for (const other of [
		bundleOf({ hash: "0xc" }),
		bundleOf({ builders: ["a", "b"] }),
		bundleOf({ outgoing: { ...outgoing, refund } }),
		bundleOf({ outgoing: { ...outgoing, transactions: [{ tx: TX, mayRevert: true, mayDrop: false }] } }),
	]) {
		assert.ok(!isSameAs(bundleOf(), other));
	}
	assert.ok(!isSameAs(bundleOf({ landed: { number: 101, hash: "0x101" } }), bundleOf()));
});

test("a block holds all of it, some of it, or none", () => {
	const header = { number: 101, hash: "0x101", parentHash: "0x100", timestamp: 1, gasLimit: 1n, gasUsed: 1n };
	const fees = { baseFee: 1n, excessBlobGas: 0n, blobGasUsed: 0n, miner: "0xm", touched: [] };
	const told = (...hashes: readonly string[]) => {
		const block: Block = { ...header, ...fees, transactions: hashes.map((hash) => ({ hash, from: "0xf" })) };
		return [holdsAny(hashesOf(block), bundleOf()), holdsAll(hashesOf(block), bundleOf())];
	};
	assert.deepEqual(told("0x9", "0x1", "0x2"), [true, true]);
	assert.deepEqual(told("0x2", "0x9"), [true, false]);
	assert.deepEqual(told("0x9"), [false, false]);
});

test("its bytes are those of its transactions", () => {
	assert.equal(bytesOf([TX, backrunOf(1, 1, 300)]), TX.size + backrunOf(1, 1, 300).size);
});
