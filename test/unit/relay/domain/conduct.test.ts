// Tests what a builder's conduct is, as a table of lives: what happened to one transaction, and
// which counts that raises at which builder.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	CONDUCT_COUNTS,
	type ConductCount,
	conductOf,
	IN_TIME_MS,
} from "../../../../relay/domain/conduct.ts";
import type { DeliveryAnswer, TxEvent } from "../../../../relay/domain/events.ts";
import { fold, newRecord } from "../../../../relay/domain/record.ts";
import { privateTransaction, testAccount } from "../../../support/txFactory.ts";

const COINBASES: Readonly<Record<string, readonly string[]>> = { "0xa": ["a"], "0xb": ["b"] };
const SENDER = testAccount(1);
const builtBy = (coinbase: string) => COINBASES[coinbase] ?? [];
const at = 1_000_000;
const block = 7;

const sent = (builder: string, answer: DeliveryAnswer = "accepted", more: { at?: number } = {}): TxEvent => ({
	...{ type: "delivered", at, block, builder, kind: "bundle", answer, ms: 1 },
	...more,
});
const cancel = (builder: string, cancelledAt: number, answer: DeliveryAnswer = "accepted"): TxEvent => ({
	...{ type: "delivered", at: cancelledAt, block, builder, kind: "cancel", answer, ms: 1 },
});
const mined = (coinbase?: string, minedAt = at + 10_000): TxEvent => ({
	...{ type: "included", at: minedAt, block, blockHash: "0x7", index: 0, reverted: false },
	...(coinbase === undefined ? {} : { coinbase }),
});
const refunded = (owed: string, paid: string): TxEvent => ({
	...{ type: "refunded", at: at + 10_000, block, bundle: "0x1", backrun: "0x2", bid: "3", brought: "3" },
	...{ cost: "0", owed, paid, payer: "0xa", recipient: "0xe" },
});
const leftOut = (builders: readonly string[], isOther: boolean): TxEvent => ({
	...{ type: "backrunLeftOut", at: at + 10_000, block, builders, isOther },
});
const seen = (alone?: string): TxEvent => ({
	...{ type: "seenInPublic", at: at + 1, block },
	...(alone === undefined ? {} : { alone }),
});
const reorged: TxEvent = { type: "reorged", at: at + 20_000, block };

const LIVES: Readonly<Record<string, readonly [readonly TxEvent[], string]>> = {
	"it was queued only": [[sent("a", "unsent")], ""],
	"each builder answered another way": [
		[sent("a"), sent("b", "rejected"), sent("c", "timeout")],
		"a sent accepted, b sent refused, c sent failed",
	],
	"the best answer of several counts": [[sent("a", "failed"), sent("a")], "a sent accepted"],
	"its block is of one of them": [
		[sent("a"), sent("b"), mined("0xa")],
		"a sent accepted mined, b sent accepted",
	],
	"its block is of nobody known": [[sent("a"), mined("0xf")], "a sent accepted"],
	"an earlier version recorded its block": [[sent("a"), mined()], "a sent accepted"],
	"our backrun is in its block": [
		[sent("a"), mined("0xa"), refunded("5", "5")],
		"a sent accepted mined backrun",
	],
	"the refund is short": [
		[sent("a"), mined("0xa"), refunded("5", "4")],
		"a sent accepted mined backrun shortRefunds",
	],
	"another backrun is in its block": [
		[sent("a"), sent("b"), mined("0xa"), leftOut(["a", "b"], true)],
		"a sent accepted mined otherBackrun, b sent accepted",
	],
	"no backrun is in its block": [
		[sent("a"), mined("0xa"), leftOut(["a"], false)],
		"a sent accepted mined noBackrun",
	],
	"its builder had no backrun in time": [
		[sent("a"), sent("b"), mined("0xa"), leftOut(["b"], false)],
		"a sent accepted mined, b sent accepted",
	],
	"it had confirmed the cancel in time": [
		[sent("a"), cancel("a", at + 10_000 - IN_TIME_MS), mined("0xa")],
		"a sent accepted mined minedAfterCancel",
	],
	"it confirmed the cancel late": [
		[sent("a"), cancel("a", at + 10_001 - IN_TIME_MS), mined("0xa")],
		"a sent accepted mined",
	],
	"it did not confirm the cancel": [
		[sent("a"), cancel("a", at + 1, "rejected"), mined("0xa")],
		"a sent accepted mined",
	],
	"it was sent it again since": [
		[sent("a"), cancel("a", at + 1), sent("a", "accepted", { at: at + 2 }), mined("0xa")],
		"a sent accepted mined",
	],
	"it was public when it mined what it had cancelled": [
		[sent("a"), seen(), cancel("a", at + 1), mined("0xa")],
		"a sent accepted mined",
	],
	"another builder mined it after a cancel": [
		[sent("a"), sent("b"), cancel("a", at + 1), mined("0xb")],
		"a sent accepted, b sent accepted mined",
	],
	"it was seen in public while one had it": [[sent("a"), seen("a")], "a sent accepted seenAlone"],
	"it was seen in public while several had it": [
		[sent("a"), sent("b"), seen()],
		"a sent accepted, b sent accepted",
	],
	"its block has left the chain": [[sent("a"), mined("0xa"), refunded("5", "4"), reorged], "a sent accepted"],
	"its next block is another builder's": [
		[sent("a"), sent("b"), mined("0xa"), refunded("5", "4"), reorged, mined("0xb", at + 30_000)],
		"a sent accepted, b sent accepted mined",
	],
};

/** Lives of a canary that only `a` is sent. */
const CANARIES: Readonly<Record<string, readonly [readonly TxEvent[], string]>> = {
	nothing: [[sent("a")], "a canaries"],
	"it was refused": [[sent("a", "rejected"), seen("a")], "a"],
	"its builder mines it": [[sent("a"), mined("0xa")], "a canaries"],
	"somebody unknown mines it": [[sent("a"), mined("0xf")], "a canaries"],
	"another builder mines it": [[sent("a"), mined("0xb")], "a canaries leakedCanaries"],
	"that block has left the chain": [[sent("a"), mined("0xb"), reorged], "a canaries"],
	"it is seen in public": [[sent("a"), seen("a")], "a canaries leakedCanaries"],
};

function shown(events: readonly TxEvent[], canary: string | null): string {
	const record = newRecord(privateTransaction({ by: SENDER }));
	for (const event of events) assert.ok(fold(record, event), event.type);
	const rows = conductOf(record, { builtBy, canary });
	return rows
		.map((row) => [row.builder, ...CONDUCT_COUNTS.filter((name: ConductCount) => row[name] === 1)].join(" "))
		.join(", ");
}

for (const [life, [events, expected]] of Object.entries(LIVES))
	test(`of a transaction: ${life}`, () => assert.equal(shown(events, null), expected));

for (const [life, [events, expected]] of Object.entries(CANARIES))
	test(`of a canary: ${life}`, () => assert.equal(shown(events, SENDER.address), expected));

test("refunds are summed in wei", () => {
	const record = newRecord(privateTransaction({ by: SENDER }));
	for (const event of [sent("a"), mined("0xa"), refunded("7", "5")]) assert.ok(fold(record, event));
	const [row] = conductOf(record, { builtBy, canary: null });
	assert.deepEqual([row?.owed, row?.paid], [7n, 5n]);
});
