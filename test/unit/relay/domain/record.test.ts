// The record of one transaction, folded from scenarios of events: what its stage, its life and its limits become.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { TxEvent } from "../../../../relay/domain/events.ts";
import {
	fold,
	MAX_DELIVERIES,
	MAX_EVENTS,
	newRecord,
	type TransactionRecord,
} from "../../../../relay/domain/record.ts";
import { privateTransaction } from "../../../support/txFactory.ts";

const error = { code: "EXECUTION_REVERTED", message: "execution reverted: no", data: "0x" } as const;
const received = (block: number): TxEvent => ({ type: "received", at: 1, block });
const queued = (reason: "nonceGap" | "behindHeld" | "behindUnchecked"): TxEvent => ({
	type: "queued",
	at: 1,
	block: 100,
	reason,
});
const ready = (block: number): TxEvent => ({ type: "ready", at: 1, block });
const passed = (block: number): TxEvent => ({ type: "simulated", at: 1, block, gasUsed: 21_000 });
const failed = (block: number): TxEvent => ({ type: "simulationFailed", at: 1, block, error });
const broadcast = (block: number): TxEvent => ({ type: "broadcast", at: 1, block });
const delivered = (block: number): TxEvent => ({
	...{ type: "delivered", at: 1, block },
	...{ builder: "b", kind: "bundle", answer: "accepted", ms: 12 },
});
const included = (block: number, reverted = false): TxEvent => ({
	...{ type: "included", at: 1, block, blockHash: `0x${block}`, index: 0, reverted },
});
const reorged = (block: number): TxEvent => ({ type: "reorged", at: 1, block });
const replaced = (block: number): TxEvent => ({
	type: "replaced",
	at: 1,
	block,
	by: "0xother",
	builders: [],
});
const cancelled = (block: number): TxEvent => ({ type: "cancelled", at: 1, block, builders: [] });
const expired = (block: number): TxEvent => ({ type: "expired", at: 1, block });
const dropped = (block: number): TxEvent => ({ type: "dropped", at: 1, block });

/** A record after `events`, every one of which must be legal. */
function after(...events: readonly TxEvent[]): TransactionRecord {
	const record = newRecord(privateTransaction());
	for (const event of events) assert.ok(fold(record, event), `${event.type} at ${record.stage}`);
	return record;
}

test("a new record tells the transaction's fields as text that fits JSON", () => {
	const transaction = privateTransaction({
		...{ nonce: 7, value: 2n ** 255n, gasLimit: 2n ** 40n, to: null, data: "0x00" },
		...{ path: "noreverts", referrer: "wallet", refundRecipient: `0x${"11".repeat(20)}`, receivedAt: 42 },
	});
	const record = newRecord(transaction);
	assert.deepEqual(record, {
		...{ hash: transaction.tx.hash, receivedAt: 42, path: "noreverts", from: transaction.tx.from, to: null },
		...{ gas: (2n ** 40n).toString(), nonce: "7", value: (2n ** 255n).toString() },
		...{ referrer: "wallet", refundRecipient: `0x${"11".repeat(20)}`, origin: transaction.origin },
		...{ stage: "PENDING", ended: null, shared: false, behindHidden: false },
		...{ simulationError: null, block: null },
		...{ blockHash: null, firstBlock: null, passed: false, backruns: 0, refund: "0" },
		...{ events: [], deliveries: [], omitted: 0 },
	});
	assert.deepEqual(JSON.parse(JSON.stringify(record)), record);
});

test("its life starts when its nonce is next in line, and only then", () => {
	const record = after(received(100), queued("nonceGap"));
	assert.equal(record.firstBlock, null);
	assert.ok(fold(record, ready(140)));
	assert.equal(record.firstBlock, 140);
	assert.equal(record.stage, "PENDING");
});

test("its life starts anew where it had to wait again, for whatever reason", () => {
	for (const reason of ["nonceGap", "behindHeld", "behindUnchecked"] as const) {
		const record = after(received(100), ready(101), broadcast(101), queued(reason));
		assert.equal(record.firstBlock, null, reason);
		assert.ok(fold(record, ready(110)), reason);
		assert.equal(record.firstBlock, 110, reason);
	}
});

test("a failing simulation is told until one passes", () => {
	const record = after(received(100), ready(101), failed(101));
	assert.deepEqual(record.simulationError, error);
	assert.equal(record.passed, false);
	assert.ok(fold(record, passed(102)));
	assert.equal(record.simulationError, null);
	assert.equal(record.passed, true);
	assert.ok(fold(record, failed(103)));
	assert.deepEqual([record.stage, record.passed], ["SIMULATION_FAILED", true]);
});

