// Tests soft cancels on a fake disk, node and builders: when a self-transfer cancels what was sent with soft
// cancellations, what a failing disk leaves, for how long, and how builders are told again.

import assert from "node:assert/strict";
import type { DeliveryAnswer } from "../../../relay/domain/events.ts";
import type { PrivateTransaction, SubmitOutcome } from "../../../relay/domain/transaction.ts";
import { privateTransaction, type TxOptions, testAccount } from "../../support/txFactory.ts";
import { blocks, scenario } from "./scenarios.ts";
import { STORE_OUT, type StagesFixture } from "./stagesFixture.ts";

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
function assertTakenBack(fixture: StagesFixture, tx: PrivateTransaction, cancel: PrivateTransaction): void {
	assert.deepEqual([fixture.stage(tx), fixture.stage(cancel)], ["CANCELLED", "CANCELLED"]);
	assert.deepEqual([fixture.pool.get(tx.tx.hash), fixture.pool.get(cancel.tx.hash)], [undefined, undefined]);
	assert.ok(!fixture.simulated.includes(cancel.tx.hash), "it was simulated");
}

/** Behind a restart; of the cancelling one, which nobody was sent, a short record is kept. */
async function assertKept(
	fixture: StagesFixture,
	tx: PrivateTransaction,
	cancel: PrivateTransaction,
): Promise<void> {
	assert.deepEqual([fixture.stage(tx), await fixture.stageOrKept(cancel)], ["CANCELLED", "CANCELLED"]);
	assert.equal(fixture.pool.size, 0);
}

scenario("it needs no node, no bump and no funds: answered when both are on disk", async (fixture) => {
	const [tx, cancel] = [soft(), toSelf(0, { value: 10n ** 30n })];
	await fixture.take(tx);
	assert.deepEqual(fixture.builders.take(), ["send 0 for 101 to a,b"]);
	fixture.node.down = true;
	fixture.disk.hold = true;
	let answer: SubmitOutcome | null = null;
	const submitting = fixture.submit(cancel).then((outcome) => {
		answer = outcome;
	});
	await fixture.quiet();
	assert.deepEqual([answer, fixture.stage(tx), fixture.pool.size], [null, "BROADCAST", 0]);
	assert.deepEqual(fixture.builders.take(), []);
	fixture.disk.finish(true);
	await submitting;
	assert.deepEqual(fixture.builders.take(), ["cancel 0 for 101 at a,b"]);
	assert.deepEqual(answer, cancels(cancel));
	assertTakenBack(fixture, tx, cancel);
	const next = await fixture.restart();
	await assertKept(next, tx, cancel);
	assert.deepEqual(await next.take(tx, cancel), [known(tx), known(cancel)]);
	assert.deepEqual(next.builders.take(), []);
});

scenario(
	"a disk that fails is told; the earlier one is pending as before, and the bytes may come again",
	async (fixture) => {
		const [tx, cancel] = [soft(), toSelf()];
		await fixture.take(tx);
		fixture.disk.broken = true;
		await assert.rejects(fixture.submit(cancel), STORE_OUT);
		await fixture.quiet();
		assert.deepEqual([fixture.stage(tx), fixture.stage(cancel)], ["BROADCAST", undefined]);
		fixture.disk.broken = false;
		assert.deepEqual(await fixture.take(cancel), [cancels(cancel)]);
		assertTakenBack(fixture, tx, cancel);
		await assertKept(await fixture.restart(), tx, cancel);
	},
);

scenario("while what it takes back is written it waits for that", async (fixture) => {
	const [tx, cancel] = [soft(), toSelf()];
	fixture.disk.hold = true;
	const both = Promise.all([fixture.submit(tx), fixture.submit(cancel)]);
	await fixture.quiet();
	fixture.disk.hold = false;
	fixture.disk.finish(true);
	assert.deepEqual(await both, [accepted(tx), cancels(cancel)]);
	await fixture.quiet();
	assertTakenBack(fixture, tx, cancel);
	await blocks(fixture, 2);
	assert.ok(!fixture.builders.take().some((line) => line.includes(" 102 ")), "it was sent again");
});

scenario("ten at once are each answered, and end it once", async (fixture) => {
	const tx = soft();
	await fixture.take(tx);
	const all = Array.from({ length: 10 }, (_, value) => toSelf(value));
	assert.deepEqual(await Promise.all(all.map((one) => fixture.submit(one))), all.map(cancels));
	await fixture.quiet();
	for (const one of all) assertTakenBack(fixture, tx, one);
	assert.equal(fixture.life(tx).filter((type) => type === "cancelled").length, 1);
	assert.deepEqual(fixture.builders.take(), ["send 0 for 101 to a,b", "cancel 0 for 101 at a,b"]);
});

