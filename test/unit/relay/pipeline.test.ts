// Tests one submission from bytes to answer: what is kept and when, what is answered again, what replaces what, and
// that a fault of disk or chain leaves nothing wrongly answered, sent or lost.

import assert from "node:assert/strict";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { RpcError } from "../../../shared/jsonrpc/errors.ts";
import { privateTransaction, rawTransaction, testAccount } from "../../support/txFactory.ts";
import { STORE_OUT, type StagesScene } from "./stagesScene.ts";
import { story } from "./stories.ts";

const SENDER = testAccount(0).address;
const accepted = ({ tx }: PrivateTransaction) => ({ outcome: "accepted", hash: tx.hash });
const known = ({ tx }: PrivateTransaction) => ({ outcome: "known", hash: tx.hash });

/** The same nonce, always dearer by ten percent and more than the one before. */
function bid(step: number, nonce = 0): PrivateTransaction {
	const fee = 10n ** 10n * 2n ** BigInt(step);
	return privateTransaction({ nonce, maxFeePerGas: fee, maxPriorityFeePerGas: fee });
}

/** What a restart finds on the disk: stages by nonce and step. */
async function stagesAfterRestart(scene: StagesScene, ...transactions: readonly PrivateTransaction[]) {
	const next = await scene.restart();
	return transactions.map((transaction) => next.stage(transaction));
}

story("it is answered when it is on disk, and not before; nor is anything sent before", async (scene) => {
	const tx = bid(0);
	scene.disk.hold = true;
	let answer: unknown = null;
	const submitting = scene.submit(tx).then((outcome) => {
		answer = outcome;
	});
	await scene.quiet();
	assert.deepEqual([answer, scene.disk.waiting, scene.builders.take()], [null, 1, []]);
	assert.equal(scene.pool.pending(tx.tx.hash), null);
	scene.disk.finish(true);
	await submitting;
	assert.deepEqual(answer, accepted(tx));
	await scene.quiet();
	assert.deepEqual(scene.builders.take(), ["send 0 for 101 to a,b"]);
	assert.deepEqual(await stagesAfterRestart(scene, tx), ["PENDING"]);
});

story("bytes that are no transaction are refused in the decoder's words", async (scene) => {
	const origin = "127.0.0.1";
	const options = { path: "fast", softCancellations: false, refundRecipient: null, referrer: null } as const;
	for (const [raw, message] of [
		[Buffer.alloc(0), /^rlp: /],
		[Buffer.from("05c0", "hex"), /^transaction type not supported/],
		[rawTransaction().subarray(0, -1), /^rlp: /],
	] as const) {
		const outcome = await scene.pipeline.submit({ ...options, origin, raw });
		assert.ok(outcome.outcome === "refused");
		assert.equal(outcome.rejection.code, "UNDECODABLE");
		assert.match(outcome.rejection.message, message);
	}
	assert.deepEqual([scene.pool.size, scene.disk.map.size], [0, 0]);
});

story("what the chain does not allow is refused, and nothing is kept", async (scene) => {
	scene.node.nonces.set(SENDER, 5n);
	const outcome = await scene.submit(bid(0, 4));
	assert.deepEqual(outcome, {
		outcome: "refused",
		rejection: { code: "NONCE_TOO_LOW", message: "nonce too low: next nonce 5, tx nonce 4" },
	});
	assert.deepEqual([scene.pool.size, scene.disk.map.size], [0, 0]);
});

story("where the node does not tell the account, that is said, and nothing is kept", async (scene) => {
	scene.node.down = true;
	await assert.rejects(scene.submit(bid(0)), (thrown: unknown) => {
		assert.ok(thrown instanceof RpcError);
		assert.deepEqual([thrown.code, thrown.data], [-32603, { reason: "node unavailable" }]);
		return true;
	});
	assert.deepEqual([scene.pool.size, scene.disk.map.size], [0, 0]);
});

