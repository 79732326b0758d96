// Tests cancels by hash on a fake disk, node and builders: when the answer is sent and what is true by then, at every
// moment of a submission, replacement or simulation; and what a failing disk leaves.

import assert from "node:assert/strict";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { privateTransaction, testAccount } from "../../support/txFactory.ts";
import { STORE_OUT, type StagesScene } from "./stagesScene.ts";
import { blocks, story } from "./stories.ts";

const SENDER = testAccount(0).address;
const HERE = "127.0.0.1";
const HOUR_MS = 3600 * 1000;
const WEEK_MS = 7 * 24 * HOUR_MS;
const WATCH_BLOCKS = 64;

/** The same nonce, always dearer by ten percent and more than the one before. */
function bid(step: number, options: { nonce?: number; path?: PrivateTransaction["path"] } = {}) {
	const fee = 10n ** 10n * 2n ** BigInt(step);
	return privateTransaction({ ...options, maxFeePerGas: fee, maxPriorityFeePerGas: fee });
}

function cancel(
	scene: StagesScene,
	{ tx }: PrivateTransaction,
	who: { readonly address?: string | null; readonly signer?: string | null } = {},
): Promise<boolean> {
	return scene.cancellations.cancel({ hash: tx.hash, address: HERE, signer: null, ...who });
}

/** What a promise has come to so far. */
function watch<T>(promise: Promise<T>): { now: T | "waits" | "failed" } {
	const seen: { now: T | "waits" | "failed" } = { now: "waits" };
	promise.then(
		(value) => {
			seen.now = value;
		},
		() => {
			seen.now = "failed";
		},
	);
	return seen;
}

story("it is gone at once, and everybody is told when that is on disk", async (scene) => {
	const tx = bid(0);
	await scene.take(tx);
	assert.deepEqual(scene.builders.take(), ["send 0 for 101 to a,b"]);
	scene.disk.hold = true;
	const answer = watch(cancel(scene, tx));
	await scene.quiet();
	assert.deepEqual([answer.now, scene.stage(tx), scene.pool.size], ["waits", "BROADCAST", 0]);
	assert.equal(scene.pool.pending(tx.tx.hash), null);
	assert.deepEqual(scene.builders.take(), []);
	// A block that comes meanwhile does not take it for lost.
	const [again, working] = [watch(scene.submit(tx)), scene.block()];
	await scene.quiet();
	assert.deepEqual([again.now, scene.pool.size], ["waits", 0]);
	scene.disk.finish(true);
	await scene.quiet();
	assert.deepEqual([answer.now, scene.stage(tx)], [true, "CANCELLED"]);
	assert.deepEqual(scene.builders.take(), ["cancel 0 for 102 at a,b"]);
	assert.deepEqual(again.now, { outcome: "known", hash: tx.tx.hash });
	scene.disk.hold = false;
	scene.disk.finish(true);
	await working;
	const next = await scene.restart();
	assert.deepEqual([next.stage(tx), next.pool.size], ["CANCELLED", 0]);
	scene.disk.hold = false;
	await blocks(scene, 3);
	assert.deepEqual(scene.builders.take(), []);
	assert.deepEqual(scene.ledger.get(tx.tx.hash)?.record.events.at(-1), {
		...{ type: "cancelled", at: scene.clock.now(), block: 101, builders: ["a", "b"] },
	});
});

story("what nobody has had is told to nobody", async (scene) => {
	const tx = bid(0, { nonce: 2 });
	await scene.take(tx);
	assert.equal(scene.stage(tx), "QUEUED");
	assert.equal(await cancel(scene, tx), true);
	await scene.quiet();
	assert.deepEqual(scene.builders.take(), []);
});

story(
	"a disk that fails is told, and it is pending as before; the next cancel is true once it is written",
	async (scene) => {
		const tx = bid(0);
		await scene.take(tx);
		scene.disk.broken = true;
		await assert.rejects(cancel(scene, tx), STORE_OUT);
		await scene.quiet();
		assert.deepEqual([scene.stage(tx), scene.pool.size], ["BROADCAST", 1]);
		assert.deepEqual(scene.builders.take(), ["send 0 for 101 to a,b"], "builders heard of it once");
		await assert.rejects(cancel(scene, tx), STORE_OUT);
		await scene.quiet();
		assert.deepEqual(scene.builders.take(), []);
		scene.disk.broken = false;
		assert.equal(await cancel(scene, tx), true);
		assert.equal((await scene.restart()).stage(tx), "CANCELLED");
		assert.deepEqual(scene.builders.take(), ["cancel 0 for 101 at a,b"]);
	},
);

story("a disk that can't be read keeps nobody from cancelling what is pending", async (scene) => {
	const tx = bid(0);
	await scene.take(tx);
	const { get } = scene.disk;
	scene.disk.get = () => Promise.reject(new Error("disk"));
	assert.equal(await cancel(scene, tx), true);
	scene.disk.get = get;
	assert.equal(scene.stage(tx), "CANCELLED");
});

