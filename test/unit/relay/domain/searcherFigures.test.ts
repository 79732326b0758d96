// Tests what one bundle in one block adds to a day's figures, and that removing it leaves nothing.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { BundleReason, BundleStage } from "../../../../relay/domain/bundleStatus.ts";
import { count, noFigures, settledFigures } from "../../../../relay/domain/searcherFigures.ts";
import { dayOf, dayText } from "../../../../shared/days.ts";

const TARGET = `0x${"0b".repeat(32)}`;
/** Stage, reason, whether builders had it, wei paid; what it adds beside one bid. */
const CASES: readonly (readonly [BundleStage, BundleReason | null, boolean, bigint | null, object])[] = [
	["ACCEPTED", null, false, null, {}],
	["SENT", null, true, null, { places: 1 }],
	["INCLUDED", null, true, 7n, { places: 1, landed: 1, paid: 7n }],
	["INCLUDED", null, true, null, { places: 1, landed: 1 }],
	["LOST", null, true, 7n, { places: 1, lost: { LOST: 1 } }],
	["NOT_PLACED", null, false, null, { lost: { NOT_PLACED: 1 } }],
	["NOT_PLACED", "reverted", false, null, { lost: { reverted: 1 } }],
	["TARGET_NOT_MINED", null, false, null, { lost: { TARGET_NOT_MINED: 1 } }],
	["NOT_INCLUDED", "notChosen", true, null, { places: 1, lost: { notChosen: 1 } }],
	["DROPPED", "invalid", false, null, { lost: { invalid: 1 } }],
	["REPLACED", null, true, null, { places: 1, withdrawn: 1 }],
	["CANCELLED", null, false, null, { withdrawn: 1 }],
];

for (const [stage, reason, placed, paid, adds] of CASES) {
	const name = [stage, reason, placed ? "with a place" : "", paid].filter(Boolean).join(" ");
	test(`a bundle that is ${name}`, () => {
		const status = { stage, reason, placed, paid };
		for (const [target, feedMs, one] of [
			[TARGET, 40, { bids: 1, timed: 1, feedMs: 40 }],
			[TARGET, null, { bids: 1 }],
			[null, null, { bundles: 1 }],
		] as const) {
			const figures = noFigures(3);
			count(figures, { target, feedMs }, status, 1);
			assert.deepEqual(figures, { ...noFigures(3), ...one, ...adds });
			count(figures, { target, feedMs }, status, -1);
			assert.deepEqual(figures, noFigures(3));
		}
	});
}

test("a reason that comes twice counts twice", () => {
	const figures = noFigures(3);
	const status = { stage: "DROPPED", reason: "invalid", placed: false, paid: null } as const;
	for (let i = 0; i < 2; i += 1) count(figures, { target: TARGET, feedMs: null }, status, 1);
	assert.deepEqual(figures.lost, { invalid: 2 });
});

test("settled figures are those of blocks that have arrived, and leave the others as they are", () => {
	const since = Date.UTC(2026, 0, 31);
	const at = (block: number, stage: BundleStage, day = 0) => ({
		...{
			block,
			stage,
			reason: null,
			bid: null,
			paid: null,
			placed: true,
			isDisclosed: true,
			blockHash: null,
		},
		...{ since: since + day * 86_400_000, at: since, deliveries: [] },
	});
	const record = {
		...{ owner: "me", client: "me", hash: "a", bidder: null, target: TARGET, receivedAt: since },
		...{ feedMs: null, simulatedAt: null, firstBlock: 7, lastBlock: 9 },
		blocks: [at(7, "LOST"), at(8, "CANCELLED"), at(9, "ACCEPTED", 1)],
	};
	const days = [noFigures(dayOf(since) + 1), noFigures(dayOf(since))];
	const figuresOf = (status: { since: number }) => days.find(({ day }) => day === dayOf(status.since));
	for (const status of record.blocks) count(figuresOf(status) ?? assert.fail(), record, status, 1);
	const all = structuredClone(days);
	const lost = { ...noFigures(dayOf(since)), bids: 1, places: 1, lost: { LOST: 1 } };
	const withdrawn = { ...lost, bids: 2, places: 2, withdrawn: 1 };
	for (const [head, expected] of [
		[6, []],
		[7, [lost]],
		[8, [withdrawn]],
		[9, all],
	] as const)
		assert.deepEqual(settledFigures(days, [record], head), expected, `at ${head}`);
	assert.deepEqual(days, all);
});

test("a day begins at midnight UTC", () => {
	const midnight = Date.UTC(2026, 1, 1);
	assert.deepEqual(
		[midnight - 1, midnight].map((ms) => dayText(dayOf(ms))),
		["2026-01-31", "2026-02-01"],
	);
});
