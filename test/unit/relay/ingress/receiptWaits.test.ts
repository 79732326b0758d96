// Tests waits for receipts: what each waiting client is told, and when, as the transaction moves and the node
// answers.

import assert from "node:assert/strict";
import { afterEach, describe, test } from "node:test";
import { newRecord } from "../../../../relay/domain/record.ts";
import { ForeignRpcError, RpcError } from "../../../../shared/jsonrpc/errors.ts";
import {
	failed,
	HASH,
	type Happening,
	included,
	NOT_PROCESSED,
	queued,
	RECEIPT,
	ReceiptFixture,
	transaction,
} from "./receiptFixture.ts";

const SENT: readonly Happening[] = [{ type: "ready" }, { type: "broadcast" }];
const GAP = "a missing nonce: it goes out when the gap before it closes";
const timedOut = (seconds: string) => [4, `${NOT_PROCESSED} in ${seconds}`, HASH];
const notSoon = (why: string) => [5, `${NOT_PROCESSED} due to ${why}`, HASH];

let fixture = new ReceiptFixture();
function start(...past: readonly Happening[]): ReceiptFixture {
	fixture = new ReceiptFixture().take(...past);
	return fixture;
}
/** Whatever a test has done, nothing is left of what has ended. */
afterEach(async () => {
	await fixture.clock.advance(30_000);
	assert.equal(fixture.waits.size, 0, "waits");
	assert.equal(fixture.clock.timers, 0, "timers");
	assert.equal(fixture.follows, 0, "followers");
});

describe("mined", () => {
	for (const reverted of [false, true]) {
		test(`what is ${reverted ? "mined and reverted" : "mined"} while somebody waits is its receipt`, async () => {
			const { clock } = start(...SENT);
			const outcome = fixture.wait(20_000);
			await clock.advance(12_000);
			assert.equal(outcome.ended, undefined);
			assert.deepEqual(fixture.asked, [], "the node is not asked before");
			fixture.answer = RECEIPT;
			fixture.happens(included(reverted));
			await clock.advance(0);
			assert.equal(outcome.ended, RECEIPT);
			assert.deepEqual(fixture.asked, [HASH]);
		});
	}

	test("what was mined before is its receipt at once, however it is known", async () => {
		for (const settled of [false, true]) {
			start(...(settled ? [] : [included()]));
			if (settled) {
				fixture.records.close(fixture.records.get(HASH)?.record ?? newRecord(transaction));
				fixture.settled.set(HASH, { ...newRecord(transaction), stage: "INCLUDED" });
			}
			fixture.answer = RECEIPT;
			const outcome = fixture.wait(1);
			await fixture.clock.advance(0);
			assert.equal(outcome.ended, RECEIPT, `settled: ${settled}`);
		}
	});

	test("a node that has no receipt yet, or does not answer, is asked again every 250 ms", async () => {
		const { clock } = start();
		const outcome = fixture.wait(20_000);
		fixture.happens(included());
		const answers = [
			null,
			undefined,
			new RpcError("internal", "internal error"),
			new ForeignRpcError(-32000, "x"),
		];
		for (const [i, answer] of answers.entries()) {
			fixture.answer = answer;
			await clock.advance(i === 0 ? 0 : 250);
			assert.deepEqual([fixture.asked.length, outcome.ended], [i + 1, undefined]);
		}
		await clock.advance(249);
		assert.equal(fixture.asked.length, 4);
		fixture.answer = RECEIPT;
		await clock.advance(1);
		assert.equal(outcome.ended, RECEIPT);
	});

	test("a node that has no receipt until the end: the time is up all the same", async () => {
		const { clock } = start(included());
		const outcome = fixture.wait(1_000);
		await clock.advance(999);
		assert.equal(outcome.ended, undefined);
		await clock.advance(1);
		assert.deepEqual(outcome.ended, timedOut("1s."));
	});

	test("a node that hangs holds nobody longer than asked for, and its late answer changes nothing", async () => {
		const { clock } = start(included());
		const release = fixture.hold();
		const outcome = fixture.wait(2_500);
		await clock.advance(2_500);
		assert.deepEqual(outcome.ended, timedOut("2.5s."));
		fixture.answer = RECEIPT;
		release();
		await clock.advance(1);
		assert.deepEqual(outcome.ended, timedOut("2.5s."));
	});

	test("a receipt of a block that went meanwhile is none; that of the next block counts", async () => {
		const { clock } = start(...SENT);
		const outcome = fixture.wait(20_000);
		fixture.answer = RECEIPT;
		const release = fixture.hold();
		fixture.happens(included());
		await clock.advance(10);
		fixture.happens({ type: "reorged" });
		release();
		await clock.advance(5_000);
		assert.deepEqual([outcome.ended, fixture.asked.length], [undefined, 1], "it waits, and asks for nothing");
		const next = { ...RECEIPT, blockNumber: "0x8" };
		fixture.answer = next;
		fixture.happens(included());
		await clock.advance(0);
		assert.equal(outcome.ended, next);
	});

	test("a block that went while the node had no receipt yet is not asked for again", async () => {
		const { clock } = start();
		const outcome = fixture.wait(10_000);
		fixture.happens(included());
		await clock.advance(100);
		fixture.happens({ type: "reorged" });
		await clock.advance(5_000);
		assert.deepEqual([fixture.asked.length, outcome.ended], [1, undefined]);
	});

	test("what a builder mined although it was cancelled is its receipt", async () => {
		const { clock } = start(...SENT, { type: "cancelled" }, included());
		fixture.answer = RECEIPT;
		const outcome = fixture.wait(1_000);
		await clock.advance(0);
		assert.equal(outcome.ended, RECEIPT);
	});

	test("what was cancelled, mined all the same, and whose block went, is not mined soon", async () => {
		const { clock } = start(...SENT, { type: "cancelled" });
		fixture.happens(included());
		const outcome = fixture.wait(10_000);
		await clock.advance(1);
		fixture.happens({ type: "reorged" });
		await clock.advance(1);
		assert.deepEqual(outcome.ended, notSoon("its cancellation"));
	});

	test("a fault of ours is thrown as it is", async () => {
		const { clock } = start(included());
		const fault = new TypeError("ours");
		fixture.answer = fault;
		const outcome = fixture.wait(1_000);
		await clock.advance(1);
		assert.equal(outcome.ended, fault);
	});
});

