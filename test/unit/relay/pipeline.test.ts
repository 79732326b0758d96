// Tests one submission from bytes to answer: what is kept and when, what is answered again, what replaces what, and
// that a fault of disk or chain leaves nothing wrongly answered, sent or lost.

import assert from "node:assert/strict";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { RpcError } from "../../../shared/jsonrpc/errors.ts";
import { privateTransaction, rawTransaction, testAccount } from "../../support/txFactory.ts";
import { scenario } from "./scenarios.ts";
import { STORE_OUT, type StagesFixture } from "./stagesFixture.ts";

const SENDER = testAccount(0).address;
const accepted = ({ tx }: PrivateTransaction) => ({ outcome: "accepted", hash: tx.hash });
const known = ({ tx }: PrivateTransaction) => ({ outcome: "known", hash: tx.hash });

/** The same nonce, always dearer by ten percent and more than the one before. */
function bid(step: number, nonce = 0): PrivateTransaction {
	const fee = 10n ** 10n * 2n ** BigInt(step);
	return privateTransaction({ nonce, maxFeePerGas: fee, maxPriorityFeePerGas: fee });
}

/** What a restart finds on the disk: stages by nonce and step. */
async function stagesAfterRestart(fixture: StagesFixture, ...transactions: readonly PrivateTransaction[]) {
	const next = await fixture.restart();
	return transactions.map((transaction) => next.stage(transaction));
}

scenario(
	"it is answered when it is on disk, and not before; nor is anything sent before",
	async (fixture) => {
		const tx = bid(0);
		fixture.disk.hold = true;
		let answer: unknown = null;
		const submitting = fixture.submit(tx).then((outcome) => {
			answer = outcome;
		});
		await fixture.quiet();
		assert.deepEqual([answer, fixture.disk.waiting, fixture.builders.take()], [null, 1, []]);
		assert.equal(fixture.pool.pending(tx.tx.hash), null);
		fixture.disk.finish(true);
		await submitting;
		assert.deepEqual(answer, accepted(tx));
		await fixture.quiet();
		assert.deepEqual(fixture.builders.take(), ["send 0 for 101 to a,b"]);
		assert.deepEqual(await stagesAfterRestart(fixture, tx), ["PENDING"]);
	},
);

scenario("bytes that are no transaction are refused in the decoder's words", async (fixture) => {
	const origin = "127.0.0.1";
	const options = { path: "fast", softCancellations: false, refundRecipient: null, referrer: null } as const;
	for (const [raw, message] of [
		[Buffer.alloc(0), /^rlp: /],
		[Buffer.from("05c0", "hex"), /^transaction type not supported/],
		[rawTransaction().subarray(0, -1), /^rlp: /],
	] as const) {
		const outcome = await fixture.pipeline.submit({ ...options, origin, raw });
		assert.ok(outcome.outcome === "refused");
		assert.equal(outcome.rejection.code, "UNDECODABLE");
		assert.match(outcome.rejection.message, message);
	}
	assert.deepEqual([fixture.pool.size, fixture.disk.map.size], [0, 0]);
});

scenario("what the chain does not allow is refused, and nothing is kept", async (fixture) => {
	fixture.node.nonces.set(SENDER, 5n);
	const outcome = await fixture.submit(bid(0, 4));
	assert.deepEqual(outcome, {
		outcome: "refused",
		rejection: { code: "NONCE_TOO_LOW", message: "nonce too low: next nonce 5, tx nonce 4" },
	});
	assert.deepEqual([fixture.pool.size, fixture.disk.map.size], [0, 0]);
});

scenario("where the node does not tell the account, that is said, and nothing is kept", async (fixture) => {
	fixture.node.down = true;
	await assert.rejects(fixture.submit(bid(0)), (thrown: unknown) => {
		assert.ok(thrown instanceof RpcError);
		assert.deepEqual([thrown.code, thrown.data], [-32603, { reason: "node unavailable" }]);
		return true;
	});
	assert.deepEqual([fixture.pool.size, fixture.disk.map.size], [0, 0]);
});