story(
	"sent again while it is written, held or mined, it answers its hash and nothing happens",
	async (scene) => {
		const tx = bid(0);
		scene.disk.hold = true;
		const both = [scene.submit(tx), scene.submit(tx)];
		await scene.quiet();
		assert.equal(scene.disk.waiting, 1);
		scene.disk.finish(true);
		assert.deepEqual(await Promise.all(both), [accepted(tx), known(tx)]);
		scene.disk.hold = false;
		await scene.quiet();
		scene.builders.take();
		assert.deepEqual(await scene.take(tx), [known(tx)]);
		await scene.block({ mined: [tx] });
		assert.deepEqual(await scene.take(tx), [known(tx)]);
		for (let i = 0; i < 70; i += 1) await scene.block();
		assert.equal(scene.ledger.get(tx.tx.hash), undefined);
		assert.deepEqual(await scene.take(tx), [known(tx)]);
		assert.deepEqual(scene.builders.take(), []);
	},
);

story("the same bytes twice while the node is asked are one submission", async (scene) => {
	const tx = bid(0);
	let open = () => {};
	scene.node.gate = new Promise((resolve) => {
		open = resolve;
	});
	const both = [scene.submit(tx), scene.submit(tx)];
	open();
	const outcomes = await Promise.all(both);
	assert.deepEqual(
		outcomes.map((outcome) => ("hash" in outcome ? outcome.hash : "")),
		[tx.tx.hash, tx.tx.hash],
	);
	await scene.quiet();
	assert.deepEqual([scene.pool.size, scene.builders.take()], [1, ["send 0 for 101 to a,b"]]);
});

story("a dearer one replaces it: builders are told, the old one ends, on disk too", async (scene) => {
	const [old, fresh] = [bid(0), bid(1)];
	await scene.take(old, fresh);
	assert.deepEqual([scene.stage(old), scene.stage(fresh)], ["REPLACED", "BROADCAST"]);
	assert.deepEqual(scene.builders.take(), [
		"send 0 for 101 to a,b",
		"cancel 0 for 101 at a,b",
		"send 0 for 101 to a,b",
	]);
	assert.deepEqual(await stagesAfterRestart(scene, old, fresh), ["REPLACED", "PENDING"]);
});

