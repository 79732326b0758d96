// What the public events of a shared transaction keep to themselves: searchers know its hash, and nothing of it may tell
// what hidden ones stand before, behind or in the place of it.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { TxEvent } from "../../../../relay/domain/events.ts";
import { fold, newRecord } from "../../../../relay/domain/record.ts";
import { eventsReport } from "../../../../relay/status/report.ts";
import { privateTransaction } from "../../../support/txFactory.ts";

const at = Date.UTC(2026, 1, 3);
const OTHER = "0xother";
const error = { code: "EXECUTION_REVERTED", message: "execution reverted" } as const;

/** What is told of such events; `known`: hashes that are shared or mined. */
function told(shared: boolean, events: readonly TxEvent[], known: readonly string[] = []): object[] {
	const record = newRecord(privateTransaction());
	for (const event of [{ type: "received", at, block: 100 } as const, ...events]) {
		assert.ok(fold(record, event), event.type);
	}
	record.shared = shared;
	const report = eventsReport(record, (hash) => known.includes(hash)) as { events: object[] };
	return report.events.slice(1).map(({ at: _, ...event }: { at?: string }) => event);
}

test("why it waited is told of one that nobody was shown, and not of a shared one: all of those look alike", () => {
	const waiting = (reason: Extract<TxEvent, { type: "queued" }>["reason"]): TxEvent[] => [
		{ type: "queued", at, block: 100, reason },
		{ type: "ready", at, block: 101 },
	];
	const ready = { type: "ready", block: 101 };
	assert.deepEqual(told(false, waiting("nonceGap")), [{ type: "queued", reason: "nonceGap" }, ready]);
	assert.deepEqual(told(true, waiting("nonceGap")), [{ type: "queued" }, ready]);
	assert.deepEqual(told(true, waiting("behindHeld")), told(true, waiting("nonceGap")));
	assert.notDeepEqual(told(false, waiting("behindHeld")), told(false, waiting("nonceGap")));
});

test("the gas that it took behind hidden ones is not told of a shared one", () => {
	const simulated: TxEvent = { type: "simulated", at, block: 101, gasUsed: 21_000 };
	assert.deepEqual(told(false, [simulated]), [{ type: "simulated", block: 101, gasUsed: 21_000 }]);
	assert.deepEqual(told(true, [simulated]), [{ type: "simulated", block: 101 }]);
	// That it failed is told of both.
	const failed: TxEvent = { type: "simulationFailed", at, block: 101, error };
	assert.deepEqual(told(true, [failed]), told(false, [failed]));
});

for (const [name, shared, discreet, known, isNamed] of [
	["not shared, by a hidden one", false, false, false, true],
	["not shared, discreetly, by a hidden one", false, true, false, false],
	["not shared, discreetly, by one that is known", false, true, true, true],
	["shared, by a hidden one", true, false, false, false],
	["shared, discreetly, by a hidden one", true, true, false, false],
	["shared, by one that is known", true, false, true, true],
	["shared, discreetly, by one that is known", true, true, true, true],
] as const) {
	test(`replaced, ${name}: the other's hash is ${isNamed ? "told" : "not told"}, how it came to it never`, () => {
		const replaced: TxEvent = {
			type: "replaced",
			at,
			block: 101,
			by: OTHER,
			builders: [],
			...(discreet ? { discreet } : {}),
		};
		const expected = { type: "replaced", block: 101, builders: [], ...(isNamed ? { by: OTHER } : {}) };
		assert.deepEqual(told(shared, [replaced], known ? [OTHER] : []), [expected]);
	});
}

test("who has had it is told to nobody of one that searchers know and that went out behind a hidden one", () => {
	const life = (behindHidden: boolean): TxEvent[] => [
		{ type: "simulationFailed", at, block: 101, error },
		{ type: "simulated", at, block: 101, gasUsed: 21_000 },
		{ type: "broadcast", at, block: 101, behindHidden },
		{ type: "delivered", at, block: 101, builder: "vault", kind: "bundle", answer: "accepted", ms: 1 },
		{ type: "cancelled", at, block: 101, builders: ["vault"] },
		{ type: "delivered", at, block: 101, builder: "vault", kind: "cancel", answer: "accepted", ms: 1 },
	];
	const failed = { type: "simulationFailed", block: 101 };
	const out = [
		{ type: "simulated", block: 101 },
		{ type: "broadcast", block: 101 },
	];
	const { code } = error;
	assert.deepEqual(told(true, life(true)), [
		{ ...failed, error: { code } },
		...out,
		{ type: "cancelled", block: 101 },
	]);
	const [bundle, cancel] = ["bundle", "cancel"].map((kind) => ({
		...{ type: "delivered", block: 101, builder: "vault", kind, answer: "accepted", ms: 1 },
	}));
	const all = [{ ...failed, error }, ...out, { type: "cancelled", block: 101, builders: ["vault"] }];
	assert.deepEqual(told(true, life(false)), [...all, bundle, cancel]);
	const gas = { type: "simulated", block: 101, gasUsed: 21_000 };
	const untold = all.map((event) => (event.type === "simulated" ? gas : event));
	assert.deepEqual(told(false, life(true)), [...untold, bundle, cancel]);
});

test("how many have confirmed is not told of such a one", () => {
	for (const [shared, behindHidden, expected] of [
		[true, true, undefined],
		[true, false, "1 of 2 builders confirmed"],
		[false, true, "1 of 2 builders confirmed"],
	] as const) {
		const record = newRecord(privateTransaction());
		for (const event of [
			{ type: "received", at, block: 100 },
			{ type: "broadcast", at, block: 101, behindHidden },
			{ type: "cancelled", at, block: 101, builders: ["a", "b"] },
			{ type: "delivered", at, block: 101, builder: "b", kind: "cancel", answer: "accepted", ms: 1 },
		] as const) {
			assert.ok(fold(record, event), event.type);
		}
		record.shared = shared;
		const { cancels } = eventsReport(record, () => false) as { cancels?: { summary: string } };
		assert.equal(cancels?.summary, expected);
	}
});
