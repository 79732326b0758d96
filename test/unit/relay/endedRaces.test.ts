// Tests races about one transaction that ends or returns: which event counts, that builders hear of it, and that a
// kill at any moment leaves what was answered. Disk, node and builders are fakes.

import assert from "node:assert/strict";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { privateTransaction, type TxOptions, testAccount } from "../../support/txFactory.ts";
import { blocks, scenario } from "./scenarios.ts";
import { STORE_OUT, type StagesFixture } from "./stagesFixture.ts";

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

const cancel = (fixture: StagesFixture, { tx, origin }: PrivateTransaction) =>
	fixture.cancellations.cancel({ hash: tx.hash, address: origin, signer: null });
const outcome = async (fixture: StagesFixture, tx: PrivateTransaction) =>
	(await fixture.take(tx))[0]?.outcome;

for (const [when, wait] of [
	["is watched", 0],
	["was settled", 65],
] as const) {
	scenario(`one that expired, ${when} and came again is taken back at its builders`, async (fixture) => {
		const tx = soft();
		await fixture.take(tx);
		await blocks(fixture, LIFE_BLOCKS + wait);
		assert.equal(await outcome(fixture, tx), "accepted");
		fixture.builders.take();
		assert.equal(await outcome(fixture, toSelf()), "cancels");
		assert.equal(fixture.stage(tx), "CANCELLED");
		assert.match(fixture.builders.take().join(), /^cancel 0 for \d+ at a,b$/);
	});

	scenario(`one that expired, ${when} and came again is replaced at its builders`, async (fixture) => {
		const tx = soft();
		await fixture.take(tx);
		await blocks(fixture, LIFE_BLOCKS + wait);
		assert.equal(await outcome(fixture, tx), "accepted");
		fixture.builders.take();
		assert.equal(await outcome(fixture, soft(DEAR)), "accepted");
		assert.equal(fixture.stage(tx), "REPLACED");
		assert.match(fixture.builders.take()[0] ?? "", /^cancel 0 for \d+ at a,b$/);
	});

	scenario(
		`one that expired, ${when}, came again and was cancelled is left alone by the next`,
		async (fixture) => {
			const tx = soft();
			await fixture.take(tx);
			await blocks(fixture, LIFE_BLOCKS + wait);
			await fixture.take(tx);
			assert.equal(await cancel(fixture, tx), true);
			assert.equal(await outcome(fixture, soft({ value: 1 })), "accepted");
			assert.equal(fixture.stage(tx), "CANCELLED");
		},
	);

	scenario(
		`an expired one, ${when}, that comes while a self-transfer ends it stays ended`,
		async (fixture) => {
			const tx = soft();
			await fixture.take(tx);
			await blocks(fixture, LIFE_BLOCKS + wait);
			fixture.builders.take();
			fixture.disk.hold = true;
			const ending = fixture.submit(toSelf());
			await fixture.quiet();
			const coming = fixture.submit(tx);
			await fixture.quiet();
			fixture.disk.hold = false;
			fixture.disk.finish(true);
			assert.deepEqual([(await ending).outcome, (await coming).outcome], ["cancels", "known"]);
			await fixture.quiet();
			assert.deepEqual([fixture.pool.size, fixture.builders.take()], [0, []]);
			const next = await fixture.restart();
			assert.equal(await outcome(next, tx), "known");
		},
	);
}

scenario(
	"the same bytes twice at once are one transaction, which a cancel behind them ends",
	async (fixture) => {
		const tx = soft();
		const [first, second, cancelled] = [fixture.submit(tx), fixture.submit(tx), cancel(fixture, tx)];
		assert.deepEqual([(await first).outcome, (await second).outcome], ["accepted", "known"]);
		// It came before there was anything to cancel.
		assert.equal(await cancelled, false);
		assert.equal(await cancel(fixture, tx), true);
		await fixture.quiet();
		assert.deepEqual([fixture.stage(tx), await outcome(fixture, tx)], ["CANCELLED", "known"]);
	},
);

