// Tests what a block does to the relay's transactions where a real chain would take hours, or a disk or node must fail in
// the very moment: long waits, the end of watching, and blocks that come while something is written.

import assert from "node:assert/strict";
import { GAP_LIFE_S } from "../../../relay/blockLoop.ts";
import { WATCH_BLOCKS } from "../../../relay/chainChanges.ts";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { privateTransaction } from "../../support/txFactory.ts";
import { blocks, DEAR, LIFE_BLOCKS, SENDER, type StagesFixture, scenario } from "./stagesFixture.ts";

const GAP_BLOCKS = GAP_LIFE_S / 12;
const at = (nonce: number, path: PrivateTransaction["path"] = "fast") => privateTransaction({ nonce, path });

scenario("what waits behind a gap is given up after three hours", async (fixture) => {
	const tx = at(5);
	await fixture.take(tx);
	await blocks(fixture, GAP_BLOCKS - 1);
	assert.equal(fixture.stage(tx), "QUEUED");
	await fixture.block();
	assert.equal(await fixture.stageOrKept(tx), "EXPIRED");
});

scenario("the hours behind a gap are counted from when it came to wait there", async (fixture) => {
	const [held, behind] = [at(0, "noreverts"), at(1, "noreverts")];
	await fixture.take(behind);
	await blocks(fixture, GAP_BLOCKS - 2);
	await fixture.take(held);
	await fixture.block();
	assert.equal(fixture.stage(behind), "BROADCAST");
	fixture.failing.add(held.tx.hash);
	await blocks(fixture, 3);
	assert.deepEqual(fixture.stages(held, behind), ["SIMULATION_FAILED", "QUEUED"]);
	// Until then it waited for the one before it, from here on behind a gap.
	while (fixture.stage(held) !== "EXPIRED") await fixture.block();
	await blocks(fixture, GAP_BLOCKS - 1);
	assert.equal(fixture.stage(behind), "QUEUED");
	await fixture.block();
	assert.equal(fixture.stage(behind), "EXPIRED");
});

for (const [name, end] of [
	["mined", (fixture: StagesFixture, tx: PrivateTransaction) => fixture.block({ mined: [tx] })],
	["dropped", (fixture: StagesFixture) => fixture.block({ used: { [SENDER]: 1n } })],
	["expired", (fixture: StagesFixture) => blocks(fixture, LIFE_BLOCKS)],
] as const) {
	scenario(`what is ${name} is watched for 64 blocks; then its bytes are forgotten`, async (fixture) => {
		const tx = at(0);
		await fixture.take(tx);
		await end(fixture, tx);
		const stage = fixture.stage(tx);
		await blocks(fixture, WATCH_BLOCKS - 1);
		assert.equal(fixture.stage(tx), stage);
		await fixture.block();
		assert.deepEqual([fixture.records.size, await fixture.stageOrKept(tx)], [0, stage]);
		for (const value of fixture.disk.map.values()) assert.equal(value.indexOf(tx.tx.raw), -1);
		assert.equal((await fixture.store.settled(tx.tx.hash))?.origin, null, "who submitted it is forgotten");
		const bySender = { hash: tx.tx.hash, address: null, signer: SENDER };
		assert.equal(await fixture.cancellations.cancel(bySender), false);
	});
}

scenario("what is where it was is not taken back, however long its life was", async (fixture) => {
	const tx = at(0);
	await fixture.take(tx);
	for (let i = 0; i < 300; i += 1) {
		fixture.records.emit(tx.tx.hash, { type: "broadcast", at: 1, block: 101 });
	}
	await fixture.block({ mined: [tx] });
	const before = structuredClone(fixture.records.get(tx.tx.hash)?.record);
	await fixture.work([], [], true);
	assert.deepEqual(fixture.records.get(tx.tx.hash)?.record, before);
});

scenario("while the node is silent no block is passed over", async (fixture) => {
	const tx = at(0);
	await fixture.take(tx);
	fixture.node.down = true;
	const working = fixture.block({ mined: [tx] });
	await fixture.clock.advance(2_000);
	assert.deepEqual([fixture.stage(tx), fixture.tip.head()?.number], ["BROADCAST", 100]);
	fixture.node.down = false;
	await fixture.clock.advance(500);
	await working;
	assert.deepEqual([fixture.stage(tx), fixture.tip.head()?.number], ["INCLUDED", 101]);
});

scenario("a disk that fails does not stop the blocks; what changed is written later", async (fixture) => {
	const [one, two] = [at(0), at(1)];
	await fixture.take(one, two);
	fixture.builders.take();
	fixture.disk.broken = true;
	await fixture.block({ mined: [one] });
	assert.deepEqual(fixture.builders.take(), ["send 1 for 102 to a,b"]);
	const told = fixture.faults.splice(0).map((line) => line.slice(0, line.indexOf(" {")));
	assert.deepEqual(told, ["records could not be written"]);
	fixture.disk.broken = false;
	await fixture.block();
	assert.deepEqual((await fixture.restart()).stages(one, two), ["INCLUDED", "BROADCAST"]);
});

for (const [when, watched, stage] of [
	["a block comes", 10, "BROADCAST"],
	["its former end is settled", WATCH_BLOCKS - 1, "BROADCAST"],
	["a block with it comes", 10, "INCLUDED"],
] as const) {
	scenario(`what is admitted anew while ${when} is ${stage}, here and on disk`, async (fixture) => {
		const tx = at(0);
		await fixture.take(tx);
		await blocks(fixture, LIFE_BLOCKS + watched);
		assert.equal(fixture.stage(tx), "EXPIRED");
		fixture.disk.hold = true;
		const submitting = fixture.submit(tx);
		await fixture.clock.advance(0);
		const working = fixture.block({ mined: stage === "INCLUDED" ? [tx] : [] });
		for (let i = 0; i < 20; i += 1) {
			fixture.disk.finish(true, 1);
			await fixture.clock.advance(0);
		}
		fixture.disk.hold = false;
		await Promise.all([submitting, working]);
		await fixture.quiet();
		const pending = stage === "BROADCAST" ? 1 : 0;
		assert.deepEqual([fixture.pool.size, fixture.stage(tx)], [pending, stage]);
		await fixture.transactions.flush(false);
		assert.equal((await fixture.restart()).pool.size, pending, "on disk it is not so");
	});
}

scenario("one whose nonce is used while it is written is dropped, not pending for ever", async (fixture) => {
	const tx = at(0);
	await fixture.take(at(1));
	fixture.disk.hold = true;
	const submitting = fixture.submit(tx);
	await fixture.quiet();
	const working = fixture.block({ used: { [SENDER]: 1n } });
	await fixture.quiet();
	fixture.disk.hold = false;
	fixture.disk.finish(true);
	await submitting;
	await working;
	await fixture.block();
	assert.deepEqual([fixture.stage(tx), fixture.pool.get(tx.tx.hash)], ["DROPPED", undefined]);
});

scenario("a block that comes while one is replaced does not undo that on disk", async (fixture) => {
	const [old, fresh] = [at(0), privateTransaction(DEAR)];
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
