// The machine's clock is set forward or back by days: ages go by the chain's time, so nothing ends, comes back or is
// forgotten for it.

import assert from "node:assert/strict";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { privateTransaction, testAccount } from "../../support/txFactory.ts";
import type { StagesScene } from "./stagesScene.ts";
import { blocks, story } from "./stories.ts";

const DAY_MS = 24 * 3_600_000;
const UNTIL_SETTLED = 65;

const cancel = (scene: StagesScene, { tx }: PrivateTransaction) =>
	scene.cancellations.cancel({ hash: tx.hash, address: "127.0.0.1", signer: null });

for (const days of [8, -8, 400]) {
	for (const sent of [true, false]) {
		story(
			`${sent ? "sent" : "never sent"} and cancelled: a clock ${days} days off for one block does not bring it back`,
			async (scene) => {
				const tx = privateTransaction({ nonce: sent ? 0 : 5 });
				await scene.take(tx);
				assert.equal(await cancel(scene, tx), true);
				await blocks(scene, UNTIL_SETTLED);
				scene.builders.take();
				scene.clock.set(days * DAY_MS);
				await scene.block();
				assert.deepEqual(await scene.take(tx), [{ outcome: "known", hash: tx.tx.hash }]);
				scene.clock.set(-days * DAY_MS);
				await scene.block();
				assert.deepEqual(await scene.take(tx), [{ outcome: "known", hash: tx.tx.hash }]);
				assert.deepEqual([scene.builders.take(), scene.pool.size], [[], 0]);
			},
		);

		story(
			`${sent ? "sent" : "never sent"} and cancelled under a clock ${days} days off: it stays so when that is right again`,
			async (scene) => {
				const tx = privateTransaction({ nonce: sent ? 0 : 5 });
				await scene.take(tx);
				scene.clock.set(days * DAY_MS);
				assert.equal(await cancel(scene, tx), true);
				await blocks(scene, UNTIL_SETTLED);
				scene.clock.set(-days * DAY_MS);
				await scene.pass(6 * DAY_MS);
				assert.deepEqual(await scene.take(tx), [{ outcome: "known", hash: tx.tx.hash }]);
			},
		);
	}

	story(
		`what waits behind a gap neither ends nor lives longer for a clock ${days} days off`,
		async (scene) => {
			const [tx, held] = [privateTransaction({ nonce: 5 }), privateTransaction({ by: testAccount(1) })];
			scene.failing.add(held.tx.hash);
			await scene.take(tx, held);
			scene.clock.set(days * DAY_MS);
			await blocks(scene, 20);
			assert.deepEqual([scene.stage(tx), scene.stage(held)], ["QUEUED", "SIMULATION_FAILED"]);
			await blocks(scene, 5);
			assert.equal(scene.stage(held), "EXPIRED");
			await blocks(scene, 875);
			assert.equal(await scene.stageOrKept(tx), "EXPIRED");
		},
	);

	story(`builders are not told again and again of a cancel for a clock ${days} days off`, async (scene) => {
		const tx = privateTransaction({ path: "nochecks" });
		await scene.take(tx);
		assert.equal(await cancel(scene, tx), true);
		scene.clock.set(days * DAY_MS);
		for (const builder of ["a", "b"]) {
			scene.ledger.emit(tx.tx.hash, {
				...{ type: "delivered", at: scene.clock.now(), block: 101, builder },
				...{ kind: "cancel", answer: "accepted", ms: 1 },
			});
		}
		scene.builders.take();
		await blocks(scene, 3);
		assert.deepEqual(scene.builders.take(), []);
	});
}

story("a head that is days ahead of the machine's clock makes nothing old either", async (scene) => {
	const tx = privateTransaction();
	await scene.take(tx);
	assert.equal(await cancel(scene, tx), true);
	await blocks(scene, UNTIL_SETTLED);
	await scene.block({ after: 8 * 24 * 3_600 });
	assert.deepEqual(await scene.take(tx), [{ outcome: "known", hash: tx.tx.hash }]);
});

story("what is old by both is forgotten", async (scene) => {
	const tx = privateTransaction({ nonce: 5 });
	await scene.take(tx);
	assert.equal(await cancel(scene, tx), true);
	await blocks(scene, UNTIL_SETTLED);
	await scene.pass(8 * DAY_MS);
	assert.deepEqual([...scene.disk.map.keys()], []);
	assert.deepEqual(await scene.take(tx), [{ outcome: "accepted", hash: tx.tx.hash }]);
});