scenario(
	"for seven days any self-transfer with the nonce is one; behind that it is an ordinary one",
	async (fixture) => {
		const [tx, first] = [soft(), toSelf(0)];
		await fixture.take(tx, first);
		await blocks(fixture, WATCH_BLOCKS + 1);
		assert.equal(fixture.records.size, 0);
		await fixture.pass(WEEK_MS - HOUR_MS);
		fixture.builders.take();
		const late = toSelf(1);
		assert.deepEqual(await fixture.take(late, tx, first), [cancels(late), known(tx), known(first)]);
		assert.deepEqual([fixture.pool.size, fixture.builders.take()], [0, []]);
		// Of the earlier ones nothing is kept any longer.
		await fixture.pass(2 * HOUR_MS);
		const ordinary = toSelf(2);
		assert.deepEqual(await fixture.take(ordinary), [accepted(ordinary)]);
		assert.equal(fixture.stage(ordinary), "BROADCAST");
	},
);

scenario("what has expired and is settled is ended on disk", async (fixture) => {
	const [tx, cancel] = [soft(), toSelf()];
	await fixture.take(tx);
	await blocks(fixture, 25 + WATCH_BLOCKS + 1);
	assert.equal(fixture.records.size, 0);
	assert.deepEqual(await fixture.take(cancel), [cancels(cancel)]);
	const next = await fixture.restart();
	next.builders.take();
	assert.equal((await next.store.settled(tx.tx.hash))?.stage, "CANCELLED");
	assert.deepEqual(await next.take(tx), [known(tx)]);
	assert.deepEqual(next.builders.take(), []);
});

scenario("one whose nonce was used is no soft cancel", async (fixture) => {
	const tx = soft();
	await fixture.take(tx);
	await fixture.take(toSelf(0));
	await fixture.block({ used: { [SENDER]: 1n } });
	const [late] = await fixture.take(toSelf(1));
	assert.ok(late?.outcome === "refused", JSON.stringify(late));
	assert.equal(late.rejection.code, "NONCE_TOO_LOW");
});

/** A cancel of it that `builder` answered so. */
function answered(
	fixture: StagesFixture,
	{ tx }: PrivateTransaction,
	builder: string,
	answer: DeliveryAnswer,
): void {
	const at = fixture.clock.now();
	fixture.records.emit(tx.hash, {
		type: "delivered",
		at,
		block: 101,
		builder,
		kind: "cancel",
		answer,
		ms: 1,
	});
}

scenario(
	"builders that could not be reached are told again with the next head, for as long as they may have it",
	async (fixture) => {
		const [lasting, lapsing] = [privateTransaction({ path: "nochecks" }), soft({ by: testAccount(1) })];
		await fixture.take(lasting, lapsing);
		for (const { tx } of [lasting, lapsing]) {
			assert.equal(
				await fixture.cancellations.cancel({ hash: tx.hash, address: "127.0.0.1", signer: null }),
				true,
			);
		}
		for (const tx of [lasting, lapsing]) {
			answered(fixture, tx, "a", "failed");
			answered(fixture, tx, "b", tx === lasting ? "accepted" : "rejected");
		}
		fixture.builders.take();
		await fixture.block();
		// The bundle named the block that has come.
		assert.deepEqual(fixture.builders.take(), ["cancel 0 for 102 at a"]);
		answered(fixture, lasting, "a", "timeout");
		await fixture.block();
		assert.deepEqual(fixture.builders.take(), ["cancel 0 for 103 at a"]);
		answered(fixture, lasting, "a", "accepted");
		await fixture.block();
		assert.deepEqual(fixture.builders.take(), []);
	},
);

scenario("behind a restart those are told again that had it and have not answered", async (fixture) => {
	const [lasting, lapsing] = [privateTransaction({ path: "nochecks" }), soft({ by: testAccount(1) })];
	await fixture.take(lasting, lapsing);
	for (const { tx } of [lasting, lapsing]) {
		await fixture.cancellations.cancel({ hash: tx.hash, address: null, signer: tx.from });
	}
	answered(fixture, lasting, "b", "accepted");
	await fixture.transactions.flush(true);
	const next = await fixture.restart();
	await next.work([], []);
	assert.deepEqual(next.builders.take().sort(), ["cancel 0 for 101 at a", "cancel 0 for 101 at a,b"]);
	await next.block();
	assert.deepEqual(next.builders.take(), [], "they are on their way");
	const later = await fixture.restart();
	await later.block();
	assert.deepEqual(later.builders.take(), ["cancel 0 for 102 at a"], "the bundle has lapsed");
});
