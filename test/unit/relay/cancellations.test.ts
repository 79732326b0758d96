// Tests cancels by hash on a fake disk, node and builders: when the answer is sent and what is true by then, at every
// moment of a submission, replacement or simulation; and what a failing disk leaves.

import assert from "node:assert/strict";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { privateTransaction, testAccount } from "../../support/txFactory.ts";
import { blocks, scenario } from "./scenarios.ts";
import { STORE_OUT, type StagesFixture } from "./stagesFixture.ts";

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
	fixture: StagesFixture,
	{ tx }: PrivateTransaction,
	who: { readonly address?: string | null; readonly signer?: string | null } = {},
): Promise<boolean> {
	return fixture.cancellations.cancel({ hash: tx.hash, address: HERE, signer: null, ...who });
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

scenario("it is gone at once, and everybody is told when that is on disk", async (fixture) => {
	const tx = bid(0);
	await fixture.take(tx);
	assert.deepEqual(fixture.builders.take(), ["send 0 for 101 to a,b"]);
	fixture.disk.hold = true;
	const answer = watch(cancel(fixture, tx));
	await fixture.quiet();
	assert.deepEqual([answer.now, fixture.stage(tx), fixture.pool.size], ["waits", "BROADCAST", 0]);
	assert.equal(fixture.pool.pending(tx.tx.hash), null);
	assert.deepEqual(fixture.builders.take(), []);
	// A block that comes meanwhile does not take it for lost.
	const [again, working] = [watch(fixture.submit(tx)), fixture.block()];
	await fixture.quiet();
	assert.deepEqual([again.now, fixture.pool.size], ["waits", 0]);
	fixture.disk.finish(true);
	await fixture.quiet();
	assert.deepEqual([answer.now, fixture.stage(tx)], [true, "CANCELLED"]);
	assert.deepEqual(fixture.builders.take(), ["cancel 0 for 102 at a,b"]);
	assert.deepEqual(again.now, { outcome: "known", hash: tx.tx.hash });
	fixture.disk.hold = false;
	fixture.disk.finish(true);
	await working;
	const next = await fixture.restart();
	assert.deepEqual([next.stage(tx), next.pool.size], ["CANCELLED", 0]);
	fixture.disk.hold = false;
	await blocks(fixture, 3);
	assert.deepEqual(fixture.builders.take(), []);
	assert.deepEqual(fixture.records.get(tx.tx.hash)?.record.events.at(-1), {
		...{ type: "cancelled", at: fixture.clock.now(), block: 101, builders: ["a", "b"] },
	});
});

scenario("what nobody has had is told to nobody", async (fixture) => {
	const tx = bid(0, { nonce: 2 });
	await fixture.take(tx);
	assert.equal(fixture.stage(tx), "QUEUED");
	assert.equal(await cancel(fixture, tx), true);
	await fixture.quiet();
	assert.deepEqual(fixture.builders.take(), []);
});

scenario(
	"a disk that fails is told, and it is pending as before; the next cancel is true once it is written",
	async (fixture) => {
		const tx = bid(0);
		await fixture.take(tx);
		fixture.disk.broken = true;
		await assert.rejects(cancel(fixture, tx), STORE_OUT);
		await fixture.quiet();
		assert.deepEqual([fixture.stage(tx), fixture.pool.size], ["BROADCAST", 1]);
		assert.deepEqual(fixture.builders.take(), ["send 0 for 101 to a,b"], "builders heard of it once");
		await assert.rejects(cancel(fixture, tx), STORE_OUT);
		await fixture.quiet();
		assert.deepEqual(fixture.builders.take(), []);
		fixture.disk.broken = false;
		assert.equal(await cancel(fixture, tx), true);
		assert.equal((await fixture.restart()).stage(tx), "CANCELLED");
		assert.deepEqual(fixture.builders.take(), ["cancel 0 for 101 at a,b"]);
	},
);

scenario("a disk that can't be read keeps nobody from cancelling what is pending", async (fixture) => {
	const tx = bid(0);
	await fixture.take(tx);
	const { get } = fixture.disk;
	fixture.disk.get = () => Promise.reject(new Error("disk"));
	assert.equal(await cancel(fixture, tx), true);
	fixture.disk.get = get;
	assert.equal(fixture.stage(tx), "CANCELLED");
});

for (const ok of [true, false]) {
	scenario(
		`while it is written it waits for that${ok ? "" : ", which fails"}, and nothing is sent`,
		async (fixture) => {
			const tx = bid(0);
			fixture.disk.hold = true;
			const submitting = watch(fixture.submit(tx));
			await fixture.quiet();
			const answer = watch(cancel(fixture, tx));
			await fixture.quiet();
			assert.deepEqual([submitting.now, answer.now], ["waits", "waits"]);
			fixture.disk.hold = false;
			fixture.disk.finish(ok);
			await fixture.quiet();
			assert.equal(answer.now, ok);
			assert.equal(submitting.now === "failed", !ok);
			assert.deepEqual([fixture.stage(tx), fixture.pool.size], [ok ? "CANCELLED" : undefined, 0]);
			await blocks(fixture, 2);
			const sent = fixture.builders.take().filter((line) => line.startsWith("send"));
			assert.ok(sent.length <= 1 && !sent.some((line) => line.includes(" 102 ")), sent.join());
		},
	);

	scenario(
		`while its replacement is written it waits for that${ok ? "" : ", which fails"}`,
		async (fixture) => {
			const [old, fresh] = [bid(0), bid(1)];
			await fixture.take(old);
			fixture.disk.hold = true;
			const submitting = watch(fixture.submit(fresh));
			await fixture.quiet();
			const answer = watch(cancel(fixture, old));
			await fixture.quiet();
			assert.equal(answer.now, "waits");
			fixture.disk.hold = false;
			fixture.disk.finish(ok);
			await fixture.quiet();
			assert.equal(answer.now, !ok);
			assert.equal(fixture.stage(old), ok ? "REPLACED" : "CANCELLED");
			assert.equal(fixture.stage(fresh), ok ? "BROADCAST" : undefined);
			assert.equal(submitting.now === "failed", !ok);
			assert.equal(fixture.pool.size, ok ? 1 : 0);
		},
	);
}

scenario("while it replaces another one, it ends behind that, which does not come back", async (fixture) => {
	const [old, fresh] = [bid(0), bid(1)];
	await fixture.take(old);
	fixture.disk.hold = true;
	const submitting = watch(fixture.submit(fresh));
	await fixture.quiet();
	const answer = watch(cancel(fixture, fresh));
	await fixture.quiet();
	fixture.disk.hold = false;
	fixture.disk.finish(true);
	await fixture.quiet();
	assert.deepEqual([answer.now, typeof submitting.now], [true, "object"]);
	assert.deepEqual(
		[fixture.stage(old), fixture.stage(fresh), fixture.pool.size],
		["REPLACED", "CANCELLED", 0],
	);
	fixture.builders.take();
	await blocks(fixture, 2);
	assert.deepEqual(fixture.builders.take(), []);
});

scenario(
	"while it is simulated: what comes of that changes nothing, and nothing is sent",
	async (fixture) => {
		const tx = bid(0);
		let open = () => {};
		fixture.simulationGate = new Promise((resolve) => {
			open = resolve;
		});
		await fixture.submit(tx);
		await fixture.clock.advance(0);
		assert.deepEqual([fixture.simulated, fixture.stage(tx)], [["0"], "PENDING"]);
		assert.equal(await cancel(fixture, tx), true);
		open();
		await fixture.quiet();
		await blocks(fixture, 2);
		assert.deepEqual([fixture.stage(tx), fixture.builders.take()], ["CANCELLED", []]);
		assert.deepEqual(fixture.life(tx), ["received", "cancelled"]);
	},
);

scenario(
	"a stranger is refused without a word of the node's or a write, whatever there is",
	async (fixture) => {
		const [tx, ended] = [bid(0), bid(0, { nonce: 1 })];
		await fixture.take(tx, ended);
		assert.equal(await cancel(fixture, ended), true);
		fixture.builders.take();
		fixture.disk.hold = true;
		for (const one of [tx, ended, bid(5)]) {
			for (const who of [
				{ address: "127.0.0.2" },
				{ address: null },
				{ address: null, signer: testAccount(1).address },
			]) {
				assert.equal(await cancel(fixture, one, who), false);
			}
		}
		await fixture.quiet();
		assert.deepEqual(
			[fixture.disk.waiting, fixture.builders.take(), fixture.stage(tx)],
			[0, [], "BROADCAST"],
		);
		fixture.disk.hold = false;
		assert.equal(await cancel(fixture, tx, { address: null, signer: SENDER }), true);
	},
);

scenario("each final stage but its own is refused, and stays", async (fixture) => {
	const finals = [bid(0), bid(0, { nonce: 1, path: "nochecks" }), bid(0, { nonce: 2 }), bid(0, { nonce: 3 })];
	const [mined, reverted, replaced, dropped] = finals as [
		PrivateTransaction,
		PrivateTransaction,
		PrivateTransaction,
		PrivateTransaction,
	];
	const expiring = bid(0, { nonce: 9 });
	await fixture.take(expiring);
	await blocks(fixture, (3 * HOUR_MS) / 12_000 - 3);
	await fixture.take(mined, reverted, replaced, bid(1, { nonce: 2 }), dropped);
	await fixture.block({ mined: [mined] });
	await fixture.block({ mined: [reverted], reverted: true });
	await fixture.block({ used: { [SENDER]: 4n } });
	const stages = ["INCLUDED", "REVERTED", "REPLACED", "DROPPED", "EXPIRED"];
	for (const [i, tx] of [mined, reverted, replaced, dropped, expiring].entries()) {
		assert.equal(fixture.stage(tx), stages[i]);
		assert.equal(await cancel(fixture, tx), false, stages[i]);
		assert.equal(await cancel(fixture, tx, { signer: SENDER }), false, stages[i]);
		assert.equal(fixture.stage(tx), stages[i]);
	}
});

scenario(
	"settled, it is true for the sender's key alone; its bytes are dead for seven days",
	async (fixture) => {
		const tx = bid(0);
		await fixture.take(tx);
		assert.equal(await cancel(fixture, tx), true);
		await blocks(fixture, WATCH_BLOCKS + 1);
		assert.equal(fixture.records.get(tx.tx.hash), undefined);
		assert.equal(await cancel(fixture, tx), false);
		assert.equal(await cancel(fixture, tx, { signer: SENDER }), true);
		fixture.builders.take();
		await fixture.pass(WEEK_MS - HOUR_MS);
		assert.deepEqual(await fixture.take(tx), [{ outcome: "known", hash: tx.tx.hash }]);
		assert.deepEqual([fixture.pool.size, fixture.builders.take()], [0, []]);
		await fixture.pass(2 * HOUR_MS);
		assert.equal(await cancel(fixture, tx, { signer: SENDER }), false);
		assert.deepEqual(await fixture.take(tx), [{ outcome: "accepted", hash: tx.tx.hash }]);
	},
);
