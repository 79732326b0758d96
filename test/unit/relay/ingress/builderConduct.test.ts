// Tests the operator's views of builders' conduct: sums of thirty days, the CSV, and the shares for
// the public.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Conduct, noConduct } from "../../../../relay/domain/conduct.ts";
import {
	conductRows,
	conductShares,
	conductSums,
	conductView,
	SUM_DAYS,
} from "../../../../relay/ingress/builderConduct.ts";

const row = (day: number, builder: string, counts: Partial<Conduct> = {}): Conduct => ({
	...noConduct(day, builder),
	...counts,
});

test("a sum has the last thirty days of any builder, and what is found in them", () => {
	const rows = [
		row(100, "a", { sent: 1, minedAfterCancel: 1 }),
		row(101, "a", { sent: 2, minedAfterCancel: 1 }),
		row(100 + SUM_DAYS, "a", { sent: 4, owed: 3n, paid: 2n }),
		row(100 + SUM_DAYS, "b", { sent: 8, minedAfterCancel: 2 }),
	];
	const told = conductSums(rows).map(({ builder, sent, owedWei, paidWei, findings }) => {
		return [builder, sent, owedWei, paidWei, ...findings];
	});
	assert.deepEqual(told, [
		["a", 6, "3", "2"],
		["b", 8, "0", "0", "ignoresCancels"],
	]);
	assert.deepEqual(conductSums([]), []);
});

test("the CSV has a line for each day and builder", () => {
	const rows = [row(20_484, "a.b-1", { sent: 3, accepted: 2, failed: 1, owed: 10n ** 20n, paid: 1n })];
	assert.deepEqual(conductRows(rows.map(conductView)).map(String), [
		"day,builder,sent,accepted,refused,failed,mined,backrun,otherBackrun,noBackrun,shortRefunds,minedAfterCancel,seenAlone,canaries,leakedCanaries,owedWei,paidWei",
		"2026-01-31,a.b-1,3,2,0,1,0,0,0,0,0,0,0,0,0,100000000000000000000,1",
	]);
});

test("shares are parts, and none where there is nothing to divide", () => {
	const rows = [
		row(1, "a", { mined: 2, backrun: 1, noBackrun: 1, owed: 3n, paid: 2n }),
		row(2, "a", { mined: 1, backrun: 2, owed: 3n, paid: 3n }),
		row(2, "b", { mined: 1, owed: 1n, paid: 2n }),
		row(2, "c"),
	];
	assert.deepEqual(conductShares(rows), [
		{ builder: "a", mined: 0.75, backrun: 0.75, refunded: 0.8333 },
		{ builder: "b", mined: 0.25, backrun: null, refunded: 1 },
		{ builder: "c", mined: 0, backrun: null, refunded: null },
	]);
	assert.deepEqual(conductShares([row(1, "a")])[0]?.mined, null);
});
