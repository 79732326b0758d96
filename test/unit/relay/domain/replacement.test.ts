// Replacements by their fees.

import assert from "node:assert/strict";
import { test } from "node:test";
import { mayReplace } from "../../../../relay/domain/replacement.ts";
import { signedTransaction, type TxOptions } from "../../../support/txFactory.ts";

const fees = (cap: bigint | number, tip: bigint | number): TxOptions => ({
	maxFeePerGas: cap,
	maxPriorityFeePerGas: tip,
});
const legacy = (gasPrice: number): TxOptions => ({ type: 0, gasPrice });
const blob = (cap: number, tip: number, blobFee: number): TxOptions => ({
	...{ type: 3, sidecarVersion: 0, maxFeePerBlobGas: blobFee },
	...fees(cap, tip),
});
const BIG = 2n ** 200n;

/** Held; fresh; whether it may. */
const REPLACEMENTS: readonly (readonly [TxOptions, TxOptions, boolean])[] = [
	[fees(100, 10), fees(110, 11), true],
	[fees(100, 10), fees(109, 11), false],
	[fees(100, 10), fees(110, 10), false],
	[fees(100, 10), fees(1_000, 10), false],
	// Ten percent of 15 is 1.5, of which 1 counts: wallets cut off too.
	[fees(150, 15), fees(165, 15), false],
	[fees(150, 15), fees(165, 16), true],
	// Ten percent of next to nothing is nothing: a wei more at least.
	[fees(1, 1), fees(1, 1), false],
	[fees(1, 1), fees(2, 2), true],
	[fees(19, 19), fees(20, 20), true],
	[fees(20, 20), fees(21, 21), false],
	[fees(0, 0), fees(1, 1), true],
	// No rounding, however large.
	[fees(BIG * 10n, BIG * 10n), fees(BIG * 11n, BIG * 11n), true],
	[fees(BIG * 10n, BIG * 10n), fees(BIG * 11n - 1n, BIG * 11n), false],
	// A gas price is both fees.
	[legacy(100), legacy(110), true],
	[legacy(100), fees(110, 110), true],
	[legacy(100), fees(110, 109), false],
	[fees(100, 10), legacy(109), false],
	[{ type: 1, gasPrice: 100 }, { type: 4, ...fees(110, 109) }, false],
	// Blobs have a third fee.
	[blob(100, 10, 50), blob(110, 11, 55), true],
	[blob(100, 10, 50), blob(110, 11, 54), false],
	[blob(100, 10, 50), fees(110, 11), true],
	[fees(100, 10), blob(110, 11, 1), true],
];

test("a replacement needs ten percent more on every fee, and at least a wei", () => {
	for (const [held, fresh, may] of REPLACEMENTS) {
		const text = JSON.stringify([held, fresh], (_, value) =>
			typeof value === "bigint" ? `${value}` : value,
		);
		assert.equal(mayReplace(signedTransaction(fresh), signedTransaction(held)), may, text);
	}
});
