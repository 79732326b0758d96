// Tests cancels by hash and by self-transfer during writes and on a failing disk, and which cancels
// are sent to builders again. It does not repeat what integration/cancel tests on a real relay.

import assert from "node:assert/strict";
import type { DeliveryAnswer } from "../../../relay/domain/events.ts";
import { MAX_CANCELLED, type PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { privateTransaction } from "../../support/txFactory.ts";
import {
	accepted,
	blocks,
	cancel,
	cancels,
	DEAR,
	known,
	LIFE_BLOCKS,
	SENDER,
	STORE_OUT,
	type StagesFixture,
	scenario,
	soft,
	toSelf,
} from "./stagesFixture.ts";

const HOUR_MS = 3_600_000;
const WEEK_MS = 7 * 24 * HOUR_MS;
const UNTIL_ARCHIVED = 65;

/** The state of a promise. */
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

const HASH = "its hash";

/** The two ways to cancel a transaction, each as a promise of true. */
const WAYS: readonly (readonly [
	string,
	(fixture: StagesFixture, tx: PrivateTransaction) => Promise<boolean>,
])[] = [
	[HASH, cancel],
	// It needs no funds.
	["a self-transfer", async (fixture) => (await fixture.submit(toSelf(10n ** 30n))).outcome === "cancels"],
];

for (const [way, cancelBy] of WAYS) {
	scenario(
		`by ${way} it leaves the pool at once, and builders are notified when that is on disk`,
		async (fixture) => {
			const tx = soft();
			await fixture.take(tx);
			fixture.builders.take();
			fixture.disk.hold = true;
			fixture.node.down = true;
			const answer = watch(cancelBy(fixture, tx));
			await fixture.quiet();
			assert.deepEqual([answer.now, fixture.stage(tx), fixture.pool.size], ["waits", "BROADCAST", 0]);
			fixture.node.down = false;
			// Neither a block that comes meanwhile nor its bytes take it for lost.
			const [again, working] = [watch(fixture.submit(tx)), fixture.block()];
			await fixture.quiet();
			assert.deepEqual([again.now, fixture.pool.size, fixture.builders.take()], ["waits", 0, []]);
			fixture.disk.finish(true);
			await fixture.quiet();
			assert.deepEqual([answer.now, again.now, fixture.stage(tx)], [true, known(tx), "CANCELLED"]);
			assert.deepEqual(fixture.builders.take(), ["cancel 0 for 102 at a,b"]);
			fixture.disk.hold = false;
			fixture.disk.finish(true);
			await working;
			const next = await fixture.restart();
			assert.deepEqual([next.stage(tx), await next.take(tx), next.pool.size], ["CANCELLED", [known(tx)], 0]);
			assert.deepEqual(fixture.records.get(tx.tx.hash)?.record.events.at(-1), {
				...{ type: "cancelled", at: fixture.clock.now(), block: 101, builders: ["a", "b"] },
				...(way === HASH ? { byAddress: true } : {}),
			});
		},
	);

	scenario(
		`by ${way} on a failing disk it fails, stays pending, and may be cancelled later`,
		async (fixture) => {
			const tx = soft({ path: "fullprivacy" });
			await fixture.take(tx);
			fixture.disk.broken = true;
			for (let i = 0; i < 2; i += 1) await assert.rejects(cancelBy(fixture, tx), STORE_OUT);
			await fixture.quiet();
			assert.deepEqual([fixture.stage(tx), fixture.pool.size], ["BROADCAST", 1]);
			const sent = "send 0 for 101 to b";
			assert.deepEqual(fixture.builders.take(), [sent, sent, sent], "taken back, and sent again");
			fixture.disk.broken = false;
			assert.equal(await cancelBy(fixture, tx), true);
			assert.equal((await fixture.restart()).stage(tx), "CANCELLED");
			assert.deepEqual(fixture.builders.take(), ["cancel 0 for 101 at b"]);
		},
	);

	scenario(
		`by ${way} its bytes and self-transfers of its nonce do nothing for seven days`,
		async (fixture) => {
			const tx = soft();
			const bySender = { hash: tx.tx.hash, address: null, signer: SENDER };
			await fixture.take(tx);
			await cancelBy(fixture, tx);
			await blocks(fixture, UNTIL_ARCHIVED);
			assert.equal(fixture.records.size, 0);
			fixture.builders.take();
			await fixture.pass(WEEK_MS - HOUR_MS);
			assert.equal(await fixture.pipeline.cancel(bySender), "cancelled");
			assert.equal(await cancel(fixture, tx), false, "once it is archived the sender's key alone counts");
			assert.deepEqual(await fixture.take(tx, toSelf(1)), [known(tx), cancels(toSelf(1))]);
			assert.deepEqual([fixture.pool.size, fixture.builders.take()], [0, []]);
			// A later self-transfer keeps no earlier cancel longer. Only the sender's own cancel keeps a
			// cancel by addresses longer.
			await fixture.pass(2 * HOUR_MS + (way === HASH ? WEEK_MS : 0));
			assert.equal(await fixture.pipeline.cancel(bySender), "notPending");
			assert.deepEqual(await fixture.take(toSelf(2)), [accepted(toSelf(2))]);
		},
	);
}

/**
 * The write in progress when the first one's cancel arrives, whether it replaces the first one, and
 * whether it succeeds. Then the cancel's answer, and the stages after both.
 */
const WRITING: readonly (readonly [string, boolean, boolean, boolean, readonly (string | undefined)[]])[] = [
	["it", false, true, true, ["CANCELLED", undefined]],
	["it", false, false, false, [undefined, undefined]],
	["its replacement", true, true, false, ["REPLACED", "BROADCAST"]],
	["its replacement", true, false, true, ["CANCELLED", undefined]],
];

for (const [what, held, ok, isCancelled, stages] of WRITING) {
	scenario(`a cancel waits while ${what} is written${ok ? "" : ", also if that fails"}`, async (fixture) => {
		const [tx, fresh] = [soft(), soft(DEAR)];
		if (held) await fixture.take(tx);
		fixture.disk.hold = true;
		const submitting = watch(fixture.submit(held ? fresh : tx));
		await fixture.quiet();
		const answer = watch(cancel(fixture, tx));
		await fixture.quiet();
		assert.deepEqual([submitting.now, answer.now], ["waits", "waits"]);
		fixture.disk.hold = false;
		fixture.disk.finish(ok);
		await fixture.quiet();
		assert.deepEqual([submitting.now === "failed", answer.now], [!ok, isCancelled]);
		assert.deepEqual(fixture.stages(tx, fresh), stages);
		fixture.builders.take();
		await fixture.block();
		assert.equal(fixture.builders.take().length, stages.includes("BROADCAST") ? 1 : 0);
	});
}

scenario(
	"while nothing can be read, only transactions in memory are cancelled, and no other is reported as not pending",
	async (fixture) => {
		const tx = soft();
		await fixture.take(tx);
		fixture.disk.get = () => Promise.reject(new Error("disk"));
		const stranger = { hash: tx.tx.hash, address: "198.51.100.7", signer: null };
		// The same to all who may not cancel: the answer must not tell whether the hash is known.
		for (const hash of [tx.tx.hash, `0x${"ab".repeat(32)}`])
			await assert.rejects(fixture.pipeline.cancel({ ...stranger, hash }), STORE_OUT);
		assert.equal(await cancel(fixture, tx), true);
	},
);

/** A builder's answer to a cancel. */
function answer(fixture: StagesFixture, tx: PrivateTransaction, builder: string, how: DeliveryAnswer): void {
	const delivery = { block: 101, builder, kind: "cancel", answer: how, ms: 1 } as const;
	fixture.transactions.delivered(tx.tx.hash, { type: "delivered", at: fixture.clock.now(), ...delivery });
}

/**
 * Path; answers of builders a and b; who gets the cancel again: with the next block, after a
 * restart, after both.
 */
const REPEATED_CANCELS = [
	["nochecks", "accepted", "failed", ["b", "b", "b"]],
	["nochecks", "accepted", "timeout", ["b", "b", "b"]],
	["nochecks", "accepted", "unsent", ["b", "b", "b"]],
	["nochecks", "timeout", "timeout", ["a,b", "a,b", "a,b"]],
	["nochecks", "accepted", "rejected", ["", "", ""]],
	// Without an answer it is on its way, unless the process has ended.
	["nochecks", null, null, ["", "a,b", "a,b"]],
	// A bundle lapses with its block.
	["fast", null, null, ["", "a,b", ""]],
	["fast", "accepted", null, ["", "b", ""]],
	["fast", "accepted", "timeout", ["", "b", ""]],
] as const;

for (const [path, a, b, expected] of REPEATED_CANCELS) {
	const name = `a cancel on /${path} that was ${a ?? "not answered"} and ${b ?? "not answered"}`;
	scenario(
		`${name} is sent again to ${expected.map((who) => who || "nobody").join("; ")}`,
		async (fixture) => {
			await fixture.work([], []);
			const tx = privateTransaction({ path });
			await fixture.take(tx);
			await cancel(fixture, tx);
			fixture.builders.take();
			if (a !== null) answer(fixture, tx, "a", a);
			if (b !== null) answer(fixture, tx, "b", b);
			await fixture.transactions.keeper.flush(true);
			const [same, later] = [await fixture.restart(), await fixture.restart()];
			await fixture.block();
			await same.work([], []);
			await later.block();
			const lines = [fixture, same, later].map(({ builders }, i) => {
				const line = builders.take().join();
				return line.replace(`cancel 0 for ${i === 1 ? 101 : 102} at `, "");
			});
			assert.deepEqual(lines, expected);
		},
	);
}

scenario("an expiry's cancel that failed is repeated after a replacement of its nonce", async (fixture) => {
	const tx = privateTransaction({ path: "nochecks" });
	await fixture.take(tx);
	await blocks(fixture, LIFE_BLOCKS);
	for (const builder of ["a", "b"]) answer(fixture, tx, builder, "failed");
	await fixture.take(privateTransaction({ value: 1 }));
	assert.equal(fixture.stage(tx), "REPLACED");
	fixture.builders.take();
	await fixture.block();
	assert.equal(fixture.builders.take()[0], "cancel 0 for 127 at a,b");
});

scenario("an ended transaction keeps no bytes in memory, also after a restart", async (fixture) => {
	const large = privateTransaction({ data: Buffer.alloc(50_000, 1), gasLimit: 2_500_000 });
	await fixture.take(large);
	assert.equal(await cancel(fixture, large), true);
	const next = await fixture.restart();
	for (const one of [fixture, next]) {
		const { tx } = one.records.get(large.tx.hash)?.transaction ?? {};
		assert.deepEqual([tx?.raw.length, tx?.data.length, tx?.from, tx?.hash], [0, 0, SENDER, large.tx.hash]);
	}
	assert.equal(await cancel(next, large), true);
});

scenario("a sender's cancels are limited, by self-transfers too", async (fixture) => {
	for (let i = 0; i < MAX_CANCELLED; i += 1) {
		const tx = soft({ value: i + 1 });
		assert.deepEqual(await fixture.submit(tx), accepted(tx));
		await cancel(fixture, tx);
	}
	for (const more of await fixture.take(soft(), toSelf()))
		assert.equal(more.outcome === "rejected" && more.rejection.code, "SENDER_FULL");
	await blocks(fixture, UNTIL_ARCHIVED);
	assert.deepEqual(await fixture.take(soft()), [accepted(soft())]);
});
