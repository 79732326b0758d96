// Tests what waits for receipts hold: the bytes of their requests, and clients that disconnect. Who is refused a
// wait, and that nothing waits for a client that has gone.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { ClientLife } from "../../../../shared/http/callContext.ts";
import { HASH, NOT_PROCESSED, RECEIPT, ReceiptFixture } from "./receiptFixture.ts";

let fixture = new ReceiptFixture();
/** Whatever a test has done, nothing is left of what has ended. */
afterEach(async () => {
	await fixture.clock.advance(30_000);
	assert.deepEqual([fixture.waits.size, fixture.clock.timers, fixture.follows], [0, 0, 0]);
});

const FULL = [4, `${NOT_PROCESSED} in 0s: too many calls wait already, ask for its receipt.`, HASH];

test("a client that goes ends its waits, all of one batch, and nobody else's", async () => {
	fixture = new ReceiptFixture().take();
	const [batch, other] = [new ClientLife(100), new ClientLife(100)];
	const waits = [batch, batch, other].map((life) => fixture.wait(20_000, { life }));
	await fixture.clock.advance(1_000);
	batch.end();
	await fixture.clock.advance(0);
	const gone = [4, `${NOT_PROCESSED} in 1s: its client has gone.`, HASH];
	assert.deepEqual(
		waits.map(({ ended }) => ended),
		[gone, gone, undefined],
	);
	assert.deepEqual([fixture.waits.size, fixture.follows], [1, 1]);
	const late = fixture.wait(20_000, { life: batch });
	await fixture.clock.advance(0);
	assert.deepEqual(late.ended, [4, `${NOT_PROCESSED} in 0s: its client has gone.`, HASH]);
});

test("the bytes of requests are bounded, of a client and of all; a batch counts once, and gives back at its end", async () => {
	fixture = new ReceiptFixture({ maxBytesPerClient: 100, maxBytes: 150 }).take();
	const [batch, filler] = [new ClientLife(60), new ClientLife(40)];
	const kept = [batch, batch, batch, filler].map((life) => fixture.wait(20_000, { life }));
	const mine = fixture.wait(20_000, { life: new ClientLife(1) });
	const others = fixture.wait(20_000, { client: "other", life: new ClientLife(51) });
	const fits = fixture.wait(20_000, { client: "other", life: new ClientLife(50) });
	await fixture.clock.advance(0);
	assert.deepEqual([mine.ended, others.ended, fits.ended], [FULL, FULL, undefined]);
	assert.deepEqual(
		kept.map(({ ended }) => ended),
		[undefined, undefined, undefined, undefined],
	);
	batch.end();
	const again = fixture.wait(20_000, { life: new ClientLife(60) });
	fixture.answer = RECEIPT;
	fixture.happens({ type: "included", blockHash: "0xb", index: 0, reverted: false });
	await fixture.clock.advance(0);
	assert.deepEqual([again.ended, fits.ended], [RECEIPT, RECEIPT]);
});
