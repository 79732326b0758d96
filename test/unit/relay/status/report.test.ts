// The status record and the events of a transaction at every stage of its life, as JSON written by hand.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { TxEvent } from "../../../../relay/domain/events.ts";
import {
	fold,
	newRecord,
	STAGES,
	type Stage,
	type TransactionRecord,
} from "../../../../relay/domain/record.ts";
import { eventsReport, statusReport } from "../../../../relay/status/report.ts";
import { stageReport } from "../../../../shared/ethereum/statusRecord.ts";
import { privateTransaction } from "../../../support/txFactory.ts";

const AT = Date.UTC(2026, 1, 3, 4, 5, 6, 7);
const RECIPIENT = `0x${"11".repeat(20)}`;
const TRANSACTION = privateTransaction({
	...{ nonce: 7, value: 10n ** 30n, gasLimit: 50_000, path: "noreverts", receivedAt: AT },
	...{ referrer: "wallet", refundRecipient: RECIPIENT, origin: "203.0.113.7" },
});
const { hash, from, to } = TRANSACTION.tx;
const error = { code: "EXECUTION_REVERTED", message: "execution reverted: no", data: "0x08" } as const;

const BLANK = {
	...{ status: "UNKNOWN", hash, rpc_timestamp: null },
	transaction: { from: "", to: "", gas: "", nonce: "", value: "" },
	...{ fastMode: false, shared: false, simulationError: null, backruns: 0 },
	...{ referrer: null, refundRecipient: null, refund: 0 },
};

function recordAt(stage: Stage, transaction = TRANSACTION): TransactionRecord {
	const record = newRecord(transaction);
	fold(record, { type: "received", at: AT, block: 100 });
	record.stage = stage;
	return record;
}

const STATUS: Readonly<Record<Stage, "INCLUDED" | "FAILED" | "UNKNOWN">> = {
	...{ PENDING: "UNKNOWN", QUEUED: "UNKNOWN", SHARED: "UNKNOWN", BROADCAST: "UNKNOWN" },
	...{ INCLUDED: "INCLUDED", REVERTED: "INCLUDED" },
	...{
		SIMULATION_FAILED: "FAILED",
		REPLACED: "FAILED",
		CANCELLED: "FAILED",
		EXPIRED: "FAILED",
		DROPPED: "FAILED",
	},
};

for (const stage of STAGES) {
	test(`at ${stage} the status is ${STATUS[stage]}`, () => {
		const record = recordAt(stage);
		const told = JSON.parse(JSON.stringify(statusReport(record)));
		if (STATUS[stage] === "UNKNOWN") {
			assert.deepEqual(told, { ...BLANK, ...stageReport(stage) });
			return;
		}
		assert.deepEqual(told, {
			...{ status: STATUS[stage], hash, rpc_timestamp: "2026-02-03T04:05:06.007Z" },
			transaction: { from, to, gas: "50000", nonce: "7", value: (10n ** 30n).toString() },
			...{ fastMode: false, shared: false, simulationError: null, backruns: 0 },
			...{ referrer: "wallet", refundRecipient: RECIPIENT, refund: 0 },
			...stageReport(stage, { blockNumber: STATUS[stage] === "INCLUDED" ? record.block : null }),
		});
	});
}

test("fastMode and shared are true to the transaction, pending or not", () => {
	for (const [path, fastMode] of [
		["fast", true],
		["noreverts", false],
		["fullprivacy", false],
		["maxbackruns", false],
		["nochecks", false],
	] as const) {
		for (const stage of ["BROADCAST", "INCLUDED"] as const) {
			const record = recordAt(stage, privateTransaction({ path }));
			record.shared = path === "maxbackruns";
			const told = statusReport(record);
			assert.deepEqual([told.fastMode, told.shared], [fastMode, path === "maxbackruns"], `${path} ${stage}`);
		}
	}
});

