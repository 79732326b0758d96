// The event stream's messages: each is the event as the JSON page lists it, with where the transaction stands; what the
// page hides is hidden here in the same way, at every step of a life.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { TxEvent } from "../../../../relay/domain/events.ts";
import { fold, newRecord, type TransactionRecord } from "../../../../relay/domain/record.ts";
import { eventHistory, eventNews } from "../../../../relay/status/announcer.ts";
import { cancelsReport } from "../../../../relay/status/publicEvents.ts";
import { eventsReport } from "../../../../relay/status/report.ts";
import { privateTransaction } from "../../../support/txFactory.ts";

const at = Date.UTC(2026, 1, 3, 4, 5, 6, 7);
const ISO = "2026-02-03T04:05:06.007Z";
const OTHER = "0xother";

type Page = { stage: string; cancels?: object; events: object[] };

function live(through: (record: TransactionRecord, event: TxEvent) => void, events: readonly TxEvent[]) {
	const record = newRecord(privateTransaction());
	for (const event of events) {
		assert.ok(fold(record, event), event.type);
		through(record, event);
	}
	return record;
}

const cancel = (builder: string, answer: "accepted" | "rejected" | "timeout", ms: number): TxEvent => ({
	...{ type: "delivered", at: at + ms, block: 102, builder, kind: "cancel", answer, ms: 1 },
});

/** Shared or not, everything that the page hides is in it. */
const LIFE: readonly TxEvent[] = [
	{ type: "received", at, block: 100 },
	{ type: "queued", at, block: 100, reason: "behindHeld" },
	{ type: "ready", at, block: 101 },
	{ type: "simulated", at, block: 101, gasUsed: 21_000 },
	{ type: "shared", at },
	{ type: "bid", at, bundle: "0xb" },
	{ type: "broadcast", at, block: 101 },
	{ type: "bundled", at, block: 101, bundle: "0xb", backrun: "0xc", bid: "5", builders: ["a"] },
	{ type: "delivered", at, block: 101, builder: "a", kind: "bundle", answer: "accepted", ms: 9 },
	{ type: "queued", at, block: 100, reason: "nonceGap" },
	{ type: "ready", at, block: 101 },
	{ type: "simulated", at, block: 102, gasUsed: 21_001 },
	{ type: "replaced", at, block: 102, by: OTHER, builders: ["a", "b"], discreet: true },
	cancel("a", "accepted", 1),
	{ type: "included", at: at + 2, block: 102, blockHash: "0x102", index: 0, reverted: false },
];

for (const known of [false, true]) {
	test(`each message is what the page lists last, the neighbour ${known ? "known" : "hidden"}`, () => {
		const isPublic = () => known;
		live((record, event) => {
			const page = eventsReport(record, isPublic) as Page;
			const news = eventNews(record, event, isPublic);
			if (event.type === "bid") {
				assert.equal(news, null);
				return;
			}
			const { stage, cancels } = page;
			const standing = { stage, ...(cancels === undefined ? {} : { cancels }) };
			const listed = page.events.findLast((one) => (one as { type: string }).type === event.type);
			assert.deepEqual(news, { at: event.at, data: { ...listed, ...standing } }, event.type);
			const history = eventHistory(record, isPublic);
			assert.deepEqual(
				history.map(({ data }) => data),
				page.events.map((one, i) => (i === page.events.length - 1 ? { ...one, ...standing } : one)),
			);
		}, LIFE);
	});
}

test("a message in full", () => {
	const record = live(() => {}, LIFE.slice(0, 4));
	assert.deepEqual(
		eventNews(record, LIFE[3] as TxEvent, () => false),
		{
			at,
			data: { type: "simulated", at: ISO, block: 101, gasUsed: 21_000, stage: "PENDING" },
		},
	);
});

