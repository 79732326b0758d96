// What came before with a nonce: one that has expired and that its user has since replaced or taken back, one whose end
// is written while a block comes, one that a process before this had sent. None of them comes back or is forgotten.

import assert from "node:assert/strict";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { privateTransaction, type TxOptions, testAccount } from "../../support/txFactory.ts";
import { blocks, scenario } from "./scenarios.ts";
import type { StagesFixture } from "./stagesFixture.ts";

const SENDER = testAccount(0).address;
const GWEI = 10n ** 9n;
const GAP_LIFE_BLOCKS = (3 * 3_600) / 12;
const LIFE_BLOCKS = 25;

const soft = (more: Partial<TxOptions> = {}) =>
	privateTransaction({ path: "noreverts", softCancellations: true, ...more });
const toSelf = () =>
	privateTransaction({ to: SENDER, gasLimit: 21_000, maxFeePerGas: 2n * GWEI, maxPriorityFeePerGas: 1n });

const outcomes = async (fixture: StagesFixture, ...transactions: readonly PrivateTransaction[]) =>
	(await fixture.take(...transactions)).map(({ outcome }) => outcome);

for (const [when, wait] of [
	["still watched", 0],
	["settled", 65],
] as const) {
	scenario(
		`an expired one, ${when}, ends with the next one of its nonce, and stays ended`,
		async (fixture) => {
			const first = soft();
			await fixture.take(first);
			await blocks(fixture, LIFE_BLOCKS + wait);
			const second = soft({ value: 1 });
			assert.deepEqual(await outcomes(fixture, second), ["accepted"]);
			const record =
				fixture.records.get(first.tx.hash)?.record ?? (await fixture.store.settled(first.tx.hash));
			assert.equal(record?.stage, "REPLACED");
			const cancel = toSelf();
			assert.deepEqual(await outcomes(fixture, cancel), ["cancels"]);
			assert.deepEqual(await outcomes(fixture, first, second, cancel), ["known", "known", "known"]);
			const next = await fixture.restart();
			await next.work([], [], true);
			assert.deepEqual(await outcomes(next, first, second, cancel), ["known", "known", "known"]);
			assert.equal(next.pool.size, 0);
		},
	);

	scenario(`an expired one, ${when}, ends with a soft cancel of an earlier one`, async (fixture) => {
		const [first, fast] = [soft(), privateTransaction({ value: 1 })];
		await fixture.take(first);
		const request = { hash: first.tx.hash, address: first.origin, signer: null };
		assert.equal(await fixture.cancellations.cancel(request), true);
		await fixture.take(fast);
		await blocks(fixture, LIFE_BLOCKS + wait);
		assert.deepEqual(await outcomes(fixture, toSelf(), fast, first), ["cancels", "known", "known"]);
		assert.equal(fixture.pool.size, 0);
	});
}

scenario("an expired one that comes again alone is admitted anew, and may expire again", async (fixture) => {
	const tx = soft();
	await fixture.take(tx);
	for (const wait of [0, 65]) {
		await blocks(fixture, LIFE_BLOCKS + wait);
		assert.deepEqual(await outcomes(fixture, tx), ["accepted"]);
	}
	assert.equal(fixture.stage(tx), "BROADCAST");
});

scenario("a block that comes while one is replaced does not undo that on disk", async (fixture) => {
	const old = privateTransaction();
	const fresh = privateTransaction({ maxFeePerGas: 2_000n * GWEI, maxPriorityFeePerGas: 1_000n * GWEI });
	await fixture.take(old);
	fixture.disk.hold = true;
	const submitting = fixture.submit(fresh);
	await fixture.quiet();
	const working = fixture.block();
	await fixture.quiet();
	fixture.disk.finish(true);
	await submitting;
	fixture.disk.finish(true);
	await working;
	// Killed here: what was answered is on disk.
	const next = await fixture.restart();
	assert.deepEqual([next.stage(old), next.pool.get(fresh.tx.hash)?.durable], ["REPLACED", true]);
});

scenario("after a kill builders are told of what is not known to have gone out", async (fixture) => {
	const tx = privateTransaction();
	await fixture.take(tx);
	const next = await fixture.restart();
	const request = { hash: tx.tx.hash, address: tx.origin, signer: null };
	assert.equal(await next.cancellations.cancel(request), true);
	assert.deepEqual(next.builders.take(), ["cancel 0 for 101 at a,b"]);
});

scenario("the hours behind a gap are counted from when it came to wait there", async (fixture) => {
	const [held, behind] = [
		privateTransaction({ path: "noreverts" }),
		privateTransaction({ path: "noreverts", nonce: 1 }),
	];
	await fixture.take(behind);
	await blocks(fixture, GAP_LIFE_BLOCKS - 2);
	await fixture.take(held);
	await fixture.block();
	assert.equal(fixture.stage(behind), "BROADCAST");
	fixture.failing.add(held.tx.hash);
	await blocks(fixture, 3);
	assert.deepEqual([fixture.stage(held), fixture.stage(behind)], ["SIMULATION_FAILED", "QUEUED"]);
	// Until then it waited for the one before it, from here on behind a gap.
	while (fixture.stage(held) !== "EXPIRED") await fixture.block();
	await blocks(fixture, GAP_LIFE_BLOCKS - 1);
	assert.equal(fixture.stage(behind), "QUEUED");
	await fixture.block();
	assert.equal(fixture.stage(behind), "EXPIRED");
});
