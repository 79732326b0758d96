// Tests the limits of waits for receipts: how long each lasts, and how many there may be at a time.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import {
	HASH,
	type Happening,
	included,
	NOT_PROCESSED,
	queued,
	RECEIPT,
	ReceiptFixture,
} from "./receiptFixture.ts";

const SENT: readonly Happening[] = [{ type: "ready" }, { type: "broadcast" }];
const timedOut = (seconds: string) => [4, `${NOT_PROCESSED} in ${seconds}`, HASH];

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

test("the time is told as it was asked for", async () => {
	const { clock } = start();
	await clock.advance(123.4567);
	for (const [ms, seconds] of [
		[1, "0.001s."],
		[1_500, "1.5s."],
		[20_000, "20s."],
	] as const) {
		const outcome = fixture.wait(ms);
		await clock.advance(ms);
		assert.deepEqual(outcome.ended, timedOut(seconds));
	}
});

test("what is taken only when its time is up is answered all the same, also with what is known by then", async () => {
	const { clock } = start();
	const outcome = fixture.wait(-50, { begun: -1_000 });
	await clock.advance(0);
	assert.deepEqual(outcome.ended, timedOut("0.95s."));
	fixture.happens(queued("nonceGap"));
	const known = fixture.wait(0);
	await clock.advance(0);
	assert.deepEqual(known.ended, [
		5,
		`${NOT_PROCESSED} due to a missing nonce: it goes out when the gap before it closes`,
		HASH,
	]);
});

test("who comes when too many wait, of one client or in all, is told so at once", async () => {
	fixture = new ReceiptFixture({ maxWaits: 3, maxPerClient: 2 }).take();
	const { clock } = fixture;
	const full = timedOut("0s: too many calls wait already, ask for its receipt.");
	const mine = [fixture.wait(5_000), fixture.wait(1_000)];
	const refused = fixture.wait(5_000);
	const others = [fixture.wait(5_000, { client: "other" })];
	const tooMany = fixture.wait(5_000, { client: "third" });
	await clock.advance(0);
	assert.deepEqual([refused.ended, tooMany.ended], [full, full]);
	await clock.advance(1_000);
	assert.deepEqual(mine[1]?.ended, timedOut("1s."), "its place is free again");
	mine.push(fixture.wait(5_000));
	fixture.answer = RECEIPT;
	fixture.happens(included());
	await clock.advance(0);
	assert.deepEqual([mine[0]?.ended, mine[2]?.ended, others[0]?.ended], [RECEIPT, RECEIPT, RECEIPT]);
});

test("when the relay stops all are answered, and so is who comes then", async () => {
	const { clock } = start(...SENT);
	const waiting = [fixture.wait(20_000), fixture.wait(25_000, { client: "other" })];
	await clock.advance(3_200);
	fixture.waits.close();
	const late = fixture.wait(20_000);
	await clock.advance(0);
	const stopping = "the relay is shutting down, and keeps it.";
	assert.deepEqual(
		[...waiting, late].map(({ ended }) => ended),
		[timedOut(`3.2s: ${stopping}`), timedOut(`3.2s: ${stopping}`), timedOut(`0s: ${stopping}`)],
	);
	fixture.waits.close();
});

test("a store that fails is a fault, and nobody waits on", async () => {
	start();
	const fault = new Error("disk");
	Object.assign(fixture.reader, { record: () => Promise.reject(fault) });
	const outcome = fixture.wait(20_000);
	await fixture.clock.advance(0);
	assert.equal(outcome.ended, fault);
});