describe("not soon", () => {
	const ROWS: readonly { name: string; past?: readonly Happening[]; now: Happening; why: string }[] = [
		{
			name: "nonce gap",
			now: queued("nonceGap"),
			why: GAP,
		},
		{ name: "behind one that is held", now: queued("behindHeld"), why: "one before it that is held" },
		{
			name: "its simulation fails",
			now: failed("EXECUTION_REVERTED", "execution reverted: no"),
			why: "a failing simulation: execution reverted: no",
		},
		{
			name: "it passed, and fails now",
			past: SENT,
			now: failed("FEE_CAP_TOO_LOW", "too low"),
			why: "a failing simulation: too low",
		},
		{ name: "cancelled", past: SENT, now: { type: "cancelled" }, why: "its cancellation" },
		{ name: "replaced", past: SENT, now: { type: "replaced", by: HASH }, why: "its replacement" },
		{ name: "expired", past: SENT, now: { type: "expired" }, why: "its expiry" },
		{ name: "dropped", past: SENT, now: { type: "dropped" }, why: "another one that used its nonce" },
	];
	for (const { name, past = [], now, why } of ROWS) {
		test(`${name}: at once while somebody waits, and to whoever asks then`, async () => {
			const { clock } = start(...past);
			const outcome = fixture.wait(20_000);
			await clock.advance(3_000);
			assert.equal(outcome.ended, undefined);
			fixture.happens(now);
			await clock.advance(0);
			assert.deepEqual(outcome.ended, notSoon(why));
			const second = fixture.wait(20_000);
			await clock.advance(0);
			assert.deepEqual(second.ended, notSoon(why));
			assert.deepEqual(fixture.asked, []);
		});
	}

	test("what may be mined in the next block or so is waited for", async () => {
		for (const now of [
			queued("behindUnchecked"),
			failed("NODE_UNAVAILABLE", "the node does not answer"),
			{ type: "shared" },
			{ type: "bid", bundle: HASH },
			{ type: "delivered", builder: "dev", kind: "bundle", answer: "rejected", ms: 1 },
		] as const) {
			const { clock } = start();
			const outcomes = [fixture.wait(5_000)];
			fixture.happens(now);
			outcomes.push(fixture.wait(5_000));
			await clock.advance(4_999);
			assert.deepEqual(
				outcomes.map(({ ended }) => ended),
				[undefined, undefined],
				now.type,
			);
			await clock.advance(1);
			assert.deepEqual(
				outcomes.map(({ ended }) => ended),
				[timedOut("5s."), timedOut("5s.")],
			);
		}
	});

	test("it is the last reason that counts", async () => {
		const { clock } = start(queued("nonceGap"), queued("behindUnchecked"));
		const outcome = fixture.wait(5_000);
		await clock.advance(1_000);
		assert.equal(outcome.ended, undefined);
		fixture.happens({ type: "ready" }, queued("nonceGap"));
		await clock.advance(0);
		assert.deepEqual(outcome.ended, notSoon(GAP));
	});
});
