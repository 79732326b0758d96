// Builders that could not be told to forget what has ended, or were not told because the process ended: whom the relay
// tells again, and until when. Answers are put into the records by hand, as lanes do.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { DeliveryAnswer } from "../../../relay/domain/events.ts";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { privateTransaction } from "../../support/txFactory.ts";
import { StagesFixture } from "./stagesFixture.ts";

const WATCH_BLOCKS = 64;

/** Cancelled before the first head that the process sees, as its restarts see it. */
async function cancelled(
	path: PrivateTransaction["path"],
	fixture = new StagesFixture(),
): Promise<[StagesFixture, PrivateTransaction]> {
	const tx = privateTransaction({ nonce: 0, path });
	await fixture.take(tx);
	const request = { hash: tx.tx.hash, address: tx.origin, signer: null };
	assert.equal(await fixture.cancellations.cancel(request), true);
	const next = fixture.head.number + 1;
	assert.deepEqual(fixture.builders.take().slice(-1), [`cancel 0 for ${next} at a,b`]);
	return [fixture, tx];
}

/** The same, in a process that has seen heads. */
async function cancelledLater(
	path: PrivateTransaction["path"],
): Promise<[StagesFixture, PrivateTransaction]> {
	const fixture = new StagesFixture();
	await fixture.block();
	return cancelled(path, fixture);
}

function answer(
	fixture: StagesFixture,
	{ tx }: PrivateTransaction,
	builder: string,
	how: DeliveryAnswer,
): void {
	const told = { at: fixture.clock.now(), block: 102, builder, kind: "cancel", answer: how, ms: 1 } as const;
	fixture.records.emit(tx.hash, { type: "delivered", ...told });
}

const OUT_OF_REACH: readonly DeliveryAnswer[] = ["failed", "timeout", "unsent"];

for (const how of OUT_OF_REACH) {
	test(`a private transaction's cancel that ended as ${how} is sent again with each block until it is answered`, async () => {
		const [fixture, tx] = await cancelledLater("nochecks");
		answer(fixture, tx, "a", "accepted");
		answer(fixture, tx, "b", how);
		await fixture.block();
		assert.deepEqual(fixture.builders.take(), ["cancel 0 for 103 at b"]);
		answer(fixture, tx, "b", how);
		await fixture.block();
		assert.deepEqual(fixture.builders.take(), ["cancel 0 for 104 at b"]);
		answer(fixture, tx, "b", "rejected");
		await fixture.block();
		assert.deepEqual(fixture.builders.take(), []);
	});
}

test("one that is on its way is not sent twice, and nobody is told of what was settled", async () => {
	const [fixture, tx] = await cancelledLater("nochecks");
	await fixture.block();
	assert.deepEqual(fixture.builders.take(), []);
	answer(fixture, tx, "a", "timeout");
	answer(fixture, tx, "b", "timeout");
	for (let i = 0; i < WATCH_BLOCKS; i += 1) await fixture.block();
	assert.equal(fixture.stage(tx), undefined);
	fixture.builders.take();
	await fixture.block();
	assert.deepEqual(fixture.builders.take(), []);
});

test("a bundle lapses with its block, and is not cancelled after it", async () => {
	const [fixture, tx] = await cancelledLater("fast");
	answer(fixture, tx, "b", "timeout");
	await fixture.block();
	assert.deepEqual(fixture.builders.take(), []);
});

test("after a restart in the same slot builders are told again of bundles too, but for those that had answered", async () => {
	const [fixture, tx] = await cancelled("fast");
	answer(fixture, tx, "a", "accepted");
	await fixture.transactions.flush(true);
	const next = await fixture.restart();
	await next.work([], [], true);
	assert.deepEqual(next.builders.take(), ["cancel 0 for 101 at b"]);
});

test("after a restart in a later slot they are told of private ones alone", async () => {
	for (const [path, expected] of [
		["fast", []],
		["nochecks", ["cancel 0 for 102 at a,b"]],
	] as const) {
		const [fixture] = await cancelled(path);
		const next = await fixture.restart();
		await next.block();
		assert.deepEqual(next.builders.take(), expected, path);
	}
});
