// Bundles: the blocks that they are for, by the interface's rules on block numbers; a bid as the builders get it; and what
// makes a plain bundle what it is.

import assert from "node:assert/strict";
import { test } from "node:test";
import { backrunBundle, backrunName } from "../../../../relay/auction/bids.ts";
import {
	bytesOf,
	hashesOf,
	holdsAll,
	holdsAny,
	isSameAs,
	nameOf,
	type PlainBundle,
} from "../../../../relay/auction/plainBundle.ts";
import { blockRange, bundleHash, comingOf } from "../../../../relay/domain/bundle.ts";
import type { Block } from "../../../../relay/domain/chain.ts";
import { keccak256 } from "../../../../shared/ethereum/signatures.ts";
import { privateTransaction } from "../../../support/txFactory.ts";
import { backrunOf, bidOf } from "./bids.ts";

/** A range, or how the refusal's message begins. */
type Expected = readonly [number, number] | string;

/** First and last as asked for at head 100. */
const RANGES: readonly (readonly [bigint | null, bigint | null, Expected])[] = [
	[null, null, [101, 101]],
	[100n, null, [101, 101]],
	[100n, 100n, [101, 101]],
	[101n, null, [101, 101]],
	[101n, 101n, [101, 101]],
	[102n, null, [102, 102]],
	[130n, null, [130, 130]],
	[130n, 160n, [130, 160]],
	[100n, 105n, [101, 105]],
	[1n, 105n, [101, 105]],
	[0n, 101n, [101, 101]],
	[99n, null, "BLOCK_PAST bundle block 99 is in the past"],
	[0n, null, "BLOCK_PAST bundle block 0 is in the past"],
	[98n, 100n, "BLOCK_PAST bundle block 100 is in the past"],
	[131n, null, "BLOCK_TOO_FAR bundle block 131 is too far ahead"],
	[131n, 140n, "BLOCK_TOO_FAR bundle block 131 is too far ahead"],
	[2n ** 64n, null, `BLOCK_TOO_FAR bundle block ${2n ** 64n} is too far ahead`],
];

/** Asked for at head 100 and read again when the next block is so and so. */
const COMING: readonly (readonly [bigint | null, bigint | null, number, Expected])[] = [
	[null, null, 101, [101, 101]],
	[null, null, 103, [103, 103]],
	[101n, null, 101, [101, 101]],
	[101n, null, 102, "BLOCK_PAST bundle block 101 is in the past"],
	[100n, null, 102, "BLOCK_PAST bundle block 101 is in the past"],
	[105n, null, 103, [105, 105]],
	[99n, 104n, 103, [103, 104]],
	[99n, 104n, 104, [104, 104]],
	[99n, 104n, 105, "BLOCK_PAST bundle block 104 is in the past"],
	// A reorganisation may have lowered the head.
	[105n, 107n, 100, [105, 107]],
];

const told = (range: ReturnType<typeof blockRange>) =>
	range.ok ? [range.first, range.last] : `${range.code} ${range.message}`;

test("the blocks of a bundle are those asked for that are to come, 30 ahead at most", () => {
	for (const [first, last, expected] of RANGES) {
		assert.deepEqual(told(blockRange({ first, last }, 100)), expected, `${first} to ${last}`);
	}
	for (const [first, last, next, expected] of COMING) {
		const asked = { first, last };
		const range = blockRange(asked, 100);
		assert.ok(range.ok);
		assert.deepEqual(told(comingOf(asked, range, next)), expected, `${first} to ${last} at ${next}`);
	}
});

/** Whose the refund is that is not the sender's. */
const RECIPIENT = `0x${"77".repeat(20)}`;

test("a backrun must not revert and may be dropped; its target may as its path says; the refund is the user's", () => {
	for (const [path, mayRevert, refundRecipient] of [
		["fast", true, null],
		["noreverts", false, RECIPIENT],
		["maxbackruns", true, null],
	] as const) {
		const target = privateTransaction({ path, refundRecipient });
		const bid = bidOf({ target: target.tx.hash });
		const recipient = refundRecipient ?? target.tx.from;
		assert.deepEqual(backrunBundle(bid, target, 107, 55), {
			name: backrunName(target.tx.hash, bid.owner),
			transactions: [
				{ tx: target.tx, mayRevert, mayDrop: false },
				{ tx: bid.backrun, mayRevert: false, mayDrop: true },
			],
			...{ block: 107, client: bid.client, isPlain: false },
			refund: { percent: 55, recipient, bodyIdx: 0, of: bid.backrun.hash },
		});
	}
});

