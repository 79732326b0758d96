// A table of final records, and the fields of a day of the public statistics that each adds to.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type DayStats, NO_STATS, plusRecord } from "../../../../relay/domain/dayStats.ts";
import type { TxEvent } from "../../../../relay/domain/events.ts";
import { fold, newRecord } from "../../../../relay/domain/record.ts";
import { privateTransaction, testAccount } from "../../../support/txFactory.ts";

const at = 1_000;
const READY: TxEvent = { type: "ready", at, block: 10 };
const CASH = {
	bundle: "0x1",
	backrun: "0x2",
	bid: "3",
	cost: "0",
	owed: "2",
	payer: "0x3",
	recipient: "0x4",
};
const refunded = (block: number): TxEvent => ({
	type: "refunded",
	at,
	block,
	brought: "3",
	paid: "2",
	...CASH,
});
const included = (block: number, coinbase?: string, reverted = false): TxEvent => {
	const event = { type: "included", at, block, blockHash: `0x${block}`, index: 0, reverted } as const;
	return coinbase === undefined ? event : { ...event, coinbase };
};
const builtBy = (coinbase: string) => ({ "0xa": ["one"], "0xb": ["one", "two"] })[coinbase] ?? [];

/** Events of a transaction that is ready for block 10, and the fields of the day that differ. */
const CASES: readonly (readonly [string, readonly TxEvent[], Partial<DayStats>])[] = [
	["in the first block", [included(10, "0xa")], { waits: [1, 0, 0, 0, 0, 0, 0], builders: { one: 1 } }],
	["in the fourth", [included(13, "0xa")], { waits: [0, 0, 0, 1, 0, 0, 0], builders: { one: 1 } }],
	["in the hundredth", [included(109, "0xa")], { waits: [0, 0, 0, 0, 0, 0, 1], builders: { one: 1 } }],
	["before it was ready", [included(9, "0xa")], { waits: [1, 0, 0, 0, 0, 0, 0], builders: { one: 1 } }],
	["of two builders", [included(10, "0xb")], { waits: [1, 0, 0, 0, 0, 0, 0], builders: { "one, two": 1 } }],
	["of nobody known", [included(10, "0xc")], { waits: [1, 0, 0, 0, 0, 0, 0], others: 1 }],
	["of a block that was not read", [included(10)], { waits: [1, 0, 0, 0, 0, 0, 0], unknown: 1 }],
	["reverted", [included(10, "0xa", true)], {}],
	["reverted and paid for", [included(10, "0xa", true), refunded(10)], { brought: 3n }],
	[
		"in a second block, after the first has left the chain",
		[
			...[included(10, "0xa"), refunded(10)],
			...([
				{ type: "reorged", at, block: 10 },
				{ type: "exposed", at, block: 10, depth: 1 },
			] as const),
			included(11, "0xa"),
		],
		{},
	],
	["cancelled", [{ type: "cancelled", at, block: 9, builders: [] }], {}],
];

for (const [what, events, adds] of CASES) {
	test(`a transaction ${what}`, () => {
		const record = newRecord(privateTransaction({ by: testAccount(1) }));
		for (const event of [READY, ...events]) assert.ok(fold(record, event), event.type);
		const once = plusRecord(NO_STATS, record, builtBy);
		assert.deepEqual(once, { ...NO_STATS, ...adds });
		assert.equal(plusRecord(once, record, builtBy).brought, 2n * once.brought);
	});
}
