// Tests the lifecycle table by a matrix written by hand from the status promises: every stage meets every event.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { TxEvent } from "../../../../relay/domain/events.ts";
import {
	fold,
	isEndedByUser,
	isLive,
	isMined,
	newRecord,
	nextStage,
	STAGES,
	type Stage,
	TRANSITIONS,
} from "../../../../relay/domain/record.ts";
import { privateTransaction } from "../../../support/txFactory.ts";

const at = 1;
const block = 100;
const error = { code: "EXECUTION_REVERTED", message: "execution reverted" } as const;
const inclusion = { at, block, blockHash: "0xb", index: 0 } as const;
const delivery = { at, block, builder: "b", kind: "bundle", answer: "accepted", ms: 1 } as const;

const EVENTS = {
	received: { type: "received", at, block },
	queued: { type: "queued", at, block: 100, reason: "nonceGap" },
	ready: { type: "ready", at, block },
	simulated: { type: "simulated", at, block, gasUsed: 21_000 },
	simulationFailed: { type: "simulationFailed", at, block, error },
	shared: { type: "shared", at },
	bid: { type: "bid", at, bundle: "0xb" },
	bundled: { type: "bundled", at, block, bundle: "0xb", backrun: "0xc", bid: "1", builders: [] },
	refunded: {
		...{ type: "refunded", at, block, bundle: "0xb", backrun: "0xc", bid: "1", brought: "1" },
		...{ cost: "0", owed: "1", paid: "1", payer: "0xd", recipient: "0xe" },
	},
	broadcast: { type: "broadcast", at, block },
	delivered: { type: "delivered", ...delivery },
	included: { type: "included", ...inclusion, reverted: false },
	includedReverted: { type: "included", ...inclusion, reverted: true },
	reorged: { type: "reorged", at, block },
	replaced: { type: "replaced", at, block, by: "0xc", builders: [] },
	cancelled: { type: "cancelled", at, block, builders: ["b"] },
	expired: { type: "expired", at, block },
	dropped: { type: "dropped", at, block },
} as const satisfies Record<string, TxEvent>;

const LETTERS: Readonly<Record<string, Stage>> = {
	P: "PENDING",
	Q: "QUEUED",
	F: "SIMULATION_FAILED",
	S: "SHARED",
	B: "BROADCAST",
	I: "INCLUDED",
	V: "REVERTED",
	R: "REPLACED",
	C: "CANCELLED",
	E: "EXPIRED",
	D: "DROPPED",
};

/** One row an event: what each stage becomes; a dot where the event can't happen there. */
const MATRIX: Readonly<Record<keyof typeof EVENTS, string>> = {
	//                 P Q F S B I V R C E D
	// Admitted, and admitted anew where it had expired or was dropped; its user's own end is never undone.
	received: "        P . . . . . . . . P P",
	queued: "          Q Q Q Q Q . . . . . .",
	ready: "           P P F S B . . . . . .",
	// What waits in the queue is not simulated.
	simulated: "       P . P S B . . . . . .",
	simulationFailed: "F . F F F . . . . . .",
	shared: "          S Q F . B . . . . . .",
	// A bid is accepted while its target may still be sent, and listed as bundled while that is.
	bid: "             P Q F S B . . . . . .",
	bundled: "         . . . . B . . . . . .",
	refunded: "        . . . . . I V . . . .",
	// Neither what waits nor what fails is sent.
	broadcast: "       B . . B B . . . . . .",
	delivered: "       P Q F S B I V R C E D",
	// A builder may mine what had ended a moment ago; nothing is mined twice without a reorganisation between.
	included: "        I I I I I . . I I I I",
	includedReverted: "V V V V V . . V V V V",
	// The block of a dropped one is that of the transaction that used its nonce.
	reorged: "         . . . . . P P . . . P",
	replaced: "        R R R R R . . . . R .",
	// One that expired would come back with its bytes: its user may end that.
	cancelled: "       C C C C C . . . . C .",
	expired: "         E E E E E . . . . . .",
	dropped: "         D D D D D . . . . . .",
};