story(
	"what its user replaced is not revived by its bytes, across restarts, until its nonce is used",
	async (scene) => {
		const [old, fresh] = [bid(0), bid(1)];
		await scene.take(old, fresh);
		for (const each of [scene, await scene.restart()]) {
			each.builders.take();
			assert.deepEqual(await each.take(old), [known(old)]);
			assert.deepEqual([each.stage(old), each.pool.get(old.tx.hash)], ["REPLACED", undefined]);
		}
		await scene.block({ mined: [fresh] });
		assert.deepEqual(await scene.take(old), [
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
	story(`what ${end} is admitted anew, and its life begins again`, async (scene) => {
		const tx = bid(0);
		await scene.take(tx);
		if (end === "dropped") {
			await scene.block({ used: { [SENDER]: 1n } });
			scene.node.nonces.set(SENDER, 0n);
			scene.pool.rewind(0);
		}
		for (let i = 0; i < 25; i += 1) await scene.block();
		assert.equal(scene.stage(tx), stage);
		scene.builders.take();
		assert.deepEqual(await scene.take(tx), [accepted(tx)]);
		const next = scene.head.number + 1;
		assert.deepEqual(scene.builders.take(), [`send 0 for ${next} to a,b`]);
		assert.equal(scene.stage(tx), "BROADCAST");
		assert.equal(scene.ledger.get(tx.tx.hash)?.record.firstBlock, next);
		assert.deepEqual(scene.life(tx).slice(-4), ["received", "ready", "simulated", "broadcast"]);
		await scene.transactions.flush(true);
		assert.deepEqual(await stagesAfterRestart(scene, tx), ["BROADCAST"]);
	});
}

story("a write that fails is told, and nothing is kept; the same bytes may come again", async (scene) => {
	const tx = bid(0);
	scene.disk.broken = true;
	await assert.rejects(scene.submit(tx), STORE_OUT);
	await scene.quiet();
	assert.deepEqual([scene.pool.size, scene.ledger.size, scene.builders.take()], [0, 0, []]);
	scene.disk.broken = false;
	assert.deepEqual(await scene.take(tx), [accepted(tx)]);
});

story("a replacement whose write fails leaves the old one where it was", async (scene) => {
	const [old, fresh] = [bid(0), bid(1)];
	await scene.take(old);
	scene.disk.broken = true;
	await assert.rejects(scene.submit(fresh), STORE_OUT);
	scene.disk.broken = false;
	await scene.quiet();
	assert.equal(scene.stage(old), "BROADCAST");
	await scene.block();
	assert.deepEqual(scene.builders.take(), ["send 0 for 101 to a,b", "send 0 for 102 to a,b"]);
	assert.deepEqual(await scene.take(fresh), [accepted(fresh)]);
});

story(
	"what was refused because its write failed is not in the pool, though another came behind it",
	async (scene) => {
		const [first, second] = [bid(0), bid(1)];
		scene.disk.hold = true;
		const answers = Promise.allSettled([scene.submit(first), scene.submit(second)]);
		await scene.quiet();
		scene.disk.finish(false);
		await scene.quiet();
		scene.disk.finish(false);
		await answers;
		assert.deepEqual([scene.pool.size, scene.pool.get(first.tx.hash)], [0, undefined]);
		// Were it still there, its hash would be answered as if it was held.
		scene.disk.hold = false;
		assert.deepEqual(await scene.take(first), [accepted(first)]);
		assert.deepEqual(scene.builders.take(), ["send 0 for 101 to a,b"]);
	},
);

story(
	"what is on disk stays in the pool where the writes of two that would replace it fail",
	async (scene) => {
		const [held, second, third] = [bid(0), bid(1), bid(2)];
		await scene.take(held);
		scene.disk.hold = true;
		const answers = Promise.allSettled([scene.submit(second), scene.submit(third)]);
		await scene.quiet();
		scene.disk.finish(false);
		await scene.quiet();
		scene.disk.finish(false);
		await answers;
		scene.disk.hold = false;
		await scene.quiet();
		assert.notEqual(scene.pool.get(held.tx.hash), undefined);
		scene.builders.take();
		await scene.block();
		assert.deepEqual(scene.builders.take(), ["send 0 for 102 to a,b"]);
	},
);

story("what was replaced while it was written is replaced on disk as well", async (scene) => {
	const [first, second] = [bid(0), bid(1)];
	scene.disk.hold = true;
	const answers = Promise.all([scene.submit(first), scene.submit(second)]);
	await scene.quiet();
	while (scene.disk.waiting > 0) {
		scene.disk.finish(true, 1);
		await scene.quiet();
	}
	assert.deepEqual(await answers, [accepted(first), accepted(second)]);
	assert.deepEqual([scene.stage(first), scene.stage(second)], ["REPLACED", "BROADCAST"]);
	// No block came in between: a process that dies now has nothing but these writes.
	const next = await scene.restart();
	assert.deepEqual([await next.stageOrKept(first), next.stage(second)], ["REPLACED", "PENDING"]);
});

story("one whose nonce is used while it is written is dropped, not pending for ever", async (scene) => {
	const tx = bid(0);
	await scene.take(bid(0, 1));
	scene.disk.hold = true;
	const submitting = scene.submit(tx);
	await scene.quiet();
	const working = scene.block({ used: { [SENDER]: 1n } });
	await scene.quiet();
	scene.disk.hold = false;
	scene.disk.finish(true);
	await submitting;
	await working;
	await scene.quiet();
	await scene.block();
	assert.equal(scene.stage(tx), "DROPPED");
	assert.equal(scene.pool.get(tx.tx.hash), undefined);
});
