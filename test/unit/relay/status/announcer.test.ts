// Tests that exactly the changes of the status record are published, each once, and how confirmed
// cancels are counted.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { transactionTopic } from "../../../../relay/domain/endpoints.ts";
import type { TxEvent } from "../../../../relay/domain/events.ts";
import type { Publisher } from "../../../../relay/domain/ports.ts";
import { fold, newRecord, type TransactionRecord } from "../../../../relay/domain/record.ts";
import { createAnnouncer } from "../../../../relay/status/announcer.ts";
import { cancelsReport } from "../../../../relay/status/publicEvents.ts";
import { eventsReport, statusReport } from "../../../../relay/status/report.ts";
import { TransactionRecords } from "../../../../relay/transactions/records.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { privateTransaction } from "../../../support/txFactory.ts";

const at = Date.UTC(2026, 1, 3, 4, 5, 6, 7);
const BLOCK = { at, block: 101 } as const;
const TRANSACTION = privateTransaction({ nonce: 7 });
const { hash } = TRANSACTION.tx;

class Published implements Publisher {
	readonly messages: [string, string][] = [];

	publish(topic: string, make: () => unknown): void {
		this.messages.push([topic, JSON.stringify(make())]);
	}
}

/** A transaction that has just come, among records with the announcer. */
function fixture() {
	const published = new Published();
	const records = new TransactionRecords({ log: silentLogger });
	records.subscribe(createAnnouncer({ publisher: published, view: statusReport }));
	const record = newRecord(TRANSACTION);
	records.add({ transaction: TRANSACTION, record });
	records.emit(hash, { type: "received", ...BLOCK });
	return { published, records, record };
}

const failed = (message: string, data?: string): TxEvent => ({
	...{ type: "simulationFailed", ...BLOCK },
	error: { code: "EXECUTION_REVERTED", message, ...(data === undefined ? {} : { data }) },
});
const refunded = (paid: string): TxEvent => ({
	...{
		type: "refunded",
		...BLOCK,
		bundle: "0xb",
		backrun: "0xc",
		bid: "5",
		brought: "6",
		cost: "1",
		owed: "4",
	},
	...{ paid, payer: "0xd", recipient: "0xe" },
});
const included = (reverted: boolean): TxEvent => ({
	...{ type: "included", ...BLOCK, blockHash: "0xb", index: 0, reverted },
});

/**
 * Events that do not end it, and events that do. Some are illegal where they come, and the records
 * refuse them.
 */
const ONGOING: readonly TxEvent[] = [
	...[{ type: "received", ...BLOCK } as const, { type: "ready", ...BLOCK } as const],
	{ type: "queued", at, block: 100, reason: "nonceGap" },
	{ type: "queued", at, block: 100, reason: "behindHeld" },
	{ type: "simulated", ...BLOCK, gasUsed: 21_000 },
	...[failed("a"), failed("b"), failed("b", "0x08")],
	...[{ type: "shared", at } as const, { type: "bid", at, bundle: "0xb" } as const],
	{ type: "bundled", ...BLOCK, bundle: "0xb", backrun: "0xc", bid: "5", builders: ["a"] },
	...[refunded("0"), refunded("4"), refunded("5")],
	{ type: "broadcast", ...BLOCK },
	{ type: "delivered", ...BLOCK, builder: "a", kind: "bundle", answer: "accepted", ms: 1 },
];
const ENDING: readonly TxEvent[] = [
	...[included(false), included(true), { type: "reorged", ...BLOCK } as const],
	...[1, 2].map((depth) => ({ type: "exposed", ...BLOCK, depth }) as const),
	{ type: "replaced", ...BLOCK, by: "0xother", builders: ["a"] },
	...[{ type: "cancelled", ...BLOCK, builders: [] } as const, { type: "expired", ...BLOCK } as const],
	{ type: "dropped", ...BLOCK },
];

test("exactly the changes of the status are published, for random events", () => {
	// Ends are rare in a life: else few would get anywhere.
	const event = fc.oneof(
		{ weight: 6, arbitrary: fc.constantFrom(...ONGOING) },
		{ weight: 1, arbitrary: fc.constantFrom(...ENDING) },
	);
	const seen = new Set<string>();
	fc.assert(
		fc.property(fc.array(event, { maxLength: 40 }), (events) => {
			const { published, records, record } = fixture();
			const expected = [JSON.stringify(statusReport(record))];
			for (const one of events) {
				const before = record.stage;
				// It comes once, or anew behind an end.
				if (one.type === "received" && before === "PENDING") continue;
				records.emit(hash, one);
				const now = JSON.stringify(statusReport(record));
				if (now === expected.at(-1)) continue;
				expected.push(now);
				if (before === record.stage) seen.add(one.type);
			}
			const changes = published.messages.filter(([, text], i) => i === 0 || text !== expected[i - 1]);
			assert.deepEqual(
				published.messages.map(([, text]) => text),
				expected,
			);
			assert.equal(changes.length, published.messages.length);
			assert.ok(
				published.messages.every(([topic]) => topic === transactionTopic(hash)),
				"its own topic",
			);
		}),
		{ numRuns: 2_000, seed: 4 },
	);
	// Each kind of change that leaves the stage as it is was met.
	assert.deepEqual([...seen].sort(), ["exposed", "refunded", "shared", "simulationFailed"]);
});

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

const cancel = (builder: string, answer: "accepted" | "rejected" | "timeout", ms: number) =>
	({ type: "delivered", at: at + ms, block: 102, builder, kind: "cancel", answer, ms: 1 }) as const;

const CANCELLED: TxEvent = { type: "cancelled", at: at + 10, block: 102, builders: ["a", "b", "c"] };

/**
 * The user's cancel and the builders' answers; how many builders received it, and have confirmed.
 */
const CANCELS: readonly (readonly [string, readonly TxEvent[], readonly [number, number]])[] = [
	["nobody has answered", [CANCELLED], [3, 0]],
	[
		"some have, once or twice, one in the very millisecond",
		[CANCELLED, cancel("a", "accepted", 11), cancel("a", "accepted", 12), cancel("c", "accepted", 10)],
		[3, 2],
	],
	[
		"refused, or not answered, and then accepted",
		[CANCELLED, cancel("a", "rejected", 11), cancel("b", "timeout", 11), cancel("a", "accepted", 12)],
		[3, 1],
	],
	["an earlier cancel, of an order within a block", [cancel("a", "accepted", 5), CANCELLED], [3, 0]],
	["a builder that received no cancel", [CANCELLED, cancel("d", "accepted", 11)], [3, 0]],
	["a bundle that was delivered", [CANCELLED, { ...cancel("a", "accepted", 11), kind: "bundle" }], [3, 0]],
	[
		"replaced counts the same",
		[{ type: "replaced", at: at + 10, block: 102, by: OTHER, builders: ["a"] }, cancel("a", "accepted", 11)],
		[1, 1],
	],
];

test("a builder counts as confirmed if it received the cancel and accepted it after the end", () => {
	for (const [name, events, [builders, confirmed]] of CANCELS) {
		const record = live(() => {}, [{ type: "received", at, block: 100 }, ...events]);
		const summary = `${confirmed} of ${builders} builders confirmed`;
		assert.deepEqual(cancelsReport(record), { builders, confirmed, summary }, name);
		const page = eventsReport(record, () => false) as Page;
		assert.deepEqual(page.cancels, { builders, confirmed, summary }, name);
	}
});
