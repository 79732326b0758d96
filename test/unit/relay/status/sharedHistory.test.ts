// The history of shared transactions: what enters and leaves it, its bounds, and its pages.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { TxEvent } from "../../../../relay/domain/events.ts";
import { newRecord, type TransactionRecord } from "../../../../relay/domain/record.ts";
import { HISTORY_LIMITS, type HistoryLimits, SharedHistory } from "../../../../relay/status/sharedHistory.ts";
import { privateTransaction } from "../../../support/txFactory.ts";

const WHOLE = {
	...{ blockStart: 0, blockEnd: 1e9, timestampStart: 0, timestampEnd: 1e12 },
	...{ offset: 0, limit: 500 },
};
const blockHash = `0x${"11".repeat(32)}`;

function fixture(limits: HistoryLimits = HISTORY_LIMITS) {
	const gone = new Set<string>();
	const history = new SharedHistory({ hintOf: (hash) => (gone.has(hash) ? null : { hash }) }, limits);
	const tell = (record: TransactionRecord, event: TxEvent) => history.notify(record, "BROADCAST", event);
	return {
		...{ history, gone },
		/** A transaction that searchers were shown at this second, and that a block has. */
		mine(nonce: bigint, block: number, { shared = true, second = block * 12 } = {}): TransactionRecord {
			const events: TransactionRecord["events"] = shared ? [{ type: "shared", at: second * 1_000 + 7 }] : [];
			const record = { ...newRecord(privateTransaction({ nonce })), shared, events };
			tell(record, { type: "included", at: 1, block, blockHash, index: 0, reverted: false });
			return record;
		},
		tell,
		hashes: (query: Partial<typeof WHOLE> = {}) =>
			(JSON.parse(history.page({ ...WHOLE, ...query })) as { hint: { hash: string } }[]).map(
				({ hint }) => hint.hash,
			),
	};
}

test("it has what was shared and is mined, until its block is gone; another block has it again", () => {
	const { history, gone, mine, tell, hashes } = fixture();
	assert.deepEqual(history.info(), {
		...{ count: 0, minBlock: 0, maxBlock: 0, minTimestamp: 0, maxTimestamp: 0, maxLimit: 500 },
	});
	mine(1n, 5, { shared: false });
	const unread = newRecord(privateTransaction({ nonce: 2n })).hash;
	gone.add(unread);
	mine(2n, 5);
	const [kept, moved] = [mine(3n, 6), mine(4n, 6, { second: 60 })];
	assert.deepEqual(hashes(), [kept.hash, moved.hash]);
	tell(moved, { type: "reorged", at: 2, block: 6 });
	assert.deepEqual(hashes(), [kept.hash]);
	mine(4n, 7, { second: 60 });
	assert.deepEqual(history.info(), {
		...{ count: 2, minBlock: 6, maxBlock: 7, minTimestamp: 60, maxTimestamp: 72, maxLimit: 500 },
	});
	assert.deepEqual(hashes(), [kept.hash, moved.hash]);
});

test("a page is by block, by time, behind what is left out, and as long as asked", () => {
	const { mine, hashes } = fixture();
	const all = [10, 11, 11, 12].map((block, i) => mine(BigInt(i), block).hash);
	assert.deepEqual(hashes({ blockStart: 11, blockEnd: 11 }), all.slice(1, 3));
	assert.deepEqual(hashes({ timestampStart: 121 }), all.slice(1));
	assert.deepEqual(hashes({ timestampEnd: 132 }), all.slice(0, 3));
	assert.deepEqual(hashes({ offset: 1, limit: 2 }), all.slice(1, 3));
	assert.deepEqual(hashes({ blockStart: 11, offset: 2, limit: 2 }), all.slice(3));
});

test("the oldest are forgotten where there are too many, or too many bytes", () => {
	for (const limits of [
		{ entries: 3, bytes: 1e6 },
		{ entries: 100, bytes: 390 },
	]) {
		const { mine, hashes } = fixture(limits);
		const all = [1, 2, 3, 4, 5].map((block) => mine(BigInt(block), block).hash);
		assert.deepEqual(hashes(), all.slice(-3), JSON.stringify(limits));
	}
});
