// Builders that could not be told to forget what has ended, or were not told because the process ended: whom the relay
// tells again, and until when. Answers are put into the ledger by hand, as lanes do.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { DeliveryAnswer } from "../../../relay/domain/events.ts";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { privateTransaction } from "../../support/txFactory.ts";
import { StagesScene } from "./stagesScene.ts";

const WATCH_BLOCKS = 64;

/** Cancelled before the first head that the process sees, as its restarts see it. */
async function cancelled(
	path: PrivateTransaction["path"],
	scene = new StagesScene(),
): Promise<[StagesScene, PrivateTransaction]> {
	const tx = privateTransaction({ nonce: 0, path });
	await scene.take(tx);
	const request = { hash: tx.tx.hash, address: tx.origin, signer: null };
	assert.equal(await scene.cancellations.cancel(request), true);
	const next = scene.head.number + 1;
	assert.deepEqual(scene.builders.take().slice(-1), [`cancel 0 for ${next} at a,b`]);
	return [scene, tx];
}

/** The same, in a process that has seen heads. */
async function cancelledLater(path: PrivateTransaction["path"]): Promise<[StagesScene, PrivateTransaction]> {
	const scene = new StagesScene();
	await scene.block();
	return cancelled(path, scene);
}

function answer(scene: StagesScene, { tx }: PrivateTransaction, builder: string, how: DeliveryAnswer): void {
	const told = { at: scene.clock.now(), block: 102, builder, kind: "cancel", answer: how, ms: 1 } as const;
	scene.ledger.emit(tx.hash, { type: "delivered", ...told });
}

const OUT_OF_REACH: readonly DeliveryAnswer[] = ["failed", "timeout", "unsent"];

for (const how of OUT_OF_REACH) {
	test(`a private transaction's cancel that ended as ${how} is sent again with each block until it is answered`, async () => {
		const [scene, tx] = await cancelledLater("nochecks");
		answer(scene, tx, "a", "accepted");
		answer(scene, tx, "b", how);
		await scene.block();
		assert.deepEqual(scene.builders.take(), ["cancel 0 for 103 at b"]);
		answer(scene, tx, "b", how);
		await scene.block();
		assert.deepEqual(scene.builders.take(), ["cancel 0 for 104 at b"]);
		answer(scene, tx, "b", "rejected");
		await scene.block();
		assert.deepEqual(scene.builders.take(), []);
	});
}

test("one that is on its way is not sent twice, and nobody is told of what was settled", async () => {
	const [scene, tx] = await cancelledLater("nochecks");
	await scene.block();
	assert.deepEqual(scene.builders.take(), []);
	answer(scene, tx, "a", "timeout");
	answer(scene, tx, "b", "timeout");
	for (let i = 0; i < WATCH_BLOCKS; i += 1) await scene.block();
	assert.equal(scene.stage(tx), undefined);
	scene.builders.take();
	await scene.block();
	assert.deepEqual(scene.builders.take(), []);
});

test("a bundle lapses with its block, and is not cancelled after it", async () => {
	const [scene, tx] = await cancelledLater("fast");
	answer(scene, tx, "b", "timeout");
	await scene.block();
	assert.deepEqual(scene.builders.take(), []);
});

test("after a restart in the same slot builders are told again of bundles too, but for those that had answered", async () => {
	const [scene, tx] = await cancelled("fast");
	answer(scene, tx, "a", "accepted");
	await scene.transactions.flush(true);
	const next = await scene.restart();
	await next.work([], [], true);
	assert.deepEqual(next.builders.take(), ["cancel 0 for 101 at b"]);
});

test("after a restart in a later slot they are told of private ones alone", async () => {
	for (const [path, expected] of [
		["fast", []],
		["nochecks", ["cancel 0 for 102 at a,b"]],
	] as const) {
		const [scene] = await cancelled(path);
		const next = await scene.restart();
		await next.block();
		assert.deepEqual(next.builders.take(), expected, path);
	}
});
