// A node that answers from another fork than the relay follows, as one of several behind a load
// balancer may, ends nothing for good: a transaction goes on as soon as the node answers from the
// followed chain again.

import assert from "node:assert/strict";
import { type PrivateTransaction, WATCH_BLOCKS } from "../../../relay/domain/transaction.ts";
import { privateTransaction } from "../../support/txFactory.ts";
import { blocks, LIFE_BLOCKS, SENDER, type StagesFixture, scenario } from "./stagesFixture.ts";

/**
 * Submits a transaction that is in the next block, while the node has its receipt from another one
 * at that height.
 */
async function minedInBoth(fixture: StagesFixture): Promise<PrivateTransaction> {
	const tx = privateTransaction();
	await fixture.take(tx);
	fixture.node.otherFork.add(tx.tx.hash);
	const mining = fixture.block({ mined: [tx] });
	await fixture.clock.advance(1_000);
	await mining;
	return tx;
}

scenario(
	"a followed block has it, and its receipt is of another one: it is mined once the receipt says so",
	async (fixture) => {
		const tx = await minedInBoth(fixture);
		assert.equal(fixture.stage(tx), "BROADCAST");
		fixture.builders.take();
		await fixture.block();
		assert.deepEqual(fixture.builders.take(), [], "nothing is sent that a block has");
		fixture.node.otherFork.clear();
		await fixture.block();
		const { stage, block } = fixture.records.get(tx.tx.hash)?.record ?? {};
		assert.deepEqual([stage, block], ["INCLUDED", 101]);
	},
);

scenario("none of a followed block ever comes: it expires with the watching", async (fixture) => {
	const tx = await minedInBoth(fixture);
	await blocks(fixture, WATCH_BLOCKS - 1);
	assert.equal(fixture.stage(tx), "BROADCAST");
	await fixture.block();
	assert.equal(fixture.stage(tx), "EXPIRED");
});

for (const path of ["fast", "noreverts"] as const) {
	scenario(`nonce and receipt are of another fork (/${path}): neither mined nor dropped`, async (fixture) => {
		const tx = privateTransaction({ path });
		await fixture.take(tx);
		fixture.node.otherFork.add(tx.tx.hash);
		await fixture.block({ used: { [SENDER]: 1n } });
		assert.equal(fixture.stage(tx), "BROADCAST");
		fixture.node.otherFork.clear();
		fixture.node.nonces.clear();
		fixture.builders.take();
		await fixture.clock.advance(1_000);
		await fixture.block();
		assert.equal(fixture.stage(tx), "BROADCAST");
		assert.match(fixture.builders.take().at(-1) ?? "", /^send 0 for 103/);
		await fixture.block({ mined: [tx] });
		assert.equal(fixture.stage(tx), "INCLUDED");
	});
}

scenario(
	"after a gap: what is mined stays so, and what is pending is sent to nobody, until the node tells",
	async (fixture) => {
		const mined = privateTransaction();
		const pending = privateTransaction({ nonce: 1 });
		await fixture.take(mined, pending);
		await fixture.block({ mined: [mined] });
		for (const { tx } of [mined, pending]) fixture.node.otherFork.add(tx.hash);
		fixture.builders.take();
		const working = fixture.work([], [], true);
		await fixture.clock.advance(1_000);
		await working;
		assert.deepEqual(fixture.stages(mined, pending), ["INCLUDED", "BROADCAST"]);
		assert.deepEqual(fixture.builders.take(), []);
		fixture.node.otherFork.clear();
		const { head } = fixture;
		fixture.node.mined.set(pending.tx.hash, {
			...{ hash: pending.tx.hash, block: head.number, blockHash: head.hash, index: 1, reverted: false },
			coinbase: head.miner,
		});
		await fixture.block();
		assert.deepEqual(fixture.stages(mined, pending), ["INCLUDED", "INCLUDED"]);
	},
);

for (const [count, stage, sent] of [
	[LIFE_BLOCKS - 2, "BROADCAST", 1],
	[LIFE_BLOCKS - 1, "EXPIRED", 0],
	[WATCH_BLOCKS - 1, "EXPIRED", 0],
] as const)
	scenario(
		`its nonce was used in a block that is not followed, and is free ${count} blocks later: ${stage}`,
		async (fixture) => {
			const tx = privateTransaction({ path: "noreverts" });
			await fixture.take(tx);
			await fixture.block({ used: { [SENDER]: 1n } });
			assert.equal(fixture.stage(tx), "DROPPED");
			await blocks(fixture, count - 1);
			assert.equal(fixture.stage(tx), "DROPPED");
			fixture.node.nonces.clear();
			fixture.builders.take();
			await fixture.block();
			assert.equal(fixture.stage(tx), stage);
			assert.equal(fixture.builders.take().length, sent);
			await fixture.block({ mined: [tx] });
			assert.equal(fixture.stage(tx), "INCLUDED");
		},
	);

for (const answer of ["answers", "fails once"] as const)
	scenario(
		`a nonce is free again and the node ${answer}: the dropped transaction is back before the later ones are looked at`,
		async (fixture) => {
			const [dropped, later] = [privateTransaction(), privateTransaction({ nonce: 1 })];
			await fixture.take(dropped, later);
			await fixture.block({ used: { [SENDER]: 1n } });
			const { head } = fixture;
			assert.deepEqual(fixture.stages(dropped, later), ["DROPPED", "BROADCAST"]);
			fixture.builders.take();
			if (answer === "fails once") fixture.node.failures = 1;
			await fixture.block({ used: { [SENDER]: 0n }, reverted: [head] });
			await fixture.pass(1_000);
			assert.deepEqual(fixture.stages(dropped, later), ["BROADCAST", "BROADCAST"]);
			const { events = [], firstBlock } = fixture.records.get(later.tx.hash)?.record ?? {};
			const waits = events.filter((event) => event.type === "queued" && event.block > 100);
			assert.deepEqual(waits, [], "it never waits for the nonce");
			assert.equal(firstBlock, 101, "its lifetime goes on");
			assert.deepEqual(fixture.builders.take().slice(-2), ["send 0 for 104 to a,b", "send 1 for 104 to a,b"]);
		},
	);