test("mined, taken back by a reorganisation, mined again", () => {
	const record = after(received(100), ready(101), passed(101), broadcast(101), included(101));
	assert.deepEqual([record.stage, record.block], ["INCLUDED", 101]);
	assert.ok(fold(record, reorged(101)));
	assert.equal(record.stage, "PENDING");
	assert.ok(fold(record, broadcast(102)));
	assert.ok(fold(record, included(102, true)));
	assert.deepEqual([record.stage, record.block], ["REVERTED", 102]);
});

for (const [name, end, stage] of [
	["replaced", replaced, "REPLACED"],
	["cancelled", cancelled, "CANCELLED"],
	["expired", expired, "EXPIRED"],
] as const) {
	test(`${name}, then mined all the same, then reorganised: ${name} again`, () => {
		const record = after(received(100), ready(101), broadcast(101), end(110), included(111));
		assert.equal(record.stage, "INCLUDED");
		assert.ok(fold(record, reorged(111)));
		assert.equal(record.stage, stage);
		assert.ok(fold(record, included(112)));
		assert.ok(fold(record, reorged(112)));
		assert.equal(record.stage, stage);
	});
}

test("dropped because its nonce was used; the block goes; it is pending again", () => {
	const record = after(received(100), ready(101), broadcast(101), dropped(101), reorged(101));
	assert.deepEqual([record.stage, record.ended], ["PENDING", null]);
});

test("dropped, mined all the same (the nonce was its own), reorganised: pending", () => {
	const record = after(received(100), broadcast(101), dropped(101), included(101), reorged(101));
	assert.equal(record.stage, "PENDING");
});

for (const [name, end] of [
	["expired", expired],
	["dropped", dropped],
] as const) {
	test(`${name} and admitted anew: a new life, of which a reorganisation takes nothing`, () => {
		const record = after(received(100), ready(101), failed(101), end(126), received(200));
		assert.deepEqual(
			[record.stage, record.ended, record.firstBlock, record.passed, record.simulationError],
			["PENDING", null, null, false, null],
		);
		for (const event of [ready(201), broadcast(201), included(201), reorged(201)]) {
			assert.ok(fold(record, event));
		}
		assert.equal(record.stage, "PENDING");
		assert.equal(record.events[0]?.type, "received");
	});
}

test("an end is told with its block, and being shared is never forgotten", () => {
	const record = after(received(100), ready(101), { type: "shared", at: 1 }, broadcast(101), expired(126));
	assert.deepEqual([record.block, record.shared, record.ended], [126, true, "EXPIRED"]);
});

test("an illegal event changes nothing at all", () => {
	const record = after(received(100), ready(101), included(101));
	const before = structuredClone(record);
	for (const event of [included(102), broadcast(102), expired(102), received(103), replaced(104)]) {
		assert.equal(fold(record, event), false, event.type);
		assert.deepEqual(record, before, event.type);
	}
});

test("deliveries are kept beside the events, whatever the stage", () => {
	const record = after(received(100), broadcast(101), delivered(101), included(101), delivered(101));
	assert.deepEqual(
		record.events.map((event) => event.type),
		["received", "broadcast", "included"],
	);
	assert.deepEqual(record.deliveries[0], {
		...{ at: 1, block: 101, builder: "b", kind: "bundle", answer: "accepted", ms: 12 },
	});
	assert.equal(record.deliveries.length, 2);
});

test("events and deliveries are bounded, and what no longer fits is counted", () => {
	const record = after(received(100));
	for (let i = 0; i < MAX_EVENTS + 50; i += 1) assert.ok(fold(record, broadcast(101 + i)));
	for (let i = 0; i < MAX_DELIVERIES + 30; i += 1) assert.ok(fold(record, delivered(101 + i)));
	assert.equal(record.events.length, MAX_EVENTS);
	assert.equal(record.deliveries.length, MAX_DELIVERIES);
	assert.equal(record.omitted, 51 + 30);
	assert.ok(fold(record, included(999)));
	assert.deepEqual([record.stage, record.block, record.omitted], ["INCLUDED", 999, 82]);
});

test("how it ended is told even of a life with too many events", () => {
	const record = after(received(100));
	for (let i = 0; i < MAX_EVENTS; i += 1) assert.ok(fold(record, broadcast(101 + i)));
	assert.ok(fold(record, included(999)));
	assert.equal(record.events.at(-1)?.type, "included");
	assert.ok(record.events.length <= MAX_EVENTS);
	assert.equal(record.events[0]?.type, "received");
});

test("a cancel's acknowledgement is kept even behind very many deliveries", () => {
	const record = after(received(100));
	for (let i = 0; i < MAX_DELIVERIES; i += 1) assert.ok(fold(record, delivered(101 + i)));
	assert.ok(
		fold(record, {
			...{ type: "delivered", at: 1, block: 999 },
			...{ builder: "b", kind: "cancel", answer: "accepted", ms: 3 },
		}),
	);
	assert.equal(record.deliveries.at(-1)?.kind, "cancel");
	assert.ok(record.deliveries.length <= MAX_DELIVERIES);
});