test("a bundle's hash is the keccak256 of its transactions' hashes in a row, and of nothing where there are none", () => {
	const [a, b] = [`0x${"0a".repeat(32)}`, `0x${"b0".repeat(32)}`];
	const of = (hex: string) => `0x${Buffer.from(keccak256(Buffer.from(hex, "hex"))).toString("hex")}`;
	assert.equal(bundleHash([a, b]), of("0a".repeat(32) + "b0".repeat(32)));
	assert.equal(bundleHash([]), "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470");
});

test("bids of one owner on one target have one name; an owner's uuid is a name; without one the bundle itself is", () => {
	const names = [
		...[backrunName("0xt", "me"), backrunName("0xu", "me"), backrunName("0xt", "you")],
		nameOf("me", "u", ["0xb", 101, 101]),
		nameOf("you", "u", ["0xb", 101, 101]),
		nameOf("me", "0xb", []),
		nameOf("me", null, ["0xb", 101, 101]),
		nameOf("me", null, ["0xb", 102, 102]),
		nameOf("me", '["0xb",101,101]', []),
		nameOf('me","u', "u", []),
	];
	assert.equal(new Set(names).size, names.length, "no two of them meet");
	assert.equal(nameOf("me", "u", ["0xb"]), nameOf("me", "u", ["0xc"]));
});

const TX = backrunOf(1, 0);

function bundleOf(fields: Partial<PlainBundle> = {}): PlainBundle {
	const range = { firstBlock: 101, lastBlock: 103 };
	return {
		record: { owner: "me", hash: "0xb", bidder: null, target: null, receivedAt: 1, ...range, blocks: [] },
		...{ uuid: "u", owner: "me", hash: "0xb", hashes: ["0x1", "0x2"], bytes: 10, ...range },
		outgoing: {
			...{ name: "it", client: "192.0.2.1", isPlain: true, refund: null },
			transactions: [{ tx: TX, mayRevert: false, mayDrop: false }],
		},
		...{ builders: ["a"], outFor: null, landed: null, sentTo: [], trial: null, failedFor: null },
		release() {},
		...fields,
	};
}

test("the very same content is the same bundle, also for other blocks, if those hold what it is out for", () => {
	const { outgoing } = bundleOf();
	const refund = { percent: 9, recipient: "0xr", bodyIdx: 0, of: null };
	const reverting = [{ tx: TX, mayRevert: true, mayDrop: false }];
	const out = { outFor: 102 };
	const rows: readonly (readonly [Partial<PlainBundle>, Partial<PlainBundle>, boolean])[] = [
		[out, {}, true],
		[out, { firstBlock: 102, lastBlock: 102 }, true],
		[{}, { firstBlock: 110, lastBlock: 120 }, true],
		[out, { firstBlock: 103 }, false],
		[out, { lastBlock: 101 }, false],
		[{}, { hash: "0xc" }, false],
		[{}, { builders: ["a", "b"] }, false],
		[{}, { outgoing: { ...outgoing, refund } }, false],
		[{}, { outgoing: { ...outgoing, transactions: reverting } }, false],
		[{ landed: { number: 101, hash: "0x101" } }, {}, false],
	];
	for (const [i, [old, fresh, isSame]] of rows.entries()) {
		assert.equal(isSameAs(bundleOf(old), bundleOf(fresh)), isSame, `row ${i}`);
	}
});

test("a block holds all of it, some of it, or none; its bytes are those of its transactions", () => {
	const header = { number: 101, hash: "0x101", parentHash: "0x100", timestamp: 1, gasLimit: 1n, gasUsed: 1n };
	const fees = { baseFee: 1n, excessBlobGas: 0n, blobGasUsed: 0n, miner: "0xm", touched: [] };
	const told = (...hashes: readonly string[]) => {
		const block: Block = { ...header, ...fees, transactions: hashes.map((hash) => ({ hash, from: "0xf" })) };
		return [holdsAny(hashesOf(block), bundleOf()), holdsAll(hashesOf(block), bundleOf())];
	};
	assert.deepEqual(told("0x9", "0x1", "0x2"), [true, true]);
	assert.deepEqual(told("0x2", "0x9"), [true, false]);
	assert.deepEqual(told("0x9"), [false, false]);
	assert.equal(bytesOf([TX, backrunOf(1, 1, 300)]), TX.size + backrunOf(1, 1, 300).size);
});
