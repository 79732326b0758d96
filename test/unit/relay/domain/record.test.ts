// Tests the record of a transaction: the table of transitions as a matrix written by hand, lives as
// rows, and the bounds of what is kept.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { TxEvent } from "../../../../relay/domain/events.ts";
import {
	fold,
	isMined,
	MAX_DELIVERIES,
	MAX_EVENTS,
	newRecord,
	nextStage,
	TRANSITIONS,
	type TransactionRecord,
} from "../../../../relay/domain/record.ts";
import { STAGES, type Stage } from "../../../../shared/ethereum/statusRecord.ts";
import { privateTransaction } from "../../../support/txFactory.ts";

const at = 1;
const block = 100;
const error = { code: "EXECUTION_REVERTED", message: "execution reverted: no", data: "0x" } as const;
const inclusion = { at, block, blockHash: "0xb", index: 0 } as const;
const delivery = { at, block, builder: "b", kind: "bundle", answer: "accepted", ms: 1 } as const;

const EVENTS = {
	received: { type: "received", at, block },
	joined: { type: "joined", at, block },
	left: { type: "left", at, block },
	queued: { type: "queued", at, block: 100, reason: "nonceGap" },
	ready: { type: "ready", at, block },
	simulated: { type: "simulated", at, block, gasUsed: 21_000 },
	simulationFailed: { type: "simulationFailed", at, block, error },
	notSimulated: { type: "notSimulated", at, block, error },
	shared: { type: "shared", at },
	bid: { type: "bid", at, bundle: "0xb" },
	bundled: { type: "bundled", at, block, bundle: "0xb", backrun: "0xc", bid: "1", builders: [] },
	refunded: {
		...{ type: "refunded", at, block, bundle: "0xb", backrun: "0xc", bid: "1", brought: "1" },
		...{ cost: "0", owed: "1", paid: "1", payer: "0xd", recipient: "0xe" },
	},
	backrunLeftOut: { type: "backrunLeftOut", at, block, builders: ["b"], isOther: false },
	seenInPublic: { type: "seenInPublic", at, block, alone: "b" },
	broadcast: { type: "broadcast", at, block },
	delivered: { type: "delivered", ...delivery },
	included: { type: "included", ...inclusion, reverted: false },
	includedReverted: { type: "included", ...inclusion, reverted: true },
	reorged: { type: "reorged", at, block },
	exposed: { type: "exposed", at, block, depth: 1 },
	replaced: { type: "replaced", at, block, by: "0xc", builders: [] },
	cancelled: { type: "cancelled", at, block, builders: ["b"] },
	expired: { type: "expired", at, block },
	dropped: { type: "dropped", at, block },
} as const satisfies Record<string, TxEvent>;

/** In the order of STAGES, which is that of the matrix's columns. */
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
	// Admitted, and admitted anew where it had expired or was dropped, or addresses had cancelled it
	// (the pipeline's rule).
	received: "        P . . . . . . . P P P",
	// Nobody becomes an owner of a transaction that has ended or is mined.
	joined: "          P Q F S B . . . . . .",
	left: "            P Q F S B . . . . . .",
	queued: "          Q Q Q Q Q . . . . . .",
	ready: "           P P F S B . . . . . .",
	// A transaction in the queue is not simulated.
	simulated: "       P . P S B . . . . . .",
	simulationFailed: "F . F F F . . . . . .",
	// Sent all the same.
	notSimulated: "    P . P S B . . . . . .",
	shared: "          S Q F . B . . . . . .",
	// A bid is accepted while its target may still be sent, and goes out with it.
	bid: "             P Q F S B . . . . . .",
	bundled: "         B . . B B . . . . . .",
	refunded: "        . . . . . I V . . . .",
	backrunLeftOut: "  . . . . . I V . . . .",
	// A transaction in a block is public anyway, and a dropped one can't be mined any more.
	seenInPublic: "    P Q F S B . . R C E .",
	// Neither a waiting transaction nor a failed one is sent.
	broadcast: "       B . . B B . . . . . .",
	delivered: "       P Q F S B I V R C E D",
	// A builder may mine a transaction that ended a moment ago. Nothing is mined twice without a
	// reorganisation between.
	included: "        I I I I I . . I I I I",
	includedReverted: "V V V V V . . V V V V",
	// The block of a dropped one is that of the transaction that used its nonce.
	reorged: "         . . . . . P P . . . P",
	// Its block may have gone before it was recorded as mined in it; what had ended is public then,
	// too.
	exposed: "         P Q F S B . . R C E D",
	replaced: "        R R R R R . . . . R .",
	// One that expired would come back with its bytes: its user may end that.
	cancelled: "       C C C C C . . . . C .",
	expired: "         E E E E E . . . . . .",
	dropped: "         D D D D D . . . . . .",
};

const NAMES = Object.keys(EVENTS) as (keyof typeof EVENTS)[];