scenario(
	"sent again while it is written, held or mined, it answers its hash and nothing happens",
	async (fixture) => {
		const tx = bid(0);
		fixture.disk.hold = true;
		const both = [fixture.submit(tx), fixture.submit(tx)];
		await fixture.quiet();
		assert.equal(fixture.disk.waiting, 1);
		fixture.disk.finish(true);
		assert.deepEqual(await Promise.all(both), [accepted(tx), known(tx)]);
		fixture.disk.hold = false;
		await fixture.quiet();
		fixture.builders.take();
		assert.deepEqual(await fixture.take(tx), [known(tx)]);
		await fixture.block({ mined: [tx] });
		assert.deepEqual(await fixture.take(tx), [known(tx)]);
		for (let i = 0; i < 70; i += 1) await fixture.block();
		assert.equal(fixture.records.get(tx.tx.hash), undefined);
		assert.deepEqual(await fixture.take(tx), [known(tx)]);
		assert.deepEqual(fixture.builders.take(), []);
	},
);

scenario("the same bytes twice while the node is asked are one submission", async (fixture) => {
	const tx = bid(0);
	let open = () => {};
	fixture.node.gate = new Promise((resolve) => {
		open = resolve;
	});
	const both = [fixture.submit(tx), fixture.submit(tx)];
	open();
	const outcomes = await Promise.all(both);
	assert.deepEqual(
		outcomes.map((outcome) => ("hash" in outcome ? outcome.hash : "")),
		[tx.tx.hash, tx.tx.hash],
	);
	await fixture.quiet();
	assert.deepEqual([fixture.pool.size, fixture.builders.take()], [1, ["send 0 for 101 to a,b"]]);
});

scenario("a dearer one replaces it: builders are told, the old one ends, on disk too", async (fixture) => {
	const [old, fresh] = [bid(0), bid(1)];
	await fixture.take(old, fresh);
	assert.deepEqual([fixture.stage(old), fixture.stage(fresh)], ["REPLACED", "BROADCAST"]);
	assert.deepEqual(fixture.builders.take(), [
		"send 0 for 101 to a,b",
		"cancel 0 for 101 at a,b",
		"send 0 for 101 to a,b",
	]);
	assert.deepEqual(await stagesAfterRestart(fixture, old, fresh), ["REPLACED", "PENDING"]);
});

scenario(
	"what its user replaced is not revived by its bytes, across restarts, until its nonce is used",
	async (fixture) => {
		const [old, fresh] = [bid(0), bid(1)];
		await fixture.take(old, fresh);
		for (const each of [fixture, await fixture.restart()]) {
			each.builders.take();
			assert.deepEqual(await each.take(old), [known(old)]);
			assert.deepEqual([each.stage(old), each.pool.get(old.tx.hash)], ["REPLACED", undefined]);
		}
		await fixture.block({ mined: [fresh] });
		assert.deepEqual(await fixture.take(old), [
			{
				outcome: "refused",
				rejection: { code: "NONCE_TOO_LOW", message: "nonce too low: next nonce 1, tx nonce 0" },
			},
		]);
	},
);

for (const [end, stage] of [
	["expired", "EXPIRED"],
	["dropped", "DROPPED"],
] as const) {
	scenario(`what ${end} is admitted anew, and its life begins again`, async (fixture) => {
		const tx = bid(0);
		await fixture.take(tx);
		if (end === "dropped") {
			await fixture.block({ used: { [SENDER]: 1n } });
			fixture.node.nonces.set(SENDER, 0n);
			fixture.pool.rewind(0);
		}
		for (let i = 0; i < 25; i += 1) await fixture.block();
		assert.equal(fixture.stage(tx), stage);
		fixture.builders.take();
		assert.deepEqual(await fixture.take(tx), [accepted(tx)]);
		const next = fixture.head.number + 1;
		assert.deepEqual(fixture.builders.take(), [`send 0 for ${next} to a,b`]);
		assert.equal(fixture.stage(tx), "BROADCAST");
		assert.equal(fixture.records.get(tx.tx.hash)?.record.firstBlock, next);
		assert.deepEqual(fixture.life(tx).slice(-4), ["received", "ready", "simulated", "broadcast"]);
		await fixture.transactions.flush(true);
		assert.deepEqual(await stagesAfterRestart(fixture, tx), ["BROADCAST"]);
	});
}