test("a failing simulation is told with its reason while it fails, and not before or after", () => {
	const record = newRecord(TRANSACTION);
	const told = (event: TxEvent) => {
		assert.ok(fold(record, event));
		const { status, simulationError } = statusReport(record);
		return [status, simulationError];
	};
	assert.deepEqual(told({ type: "received", at: AT, block: 100 }), ["UNKNOWN", null]);
	assert.deepEqual(told({ type: "simulationFailed", at: AT, block: 101, error }), ["FAILED", error]);
	assert.deepEqual(told({ type: "queued", at: AT, block: 100, reason: "nonceGap" }), ["UNKNOWN", null]);
	assert.deepEqual(told({ type: "ready", at: AT, block: 102 }), ["UNKNOWN", null]);
	assert.deepEqual(told({ type: "simulationFailed", at: AT, block: 102, error }), ["FAILED", error]);
	assert.deepEqual(told({ type: "expired", at: AT, block: 127 }), ["FAILED", error]);
	const inclusion = { block: 128, blockHash: "0xb", index: 0, reverted: true } as const;
	assert.deepEqual(told({ type: "included", at: AT, ...inclusion }), ["INCLUDED", null]);
});

test("a creation has no receiver, and what the sender did not say is null", () => {
	const told = statusReport(recordAt("INCLUDED", privateTransaction({ to: null })));
	assert.equal(told.transaction.to, "");
	assert.deepEqual([told.referrer, told.refundRecipient], [null, null]);
});

test("the events are its whole life in order of time, deliveries among them", () => {
	const record = newRecord(TRANSACTION);
	const delivery = { type: "delivered", block: 101, kind: "bundle", answer: "accepted", ms: 9 } as const;
	for (const event of [
		{ type: "received", at: AT, block: 100 },
		{ type: "ready", at: AT + 1, block: 101 },
		{ type: "simulated", at: AT + 2, block: 101, gasUsed: 21_000 },
		{ type: "broadcast", at: AT + 2, block: 101 },
		{ ...delivery, at: AT + 5, builder: "b" },
		{ ...delivery, at: AT + 2, builder: "a", answer: "timeout" },
		{ type: "included", at: AT + 4, block: 101, blockHash: "0xb", index: 3, reverted: false },
	] as const) {
		assert.ok(fold(record, event), event.type);
	}
	assert.deepEqual(JSON.parse(JSON.stringify(eventsReport(record, () => false))), {
		...{ hash, stage: "INCLUDED", omitted: 0 },
		events: [
			{ type: "received", at: "2026-02-03T04:05:06.007Z", block: 100 },
			{ type: "ready", at: "2026-02-03T04:05:06.008Z", block: 101 },
			{ type: "simulated", at: "2026-02-03T04:05:06.009Z", block: 101, gasUsed: 21_000 },
			{ type: "broadcast", at: "2026-02-03T04:05:06.009Z", block: 101 },
			{ ...delivery, at: "2026-02-03T04:05:06.009Z", builder: "a", answer: "timeout" },
			{
				...{ type: "included", at: "2026-02-03T04:05:06.011Z", block: 101 },
				...{ blockHash: "0xb", index: 3, reverted: false },
			},
			{ ...delivery, at: "2026-02-03T04:05:06.012Z", builder: "b" },
		],
	});
});

test("nothing tells the raw transaction, its data, its signature or who submitted it", () => {
	const secret = "c0ffee".repeat(10);
	const transaction = privateTransaction({ data: `0x${secret}`, origin: "203.0.113.7" });
	const { r, s, raw } = transaction.tx;
	const texts = STAGES.flatMap((stage) => {
		const record = recordAt(stage, transaction);
		return [JSON.stringify(statusReport(record)), JSON.stringify(eventsReport(record, () => false))];
	});
	for (const hidden of [secret, r.toString(16), s.toString(16), raw.toString("hex"), "203.0.113.7"]) {
		for (const text of texts) assert.ok(!text.includes(hidden), hidden);
	}
});
