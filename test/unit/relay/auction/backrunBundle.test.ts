// A bid as the builders get it: names, order, what may revert or be dropped, and whose the refund is.

import assert from "node:assert/strict";
import { test } from "node:test";
import { backrunBundle, backrunName } from "../../../../relay/auction/bids.ts";
import { bundleHash } from "../../../../relay/domain/bundle.ts";
import { keccak256 } from "../../../../shared/ethereum/signatures.ts";
import { privateTransaction } from "../../../support/txFactory.ts";
import { bidOf } from "./bids.ts";

const RECIPIENT = `0x${"77".repeat(20)}`;

for (const [path, mayRevert] of [
	["fast", true],
	["noreverts", false],
	["maxbackruns", true],
] as const) {
	test(`behind a target of /${path} that ${mayRevert ? "may" : "must not"} revert; the backrun must not, and may be dropped`, () => {
		const target = privateTransaction({ path });
		const bid = bidOf({ target: target.tx.hash });
		assert.deepEqual(backrunBundle(bid, target, 107, 90), {
			name: backrunName(target.tx.hash, bid.owner),
			transactions: [
				{ tx: target.tx, mayRevert, mayDrop: false },
				{ tx: bid.backrun, mayRevert: false, mayDrop: true },
			],
			...{ block: 107, client: bid.client, isPlain: false },
			refund: { percent: 90, recipient: target.tx.from, bodyIdx: 0, of: bid.backrun.hash },
		});
	});
}

test("the refund is the recipient's where there is one", () => {
	const target = privateTransaction({ refundRecipient: RECIPIENT });
	assert.equal(backrunBundle(bidOf(), target, 107, 55).refund?.recipient, RECIPIENT);
	assert.equal(backrunBundle(bidOf(), target, 107, 55).refund?.percent, 55);
});

test("all bids of one owner on one target have one name; others' and those on others have other ones", () => {
	const target = privateTransaction();
	const names = [1, 2].map(() => backrunBundle(bidOf({ owner: "me" }), target, 1, 90).name);
	assert.deepEqual(names, [backrunName("0xt", "me"), backrunName("0xt", "me")]);
	assert.equal(new Set([...names, backrunName("0xu", "me"), backrunName("0xt", "you")]).size, 3);
});

test("a bundle's hash is the keccak256 of its transactions' hashes in a row, and of nothing where there are none", () => {
	const [a, b] = [`0x${"0a".repeat(32)}`, `0x${"b0".repeat(32)}`];
	const of = (hex: string) => `0x${Buffer.from(keccak256(Buffer.from(hex, "hex"))).toString("hex")}`;
	assert.equal(bundleHash([a, b]), of("0a".repeat(32) + "b0".repeat(32)));
	assert.notEqual(bundleHash([a, b]), bundleHash([b, a]));
	assert.equal(bundleHash([]), "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470");
});