test("every event changes every stage as the matrix says; illegal ones change nothing", () => {
	const order = Object.values(LETTERS);
	assert.deepEqual(order, [...STAGES]);
	assert.deepEqual(
		[...new Set(NAMES.map((name) => EVENTS[name].type))].sort(),
		Object.keys(TRANSITIONS).sort(),
		"the matrix has a row for each type of event",
	);
	for (const name of NAMES) {
		const cells = MATRIX[name].trim().split(/\s+/);
		assert.equal(cells.length, order.length, name);
		for (const [i, stage] of order.entries()) {
			const where = `${name} at ${stage}`;
			const cell = cells[i] ?? "";
			const expected = cell === "." ? null : (LETTERS[cell] ?? null);
			assert.equal(nextStage(stage, EVENTS[name], null), expected, where);
			// How it had ended counts for a reorganisation alone.
			const isBack = name === "reorged" && isMined(stage);
			assert.equal(nextStage(stage, EVENTS[name], "EXPIRED"), isBack ? "EXPIRED" : expected, where);
			const record = { ...newRecord(privateTransaction()), stage };
			const before = structuredClone(record);
			assert.equal(fold(record, EVENTS[name]), expected !== null, where);
			if (expected === null) assert.deepEqual(record, before, where);
			else assert.equal(record.stage, expected, where);
		}
	}
});

const received = (block = 100): TxEvent => ({ type: "received", at, block });
const ready = (block = 101): TxEvent => ({ type: "ready", at, block });
const broadcast = (block = 101): TxEvent => ({ type: "broadcast", at, block });
const expired = (block = 126): TxEvent => ({ type: "expired", at, block });
const included = (block = 101, reverted = false): TxEvent => ({
	...{ type: "included", at, block, blockHash: `0x${block}`, index: 0, reverted },
});
const reorged = (block = 101): TxEvent => ({ type: "reorged", at, block });
const exposed = (block = 101, depth = 1): TxEvent => ({ type: "exposed", at, block, depth });
const bundled = (bid: string): TxEvent => ({ ...EVENTS.bundled, bid });
const refunded = (paid: string): TxEvent => ({ ...EVENTS.refunded, paid });
const delivered = (kind: "bundle" | "cancel"): TxEvent => ({ ...EVENTS.delivered, kind });
const { queued, simulated, simulationFailed, shared, bid, cancelled, replaced, dropped } = EVENTS;

/** A record after `events`, every one of which must be legal. */
function after(...events: readonly TxEvent[]): TransactionRecord {
	const record = newRecord(privateTransaction());
	for (const event of events) assert.ok(fold(record, event), `${event.type} at ${record.stage}`);
	return record;
}

