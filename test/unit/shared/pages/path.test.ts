// The standing of a transaction, by its stage and its events: the verdict, the steps of its path,
// the rows of its builders, and the form of a wallet's own cancel.

import assert from "node:assert/strict";
import { test } from "node:test";
import { STAGES, stageReport } from "../../../../shared/ethereum/statusRecord.ts";

interface Step {
	readonly name: string;
	readonly state: string;
	readonly note: string;
}
interface PathModule {
	isLive(record: object): boolean;
	isMined(record: object): boolean;
	isOwnCancel(transaction: object, isReplacement: boolean): boolean;
	verdictOf(record: object): string;
	stepsOf(record: object, known: object): readonly Step[];
	builderRows(life: object | null, makers: readonly string[] | null): readonly object[];
}
// The pages' scripts have no types.
const path = "../../../../shared/pages/path.js";
const { isLive, isMined, isOwnCancel, verdictOf, stepsOf, builderRows } = (await import(path)) as PathModule;

const AT = "2026-11-23T09:00:00.000Z";
const NONE = { life: null, journal: null, by: null };

test("each stage has one verdict", () => {
	const verdicts = {
		...{ PENDING: "wait", QUEUED: "act", SIMULATION_FAILED: "act", SHARED: "wait", BROADCAST: "wait" },
		...{ INCLUDED: "done", REVERTED: "lost", REPLACED: "done", CANCELLED: "done", EXPIRED: "lost" },
		...{ DROPPED: "lost", HELD: "wait" },
	};
	assert.deepEqual(Object.keys(verdicts).sort(), [...STAGES, "HELD"].sort());
	for (const [stage, verdict] of Object.entries(verdicts)) {
		assert.equal(verdictOf(stageReport(stage)), verdict, stage);
		assert.ok(isLive({ stage }) !== (verdict === "done" || verdict === "lost"), stage);
		assert.equal(isMined({ stage }), stage === "INCLUDED" || stage === "REVERTED", stage);
	}
});

test("one that waits for a fee is up to its user; one that the node can't simulate is not", () => {
	const low = { code: "FEE_CAP_TOO_LOW", message: "max fee 1, base fee 10500000000" };
	assert.equal(verdictOf(stageReport("PENDING", { error: low })), "act");
	const error = { code: "NODE_UNAVAILABLE", message: "no answer" };
	const report = { ...stageReport("SIMULATION_FAILED", { error }), simulationError: error };
	assert.equal(verdictOf(report), "wait");
});

/** Events of these types, all at one time. */
const eventsOf = (...types: readonly string[]) => ({
	events: types.map((type) => ({ type, at: AT, block: 5 })),
});

const STEPS: readonly (readonly [what: string, record: object, known: object, steps: string])[] = [
	["new", { stage: "PENDING" }, { life: eventsOf("received") }, "done now todo todo todo"],
	[
		"disclosed before its simulation",
		{ stage: "SHARED", shared: true },
		{ life: eventsOf("received", "shared") },
		"done now done todo todo",
	],
	["simulated", { stage: "PENDING" }, { life: eventsOf("received", "simulated") }, "done done todo now todo"],
	[
		"sent",
		{ stage: "BROADCAST" },
		{ life: eventsOf("received", "simulated", "broadcast") },
		"done done skipped done now",
	],
	[
		"sent unsimulated",
		{ stage: "BROADCAST" },
		{ life: eventsOf("received", "notSimulated", "broadcast") },
		"done skipped skipped done now",
	],
	[
		"failing after it was sent",
		{ stage: "SIMULATION_FAILED", shared: true },
		{ life: eventsOf("received", "simulated", "shared", "broadcast", "simulationFailed") },
		"done failed done todo todo",
	],
	[
		"submitted again after its end",
		{ stage: "PENDING" },
		{ life: eventsOf("received", "simulated", "broadcast", "expired", "received") },
		"done now todo todo todo",
	],
	[
		"cancelled before it was sent",
		{ stage: "CANCELLED" },
		{ life: eventsOf("received", "simulated", "cancelled") },
		"done done skipped skipped done",
	],
	[
		"mined and reverted",
		{ stage: "REVERTED", blockNumber: 5 },
		{ life: eventsOf("received", "simulated", "broadcast", "included") },
		"done done skipped done failed",
	],
	[
		"carried by the fallback",
		{ stage: "HELD" },
		{ by: "journal", journal: { fallback: "has" } },
		"done skipped skipped done now",
	],
	[
		"at boost alone",
		{ stage: "HELD" },
		{ by: "journal", journal: { fallback: "absent" } },
		"done now todo todo todo",
	],
];

test("the steps of the path show what is done, what is next and what was left out", () => {
	for (const [what, record, known, expected] of STEPS) {
		const steps = stepsOf({ shared: false, state: "", ...record }, { ...NONE, ...known });
		assert.equal(steps.map(({ state }) => state).join(" "), expected, what);
	}
});

test("the last step has the name of the end", () => {
	for (const [stage, name] of [
		["INCLUDED", "Mined"],
		["CANCELLED", "Cancelled"],
		["REPLACED", "Replaced"],
		["EXPIRED", "Expired"],
		["DROPPED", "Dropped"],
	] as const) {
		assert.equal(stepsOf({ stage, shared: false }, NONE).at(-1)?.name, name);
	}
	const steps = stepsOf({ stage: "REPLACED", shared: false }, { ...NONE, ownCancel: { hash: "0x" } });
	assert.equal(steps.at(-1)?.name, "Cancelled");
});

test("each builder has one row: its last answers, and whether it made the block", () => {
	const delivered = (builder: string, answer: string, more: object = {}) => ({
		...{ type: "delivered", builder, kind: "bundle", answer, block: 5 },
		...more,
	});
	const life = {
		events: [
			delivered("a", "accepted"),
			delivered("a", "rejected", { block: 6 }),
			delivered("a", "unsent", { block: 7 }),
			delivered("a", "accepted", { kind: "cancel", block: 7 }),
			delivered("b", "timeout"),
			delivered("b", "accepted", { kind: "cancel", backrun: true }),
			delivered("c", "unsent"),
		],
	};
	const rows = (makers: readonly string[] | null) =>
		builderRows(life, makers).map((row) => Object.values(row).join("|"));
	assert.deepEqual(rows(["b"]), ["a|6|rejected|yes|no", "b|5|no answer|–|yes", "c|no|–|–|no"]);
	assert.deepEqual(
		rows([]).map((row) => row.split("|").at(-1)),
		["not known", "not known", "not known"],
	);
	assert.deepEqual(
		rows(null).map((row) => row.split("|").at(-1)),
		["–", "–", "–"],
	);
	assert.deepEqual(builderRows(null, null), []);
});

test("a transfer to its sender without data is a cancel: of nothing by itself, of any amount as a replacement", () => {
	const own = { type: "0x2", from: "0xAb", to: "0xab", input: "0x", value: "0x0" };
	const rows: readonly (readonly [transaction: object, alone: boolean, replacing: boolean])[] = [
		[own, true, true],
		[{ ...own, value: "0x1" }, false, true],
		[{ ...own, input: "0x00" }, false, false],
		[{ ...own, to: "0xcd" }, false, false],
		[{ ...own, to: null }, false, false],
		[{ ...own, type: "0x4" }, false, false],
	];
	for (const [transaction, alone, replacing] of rows) {
		assert.deepEqual([isOwnCancel(transaction, false), isOwnCancel(transaction, true)], [alone, replacing]);
	}
});
