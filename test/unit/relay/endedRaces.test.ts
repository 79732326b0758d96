// Tests races about one transaction that ends or returns: which event counts, that builders hear of it, and that a
// kill at any moment leaves what was answered. Disk, node and builders are fakes.

import assert from "node:assert/strict";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { privateTransaction, type TxOptions, testAccount } from "../../support/txFactory.ts";
import { STORE_OUT, type StagesScene } from "./stagesScene.ts";
import { blocks, story } from "./stories.ts";

const SENDER = testAccount(0).address;
const GWEI = 10n ** 9n;
const LIFE_BLOCKS = 25;
const HOUR_MS = 3_600_000;
const WEEK_MS = 7 * 24 * HOUR_MS;
const DEAR = { maxFeePerGas: 2_000n * GWEI, maxPriorityFeePerGas: 1_000n * GWEI };

const soft = (more: Partial<TxOptions> & { path?: PrivateTransaction["path"] } = {}) =>
	privateTransaction({ path: "noreverts", softCancellations: true, ...more });
const toSelf = () =>
	privateTransaction({ to: SENDER, gasLimit: 21_000, maxFeePerGas: 2n * GWEI, maxPriorityFeePerGas: 1n });

const cancel = (scene: StagesScene, { tx, origin }: PrivateTransaction) =>
	scene.cancellations.cancel({ hash: tx.hash, address: origin, signer: null });
const outcome = async (scene: StagesScene, tx: PrivateTransaction) => (await scene.take(tx))[0]?.outcome;

for (const [when, wait] of [
	["is watched", 0],
	["was settled", 65],
] as const) {
	story(`one that expired, ${when} and came again is taken back at its builders`, async (scene) => {
		const tx = soft();
		await scene.take(tx);
		await blocks(scene, LIFE_BLOCKS + wait);
		assert.equal(await outcome(scene, tx), "accepted");
		scene.builders.take();
		assert.equal(await outcome(scene, toSelf()), "cancels");
		assert.equal(scene.stage(tx), "CANCELLED");
		assert.match(scene.builders.take().join(), /^cancel 0 for \d+ at a,b$/);
	});

	story(`one that expired, ${when} and came again is replaced at its builders`, async (scene) => {
		const tx = soft();
		await scene.take(tx);
		await blocks(scene, LIFE_BLOCKS + wait);
		assert.equal(await outcome(scene, tx), "accepted");
		scene.builders.take();
		assert.equal(await outcome(scene, soft(DEAR)), "accepted");
		assert.equal(scene.stage(tx), "REPLACED");
		assert.match(scene.builders.take()[0] ?? "", /^cancel 0 for \d+ at a,b$/);
	});

	story(
		`one that expired, ${when}, came again and was cancelled is left alone by the next`,
		async (scene) => {
			const tx = soft();
			await scene.take(tx);
			await blocks(scene, LIFE_BLOCKS + wait);
			await scene.take(tx);
			assert.equal(await cancel(scene, tx), true);
			assert.equal(await outcome(scene, soft({ value: 1 })), "accepted");
			assert.equal(scene.stage(tx), "CANCELLED");
		},
	);

	story(`an expired one, ${when}, that comes while a self-transfer ends it stays ended`, async (scene) => {
		const tx = soft();
		await scene.take(tx);
		await blocks(scene, LIFE_BLOCKS + wait);
		scene.builders.take();
		scene.disk.hold = true;
		const ending = scene.submit(toSelf());
		await scene.quiet();
		const coming = scene.submit(tx);
		await scene.quiet();
		scene.disk.hold = false;
		scene.disk.finish(true);
		assert.deepEqual([(await ending).outcome, (await coming).outcome], ["cancels", "known"]);
		await scene.quiet();
		assert.deepEqual([scene.pool.size, scene.builders.take()], [0, []]);
		const next = await scene.restart();
		assert.equal(await outcome(next, tx), "known");
	});
}

story("the same bytes twice at once are one transaction, which a cancel behind them ends", async (scene) => {
	const tx = soft();
	const [first, second, cancelled] = [scene.submit(tx), scene.submit(tx), cancel(scene, tx)];
	assert.deepEqual([(await first).outcome, (await second).outcome], ["accepted", "known"]);
	// It came before there was anything to cancel.
	assert.equal(await cancelled, false);
	assert.equal(await cancel(scene, tx), true);
	await scene.quiet();
	assert.deepEqual([scene.stage(tx), await outcome(scene, tx)], ["CANCELLED", "known"]);
});

