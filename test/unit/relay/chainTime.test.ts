// The machine's clock is set forward or back by days: ages go by the chain's time, so nothing ends, comes back or is
// forgotten for it.

import assert from "node:assert/strict";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { privateTransaction, testAccount } from "../../support/txFactory.ts";
import { blocks, scenario } from "./scenarios.ts";
import type { StagesFixture } from "./stagesFixture.ts";

const DAY_MS = 24 * 3_600_000;
const UNTIL_SETTLED = 65;

const cancel = (fixture: StagesFixture, { tx }: PrivateTransaction) =>
	fixture.cancellations.cancel({ hash: tx.hash, address: "127.0.0.1", signer: null });

for (const days of [8, -8, 400]) {
	for (const sent of [true, false]) {
		scenario(
			`${sent ? "sent" : "never sent"} and cancelled: a clock ${days} days off for one block does not bring it back`,
			async (fixture) => {
				const tx = privateTransaction({ nonce: sent ? 0 : 5 });
				await fixture.take(tx);
				assert.equal(await cancel(fixture, tx), true);
				await blocks(fixture, UNTIL_SETTLED);
				fixture.builders.take();
				fixture.clock.set(days * DAY_MS);
				await fixture.block();
				assert.deepEqual(await fixture.take(tx), [{ outcome: "known", hash: tx.tx.hash }]);
				fixture.clock.set(-days * DAY_MS);
				await fixture.block();
				assert.deepEqual(await fixture.take(tx), [{ outcome: "known", hash: tx.tx.hash }]);
				assert.deepEqual([fixture.builders.take(), fixture.pool.size], [[], 0]);
			},
		);

		scenario(
			`${sent ? "sent" : "never sent"} and cancelled under a clock ${days} days off: it stays so when that is right again`,
			async (fixture) => {
				const tx = privateTransaction({ nonce: sent ? 0 : 5 });
				await fixture.take(tx);
				fixture.clock.set(days * DAY_MS);
				assert.equal(await cancel(fixture, tx), true);
				await blocks(fixture, UNTIL_SETTLED);
				fixture.clock.set(-days * DAY_MS);
				await fixture.pass(6 * DAY_MS);
				assert.deepEqual(await fixture.take(tx), [{ outcome: "known", hash: tx.tx.hash }]);
			},
		);
	}

	scenario(
		`what waits behind a gap neither ends nor lives longer for a clock ${days} days off`,
		async (fixture) => {
			const [tx, held] = [privateTransaction({ nonce: 5 }), privateTransaction({ by: testAccount(1) })];
			fixture.failing.add(held.tx.hash);
			await fixture.take(tx, held);
			fixture.clock.set(days * DAY_MS);
			await blocks(fixture, 20);
			assert.deepEqual([fixture.stage(tx), fixture.stage(held)], ["QUEUED", "SIMULATION_FAILED"]);
			await blocks(fixture, 5);
			assert.equal(fixture.stage(held), "EXPIRED");
			await blocks(fixture, 875);
			assert.equal(await fixture.stageOrKept(tx), "EXPIRED");
		},
	);

	scenario(
		`builders are not told again and again of a cancel for a clock ${days} days off`,
		async (fixture) => {
			const tx = privateTransaction({ path: "nochecks" });
			await fixture.take(tx);
			assert.equal(await cancel(fixture, tx), true);
			fixture.clock.set(days * DAY_MS);
			for (const builder of ["a", "b"]) {
				fixture.records.emit(tx.tx.hash, {
					...{ type: "delivered", at: fixture.clock.now(), block: 101, builder },
					...{ kind: "cancel", answer: "accepted", ms: 1 },
				});
			}
			fixture.builders.take();
			await blocks(fixture, 3);
			assert.deepEqual(fixture.builders.take(), []);
		},
	);
}

scenario("a head that is days ahead of the machine's clock makes nothing old either", async (fixture) => {
	const tx = privateTransaction();
	await fixture.take(tx);
	assert.equal(await cancel(fixture, tx), true);
	await blocks(fixture, UNTIL_SETTLED);
	await fixture.block({ after: 8 * 24 * 3_600 });
	assert.deepEqual(await fixture.take(tx), [{ outcome: "known", hash: tx.tx.hash }]);
});

scenario("what is old by both is forgotten", async (fixture) => {
	const tx = privateTransaction({ nonce: 5 });
	await fixture.take(tx);
	assert.equal(await cancel(fixture, tx), true);
	await blocks(fixture, UNTIL_SETTLED);
	await fixture.pass(8 * DAY_MS);
	assert.deepEqual([...fixture.disk.map.keys()], []);
	assert.deepEqual(await fixture.take(tx), [{ outcome: "accepted", hash: tx.tx.hash }]);
});