scenario(
	"a write that fails is told, and nothing is kept; the same bytes may come again",
	async (fixture) => {
		const tx = bid(0);
		fixture.disk.broken = true;
		await assert.rejects(fixture.submit(tx), STORE_OUT);
		await fixture.quiet();
		assert.deepEqual([fixture.pool.size, fixture.records.size, fixture.builders.take()], [0, 0, []]);
		fixture.disk.broken = false;
		assert.deepEqual(await fixture.take(tx), [accepted(tx)]);
	},
);

scenario("a replacement whose write fails leaves the old one where it was", async (fixture) => {
	const [old, fresh] = [bid(0), bid(1)];
	await fixture.take(old);
	fixture.disk.broken = true;
	await assert.rejects(fixture.submit(fresh), STORE_OUT);
	fixture.disk.broken = false;
	await fixture.quiet();
	assert.equal(fixture.stage(old), "BROADCAST");
	await fixture.block();
	assert.deepEqual(fixture.builders.take(), ["send 0 for 101 to a,b", "send 0 for 102 to a,b"]);
	assert.deepEqual(await fixture.take(fresh), [accepted(fresh)]);
});

scenario(
	"what was refused because its write failed is not in the pool, though another came behind it",
	async (fixture) => {
		const [first, second] = [bid(0), bid(1)];
		fixture.disk.hold = true;
		const answers = Promise.allSettled([fixture.submit(first), fixture.submit(second)]);
		await fixture.quiet();
		fixture.disk.finish(false);
		await fixture.quiet();
		fixture.disk.finish(false);
		await answers;
		assert.deepEqual([fixture.pool.size, fixture.pool.get(first.tx.hash)], [0, undefined]);
		// Were it still there, its hash would be answered as if it was held.
		fixture.disk.hold = false;
		assert.deepEqual(await fixture.take(first), [accepted(first)]);
		assert.deepEqual(fixture.builders.take(), ["send 0 for 101 to a,b"]);
	},
);

scenario(
	"what is on disk stays in the pool where the writes of two that would replace it fail",
	async (fixture) => {
		const [held, second, third] = [bid(0), bid(1), bid(2)];
		await fixture.take(held);
		fixture.disk.hold = true;
		const answers = Promise.allSettled([fixture.submit(second), fixture.submit(third)]);
		await fixture.quiet();
		fixture.disk.finish(false);
		await fixture.quiet();
		fixture.disk.finish(false);
		await answers;
		fixture.disk.hold = false;
		await fixture.quiet();
		assert.notEqual(fixture.pool.get(held.tx.hash), undefined);
		fixture.builders.take();
		await fixture.block();
		assert.deepEqual(fixture.builders.take(), ["send 0 for 102 to a,b"]);
	},
);

scenario("what was replaced while it was written is replaced on disk as well", async (fixture) => {
	const [first, second] = [bid(0), bid(1)];
	fixture.disk.hold = true;
	const answers = Promise.all([fixture.submit(first), fixture.submit(second)]);
	await fixture.quiet();
	while (fixture.disk.waiting > 0) {
		fixture.disk.finish(true, 1);
		await fixture.quiet();
	}
	assert.deepEqual(await answers, [accepted(first), accepted(second)]);
	assert.deepEqual([fixture.stage(first), fixture.stage(second)], ["REPLACED", "BROADCAST"]);
	// No block came in between: a process that dies now has nothing but these writes.
	const next = await fixture.restart();
	assert.deepEqual([await next.stageOrKept(first), next.stage(second)], ["REPLACED", "PENDING"]);
});

scenario("one whose nonce is used while it is written is dropped, not pending for ever", async (fixture) => {
	const tx = bid(0);
	await fixture.take(bid(0, 1));
	fixture.disk.hold = true;
	const submitting = fixture.submit(tx);
	await fixture.quiet();
	const working = fixture.block({ used: { [SENDER]: 1n } });
	await fixture.quiet();
	fixture.disk.hold = false;
	fixture.disk.finish(true);
	await submitting;
	await working;
	await fixture.quiet();
	await fixture.block();
	assert.equal(fixture.stage(tx), "DROPPED");
	assert.equal(fixture.pool.get(tx.tx.hash), undefined);
});