test("what happened before is in order of time, and the last one tells how it stands", () => {
	const record = live(() => {}, [
		{ type: "received", at, block: 100 },
		{ type: "broadcast", at: at + 5, block: 101 },
		{ type: "delivered", at: at + 9, block: 101, builder: "a", kind: "bundle", answer: "accepted", ms: 4 },
		{ type: "cancelled", at: at + 7, block: 101, builders: ["a"] },
	]);
	assert.deepEqual(
		eventHistory(record, () => false).map((news) => [
			news.at - at,
			"stage" in news.data,
			"cancels" in news.data,
		]),
		[
			[0, false, false],
			[5, false, false],
			[7, false, false],
			[9, true, true],
		],
	);
});

const CANCELLED: TxEvent = { type: "cancelled", at: at + 10, block: 102, builders: ["a", "b", "c"] };

for (const [name, events, expected] of [
	["nobody has answered", [CANCELLED], [3, 0]],
	[
		"some have, once or twice",
		[CANCELLED, cancel("a", "accepted", 11), cancel("a", "accepted", 12), cancel("c", "accepted", 12)],
		[3, 2],
	],
	["in the very millisecond", [CANCELLED, cancel("b", "accepted", 10)], [3, 1]],
	[
		"refused, or not answered",
		[CANCELLED, cancel("a", "rejected", 11), cancel("b", "timeout", 11), cancel("c", "accepted", 11)],
		[3, 1],
	],
	[
		"refused and then accepted",
		[CANCELLED, cancel("a", "rejected", 11), cancel("a", "accepted", 12)],
		[3, 1],
	],
	["an earlier cancel, of an order within a block", [cancel("a", "accepted", 5), CANCELLED], [3, 0]],
	["a builder that was never told", [CANCELLED, cancel("d", "accepted", 11)], [3, 0]],
	["all", [CANCELLED, ...["a", "b", "c"].map((one) => cancel(one, "accepted", 11))], [3, 3]],
	[
		"replaced counts the same",
		[{ type: "replaced", at: at + 10, block: 102, by: OTHER, builders: ["a"] }, cancel("a", "accepted", 11)],
		[1, 1],
	],
	[
		"mined all the same",
		[
			CANCELLED,
			cancel("a", "accepted", 11),
			{ type: "included", at: at + 12, block: 102, blockHash: "0x102", index: 0, reverted: false },
		],
		[3, 1],
	],
] as const satisfies readonly (readonly [string, readonly TxEvent[], readonly [number, number]])[]) {
	test(`confirmed cancels: ${name}`, () => {
		const [builders, confirmed] = expected;
		const record = live(() => {}, [{ type: "received", at, block: 100 }, ...events]);
		const summary = `${confirmed} of ${builders} builders confirmed`;
		assert.deepEqual(cancelsReport(record), { builders, confirmed, summary });
		assert.deepEqual((eventsReport(record, () => false) as Page).cancels, { builders, confirmed, summary });
	});
}

test("a bundle that was delivered is no confirmed cancel, and none that had it leaves nobody to tell", () => {
	const bundle = { ...cancel("a", "accepted", 11), kind: "bundle" } as TxEvent;
	const record = live(() => {}, [{ type: "received", at, block: 100 }, CANCELLED, bundle]);
	assert.equal(cancelsReport(record)?.confirmed, 0);
	const none = live(() => {}, [
		{ type: "received", at, block: 100 },
		{ type: "cancelled", at, block: 100, builders: [] },
	]);
	assert.deepEqual(cancelsReport(none), { builders: 0, confirmed: 0, summary: "no builder to tell" });
});

test("a record that was stored before builders were noted is told like one that no builder had", () => {
	const { builders: _, ...old } = CANCELLED as Extract<TxEvent, { type: "cancelled" }>;
	const record = live(() => {}, [{ type: "received", at, block: 100 }, old as TxEvent]);
	assert.deepEqual(cancelsReport(record), { builders: 0, confirmed: 0, summary: "no builder to tell" });
});

test("where its user has not ended it nothing is said of cancels", () => {
	for (const end of ["expired", "dropped"] as const) {
		const record = live(() => {}, [
			{ type: "received", at, block: 100 },
			{ type: end, at, block: 126 },
			cancel("a", "accepted", 1),
		]);
		assert.equal(cancelsReport(record), null);
		assert.ok(!("cancels" in (eventsReport(record, () => false) as Page)), end);
	}
});
