// The feed: each transaction once, unsigned, behind its event, and made only where somebody listens.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createFeed, partialPendingTransaction } from "../../../../relay/auction/feed.ts";
import type { TxEvent } from "../../../../relay/domain/events.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { privateTransaction } from "../../../support/txFactory.ts";

function fixture() {
	const order: unknown[] = [];
	const shared = new Set<string>();
	const clock = new ManualClock(5_000);
	const feed = createFeed({
		publisher: { publish: (topic, make) => void order.push([topic, make]) },
		events: {
			emit(hash: string, event: TxEvent) {
				shared.add(hash);
				order.push([hash, event]);
			},
		},
		isNew: (hash) => !shared.has(hash),
		clock,
	});
	return { order, feed };
}

test("it is taken down first and shown then: whoever hears of it may bid at once", () => {
	const { order, feed } = fixture();
	const transaction = privateTransaction();
	feed(transaction);
	const [event, notice] = order as [[string, TxEvent], [string, () => unknown]];
	assert.deepEqual(event, [transaction.tx.hash, { type: "shared", at: 5_000 }]);
	assert.equal(notice[0], "pendingTransactions");
	assert.deepEqual(notice[1](), partialPendingTransaction(transaction.tx));
});

test("what was shown is not shown again; others are", () => {
	const { order, feed } = fixture();
	const [one, two] = [privateTransaction({ nonce: 1 }), privateTransaction({ nonce: 2 })];
	for (const transaction of [one, two, one, two]) feed(transaction);
	assert.equal(order.length, 4);
});

test("what is shown holds no signature", () => {
	const { order, feed } = fixture();
	const transaction = privateTransaction({ type: 4 });
	feed(transaction);
	const make = (order.at(-1) as [string, () => unknown])[1];
	const text = JSON.stringify(make());
	const { r, s, raw } = transaction.tx;
	for (const secret of [r.toString(16), s.toString(16), Buffer.from(raw).toString("hex")]) {
		assert.ok(!text.includes(secret));
	}
});
