// Tests what waits for receipts hold: the bytes of their requests, and clients that disconnect. Who is refused a
// wait, and that nothing waits for a client that has gone.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { ClientLife } from "../../../../shared/http/callContext.ts";
import { HASH, NOT_PROCESSED, RECEIPT, ReceiptScene } from "./receiptScene.ts";

let scene = new ReceiptScene();
/** Whatever a test has done, nothing is left of what has ended. */
afterEach(async () => {
	await scene.clock.advance(30_000);
	assert.deepEqual([scene.waits.size, scene.clock.timers, scene.follows], [0, 0, 0]);
});

const FULL = [4, `${NOT_PROCESSED} in 0s: too many calls wait already, ask for its receipt.`, HASH];

test("a client that goes ends its waits, all of one batch, and nobody else's", async () => {
	scene = new ReceiptScene().take();
	const [batch, other] = [new ClientLife(100), new ClientLife(100)];
	const waits = [batch, batch, other].map((life) => scene.wait(20_000, { life }));
	await scene.clock.advance(1_000);
	batch.end();
	await scene.clock.advance(0);
	const gone = [4, `${NOT_PROCESSED} in 1s: its client has gone.`, HASH];
	assert.deepEqual(
		waits.map(({ ended }) => ended),
		[gone, gone, undefined],
	);
	assert.deepEqual([scene.waits.size, scene.follows], [1, 1]);
	const late = scene.wait(20_000, { life: batch });
	await scene.clock.advance(0);
	assert.deepEqual(late.ended, [4, `${NOT_PROCESSED} in 0s: its client has gone.`, HASH]);
});

test("the bytes of requests are bounded, of a client and of all; a batch counts once, and gives back at its end", async () => {
	scene = new ReceiptScene({ maxBytesPerClient: 100, maxBytes: 150 }).take();
	const [batch, filler] = [new ClientLife(60), new ClientLife(40)];
	const kept = [batch, batch, batch, filler].map((life) => scene.wait(20_000, { life }));
	const mine = scene.wait(20_000, { life: new ClientLife(1) });
	const others = scene.wait(20_000, { client: "other", life: new ClientLife(51) });
	const fits = scene.wait(20_000, { client: "other", life: new ClientLife(50) });
	await scene.clock.advance(0);
	assert.deepEqual([mine.ended, others.ended, fits.ended], [FULL, FULL, undefined]);
	assert.deepEqual(
		kept.map(({ ended }) => ended),
		[undefined, undefined, undefined, undefined],
	);
	batch.end();
	const again = scene.wait(20_000, { life: new ClientLife(60) });
	scene.answer = RECEIPT;
	scene.happens({ type: "included", blockHash: "0xb", index: 0, reverted: false });
	await scene.clock.advance(0);
	assert.deepEqual([again.ended, fits.ended], [RECEIPT, RECEIPT]);
});
