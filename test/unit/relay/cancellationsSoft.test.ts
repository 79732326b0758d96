// Tests soft cancels on a fake disk, node and builders: when a self-transfer cancels what was sent with soft
// cancellations, what a failing disk leaves, for how long, and how builders are told again.

import assert from "node:assert/strict";
import type { DeliveryAnswer } from "../../../relay/domain/events.ts";
import type { PrivateTransaction, SubmitOutcome } from "../../../relay/domain/transaction.ts";
import { privateTransaction, type TxOptions, testAccount } from "../../support/txFactory.ts";
import { STORE_OUT, type StagesScene } from "./stagesScene.ts";
import { blocks, story } from "./stories.ts";

const SENDER = testAccount(0).address;
const HOUR_MS = 3600 * 1000;
const WEEK_MS = 7 * 24 * HOUR_MS;
const WATCH_BLOCKS = 64;
const GWEI = 10n ** 9n;

/** With soft cancellations, unless said. */
function soft(options: TxOptions & Partial<PrivateTransaction> = {}): PrivateTransaction {
	return privateTransaction({ path: "noreverts", softCancellations: true, ...options });
}

/** To its sender; another one for each value. */
function toSelf(value = 0, options: TxOptions & Partial<PrivateTransaction> = {}): PrivateTransaction {
	return privateTransaction({ to: SENDER, gasLimit: 21_000, value, maxFeePerGas: 2n * GWEI, ...options });
}

const cancels = ({ tx }: PrivateTransaction): SubmitOutcome => ({ outcome: "cancels", hash: tx.hash });
const known = ({ tx }: PrivateTransaction): SubmitOutcome => ({ outcome: "known", hash: tx.hash });
const accepted = ({ tx }: PrivateTransaction): SubmitOutcome => ({ outcome: "accepted", hash: tx.hash });

/** Both have ended so, the nonce is free, and of the cancelling one nobody has heard. */
function assertTakenBack(scene: StagesScene, tx: PrivateTransaction, cancel: PrivateTransaction): void {
	assert.deepEqual([scene.stage(tx), scene.stage(cancel)], ["CANCELLED", "CANCELLED"]);
	assert.deepEqual([scene.pool.get(tx.tx.hash), scene.pool.get(cancel.tx.hash)], [undefined, undefined]);
	assert.ok(!scene.simulated.includes(cancel.tx.hash), "it was simulated");
}

/** Behind a restart; of the cancelling one, which nobody was sent, a short record is kept. */
async function assertKept(
	scene: StagesScene,
	tx: PrivateTransaction,
	cancel: PrivateTransaction,
): Promise<void> {
	assert.deepEqual([scene.stage(tx), await scene.stageOrKept(cancel)], ["CANCELLED", "CANCELLED"]);
	assert.equal(scene.pool.size, 0);
}

story("it needs no node, no bump and no funds: answered when both are on disk", async (scene) => {
	const [tx, cancel] = [soft(), toSelf(0, { value: 10n ** 30n })];
	await scene.take(tx);
	assert.deepEqual(scene.builders.take(), ["send 0 for 101 to a,b"]);
	scene.node.down = true;
	scene.disk.hold = true;
	let answer: SubmitOutcome | null = null;
	const submitting = scene.submit(cancel).then((outcome) => {
		answer = outcome;
	});
	await scene.quiet();
	assert.deepEqual([answer, scene.stage(tx), scene.pool.size], [null, "BROADCAST", 0]);
	assert.deepEqual(scene.builders.take(), []);
	scene.disk.finish(true);
	await submitting;
	assert.deepEqual(scene.builders.take(), ["cancel 0 for 101 at a,b"]);
	assert.deepEqual(answer, cancels(cancel));
	assertTakenBack(scene, tx, cancel);
	const next = await scene.restart();
	await assertKept(next, tx, cancel);
	assert.deepEqual(await next.take(tx, cancel), [known(tx), known(cancel)]);
	assert.deepEqual(next.builders.take(), []);
});

story(
	"a disk that fails is told; the earlier one is pending as before, and the bytes may come again",
	async (scene) => {
		const [tx, cancel] = [soft(), toSelf()];
		await scene.take(tx);
		scene.disk.broken = true;
		await assert.rejects(scene.submit(cancel), STORE_OUT);
		await scene.quiet();
		assert.deepEqual([scene.stage(tx), scene.stage(cancel)], ["BROADCAST", undefined]);
		scene.disk.broken = false;
		assert.deepEqual(await scene.take(cancel), [cancels(cancel)]);
		assertTakenBack(scene, tx, cancel);
		await assertKept(await scene.restart(), tx, cancel);
	},
);

story("while what it takes back is written it waits for that", async (scene) => {
	const [tx, cancel] = [soft(), toSelf()];
	scene.disk.hold = true;
	const both = Promise.all([scene.submit(tx), scene.submit(cancel)]);
	await scene.quiet();
	scene.disk.hold = false;
	scene.disk.finish(true);
	assert.deepEqual(await both, [accepted(tx), cancels(cancel)]);
	await scene.quiet();
	assertTakenBack(scene, tx, cancel);
	await blocks(scene, 2);
	assert.ok(!scene.builders.take().some((line) => line.includes(" 102 ")), "it was sent again");
});