scenario("what an expired one was is not written behind its coming again", async (fixture) => {
	const tx = privateTransaction({ path: "nochecks" });
	await fixture.take(tx);
	await blocks(fixture, LIFE_BLOCKS);
	const told = { at: fixture.clock.now(), block: 126, kind: "cancel", answer: "accepted", ms: 1 } as const;
	fixture.records.emit(tx.tx.hash, { type: "delivered", builder: "a", ...told });
	fixture.disk.hold = true;
	const coming = fixture.submit(tx);
	await fixture.quiet();
	const flushing = fixture.transactions.flush(false);
	await fixture.quiet();
	fixture.disk.hold = false;
	fixture.disk.finish(true);
	assert.equal((await coming).outcome, "accepted");
	await flushing;
	await fixture.quiet();
	const next = await fixture.restart();
	assert.equal(next.pool.size, 1);
});

scenario("two cancels at once are both true, and so is one beside a soft one", async (fixture) => {
	const [one, two] = [soft(), soft({ nonce: 1 })];
	await fixture.take(one, two);
	assert.deepEqual(await Promise.all([cancel(fixture, two), cancel(fixture, two)]), [true, true]);
	const [hash, self] = await Promise.all([cancel(fixture, one), fixture.submit(toSelf())]);
	assert.deepEqual([hash, self.outcome], [true, "cancels"]);
	await fixture.quiet();
	assert.deepEqual([fixture.stage(one), fixture.pool.size], ["CANCELLED", 0]);
});

scenario(
	"builders that could not be told of an expiry are told again behind the next of its nonce",
	async (fixture) => {
		const tx = privateTransaction({ path: "nochecks" });
		await fixture.take(tx);
		await blocks(fixture, LIFE_BLOCKS);
		for (const builder of ["a", "b"]) {
			const failed = {
				at: fixture.clock.now(),
				block: 126,
				kind: "cancel",
				answer: "failed",
				ms: 1,
			} as const;
			fixture.records.emit(tx.tx.hash, { type: "delivered", builder, ...failed });
		}
		await fixture.take(privateTransaction({ value: 1 }));
		assert.equal(fixture.stage(tx), "REPLACED");
		fixture.builders.take();
		await fixture.block();
		assert.equal(fixture.builders.take()[0], "cancel 0 for 127 at a,b");
	},
);

scenario(
	"a cancel that fails while another wants the nonce: it is pending as before, and the other must outbid it",
	async (fixture) => {
		const tx = soft({ path: "nochecks" });
		await fixture.take(tx);
		fixture.disk.hold = true;
		const cancelling = cancel(fixture, tx).catch((thrown: Error) => thrown.message);
		await fixture.quiet();
		const [alike, dearer] = [soft({ value: 1 }), soft(DEAR)];
		const submitting = [fixture.submit(alike), fixture.submit(dearer)];
		await fixture.quiet();
		fixture.disk.finish(false, 1);
		fixture.disk.hold = false;
		assert.equal(await cancelling, STORE_OUT.message);
		const outcomes = await Promise.all(submitting);
		assert.deepEqual(
			outcomes.map((one) => (one.outcome === "refused" ? one.rejection.code : one.outcome)),
			["UNDERPRICED", "accepted"],
		);
		await fixture.quiet();
		assert.deepEqual([fixture.stage(tx), fixture.stage(dearer)], ["REPLACED", "BROADCAST"]);
	},
);

scenario("what is found by its nonce is not forgotten while it is pending again", async (fixture) => {
	const tx = soft();
	await fixture.take(tx);
	await blocks(fixture, LIFE_BLOCKS + 65);
	await fixture.pass(WEEK_MS - HOUR_MS);
	assert.equal(await outcome(fixture, tx), "accepted");
	await fixture.pass(2 * HOUR_MS);
	assert.equal(await cancel(fixture, tx), true);
	assert.equal(await outcome(fixture, toSelf()), "cancels");
});

scenario(
	"a self-transfer in the very write that settles the expired one is kept, whatever is killed then",
	async (fixture) => {
		const tx = soft();
		await fixture.take(tx);
		await blocks(fixture, LIFE_BLOCKS + 63);
		fixture.disk.hold = true;
		const working = fixture.block();
		await fixture.quiet();
		const ending = fixture.submit(toSelf());
		await fixture.quiet();
		fixture.disk.hold = false;
		while (fixture.disk.waiting > 0) {
			fixture.disk.finish(true);
			await fixture.quiet();
		}
		assert.equal((await ending).outcome, "cancels");
		await working;
		const next = await fixture.restart();
		await next.work([], [], true);
		assert.equal(await outcome(next, tx), "known");
	},
);