test("every stage meets every event as the matrix says", () => {
	const order = Object.values(LETTERS);
	assert.deepEqual(order, [...STAGES]);
	for (const name of Object.keys(EVENTS) as (keyof typeof EVENTS)[]) {
		const cells = MATRIX[name].trim().split(/\s+/);
		assert.equal(cells.length, order.length, name);
		order.forEach((stage, i) => {
			const cell = cells[i] ?? "";
			const expected = cell === "." ? null : LETTERS[cell];
			assert.equal(nextStage(stage, EVENTS[name], null), expected, `${name} at ${stage}`);
		});
	}
});

test("the matrix has a row for each type of event", () => {
	const types = new Set(Object.values(EVENTS).map((event) => event.type));
	assert.equal(types.size, Object.keys(EVENTS).length - 1);
	assert.deepEqual([...types].sort(), Object.keys(TRANSITIONS).sort());
});

test("what is illegal changes nothing of a record, what is legal its stage as the matrix says", () => {
	for (const name of Object.keys(EVENTS) as (keyof typeof EVENTS)[]) {
		for (const stage of STAGES) {
			const record = { ...newRecord(privateTransaction()), stage };
			const before = structuredClone(record);
			const next = nextStage(stage, EVENTS[name], null);
			assert.equal(fold(record, EVENTS[name]), next !== null, `${name} at ${stage}`);
			if (next === null) assert.deepEqual(record, before, `${name} at ${stage}`);
			else assert.equal(record.stage, next, `${name} at ${stage}`);
		}
	}
});

test("what its user ended is never live again, whatever happens behind it", () => {
	for (const end of [EVENTS.cancelled, EVENTS.replaced]) {
		// Every stage that can be reached from there, with how it had ended.
		const seen = new Set<Stage>();
		const first = newRecord(privateTransaction());
		assert.equal(fold(first, end), true);
		const ways = [first];
		for (let from = ways.shift(); from !== undefined; from = ways.shift()) {
			seen.add(from.stage);
			for (const event of Object.values(EVENTS)) {
				const record = structuredClone(from);
				if (fold(record, event) && !seen.has(record.stage)) ways.push(record);
			}
		}
		const ended = end.type === "cancelled" ? "CANCELLED" : "REPLACED";
		assert.deepEqual([...seen].sort(), [ended, "INCLUDED", "REVERTED"].sort());
	}
});

test("what expired and was cancelled then goes back to that, not to expired", () => {
	const record = newRecord(privateTransaction());
	const { received, expired, cancelled, included, reorged } = EVENTS;
	const stages = [received, expired, cancelled, included, reorged, received].map((event) => {
		const legal = fold(record, event);
		return legal ? record.stage : "illegal";
	});
	assert.deepEqual(stages, ["PENDING", "EXPIRED", "CANCELLED", "INCLUDED", "CANCELLED", "illegal"]);
});

test("a reorganisation takes back to how it had ended, never to life", () => {
	for (const ended of ["REPLACED", "CANCELLED", "EXPIRED"] as const) {
		for (const mined of ["INCLUDED", "REVERTED"] as const) {
			assert.equal(nextStage(mined, EVENTS.reorged, ended), ended);
		}
	}
});

test("how it had ended changes no other event", () => {
	for (const name of Object.keys(EVENTS) as (keyof typeof EVENTS)[]) {
		if (name === "reorged") continue;
		for (const stage of STAGES) {
			assert.equal(
				nextStage(stage, EVENTS[name], "EXPIRED"),
				nextStage(stage, EVENTS[name], null),
				`${name} at ${stage}`,
			);
		}
	}
});

test("each stage is live, mined, or ended by its user or the relay", () => {
	const kinds = STAGES.map((stage) =>
		[isLive(stage) && "live", isMined(stage) && "mined", isEndedByUser(stage) && "user"]
			.filter(Boolean)
			.join(),
	);
	assert.deepEqual(kinds, [
		...["live", "live", "live", "live", "live"],
		...["mined", "mined"],
		...["user", "user"],
		...["", ""],
	]);
});