const OUT = [received(), ready(), broadcast()];
const PAID = [...OUT, bid, bundled("5"), included(), refunded("4")];
/** Name; events; the fields of the record after them. */
const LIVES: readonly (readonly [string, readonly TxEvent[], Partial<TransactionRecord>])[] = [
	["behind a gap its life has not begun", [received(), queued], { stage: "QUEUED", firstBlock: null }],
	["it begins when its turn comes", [received(), queued, ready(140)], { stage: "PENDING", firstBlock: 140 }],
	["it does not begin again", [received(), ready(101), ready(102)], { firstBlock: 101 }],
	["where it waits again it has not begun", [...OUT, queued], { firstBlock: null }],
	["and begins anew", [...OUT, { ...queued, reason: "behindHeld" }, ready(110)], { firstBlock: 110 }],

	["a failing simulation is shown", [...OUT, simulationFailed], { simulationError: error, passed: false }],
	[
		"until one passes",
		[...OUT, simulationFailed, simulated],
		{ stage: "PENDING", simulationError: null, passed: true },
	],
	[
		"that it passed once stays",
		[...OUT, simulated, simulationFailed],
		{ simulationError: error, passed: true },
	],

	["mined", [...OUT, included()], { stage: "INCLUDED", block: 101, blockHash: "0x101" }],
	["taken back", [...OUT, included(), reorged()], { stage: "PENDING", blockHash: null, ended: null }],
	[
		"mined again",
		[...OUT, included(), reorged(), broadcast(102), included(102, true)],
		{ stage: "REVERTED", block: 102 },
	],
	["replaced, mined, taken back", [...OUT, replaced, included(), reorged()], { stage: "REPLACED" }],
	["cancelled, mined, taken back", [...OUT, cancelled, included(), reorged()], { stage: "CANCELLED" }],
	["expired, mined, taken back", [...OUT, expired(), included(), reorged()], { stage: "EXPIRED" }],
	[
		"expired, mined and taken back twice",
		[...OUT, expired(), included(), reorged(), included(112), reorged(112)],
		{ stage: "EXPIRED" },
	],
	[
		"expired, cancelled, mined, taken back",
		[...OUT, expired(), cancelled, included(), reorged()],
		{ stage: "CANCELLED" },
	],
	["dropped for a nonce that is free again", [...OUT, dropped, reorged()], { stage: "PENDING", ended: null }],
	["dropped, mined, taken back", [...OUT, dropped, included(), reorged()], { stage: "PENDING" }],
	[
		"seen in a block that is gone: told, and its life starts again behind the head that went",
		[...OUT, included(), reorged(), exposed(101, 3)],
		{ stage: "PENDING", exposed: { block: 101, depth: 3 }, firstBlock: 104 },
	],
	[
		"which stays so where it is mined again, and where it ends",
		[...OUT, included(), reorged(), exposed(), broadcast(102), included(102)],
		{ stage: "INCLUDED", exposed: { block: 101, depth: 1 }, block: 102 },
	],
	[
		"replaced, mined, taken back: public all the same",
		[...OUT, replaced, included(), reorged(), exposed()],
		{ stage: "REPLACED", exposed: { block: 101, depth: 1 } },
	],
	[
		"and admitted anew",
		[...OUT, included(), reorged(), exposed(), expired(), received(200)],
		{ stage: "PENDING", exposed: { block: 101, depth: 1 }, firstBlock: null },
	],
	["an end has its block", [...OUT, expired(126)], { stage: "EXPIRED", ended: "EXPIRED", block: 126 }],
	["being shared is never forgotten", [...OUT, shared, expired()], { shared: true }],
	...[expired(), dropped].map(
		(end) =>
			[
				`${end.type} and admitted anew: a new life`,
				[received(), ready(), simulated, simulationFailed, end, received(200)],
				{ stage: "PENDING", ended: null, firstBlock: null, passed: false, simulationError: null },
			] as const,
	),
	[
		"expired, admitted anew, mined, taken back",
		[...OUT, expired(), received(200), ready(201), included(201), reorged(201)],
		{ stage: "PENDING", firstBlock: 201 },
	],

	["a bid moves neither stage nor block", [received(), bid], { stage: "PENDING", block: 100, backruns: 1 }],
	["nor does a backrun that goes out", [...OUT, bundled("5")], { stage: "BROADCAST", block: 101 }],
	["mined without a refund", PAID.slice(0, -1), { refund: "0", backruns: 1 }],
	["mined with a refund", PAID, { refund: "4", block: 101 }],
	["a refund goes with its block", [...PAID, reorged()], { refund: "0" }],
	["and is not that of another block", [...PAID, reorged(), included(102)], { refund: "0" }],
	["which has its own", [...PAID, reorged(), included(102), refunded("3")], { refund: "3" }],
];

test("events set the record's fields", () => {
	for (const [name, events, expected] of LIVES) {
		const record = after(...events);
		const fields = Object.keys(expected).map((key) => [key, record[key as keyof TransactionRecord]]);
		assert.deepEqual(Object.fromEntries(fields), expected, name);
	}
});

const many = (count: number, make: (i: number) => TxEvent) =>
	Array.from({ length: count }, (_, i) => make(i));
const typesOf = ({ events }: TransactionRecord) => events.map(({ type }) => type);

test("nothing has a time before what came earlier, wherever the machine's clock is set", () => {
	const record = newRecord(privateTransaction());
	const told = [
		{ ...EVENTS.received, at: 900 },
		{ ...EVENTS.delivered, at: 950 },
		{ ...EVENTS.broadcast, at: 20 },
		{ ...EVENTS.delivered, at: 10 },
		{ ...EVENTS.included, at: 30 },
		{ ...EVENTS.reorged, at: 990 },
	];
	for (const event of told) assert.ok(fold(record, event), event.type);
	assert.deepEqual(
		[record.events.map((event) => event.at), record.deliveries.map((event) => event.at)],
		[
			[900, 950, 950, 990],
			[950, 950],
		],
	);
});

test("events and deliveries are bounded, dropped ones are counted, and the end is always kept", () => {
	const record = after(received(), ...many(MAX_EVENTS + 50, (i) => broadcast(101 + i)));
	for (const event of many(MAX_DELIVERIES + 30, () => delivered("bundle"))) fold(record, event);
	assert.deepEqual([record.events.length, record.deliveries.length], [MAX_EVENTS, MAX_DELIVERIES]);
	assert.equal(record.omitted, 51 + 30);
	assert.ok(fold(record, included(999)));
	assert.deepEqual([record.stage, record.block, record.omitted], ["INCLUDED", 999, 82]);
	assert.deepEqual([typesOf(record)[0], typesOf(record).at(-1)], ["received", "included"]);
	// How builders took a cancel is never left out.
	for (const event of [delivered("cancel"), ...many(MAX_DELIVERIES, () => delivered("bundle"))])
		fold(record, event);
	assert.equal(record.deliveries.filter(({ kind }) => kind === "cancel").length, 1);
});
