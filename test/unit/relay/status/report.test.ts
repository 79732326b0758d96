// Tests the public pages of a transaction: the status at every stage, and that events of shared
// transactions reveal neither hidden ones nor bids that lost.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { TxEvent } from "../../../../relay/domain/events.ts";
import { fold, newRecord, type TransactionRecord } from "../../../../relay/domain/record.ts";
import { eventsReport, statusReport } from "../../../../relay/status/report.ts";
import { STAGES, type Stage, stageReport } from "../../../../shared/ethereum/statusRecord.ts";
import { privateTransaction } from "../../../support/txFactory.ts";

const AT = Date.UTC(2026, 1, 3, 4, 5, 6, 7);
const at = Date.UTC(2026, 1, 3);
const RECIPIENT = `0x${"11".repeat(20)}`;
const TRANSACTION = privateTransaction({
	...{ nonce: 7, value: 10n ** 30n, gasLimit: 50_000, path: "noreverts", receivedAt: AT },
	...{ referrer: "wallet", refundRecipient: RECIPIENT, submitterAddress: "203.0.113.7" },
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
	return { ...record, stage };
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

test("each stage has its complete status record", () => {
	for (const stage of STAGES) {
		const record = recordAt(stage);
		const status = JSON.parse(JSON.stringify(statusReport(record)));
		if (STATUS[stage] === "UNKNOWN") {
			assert.deepEqual(status, { ...BLANK, ...stageReport(stage) }, stage);
			continue;
		}
		assert.deepEqual(status, {
			...{ status: STATUS[stage], hash, rpc_timestamp: "2026-02-03T04:05:06.007Z" },
			transaction: { from, to, gas: "50000", nonce: "7", value: (10n ** 30n).toString() },
			...{ fastMode: false, shared: false, simulationError: null, backruns: 0 },
			...{ referrer: "wallet", refundRecipient: RECIPIENT, refund: 0 },
			...stageReport(stage, { blockNumber: STATUS[stage] === "INCLUDED" ? record.block : null }),
		});
	}
});

test("what waits for a fee to fall is pending, and what expired by its simulation says why", () => {
	const low = "max fee per gas less than block base fee: max fee 1, base fee 8000000000";
	for (const [code, state] of [
		["FEE_CAP_TOO_LOW", "waiting for the base fee to fall"],
		["BLOB_FEE_CAP_TOO_LOW", "waiting for the blob base fee to fall"],
	] as const) {
		const record = { ...recordAt("SIMULATION_FAILED"), simulationError: { code, message: low } };
		const { nextStep, ...report } = statusReport(record);
		const held = { stage: "PENDING", state, blockNumber: null, reason: low, refundWei: "0" };
		assert.deepEqual(report, { ...BLANK, ...held });
		assert.match(nextStep ?? "", /^raise the fee cap .*, or wait until the (blob )?base fee falls$/);
		assert.equal((eventsReport(record, () => false) as { stage: string }).stage, "PENDING");
		const over = statusReport({ ...record, stage: "EXPIRED" });
		assert.deepEqual([over.status, over.reason, over.simulationError?.code], ["FAILED", low, code]);
	}
	// It was sent without a verdict.
	const unavailable = { code: "NODE_UNAVAILABLE", message: "the node did not answer" } as const;
	const sent = { ...recordAt("EXPIRED"), simulationError: unavailable };
	assert.equal(statusReport(sent).reason, "no block included it in time");
});

const OTHER = "0xother";

/** The public form of such events; `known`: hashes that are shared or mined. */
function eventsOf(shared: boolean, events: readonly TxEvent[], known: readonly string[] = []): object[] {
	const record = newRecord(privateTransaction());
	for (const event of [{ type: "received", at, block: 100 } as const, ...events]) {
		assert.ok(fold(record, event), event.type);
	}
	const report = eventsReport({ ...record, shared }, (hash) => known.includes(hash)) as { events: object[] };
	return report.events.slice(1).map(({ at: _, ...event }: { at?: string }) => event);
}

test("the reason for waiting is shown only for a transaction that was not shared", () => {
	const waiting = (reason: Extract<TxEvent, { type: "queued" }>["reason"]): TxEvent[] => [
		{ type: "queued", at, block: 100, reason },
		{ type: "ready", at, block: 101 },
	];
	const ready = { type: "ready", block: 101 };
	assert.deepEqual(eventsOf(false, waiting("nonceGap")), [{ type: "queued", reason: "nonceGap" }, ready]);
	assert.deepEqual(eventsOf(true, waiting("nonceGap")), [{ type: "queued" }, ready]);
	assert.deepEqual(eventsOf(true, waiting("behindHeld")), eventsOf(true, waiting("nonceGap")));
	assert.notDeepEqual(eventsOf(false, waiting("behindHeld")), eventsOf(false, waiting("nonceGap")));
});

/**
 * Whether it is shared; whether the replacement is discreet, and known; whether the replacement's
 * hash is shown.
 */
const REPLACED: readonly (readonly [shared: boolean, discreet: boolean, known: boolean, isNamed: boolean])[] =
	[
		[false, false, false, true],
		[false, true, false, false],
		[false, true, true, true],
		[true, false, false, false],
		[true, true, false, false],
		[true, false, true, true],
		[true, true, true, true],
	];

test("the replacement's hash is shown only if that reveals no hidden transaction, and `discreet` never", () => {
	for (const [shared, discreet, known, isNamed] of REPLACED) {
		const about = { at, block: 101, by: OTHER, builders: [], ...(discreet ? { discreet } : {}) };
		const expected = { type: "replaced", block: 101, builders: [], ...(isNamed ? { by: OTHER } : {}) };
		const events = eventsOf(shared, [{ type: "replaced", ...about }], known ? [OTHER] : []);
		assert.deepEqual(events, [expected], `${shared} ${discreet} ${known}`);
	}
});

test("builders are hidden for a transaction that searchers know and that was sent behind a hidden one", () => {
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
	assert.deepEqual(eventsOf(true, life(true)), [
		{ ...failed, error: { code } },
		...out,
		{ type: "cancelled", block: 101 },
	]);
	const [bundle, cancel] = ["bundle", "cancel"].map((kind) => ({
		...{ type: "delivered", block: 101, builder: "vault", kind, answer: "accepted", ms: 1 },
	}));
	const all = [{ ...failed, error }, ...out, { type: "cancelled", block: 101, builders: ["vault"] }];
	assert.deepEqual(eventsOf(true, life(false)), [...all, bundle, cancel]);
	const gas = { type: "simulated", block: 101, gasUsed: 21_000 };
	const withGas = all.map((event) => (event.type === "simulated" ? gas : event));
	assert.deepEqual(eventsOf(false, life(true)), [...withGas, bundle, cancel]);
});

const bundled = (name: string, block: number): TxEvent => ({
	...{
		type: "bundled",
		at,
		block,
		bundle: `bundle of ${name}`,
		backrun: `backrun ${name}`,
		bid: `wei of ${name}`,
	},
	builders: ["a", "b"],
});
const mined: TxEvent = { type: "included", at, block: 102, blockHash: "0x102", index: 0, reverted: false };
const refunded = (paid: string): TxEvent => ({
	...{
		type: "refunded",
		at,
		block: 102,
		bundle: "bundle of W",
		backrun: "backrun W",
		bid: "wei of W",
		brought: "6",
	},
	...{ cost: "1", owed: "4", paid, payer: "0xd", recipient: "0xe" },
});

/** A record with bids that lost in block 101, and in 102 before the winner. */
function withBids(...more: readonly TxEvent[]): TransactionRecord {
	const one = { ...newRecord(privateTransaction()), shared: true };
	for (const event of [
		{ type: "received", at, block: 100 } as const,
		{ type: "broadcast", at, block: 101 } as const,
		{ type: "bid", at, bundle: "0xb" } as const,
		bundled("L1", 101),
		bundled("L2", 102),
		bundled("W", 102),
		...more,
	]) {
		assert.ok(fold(one, event), event.type);
	}
	return one;
}

const textOf = (one: TransactionRecord) => JSON.stringify(eventsReport(one, () => false));

test("bids that lost are never shown, however the transaction ended", () => {
	const about = { at, block: 102 };
	const ends: readonly TxEvent[] = [
		{ type: "cancelled", ...about, builders: [] },
		{ type: "replaced", ...about, by: "0xother", builders: [] },
		{ type: "expired", ...about },
		{ type: "dropped", ...about },
		mined,
	];
	for (const end of ends) {
		const one = withBids(end);
		for (const secret of ["bundle of", "backrun ", "wei of"])
			assert.ok(!textOf(one).includes(secret), `${end.type}: ${secret}`);
		assert.equal(statusReport(one).backruns, end === mined ? 1 : 0);
	}
});

test("only the mined bid is shown, with its refund", () => {
	const one = withBids(mined, refunded("4"));
	assert.ok(!textOf(one).includes("L1") && !textOf(one).includes("L2"));
	const { events } = eventsReport(one, () => false) as { events: Record<string, unknown>[] };
	const at = "2026-02-03T00:00:00.000Z";
	assert.deepEqual(
		events.filter(({ type }) => type === "bundled"),
		[
			{ type: "bundled", at, block: 101, builders: ["a", "b"] },
			{ type: "bundled", at, block: 102, builders: ["a", "b"] },
			{ ...bundled("W", 102), at },
		],
	);
	assert.deepEqual(events.at(-1), { ...refunded("4"), at });
});

test("a refund is shown as the nearest number of ETH", () => {
	for (const [wei, ether] of [
		["0", "0"],
		["1", "1e-18"],
		["990", "9.9e-16"],
		["1000000000000000000", "1"],
		["1500000000000000000", "1.5"],
		["123456789012345678901", "123.456789012345678901"],
		["999999999999999999", "0.999999999999999999"],
	] as const) {
		assert.equal(statusReport(withBids(mined, refunded(wei))).refund, Number(ether), wei);
	}
});

test("bids are reported only with its block, to everybody", () => {
	const one = newRecord(privateTransaction());
	const told = () => [
		(eventsReport(one, () => false) as { bids?: number }).bids,
		statusReport(one).backruns,
		(eventsReport(one, () => false) as { events: { type: string }[] }).events.map(({ type }) => type),
	];
	assert.ok(fold(one, { type: "received", at, block: 100 }));
	assert.ok(fold(one, { type: "ready", at, block: 101 }));
	assert.ok(fold(one, { type: "bid", at, bundle: "0xb" }));
	assert.ok(fold(one, { type: "broadcast", at, block: 101 }));
	const bundled = {
		type: "bundled",
		at,
		block: 101,
		bundle: "0xb",
		backrun: "0xc",
		bid: "5",
		builders: ["a"],
	} as const;
	assert.ok(fold(one, bundled));
	assert.deepEqual(told(), [undefined, 0, ["received", "ready", "broadcast"]]);
	assert.ok(
		fold(one, { type: "simulationFailed", at, block: 101, error: { code: "OUT_OF_GAS", message: "no" } }),
	);
	assert.deepEqual(told().slice(0, 2), [undefined, 0]);
	assert.ok(fold(one, { type: "included", at, block: 101, blockHash: "0x1", index: 0, reverted: false }));
	assert.deepEqual(told(), [
		1,
		1,
		["received", "ready", "broadcast", "bundled", "simulationFailed", "included"],
	]);
});

test("its life is counted from its first block, which begins again", () => {
	const told = () => (eventsReport(one, () => false) as { firstBlock: number | null }).firstBlock;
	const one = newRecord(privateTransaction());
	assert.ok(fold(one, { type: "received", at, block: 100 }));
	assert.equal(told(), null);
	assert.ok(fold(one, { type: "ready", at, block: 101 }));
	assert.equal(told(), 101);
	assert.ok(fold(one, { type: "queued", at, block: 102, reason: "nonceGap" }));
	assert.equal(told(), null);
});
