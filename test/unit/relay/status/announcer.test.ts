// The announcer against a simple model: whatever happens to a transaction, exactly the changes of its status record are
// published, each once, on its own topic.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { transactionTopic } from "../../../../relay/domain/endpoints.ts";
import type { TxEvent } from "../../../../relay/domain/events.ts";
import type { Publisher } from "../../../../relay/domain/ports.ts";
import { newRecord } from "../../../../relay/domain/record.ts";
import { createAnnouncer } from "../../../../relay/status/announcer.ts";
import { statusReport } from "../../../../relay/status/report.ts";
import { TransactionRecords } from "../../../../relay/transactions/records.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { privateTransaction } from "../../../support/txFactory.ts";

const at = Date.UTC(2026, 1, 3);
const BLOCK = { at, block: 101 } as const;
const TRANSACTION = privateTransaction({ nonce: 7 });
const { hash } = TRANSACTION.tx;

class Published implements Publisher {
	readonly told: [string, string][] = [];

	publish(topic: string, make: () => unknown): void {
		this.told.push([topic, JSON.stringify(make())]);
	}
}

/** A transaction that has just come, among records with the announcer. */
function fixture() {
	const published = new Published();
	const records = new TransactionRecords({ log: silentLogger });
	records.subscribe(createAnnouncer({ publisher: published, view: statusReport }));
	const record = newRecord(TRANSACTION);
	records.open({ transaction: TRANSACTION, record });
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

/** Everything that can happen, also what is illegal where it comes: the records refuse that. */
const EVENTS: readonly TxEvent[] = [
	...[{ type: "received", ...BLOCK } as const, { type: "ready", ...BLOCK } as const],
	...[
		{ type: "queued", at, block: 100, reason: "nonceGap" } as const,
		{ type: "queued", at, block: 100, reason: "behindHeld" } as const,
	],
	{ type: "simulated", ...BLOCK, gasUsed: 21_000 },
	...[failed("a"), failed("b"), failed("b", "0x08")],
	{ type: "shared", at },
	{ type: "bid", at, bundle: "0xb" },
	{ type: "bundled", ...BLOCK, bundle: "0xb", backrun: "0xc", bid: "5", builders: ["a"] },
	...[refunded("0"), refunded("4"), refunded("5")],
	{ type: "broadcast", ...BLOCK },
	{ type: "delivered", ...BLOCK, builder: "a", kind: "bundle", answer: "accepted", ms: 1 },
	{ type: "delivered", ...BLOCK, builder: "a", kind: "cancel", answer: "accepted", ms: 1 },
	...[included(false), included(true), { type: "reorged", ...BLOCK } as const],
	{ type: "replaced", ...BLOCK, by: "0xother", builders: ["a"] },
	...[{ type: "cancelled", ...BLOCK, builders: [] } as const, { type: "expired", ...BLOCK } as const],
	{ type: "dropped", ...BLOCK },
];

test("any life: what is published are the changes of the status, no more and no less", () => {
	// Ends are rare in a life: else few would get anywhere.
	const event = fc.oneof(
		{ weight: 6, arbitrary: fc.constantFrom(...EVENTS.slice(0, -7)) },
		{ weight: 1, arbitrary: fc.constantFrom(...EVENTS.slice(-7)) },
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
			const told = published.told.filter(([, text], i) => i === 0 || text !== expected[i - 1]);
			assert.deepEqual(
				published.told.map(([, text]) => text),
				expected,
			);
			assert.equal(told.length, published.told.length);
			assert.ok(
				published.told.every(([topic]) => topic === transactionTopic(hash)),
				"its own topic",
			);
		}),
		{ numRuns: 2_000, seed: 4 },
	);
	// Each kind of change that leaves the stage as it is was met.
	assert.deepEqual([...seen].sort(), ["bid", "refunded", "shared", "simulationFailed"]);
});

test("one that comes back after its end is told anew, and that it is shared again too", () => {
	const { published, records, record } = fixture();
	for (const event of [
		{ type: "broadcast", ...BLOCK } as const,
		{ type: "shared", at } as const,
		{ type: "expired", ...BLOCK } as const,
	]) {
		records.emit(hash, event);
	}
	// As the pipeline does it: a new record with the old one's past.
	const { events, stage } = structuredClone(record);
	const again = { ...newRecord(TRANSACTION), events, stage };
	records.open({ transaction: TRANSACTION, record: again });
	published.told.length = 0;
	records.emit(hash, { type: "received", ...BLOCK });
	records.emit(hash, { type: "broadcast", ...BLOCK });
	records.emit(hash, { type: "shared", at });
	const told = published.told.map(([, text]) => JSON.parse(text) as { stage: string; shared: boolean });
	assert.deepEqual(
		told.map((one) => [one.stage, one.shared]),
		[
			["PENDING", false],
			["BROADCAST", false],
			["BROADCAST", true],
		],
	);
});