story("ten at once are each answered, and end it once", async (scene) => {
	const tx = soft();
	await scene.take(tx);
	const all = Array.from({ length: 10 }, (_, value) => toSelf(value));
	assert.deepEqual(await Promise.all(all.map((one) => scene.submit(one))), all.map(cancels));
	await scene.quiet();
	for (const one of all) assertTakenBack(scene, tx, one);
	assert.equal(scene.life(tx).filter((type) => type === "cancelled").length, 1);
	assert.deepEqual(scene.builders.take(), ["send 0 for 101 to a,b", "cancel 0 for 101 at a,b"]);
});

story(
	"for seven days any self-transfer with the nonce is one; behind that it is an ordinary one",
	async (scene) => {
		const [tx, first] = [soft(), toSelf(0)];
		await scene.take(tx, first);
		await blocks(scene, WATCH_BLOCKS + 1);
		assert.equal(scene.ledger.size, 0);
		await scene.pass(WEEK_MS - HOUR_MS);
		scene.builders.take();
		const late = toSelf(1);
		assert.deepEqual(await scene.take(late, tx, first), [cancels(late), known(tx), known(first)]);
		assert.deepEqual([scene.pool.size, scene.builders.take()], [0, []]);
		// Of the earlier ones nothing is kept any longer.
		await scene.pass(2 * HOUR_MS);
		const ordinary = toSelf(2);
		assert.deepEqual(await scene.take(ordinary), [accepted(ordinary)]);
		assert.equal(scene.stage(ordinary), "BROADCAST");
	},
);

story("what has expired and is settled is ended on disk", async (scene) => {
	const [tx, cancel] = [soft(), toSelf()];
	await scene.take(tx);
	await blocks(scene, 25 + WATCH_BLOCKS + 1);
	assert.equal(scene.ledger.size, 0);
	assert.deepEqual(await scene.take(cancel), [cancels(cancel)]);
	const next = await scene.restart();
	next.builders.take();
	assert.equal((await next.store.settled(tx.tx.hash))?.stage, "CANCELLED");
	assert.deepEqual(await next.take(tx), [known(tx)]);
	assert.deepEqual(next.builders.take(), []);
});

story("one whose nonce was used is no soft cancel", async (scene) => {
	const tx = soft();
	await scene.take(tx);
	await scene.take(toSelf(0));
	await scene.block({ used: { [SENDER]: 1n } });
	const [late] = await scene.take(toSelf(1));
	assert.ok(late?.outcome === "refused", JSON.stringify(late));
	assert.equal(late.rejection.code, "NONCE_TOO_LOW");
});

/** A cancel of it that `builder` answered so. */
function answered(
	scene: StagesScene,
	{ tx }: PrivateTransaction,
	builder: string,
	answer: DeliveryAnswer,
): void {
	const at = scene.clock.now();
	scene.ledger.emit(tx.hash, { type: "delivered", at, block: 101, builder, kind: "cancel", answer, ms: 1 });
}

story(
	"builders that could not be reached are told again with the next head, for as long as they may have it",
	async (scene) => {
		const [lasting, lapsing] = [privateTransaction({ path: "nochecks" }), soft({ by: testAccount(1) })];
		await scene.take(lasting, lapsing);
		for (const { tx } of [lasting, lapsing]) {
			assert.equal(
				await scene.cancellations.cancel({ hash: tx.hash, address: "127.0.0.1", signer: null }),
				true,
			);
		}
		for (const tx of [lasting, lapsing]) {
			answered(scene, tx, "a", "failed");
			answered(scene, tx, "b", tx === lasting ? "accepted" : "rejected");
		}
		scene.builders.take();
		await scene.block();
		// The bundle named the block that has come.
		assert.deepEqual(scene.builders.take(), ["cancel 0 for 102 at a"]);
		answered(scene, lasting, "a", "timeout");
		await scene.block();
		assert.deepEqual(scene.builders.take(), ["cancel 0 for 103 at a"]);
		answered(scene, lasting, "a", "accepted");
		await scene.block();
		assert.deepEqual(scene.builders.take(), []);
	},
);

story("behind a restart those are told again that had it and have not answered", async (scene) => {
	const [lasting, lapsing] = [privateTransaction({ path: "nochecks" }), soft({ by: testAccount(1) })];
	await scene.take(lasting, lapsing);
	for (const { tx } of [lasting, lapsing]) {
		await scene.cancellations.cancel({ hash: tx.hash, address: null, signer: tx.from });
	}
	answered(scene, lasting, "b", "accepted");
	await scene.transactions.flush(true);
	const next = await scene.restart();
	await next.work([], []);
	assert.deepEqual(next.builders.take().sort(), ["cancel 0 for 101 at a", "cancel 0 for 101 at a,b"]);
	await next.block();
	assert.deepEqual(next.builders.take(), [], "they are on their way");
	const later = await scene.restart();
	await later.block();
	assert.deepEqual(later.builders.take(), ["cancel 0 for 102 at a"], "the bundle has lapsed");
});
