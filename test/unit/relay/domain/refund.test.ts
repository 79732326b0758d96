// Tests what a builder owes a user and what it takes off for paying it, as tables.

import assert from "node:assert/strict";
import { test } from "node:test";
import { owedRefund } from "../../../../relay/domain/refund.ts";
import { AMSTERDAM, OSAKA } from "../../../support/forks.ts";

const ETHER = 10n ** 18n;

/** Brought, base fee, percent, gas; cost, owed. */
const REFUNDS: readonly (readonly [bigint, bigint, number, number, bigint, bigint])[] = [
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
test("a builder owes its percentage of what a backrun brought, less its gas, to the wei", () => {
	for (const [brought, baseFee, percent, refundGas, cost, owed] of REFUNDS) {
		const payout = { fork: AMSTERDAM, baseFee, isNew: true };
		assert.deepEqual(owedRefund(brought, { percent, refundGas }, payout), { cost, owed }, `${brought}`);
	}
});

/**
 * The amounts that a builder deducts from 90 % of a million wei, at a base fee of 1 wei: for an
 * existing account, and for a new one.
 */
const COSTS = [
	[OSAKA, "usual", 0n, 0n],
	[OSAKA, "transfer", 21_000n, 21_000n],
	[AMSTERDAM, "usual", 21_000n, 204_600n],
	[AMSTERDAM, "transfer", 21_000n, 204_600n],
	[AMSTERDAM, 0, 0n, 0n],
	[AMSTERDAM, 5, 5n, 5n],
] as const;
test("paying a refund costs what the fork makes of it, unless the builder's row says otherwise", () => {
	for (const [fork, refundGas, ...costs] of COSTS) {
		const found = [false, true].map((isNew) =>
			owedRefund(1_000_000n, { percent: 90, refundGas }, { fork, baseFee: 1n, isNew }),
		);
		const expected = costs.map((cost) => ({ cost, owed: 900_000n - cost }));
		assert.deepEqual(found, expected, `${fork.name} ${refundGas}`);
	}
});
