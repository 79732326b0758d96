// What came before with a nonce: one that has expired and that its user has since replaced or taken back, one whose end
// is written while a block comes, one that a process before this had sent. None of them comes back or is forgotten.

import assert from "node:assert/strict";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { privateTransaction, type TxOptions, testAccount } from "../../support/txFactory.ts";
import type { StagesScene } from "./stagesScene.ts";
import { blocks, story } from "./stories.ts";

const SENDER = testAccount(0).address;
const GWEI = 10n ** 9n;
const GAP_LIFE_BLOCKS = (3 * 3_600) / 12;
const LIFE_BLOCKS = 25;

const soft = (more: Partial<TxOptions> = {}) =>
	privateTransaction({ path: "noreverts", softCancellations: true, ...more });
const toSelf = () =>
	privateTransaction({ to: SENDER, gasLimit: 21_000, maxFeePerGas: 2n * GWEI, maxPriorityFeePerGas: 1n });

const outcomes = async (scene: StagesScene, ...transactions: readonly PrivateTransaction[]) =>
	(await scene.take(...transactions)).map(({ outcome }) => outcome);

for (const [when, wait] of [
	["still watched", 0],
	["settled", 65],
] as const) {
	story(`an expired one, ${when}, ends with the next one of its nonce, and stays ended`, async (scene) => {
		const first = soft();
		await scene.take(first);
		await blocks(scene, LIFE_BLOCKS + wait);
		const second = soft({ value: 1 });
		assert.deepEqual(await outcomes(scene, second), ["accepted"]);
		const record = scene.ledger.get(first.tx.hash)?.record ?? (await scene.store.settled(first.tx.hash));
		assert.equal(record?.stage, "REPLACED");
		const cancel = toSelf();
		assert.deepEqual(await outcomes(scene, cancel), ["cancels"]);
		assert.deepEqual(await outcomes(scene, first, second, cancel), ["known", "known", "known"]);
		const next = await scene.restart();
		await next.work([], [], true);
		assert.deepEqual(await outcomes(next, first, second, cancel), ["known", "known", "known"]);
		assert.equal(next.pool.size, 0);
	});

	story(`an expired one, ${when}, ends with a soft cancel of an earlier one`, async (scene) => {
		const [first, fast] = [soft(), privateTransaction({ value: 1 })];
		await scene.take(first);
		const request = { hash: first.tx.hash, address: first.origin, signer: null };
		assert.equal(await scene.cancellations.cancel(request), true);
		await scene.take(fast);
		await blocks(scene, LIFE_BLOCKS + wait);
		assert.deepEqual(await outcomes(scene, toSelf(), fast, first), ["cancels", "known", "known"]);
		assert.equal(scene.pool.size, 0);
	});
}

story("an expired one that comes again alone is admitted anew, and may expire again", async (scene) => {
	const tx = soft();
	await scene.take(tx);
	for (const wait of [0, 65]) {
		await blocks(scene, LIFE_BLOCKS + wait);
		assert.deepEqual(await outcomes(scene, tx), ["accepted"]);
	}
	assert.equal(scene.stage(tx), "BROADCAST");
});

story("a block that comes while one is replaced does not undo that on disk", async (scene) => {
	const old = privateTransaction();
	const fresh = privateTransaction({ maxFeePerGas: 2_000n * GWEI, maxPriorityFeePerGas: 1_000n * GWEI });
	await scene.take(old);
	scene.disk.hold = true;
	const submitting = scene.submit(fresh);
	await scene.quiet();
	const working = scene.block();
	await scene.quiet();
	scene.disk.finish(true);
	await submitting;
	scene.disk.finish(true);
	await working;
	// Killed here: what was answered is on disk.
	const next = await scene.restart();
	assert.deepEqual([next.stage(old), next.pool.get(fresh.tx.hash)?.durable], ["REPLACED", true]);
});

story("after a kill builders are told of what is not known to have gone out", async (scene) => {
	const tx = privateTransaction();
	await scene.take(tx);
	const next = await scene.restart();
	const request = { hash: tx.tx.hash, address: tx.origin, signer: null };
	assert.equal(await next.cancellations.cancel(request), true);
	assert.deepEqual(next.builders.take(), ["cancel 0 for 101 at a,b"]);
});

story("the hours behind a gap are counted from when it came to wait there", async (scene) => {
	const [held, behind] = [
		privateTransaction({ path: "noreverts" }),
		privateTransaction({ path: "noreverts", nonce: 1 }),
	];
	await scene.take(behind);
	await blocks(scene, GAP_LIFE_BLOCKS - 2);
	await scene.take(held);
	await scene.block();
	assert.equal(scene.stage(behind), "BROADCAST");
	scene.failing.add(held.tx.hash);
	await blocks(scene, 3);
	assert.deepEqual([scene.stage(held), scene.stage(behind)], ["SIMULATION_FAILED", "QUEUED"]);
	// Until then it waited for the one before it, from here on behind a gap.
	while (scene.stage(held) !== "EXPIRED") await scene.block();
	await blocks(scene, GAP_LIFE_BLOCKS - 1);
	assert.equal(scene.stage(behind), "QUEUED");
	await scene.block();
	assert.equal(scene.stage(behind), "EXPIRED");
});
