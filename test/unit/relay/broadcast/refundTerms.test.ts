// Tests a builder's refund terms: what is asked for, within its row.

import assert from "node:assert/strict";
import { test } from "node:test";
import { refundTerms } from "../../../../relay/broadcast/dialects.ts";
import { type BuilderRow, parseBuilders } from "../../../../relay/domain/builder.ts";
import { owedRefund } from "../../../../relay/domain/refund.ts";

function row(options: Partial<BuilderRow>): BuilderRow {
	const parsed = parseBuilders([{ name: "b", url: "https://b.example", ...options }]);
	assert.ok(parsed.ok && parsed.rows[0] !== undefined);
	return parsed.rows[0];
}

for (const [asked, max, percent] of [
	[90, 99, 90],
	[100, 99, 99],
	[90, 50, 50],
	[90, 90, 90],
	[0, 99, 0],
] as const) {
	test(`${asked} % of a builder that takes ${max} % at most are ${percent} %`, () => {
		const terms = refundTerms(row({ maxRefundPercent: max, refundGas: 21_000 }), asked);
		assert.deepEqual(terms, { percent, refundGas: 21_000 });
	});
}

test("a builder that pays nothing has no terms", () => {
	assert.equal(refundTerms(row({ refund: false }), 90), null);
	assert.equal(refundTerms(row({ refund: true, maxRefundPercent: 0 }), 90), null);
	assert.deepEqual(refundTerms(row({}), 90), { percent: 90, refundGas: 0 });
});

test("what is owed on these terms", () => {
	const terms = refundTerms(row({ maxRefundPercent: 99, refundGas: 21_000 }), 90);
	assert.ok(terms !== null);
	assert.deepEqual(owedRefund(1_000_000n, 7n, terms), { cost: 147_000n, owed: 753_000n });
	assert.deepEqual(owedRefund(100_000n, 7n, terms), { cost: 147_000n, owed: 0n });
});