for (const ok of [true, false]) {
	story(
		`while it is written it waits for that${ok ? "" : ", which fails"}, and nothing is sent`,
		async (scene) => {
			const tx = bid(0);
			scene.disk.hold = true;
			const submitting = watch(scene.submit(tx));
			await scene.quiet();
			const answer = watch(cancel(scene, tx));
			await scene.quiet();
			assert.deepEqual([submitting.now, answer.now], ["waits", "waits"]);
			scene.disk.hold = false;
			scene.disk.finish(ok);
			await scene.quiet();
			assert.equal(answer.now, ok);
			assert.equal(submitting.now === "failed", !ok);
			assert.deepEqual([scene.stage(tx), scene.pool.size], [ok ? "CANCELLED" : undefined, 0]);
			await blocks(scene, 2);
			const sent = scene.builders.take().filter((line) => line.startsWith("send"));
			assert.ok(sent.length <= 1 && !sent.some((line) => line.includes(" 102 ")), sent.join());
		},
	);

	story(`while its replacement is written it waits for that${ok ? "" : ", which fails"}`, async (scene) => {
		const [old, fresh] = [bid(0), bid(1)];
		await scene.take(old);
		scene.disk.hold = true;
		const submitting = watch(scene.submit(fresh));
		await scene.quiet();
		const answer = watch(cancel(scene, old));
		await scene.quiet();
		assert.equal(answer.now, "waits");
		scene.disk.hold = false;
		scene.disk.finish(ok);
		await scene.quiet();
		assert.equal(answer.now, !ok);
		assert.equal(scene.stage(old), ok ? "REPLACED" : "CANCELLED");
		assert.equal(scene.stage(fresh), ok ? "BROADCAST" : undefined);
		assert.equal(submitting.now === "failed", !ok);
		assert.equal(scene.pool.size, ok ? 1 : 0);
	});
}

story("while it replaces another one, it ends behind that, which does not come back", async (scene) => {
	const [old, fresh] = [bid(0), bid(1)];
	await scene.take(old);
	scene.disk.hold = true;
	const submitting = watch(scene.submit(fresh));
	await scene.quiet();
	const answer = watch(cancel(scene, fresh));
	await scene.quiet();
	scene.disk.hold = false;
	scene.disk.finish(true);
	await scene.quiet();
	assert.deepEqual([answer.now, typeof submitting.now], [true, "object"]);
	assert.deepEqual([scene.stage(old), scene.stage(fresh), scene.pool.size], ["REPLACED", "CANCELLED", 0]);
	scene.builders.take();
	await blocks(scene, 2);
	assert.deepEqual(scene.builders.take(), []);
});

story("while it is simulated: what comes of that changes nothing, and nothing is sent", async (scene) => {
	const tx = bid(0);
	let open = () => {};
	scene.simulationGate = new Promise((resolve) => {
		open = resolve;
	});
	await scene.submit(tx);
	await scene.clock.advance(0);
	assert.deepEqual([scene.simulated, scene.stage(tx)], [["0"], "PENDING"]);
	assert.equal(await cancel(scene, tx), true);
	open();
	await scene.quiet();
	await blocks(scene, 2);
	assert.deepEqual([scene.stage(tx), scene.builders.take()], ["CANCELLED", []]);
	assert.deepEqual(scene.life(tx), ["received", "cancelled"]);
});

story("a stranger is refused without a word of the node's or a write, whatever there is", async (scene) => {
	const [tx, ended] = [bid(0), bid(0, { nonce: 1 })];
	await scene.take(tx, ended);
	assert.equal(await cancel(scene, ended), true);
	scene.builders.take();
	scene.disk.hold = true;
	for (const one of [tx, ended, bid(5)]) {
		for (const who of [
			{ address: "127.0.0.2" },
			{ address: null },
			{ address: null, signer: testAccount(1).address },
		]) {
			assert.equal(await cancel(scene, one, who), false);
		}
	}
	await scene.quiet();
	assert.deepEqual([scene.disk.waiting, scene.builders.take(), scene.stage(tx)], [0, [], "BROADCAST"]);
	scene.disk.hold = false;
	assert.equal(await cancel(scene, tx, { address: null, signer: SENDER }), true);
});

story("each final stage but its own is refused, and stays", async (scene) => {
	const finals = [bid(0), bid(0, { nonce: 1, path: "nochecks" }), bid(0, { nonce: 2 }), bid(0, { nonce: 3 })];
	const [mined, reverted, replaced, dropped] = finals as [
		PrivateTransaction,
		PrivateTransaction,
		PrivateTransaction,
		PrivateTransaction,
	];
	const expiring = bid(0, { nonce: 9 });
	await scene.take(expiring);
	await blocks(scene, (3 * HOUR_MS) / 12_000 - 3);
	await scene.take(mined, reverted, replaced, bid(1, { nonce: 2 }), dropped);
	await scene.block({ mined: [mined] });
	await scene.block({ mined: [reverted], reverted: true });
	await scene.block({ used: { [SENDER]: 4n } });
	const stages = ["INCLUDED", "REVERTED", "REPLACED", "DROPPED", "EXPIRED"];
	for (const [i, tx] of [mined, reverted, replaced, dropped, expiring].entries()) {
		assert.equal(scene.stage(tx), stages[i]);
		assert.equal(await cancel(scene, tx), false, stages[i]);
		assert.equal(await cancel(scene, tx, { signer: SENDER }), false, stages[i]);
		assert.equal(scene.stage(tx), stages[i]);
	}
});

story("settled, it is true for the sender's key alone; its bytes are dead for seven days", async (scene) => {
	const tx = bid(0);
	await scene.take(tx);
	assert.equal(await cancel(scene, tx), true);
	await blocks(scene, WATCH_BLOCKS + 1);
	assert.equal(scene.ledger.get(tx.tx.hash), undefined);
	assert.equal(await cancel(scene, tx), false);
	assert.equal(await cancel(scene, tx, { signer: SENDER }), true);
	scene.builders.take();
	await scene.pass(WEEK_MS - HOUR_MS);
	assert.deepEqual(await scene.take(tx), [{ outcome: "known", hash: tx.tx.hash }]);
	assert.deepEqual([scene.pool.size, scene.builders.take()], [0, []]);
	await scene.pass(2 * HOUR_MS);
	assert.equal(await cancel(scene, tx, { signer: SENDER }), false);
	assert.deepEqual(await scene.take(tx), [{ outcome: "accepted", hash: tx.tx.hash }]);
});
