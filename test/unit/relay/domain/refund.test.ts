// What a builder owes of a backrun, to the wei.

import assert from "node:assert/strict";
import { test } from "node:test";
import { owedRefund } from "../../../../relay/domain/refund.ts";

const ETHER = 10n ** 18n;

/** Brought, base fee, percent, gas; cost, owed. */
const ROWS: readonly (readonly [bigint, bigint, number, number, bigint, bigint])[] = [
	[1_000n, 10n, 90, 0, 0n, 900n],
	[1_000n, 10n, 90, 3, 30n, 870n],
	[1_000n, 10n, 99, 0, 0n, 990n],
	[1_000n, 10n, 100, 0, 0n, 1_000n],
	[1_000n, 10n, 0, 0, 0n, 0n],
	// Rounded down.
	[1n, 10n, 90, 0, 0n, 0n],
	[19n, 10n, 90, 0, 0n, 17n],
	// Never below zero.
	[1_000n, 10n, 90, 90, 900n, 0n],
	[1_000n, 10n, 90, 91, 910n, 0n],
	[0n, 10n, 90, 21_000, 210_000n, 0n],
	// Beyond what a number holds.
	[ETHER * 10n ** 9n + 1n, 10n ** 9n, 90, 21_000, 21_000n * 10n ** 9n, 9n * 10n ** 26n - 21_000n * 10n ** 9n],
];
for (const [brought, baseFee, percent, refundGas, cost, owed] of ROWS) {
	test(`${percent} % of ${brought}, less ${refundGas} gas at ${baseFee}: ${owed}`, () => {
		assert.deepEqual(owedRefund(brought, baseFee, { percent, refundGas }), { cost, owed });
	});
}