story("what an expired one was is not written behind its coming again", async (scene) => {
	const tx = privateTransaction({ path: "nochecks" });
	await scene.take(tx);
	await blocks(scene, LIFE_BLOCKS);
	const told = { at: scene.clock.now(), block: 126, kind: "cancel", answer: "accepted", ms: 1 } as const;
	scene.ledger.emit(tx.tx.hash, { type: "delivered", builder: "a", ...told });
	scene.disk.hold = true;
	const coming = scene.submit(tx);
	await scene.quiet();
	const flushing = scene.transactions.flush(false);
	await scene.quiet();
	scene.disk.hold = false;
	scene.disk.finish(true);
	assert.equal((await coming).outcome, "accepted");
	await flushing;
	await scene.quiet();
	const next = await scene.restart();
	assert.equal(next.pool.size, 1);
});

story("two cancels at once are both true, and so is one beside a soft one", async (scene) => {
	const [one, two] = [soft(), soft({ nonce: 1 })];
	await scene.take(one, two);
	assert.deepEqual(await Promise.all([cancel(scene, two), cancel(scene, two)]), [true, true]);
	const [hash, self] = await Promise.all([cancel(scene, one), scene.submit(toSelf())]);
	assert.deepEqual([hash, self.outcome], [true, "cancels"]);
	await scene.quiet();
	assert.deepEqual([scene.stage(one), scene.pool.size], ["CANCELLED", 0]);
});

story(
	"builders that could not be told of an expiry are told again behind the next of its nonce",
	async (scene) => {
		const tx = privateTransaction({ path: "nochecks" });
		await scene.take(tx);
		await blocks(scene, LIFE_BLOCKS);
		for (const builder of ["a", "b"]) {
			const failed = { at: scene.clock.now(), block: 126, kind: "cancel", answer: "failed", ms: 1 } as const;
			scene.ledger.emit(tx.tx.hash, { type: "delivered", builder, ...failed });
		}
		await scene.take(privateTransaction({ value: 1 }));
		assert.equal(scene.stage(tx), "REPLACED");
		scene.builders.take();
		await scene.block();
		assert.equal(scene.builders.take()[0], "cancel 0 for 127 at a,b");
	},
);

story(
	"a cancel that fails while another wants the nonce: it is pending as before, and the other must outbid it",
	async (scene) => {
		const tx = soft({ path: "nochecks" });
		await scene.take(tx);
		scene.disk.hold = true;
		const cancelling = cancel(scene, tx).catch((thrown: Error) => thrown.message);
		await scene.quiet();
		const [alike, dearer] = [soft({ value: 1 }), soft(DEAR)];
		const submitting = [scene.submit(alike), scene.submit(dearer)];
		await scene.quiet();
		scene.disk.finish(false, 1);
		scene.disk.hold = false;
		assert.equal(await cancelling, STORE_OUT.message);
		const outcomes = await Promise.all(submitting);
		assert.deepEqual(
			outcomes.map((one) => (one.outcome === "refused" ? one.rejection.code : one.outcome)),
			["UNDERPRICED", "accepted"],
		);
		await scene.quiet();
		assert.deepEqual([scene.stage(tx), scene.stage(dearer)], ["REPLACED", "BROADCAST"]);
	},
);

story("what is found by its nonce is not forgotten while it is pending again", async (scene) => {
	const tx = soft();
	await scene.take(tx);
	await blocks(scene, LIFE_BLOCKS + 65);
	await scene.pass(WEEK_MS - HOUR_MS);
	assert.equal(await outcome(scene, tx), "accepted");
	await scene.pass(2 * HOUR_MS);
	assert.equal(await cancel(scene, tx), true);
	assert.equal(await outcome(scene, toSelf()), "cancels");
});

story(
	"a self-transfer in the very write that settles the expired one is kept, whatever is killed then",
	async (scene) => {
		const tx = soft();
		await scene.take(tx);
		await blocks(scene, LIFE_BLOCKS + 63);
		scene.disk.hold = true;
		const working = scene.block();
		await scene.quiet();
		const ending = scene.submit(toSelf());
		await scene.quiet();
		scene.disk.hold = false;
		while (scene.disk.waiting > 0) {
			scene.disk.finish(true);
			await scene.quiet();
		}
		assert.equal((await ending).outcome, "cancels");
		await working;
		const next = await scene.restart();
		await next.work([], [], true);
		assert.equal(await outcome(next, tx), "known");
	},
);
